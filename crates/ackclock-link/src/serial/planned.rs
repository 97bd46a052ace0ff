//! # Lindley's recursion
//!
//! ## Source
//! D. V. Lindley, "The theory of queues with a single server", 1952: in a FIFO queue, a packet's transmission starts
//! when its predecessor has departed, `start = max(arrival, previous departure)`.
//!
//! ## What it does
//! A planned link behaves like a serial link that runs [step by step](super::stepwise). A planned link requires a
//! drop-tail queue, a [foreseeable](crate::Medium::foreseeable) medium and unwatched departures. No later event changes
//! the departure of an accepted packet, so the link calculates all times of the packet on arrival and adds the packet
//! directly to the packets in flight. The queue length is the number of packets whose transmission has not started.
//!
//! ## Differences from the source
//! A packet that does not fit into the queue is dropped.
//!
//! ## Validation
//! A property test compares the planned link's events with the events of a step-by-step link for any traffic.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, Ring, Segment, Span, Time};

use crate::carried::Carried;
use crate::in_order::{InOrder, Order};
use crate::medium::{AnyMedium, Medium, Transmission};
use crate::queue::{DropTail, Queue};
use crate::{BufferMeaning, Capacity, Cause, LinkEvent, LinkView, Load, Silence};

use super::flight::Flight;
use super::packets::Parted;
use super::stepwise::{Ending, Flows, Serving, Stepwise};

/// A drop-tail queue followed by a foreseeable medium; all times of a packet are known on its arrival.
pub(crate) struct Planned {
    /// Accepted packets, by time of arrival at the far end.
    flight: Flight<Parted>,
    /// Departure time of the last accepted packet.
    free: Time,
    /// Queued packets: packets whose transmission had not started when the link was last advanced.
    waiting: Ring<Way>,
    /// Time at which the first queued packet starts transmission; [`Time::NEVER`] if the queue is empty.
    next_begins: Time,
    load: Load,
    /// Times of the packet whose transmission started last.
    begun: Way,
    medium: AnyMedium,
    in_order: InOrder,
    capacity: Capacity,
    meaning: BufferMeaning,
    waits: Histogram,
}

/// Times of a packet, calculated on its arrival.
#[derive(Clone, Copy, Default)]
struct Way {
    begins: Time,
    came: Time,
    flow: FlowId,
    /// Packet size in bytes, including headers.
    size: u32,
}

impl Planned {
    /// Creates an idle link in front of a [foreseeable](Medium::foreseeable) medium.
    pub(super) fn new(medium: AnyMedium, capacity: Capacity, meaning: BufferMeaning) -> Self {
        let order = if medium.varies() { Order::Enforced } else { Order::Kept };
        Self {
            flight: Flight::default(),
            free: Time::ZERO,
            waiting: Ring::default(),
            next_begins: Time::NEVER,
            load: Load::NONE,
            begun: Way { begins: Time::ZERO, came: Time::ZERO, flow: FlowId(0), size: 0 },
            in_order: InOrder::new(order),
            medium,
            capacity,
            meaning,
            waits: Histogram::default(),
        }
    }

    /// Converts the planned link to a step-by-step link; the planned link must not be used afterwards.
    pub(super) fn hand_over(&mut self) -> Stepwise {
        let medium = std::mem::replace(&mut self.medium, Silence::Paused.any());
        let mut queue = DropTail::new(self.capacity);
        let departs = self.next_begins.min(self.free);
        let waiting = std::mem::take(&mut self.waiting);
        // Queued packets are processed from the last to the first: a flow's packets stay in order, so the queued
        // packets of a flow are the flow's last packets.
        let flows: Vec<_> = waiting.iter().rev().map(|one| one.flow).collect();
        let segments = self.flight.remove_last_of_each(&flows);
        for (planned, segment) in waiting.iter().zip(segments.iter().rev()) {
            queue.enqueue(planned.came, segment, Load::NONE).expect("it fitted before");
        }
        let mut stepwise = Stepwise::new(medium, queue.any(), self.meaning);
        let Way { begins, flow, size, .. } = self.begun;
        let serving = Serving { departs, begun: begins, flow, size, bytes: size, ending: Ending::Nothing };
        stepwise.serving = Some(serving).filter(|_| size > 0);
        stepwise.outcomes.flight = std::mem::take(&mut self.flight);
        // Order is enforced only behind packets whose transmission has started: the times calculated for queued packets
        // are void.
        if self.in_order.order == Order::Enforced {
            stepwise.enforce_order();
        }
        stepwise.waits = std::mem::take(&mut self.waits);
        stepwise.flows = Flows::Several;
        stepwise
    }

    /// Starts the transmissions that are due.
    #[inline]
    fn advance(&mut self, now: Time) {
        while self.next_begins <= now {
            self.begin();
        }
    }

