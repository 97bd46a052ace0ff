//! A serial link that runs from one transmission to the next. Watched departures, late drops by the queue and a new
//! medium take effect at the next transmission.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Seq, Span, Time};

use crate::carried::Carried;
use crate::in_order::{InOrder, Order};
use crate::medium::{AnyMedium, Fate, Found, Medium, Transmission};
use crate::outcomes::Outcomes;
use crate::queue::{AnyQueue, Place, Queue};
use crate::{BufferMeaning, Cause, Departures, LinkEvent, LinkView, Load};

use super::flight::Flight;
use super::rate_reports::RateReports;

/// Serial link with a queue, a transmitter and the packets in flight.
pub(super) struct Stepwise {
    /// Packet that the link is transmitting.
    pub(super) serving: Option<Serving>,
    /// Time at which the medium lets the head packet of the queue start; never if the link waits for no such time.
    begins: Time,
    pub(super) outcomes: Outcomes,
    pub(super) queue: AnyQueue,
    pub(super) medium: AnyMedium,
    carried: Carried,
    pub(super) in_order: InOrder,
    /// Lower bound of the medium's propagation delay.
    least_delay: Span,
    pub(super) flows: Flows,
    departures: Departures,
    pub(super) meaning: BufferMeaning,
    pub(super) waits: Histogram,
    /// Segment in transmission, stored only if its departure or loss will be reported.
    served: Segment,
    /// Time of the next possible rate change; never if no rate reports are requested.
    rate_due: Time,
    reports: Option<Box<RateReports>>,
    /// Time of the next rate report or expiry in the queue, or an earlier time.
    side_due: Time,
}

/// Number of flows seen so far: none, one or several. Packets of one flow cannot overtake each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flows {
    None,
    One(FlowId),
    Several,
}

impl Flows {
    fn note(&mut self, flow: FlowId) {
        *self = match *self {
            Self::None => Self::One(flow),
            Self::One(other) if other == flow => return,
            _ => Self::Several,
        };
    }
}

/// Packet that the link is transmitting.
#[derive(Clone, Copy)]
pub(super) struct Serving {
    pub(super) departs: Time,
    pub(super) begun: Time,
    pub(super) flow: FlowId,
    /// Packet size in bytes, including headers.
    pub(super) size: u32,
    /// Unsent bytes of the packet at time `begun`.
    pub(super) bytes: u32,
    pub(super) ending: Ending,
}

/// Event to report at the end of a transmission.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Nothing,
    Departure,
    Loss,
}

impl Serving {
    /// Unsent bytes of the packet at `now`.
    fn rest(&self, now: Time) -> u32 {
        // After a change of medium, the transmission may start later than `now`.
        let from = now.max(self.begun);
        let (left, whole) = (self.departs.since(from).as_nanos(), self.departs.since(self.begun).as_nanos());
        if self.departs == Time::NEVER || whole == 0 {
            return self.bytes;
        }
        (u128::from(self.bytes) * u128::from(left)).div_ceil(u128::from(whole)) as u32
    }
}

impl Stepwise {
    /// Creates an idle link.
    pub(super) fn new(medium: AnyMedium, queue: AnyQueue, meaning: BufferMeaning) -> Self {
        let varies = medium.varies();
        let order = if varies { Order::Enforced } else { Order::Kept };
        Self {
            serving: None,
            begins: Time::NEVER,
            outcomes: Outcomes::default(),
            queue,
            in_order: InOrder::new(order),
            least_delay: medium.least_delay(),
            medium,
            carried: Carried::default(),
            flows: Flows::None,
            departures: Departures::Unwatched,
            meaning,
            waits: Histogram::default(),
            served: Segment::pure_ack(FlowId(0), Seq(0), 0),
            rate_due: Time::NEVER,
            reports: None,
            side_due: Time::NEVER,
        }
    }

    /// Time at which the transmitter next ends or starts a transmission.
    #[inline]
    fn changes(&self) -> Time {
        self.serving.as_ref().map_or(self.begins, |serving| serving.departs)
    }