    #[inline(always)]
    fn begin(&mut self) {
        let Some(&next) = self.waiting.front() else { return };
        self.waiting.drop_front();
        self.next_begins = self.waiting.front().map_or(Time::NEVER, |next| next.begins);
        self.waits.record(next.begins.since(next.came));
        self.load -= Load { packets: 1, bytes: next.size.into() };
        self.begun = next;
    }

    /// Queued load, and load in transmission, at time `now`.
    #[inline(never)]
    fn at(&self, now: Time) -> (Load, Load) {
        let (mut waiting, mut last, mut departs) = (self.load, &self.begun, self.free);
        for planned in self.waiting.iter() {
            if planned.begins > now {
                departs = planned.begins;
                break;
            }
            waiting -= planned.load();
            last = planned;
        }
        (waiting, if departs > now { last.load() } else { Load::NONE })
    }

    /// Whether the buffer has room for another packet.
    #[inline]
    fn admits(&self, now: Time, segment: &Segment) -> bool {
        let counted = match self.meaning {
            BufferMeaning::Waiting => self.load,
            BufferMeaning::WithTransmission => {
                let (waiting, in_transmission) = self.at(now);
                waiting + in_transmission
            }
        };
        self.capacity.admits(counted, segment)
    }
}

impl Way {
    fn load(&self) -> Load {
        Load { packets: 1, bytes: self.size.into() }
    }
}