    /// Runs the transmitter up to `now`: ends due transmissions and starts further ones.
    #[inline]
    fn advance(&mut self, now: Time) {
        if self.changes().min(self.side_due) <= now {
            self.catch_up(now);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, now: Time) {
        loop {
            let next = self.changes().min(self.side_due);
            if next > now {
                return;
            } else if next == self.side_due {
                self.handle_side(next);
            } else {
                match self.serving.take() {
                    Some(serving) => self.depart(&serving),
                    None => self.begin(self.begins),
                }
            }
        }
    }

    /// Drops aged packets and reports the rate at `at`, if due.
    #[cold]
    fn handle_side(&mut self, at: Time) {
        self.queue.expire(at);
        self.tell_drops(at);
        if self.rate_due <= at {
            self.note_rate(at);
        }
        self.note_side_due();
    }

    fn note_side_due(&mut self) {
        self.side_due = self.rate_due.min(self.queue.expires());
    }

    /// Reports the link's rate at `at` if it changed and rate reports are requested.
    #[cold]
    fn note_rate(&mut self, at: Time) {
        let Some(reports) = &mut self.reports else { return };
        reports.note(at, self.medium.rate(at), self.queue.load());
        self.rate_due = self.medium.rate_until(at);
        self.note_side_due();
    }

    /// Ends a transmission, and starts the next transmission if the medium is ready.
    #[inline]
    fn depart(&mut self, serving: &Serving) {
        let at = serving.departs;
        match serving.ending {
            Ending::Nothing => {}
            Ending::Departure => self.outcomes.push(at, LinkEvent::Departed, self.served),
            Ending::Loss => self.outcomes.push(at, LinkEvent::Dropped(Cause::Medium), self.served),
        }
        if !self.queue.is_empty() {
            self.begins = self.medium.ready(at, Found::Busy);
            if self.begins <= at {
                self.begin(at);
            }
        }
    }

    /// Moves the head packet of the queue into the transmitter.
    #[inline]
    fn begin(&mut self, at: Time) {
        self.begins = Time::NEVER;
        if let Some((arrived, next)) = self.queue.dequeue(at) {
            self.serve(at, arrived, &next);
        }
        self.tell_drops(at);
    }

    /// Moves a segment into the transmitter.
    #[inline]
    fn serve(&mut self, now: Time, arrived: Time, segment: &Segment) {
        self.waits.record(now.since(arrived));
        let Transmission { departs, delay, fate } = self.medium.transmit(arrived, now, segment);
        let ending = match (fate, self.departures) {
            (Fate::Lost, _) => Ending::Loss,
            (Fate::Arrives, Departures::Watched) => Ending::Departure,
            (Fate::Arrives, Departures::Unwatched | Departures::Freed) => Ending::Nothing,
        };
        if ending != Ending::Nothing {
            self.served = *segment;
        }
        let (flow, size) = (segment.flow, segment.wire_bytes());
        // A lost packet does not delay later packets.
        if fate == Fate::Arrives {
            self.outcomes.flight.put(self.in_order.arrival(flow, departs + delay), segment);
        }
        self.serving = Some(Serving { departs, begun: now, flow, size, bytes: size, ending });
        if self.reports.is_some() {
            self.note_rate(now);
        }
    }

    /// Sends the rest of the packet in transmission over a newly installed medium. The packet's fate does not change.
    fn resume(&mut self, now: Time, mut serving: Serving) {
        let segment = match serving.ending {
            Ending::Loss => Some(self.served),
            // A flow's packets stay in order, so the packet in transmission is the flow's last packet in flight.
            _ => self.outcomes.flight.remove_last_of(serving.flow),
        };
        self.enforce_order();
        let Some(segment) = segment else { return };
        serving.bytes = serving.rest(now).max(1);
        serving.begun = self.medium.ready(now, Found::Idle);
        // Segment whose size equals the unsent bytes.
        let mut rest = segment;
        (rest.header, rest.payload) = (0, serving.bytes as u16);
        let Transmission { departs, delay, .. } = self.medium.transmit(now, serving.begun, &rest);
        serving.departs = departs;
        if serving.ending != Ending::Loss {
            self.outcomes.flight.put(self.in_order.arrival(serving.flow, departs + delay), &segment);
        }
        self.serving = Some(serving);
    }

    /// Enforces packet order after a change of medium. Packets sent over a new medium can arrive before packets that
    /// are still in flight over the old one, even if the delay of both is constant.
    pub(super) fn enforce_order(&mut self) {
        self.in_order.restart(self.outcomes.flight.iter().map(|(arrives, segment)| (arrives, segment.flow)));
    }

    #[inline]
    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.queue.poll_dropped() {
            self.outcomes.push(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// Load outside `flow`'s subqueue that counts against the subqueue's capacity.
    #[inline]
    fn unqueued(&self, flow: FlowId) -> Load {
        match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(flow),
            BufferMeaning::Waiting => Load::NONE,
        }
    }

    /// Load in transmission that was dequeued from `flow`'s subqueue.
    fn in_transmission(&self, flow: FlowId) -> Load {
        match &self.serving {
            Some(serving) if self.queue.together(serving.flow, flow) => {
                Load { packets: 1, bytes: serving.size.into() }
            }
            _ => Load::NONE,
        }
    }

    /// Moves a segment into the transmitter, or into the queue at `place`.
    #[inline(always)]
    fn put(&mut self, now: Time, segment: &Segment, place: Place) -> Result<(), Cause> {
        self.advance(now);
        self.flows.note(segment.flow);
        let mut begins = self.begins;
        if self.serving.is_none() && begins == Time::NEVER {
            begins = self.medium.ready(now, Found::Idle);
            if begins <= now {
                self.queue.pass(now, segment);
                self.serve(now, now, segment);
                return Ok(());
            }
        }
        let unqueued = self.unqueued(segment.flow);
        let taken = self.queue.put(now, segment, unqueued, place);
        self.tell_drops(now);
        self.side_due = self.side_due.min(self.queue.expires());
        if !self.queue.is_empty() {
            self.begins = begins;
        }
        taken
    }
}

impl Stepwise {
    #[inline]
    pub(super) fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Back)
    }

    pub(super) fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Front)
    }

    #[inline]
    pub(super) fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.outcomes.next(now)
    }

    #[inline]
    pub(super) fn take_segment(&mut self) -> Segment {
        self.outcomes.take()
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        // A queued packet arrives after the packet in transmission, unless the two packets belong to different flows
        // and may overtake each other.
        let overtaking = self.flows == Flows::Several && self.in_order.order == Order::Enforced;
        let serving = match &self.serving {
            Some(serving) if serving.ending != Ending::Nothing || overtaking => serving.departs,
            Some(_) => Time::NEVER,
            None if self.departures == Departures::Watched => self.begins,
            None => self.begins + self.least_delay,
        };
        let mut due = serving.min(self.outcomes.due()).min(self.side_due);
        if let Some(reports) = &self.reports {
            due = due.min(self.changes()).min(reports.due());
        }
        Some(due).filter(|&time| time != Time::NEVER)
    }

    pub(super) fn want_reports(&mut self) {
        self.reports = Some(Box::new(RateReports::new(self.medium.rate(Time::ZERO))));
        self.rate_due = self.medium.rate_until(Time::ZERO);
        self.note_side_due();
    }

    pub(super) fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        self.reports.as_mut()?.poll(now)
    }

    pub(super) fn want_departures(&mut self, departures: Departures) {
        self.departures = departures;
    }

    pub(super) fn view(&mut self, now: Time, flow: FlowId) -> LinkView {
        self.advance(now);
        let waiting = self.queue.waiting(flow);
        LinkView {
            waiting,
            in_transmission: self.in_transmission(flow),
            unacknowledged: Load::NONE,
            occupied: waiting + self.unqueued(flow),
            capacity: self.queue.capacity(flow),
            rate: self.medium.rate(now),
        }
    }

    pub(super) fn waiting(&mut self, now: Time) -> Load {
        self.advance(now);
        self.queue.load()
    }

    pub(super) fn waits(&self) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.waits)
    }

    pub(super) fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.advance(until);
        self.carried.mean_bps(&mut self.medium, until)
    }

    pub(super) fn start_capacity(&mut self, now: Time) {
        self.advance(now);
        self.carried.restart(&mut self.medium, now);
    }

    pub(super) fn replace_medium(&mut self, now: Time, mut medium: Box<dyn Medium>) {
        self.advance(now);
        self.carried.hand_over(&mut self.medium, &mut *medium, now);
        self.least_delay = medium.least_delay();
        self.medium = AnyMedium::Other(medium);
        if self.begins != Time::NEVER {
            self.begins = self.medium.ready(now, Found::Idle);
        }
        match self.serving {
            Some(serving) => self.resume(now, serving),
            None => self.enforce_order(),
        }
        self.note_rate(now);
    }

    pub(super) fn assign(&mut self, flow: FlowId, user: u32) {
        self.queue.assign(flow, user);
    }

    pub(super) fn forget(&mut self, flow: FlowId) {
        self.queue.forget(flow);
    }

    /// Frees the memory of packets in flight. Queued packets stay, because the queue still has to count their queueing
    /// delay.
    pub(super) fn let_go(&mut self) {
        self.outcomes.flight = Flight::default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use ackclock_core::Rate;
    use delegate::delegate;

    use super::*;
    use crate::Constant;
    use crate::queue::DropTail;
    use crate::{Link, SerialLink};

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    /// A packet of 1000 bytes in transmission from `begun` to `departs`.
    fn serving(begun: Time, departs: Time) -> Serving {
        Serving { departs, begun, flow: FlowId(0), size: 1000, bytes: 1000, ending: Ending::Nothing }
    }

    #[test]
    fn what_is_not_sent_yet_is_rounded_up_to_whole_bytes() {
        let packet = serving(ms(10), ms(20));
        // The packet takes 10 us per byte.
        for (micros, rest) in [(0, 1000), (1, 1000), (10, 999), (5_001, 500), (9_999, 1)] {
            assert_eq!(packet.rest(ms(10) + Span::from_micros(micros)), rest, "after {micros} us");
        }
    }

    #[test]
    fn nothing_is_sent_in_an_outage_or_before_the_transmission_begins() {
        let half = Time::ZERO + Time::NEVER.since(Time::ZERO) / 2;
        assert_eq!(serving(Time::ZERO, Time::NEVER).rest(half), 1000);
        // The new medium delays the packet until an opportunity, which may then send all of it at once.
        assert_eq!(serving(ms(10), ms(10)).rest(ms(5)), 1000);
        assert_eq!(serving(ms(10), ms(20)).rest(ms(0)), 1000);
    }

    /// A queue that counts the packets that passed without queueing.
    struct Counting(DropTail, Arc<AtomicU32>);

    impl Queue for Counting {
        fn pass(&mut self, _: Time, _: &Segment) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }

        delegate! {
            to self.0 {
                fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause>;
                fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;
                fn is_empty(&self) -> bool;
                fn poll_dropped(&mut self) -> Option<(Segment, Cause)>;
                fn oldest(&self) -> Time;
                fn remove_oldest(&mut self, now: Time) -> Option<Segment>;
                fn remove(&mut self, now: Time, flow: FlowId, choose: crate::queue::Choose<'_>) -> Option<Segment>;
                fn waiting(&self, flow: FlowId) -> Load;
                fn load(&self) -> Load;
                fn together(&self, a: FlowId, b: FlowId) -> bool;
                fn capacity(&self, flow: FlowId) -> crate::Capacity;
                fn assign(&mut self, flow: FlowId, user: u32);
                fn forget(&mut self, flow: FlowId);
            }
        }
    }

    #[test]
    fn a_queue_is_told_of_packets_that_find_the_link_idle_and_of_no_others() {
        let passed = Arc::new(AtomicU32::new(0));
        let queue = Counting(DropTail::new(crate::Capacity::Unlimited), Arc::clone(&passed));
        let medium = Constant::new(Rate::from_bps(800_000), Span::ZERO);
        let mut link = SerialLink::new(medium, queue.any(), BufferMeaning::Waiting);
        // A packet takes 10 ms. The second is queued behind the first; at 20 ms the link is idle again.
        for (at, count) in [(0, 1), (5, 1), (20, 2)] {
            link.enqueue(ms(at), &Segment::data(FlowId(0), Seq(0), 960, 40)).unwrap();
            assert_eq!(passed.load(Ordering::Relaxed), count, "at {at} ms");
        }
    }
}