impl Planned {
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.advance(now);
        let waits = self.free > now;
        if waits && !self.admits(now, segment) {
            return Err(Cause::Full);
        }
        let begins = self.free.max(now);
        let Transmission { departs, delay, .. } = self.medium.transmit(now, begins, segment);
        let arrives = self.in_order.arrival(segment.flow, departs + delay);
        self.flight.put(arrives, segment);
        self.free = departs;
        let planned = Way { begins, came: now, flow: segment.flow, size: segment.wire_bytes() };
        if waits {
            self.load += planned.load();
            self.next_begins = self.next_begins.min(begins);
            self.waiting.push(planned);
        } else {
            self.waits.record(Span::ZERO);
            self.begun = planned;
        }
        Ok(())
    }

    /// Time of the next packet arrival; [`Time::NEVER`] if no packet is in flight.
    #[inline(always)]
    pub(crate) fn due(&self) -> Time {
        self.flight.due()
    }

    #[inline(always)]
    pub(crate) fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        let arrives = self.flight.due();
        if arrives > now {
            return None;
        }
        self.advance(now);
        Some((arrives, LinkEvent::DELIVERED))
    }

    #[inline(always)]
    pub(crate) fn take_segment(&mut self) -> Segment {
        self.flight.pop()
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        Some(self.flight.due()).filter(|&time| time != Time::NEVER)
    }

    pub(super) fn view(&self, now: Time, _: FlowId) -> LinkView {
        let (waiting, in_transmission) = self.at(now);
        let occupied = match self.meaning {
            BufferMeaning::Waiting => waiting,
            BufferMeaning::WithTransmission => waiting + in_transmission,
        };
        let (capacity, rate) = (self.capacity, self.medium.rate(now));
        LinkView { waiting, in_transmission, unacknowledged: Load::NONE, occupied, capacity, rate }
    }

    pub(super) fn waiting(&mut self, now: Time) -> Load {
        self.at(now).0
    }

    pub(super) fn waits(&self) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.waits)
    }

    pub(super) fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        // The medium was never replaced, because a replacement would have ended planning.
        Carried::default().mean_bps(&mut self.medium, until)
    }

    // The capacity of a medium that allows planning is always known.
    pub(super) fn start_capacity(&mut self, _: Time) {}

    // A drop-tail queue does not distinguish flows, so assigning a flow to a user has no effect.
    pub(super) fn assign(&mut self, _: FlowId, _: u32) {}

    pub(super) fn forget(&mut self, _: FlowId) {}

    /// Frees the memory of queued packets and of packets in flight.
    pub(super) fn let_go(&mut self) {
        self.flight = Flight::default();
        self.waiting = Ring::default();
        self.next_begins = Time::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{Rate, Seq};
    use proptest::prelude::*;

    use super::*;
    use crate::medium::{Fate, Found};
    use crate::pieces::work_at;
    use crate::serial::Mode;
    use crate::{Constant, Link, SerialLink};

    /// Medium with constant rate, and with delays that vary with the packet's number.
    #[derive(Clone, Copy)]
    struct Jumpy;

    impl Medium for Jumpy {
        fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
            let delay = Span::from_millis(u64::from(segment.seq.0 * 7 % 40));
            let departs = start + Span::from_micros(u64::from(segment.wire_bytes()) * 10);
            Transmission { departs, delay, fate: Fate::Arrives }
        }

        fn rate(&self, _: Time) -> Rate {
            Rate::from_bps(800_000)
        }

        fn ready(&mut self, now: Time, _: Found) -> Time {
            now
        }

        fn rate_until(&self, _: Time) -> Time {
            Time::NEVER
        }

        fn work(&mut self, from: Time, until: Time) -> Option<u128> {
            Some(work_at(self.rate(from), until.since(from)))
        }

        fn restart_work(&mut self, _: Time) {}

        fn varies(&self) -> bool {
            true
        }

        fn least_delay(&self) -> Span {
            Span::ZERO
        }

        fn foreseeable(&self) -> bool {
            true
        }
    }

    fn medium(jumps: bool) -> AnyMedium {
        if jumps { Jumpy.any() } else { Constant::new(Rate::from_bps(800_000), Span::from_millis(20)).any() }
    }

    #[test]
    fn what_departed_before_an_exchange_is_not_held_up_by_the_way_of_one_that_had_not_begun() {
        let queue = DropTail::new(Capacity::Unlimited);
        let mut link = SerialLink::new(medium(true), queue.any(), BufferMeaning::Waiting);
        for (flow, seq, payload) in [(0, 5, 1000), (1, 8, 660), (1, 9, 0)] {
            link.enqueue(Time::ZERO, &Segment::data(FlowId(flow), Seq(seq), payload, 40)).unwrap();
        }
        // Packet 8 departs at 10.4 + 7.0 ms and propagates for 16 ms. Packet 9, which is in transmission at the change,
        // would have arrived at 40.8 ms.
        link.replace_medium(Time::ZERO + Span::from_micros(17_500), medium(false).boxed());
        let (arrives, ..) = link.poll_event(Time::ZERO + Span::from_secs(1)).unwrap();
        assert_eq!(arrives, Time::ZERO + Span::from_micros(33_400));
    }

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Enqueue { flow: u32, payload: u16 },
        EnqueueFront { flow: u32, payload: u16 },
        Poll,
        Exchange(bool),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => (0u32..3, 0u16..1400).prop_map(|(flow, payload)| Operation::Enqueue { flow, payload }),
            1 => (0u32..3, 0u16..1400).prop_map(|(flow, payload)| Operation::EnqueueFront { flow, payload }),
            3 => Just(Operation::Poll),
            1 => any::<bool>().prop_map(Operation::Exchange),
        ]
    }

    fn events(link: &mut dyn Link, now: Time) -> Vec<(Time, LinkEvent, Segment)> {
        std::iter::from_fn(|| link.poll_event(now)).collect()
    }

    fn capacity() -> impl Strategy<Value = Capacity> {
        prop_oneof![
            (1u32..6).prop_map(Capacity::Packets),
            (500u64..8000).prop_map(Capacity::Bytes),
            Just(Capacity::Unlimited)
        ]
    }

    proptest! {
        #[test]
        fn planning_changes_nothing(
            jumps: bool,
            whole: bool,
            capacity in capacity(),
            operations in prop::collection::vec((0u64..30, operation()), 1..200),
        ) {
            let meaning = if whole { BufferMeaning::WithTransmission } else { BufferMeaning::Waiting };
            let queue = || DropTail::new(capacity).any();
            let mut plain = SerialLink { mode: Mode::Stepwise(Stepwise::new(medium(jumps), queue(), meaning)) };
            let mut quick = SerialLink::new(medium(jumps), queue(), meaning);
            prop_assert!(matches!(quick.mode, Mode::Planned(_)));
            let mut now = Time::ZERO;
            for (number, (wait, operation)) in operations.into_iter().enumerate() {
                now += Span::from_millis(wait);
                prop_assert_eq!(events(&mut plain, now), events(&mut quick, now));
                match operation {
                    Operation::Enqueue { flow, payload } => {
                        let segment = Segment::data(FlowId(flow), Seq(number as u32), payload, 40);
                        prop_assert_eq!(plain.enqueue(now, &segment), quick.enqueue(now, &segment));
                        prop_assert_eq!(plain.view(now, FlowId(flow)), quick.view(now, FlowId(flow)));
                        prop_assert_eq!(plain.waiting(now), quick.waiting(now));
                    }
                    Operation::EnqueueFront { flow, payload } => {
                        let segment = Segment::data(FlowId(flow), Seq(number as u32), payload, 40);
                        prop_assert_eq!(plain.enqueue_front(now, &segment), quick.enqueue_front(now, &segment));
                        prop_assert_eq!(plain.waiting(now), quick.waiting(now));
                    }
                    Operation::Poll => {}
                    Operation::Exchange(jumps) => {
                        plain.replace_medium(now, medium(jumps).boxed());
                        quick.replace_medium(now, medium(jumps).boxed());
                    }
                }
            }
            let end = now + Span::from_secs(100);
            prop_assert_eq!(events(&mut plain, end), events(&mut quick, end));
            prop_assert_eq!(plain.waits().count(), quick.waits().count());
            prop_assert_eq!(plain.waits().sum(), quick.waits().sum());
        }
    }
}
