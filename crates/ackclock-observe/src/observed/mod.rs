//! # The observing bearer
//!
//! ## Source
//! Source: our own design, described in `forecast-regulator.md` section 8 and `gateway.md` section 3.
//!
//! ## What it does
//! A box that only observes passing traffic has no queue, delay or loss. The queue that the box regulates is elsewhere:
//! between the box and the mobiles (`side = "network"`), as for an operator's gateway; or between the box and the
//! servers (`side = "mobile"`), as for a router behind an LTE or satellite link. The rate of the queue is not
//! configured. The state of the queue is inferred from passing traffic:
//! - `numbers`: the sequence and ACK numbers that are believed, because they are inside the connection's window;
//! - `record`: the traffic of a flow as cumulative sums. All estimates are calculated from records (`observer`), so a
//!   box that cannot report each packet, or whose records get lost, calculates the same estimates;
//! - `flow`: windows advertised to the sender of a flow, data that passed the box, and the flow's ACKs;
//! - `meter`: the rate at which data leaves the queue: data that is acknowledged (network side) or arrives (mobile
//!   side);
//! - `detour`: delay of the part of a loop without the queue, from TCP timestamps of both ends;
//! - `echoed`: queueing delay of a box behind the queue, from timestamp echoes; for reports;
//! - `floor`: the minimum loop. A loop is the time from data to its ACK (network side), or from an advertised window to
//!   the data that it triggers (mobile side);
//! - `user`: state shared by the flows of a user: rate, queue, and idle time;
//! - `probe`: closes windows briefly when a standing queue cannot be distinguished from a longer route.
//!
//! A buffer in bandwidth-delay products follows the rate of the busy queue and the minimum loop in which a window takes
//! effect, from 20 packets on: such a window neither starves a fast link nor fills the queue of a slow one. The buffer
//! `B` of the edge is divided among those flows of a user that had data in the last two seconds; each gets at least two
//! packets. A flow with less than a quarter of the largest flow's recent bytes counts as a part of a flow.
//! A segment counts as having left the queue when its ACK passes (box on the network side) or
//! when the segment itself passes (box on the mobile side). For regulators that use estimates ([`Left::Estimated`]) the
//! bytes that leave within one minimum loop also count as having left. On the mobile side all data that the box sees
//! has left the queue, so these bytes are added to the buffer instead.
//!
//! ## Differences from the source
//! The design of the observing box is our own. SACKed bytes count as bytes that leave within a minimum loop. A probe
//! ends after at most 5 s. Excess delay of the part without the queue does not count as part of a loop; on the network
//! side it also shifts the time at which acknowledged data left the queue. On the mobile side only data that was sent
//! as soon as the window allowed gives samples; the echo of the mobile's TSval shows when the window reached the
//! sender. If a sender leaves its window unused, its data in transit is at most the data that arrived in the last one
//! to two seconds.
//!
//! ## Validation
//! Unit tests compare sequences worked out by hand, and check the properties required of all bearers.
//! `crates/ackclock-scenario/tests/observed.rs` compares the Window Regulators and our own regulators at the box with
//! the same regulators at the queue, with an equally long loop.

mod config;
mod detour;
mod echoed;
mod floor;
mod flow;
mod meter;
mod numbers;
mod observer;
mod outstanding;
mod probe;
mod record;
mod user;
mod vocabulary;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use ackclock_core::results::RadioCounts;
use ackclock_core::{Flags, FlowId, Histogram, RadioReport, Segment, Span, Time};
use ackclock_link::{
    Bearer, Capacity, Cause, Change, Departures, Direction, Left, LinkEvent, LinkView, Load, Observation,
    Observing, Side,
};

pub use self::config::ObservedConfig;
pub use self::numbers::Numbers;
pub use self::observer::Observer;
pub use self::record::{Acked, Advertised, Passed, Record};

/// A bearer that passes all traffic on at once, and makes records of the traffic for its [`Observer`].
pub struct Observed {
    observer: Observer,
    records: Records,
    /// Pending events of each direction; all of them are due.
    events: [VecDeque<(Time, LinkEvent, Segment)>; 2],
    /// Whether the regulator acts on departures from the queue.
    departures: Departures,
}

impl Observed {
    fn new(config: &ObservedConfig, capacity: Capacity, follows: Option<f64>) -> Self {
        let mut observer = config.observer(capacity);
        if let Some(times) = follows {
            observer.follow(times);
        }
        Self {
            observer,
            records: Records {
                interval: config.record_interval,
                loss: config.record_loss,
                ..Records::default()
            },
            events: Default::default(),
            departures: Departures::Unwatched,
        }
    }

    fn emit(&mut self, now: Time, direction: Direction, event: LinkEvent, segment: &Segment) {
        self.events[direction as usize].push_back((now, event, *segment));
    }

    /// Handles data or a SYN-ACK that passes to the mobile. If the box is behind the queue, passing data has left the
    /// queue. Data outside the window is not noted.
    fn on_down(&mut self, now: Time, segment: &Segment) {
        if !self.records.believe_data(segment) {
            return;
        }
        let record = self.records.note(segment.flow, Kind::Down, |record| record.on_down(now, segment));
        record.into_iter().for_each(|record| self.observer.on_record(record));
        if self.observer.side() == Side::Mobile
            && self.departures == Departures::Watched
            && segment.has_data()
            && !segment.flags.intersects(Flags::SYN)
        {
            self.emit(now, Direction::Down, LinkEvent::Departed, segment);
        }
    }

    /// Handles a SYN or an ACK that arrives from the mobile.
    fn on_up(&mut self, now: Time, segment: &Segment) {
        if !self.records.believe_ack(segment) {
            return;
        }
        let record = self.records.note(segment.flow, Kind::Up, |record| record.on_up(now, segment));
        record.into_iter().for_each(|record| self.observer.on_record(record));
    }
}

/// Kind of packet that a record reports. Each kind has its own minimum interval, as in a kernel.
#[derive(Clone, Copy)]
enum Kind {
    /// A packet to the mobile.
    Down,
    /// A packet from the mobile.
    Up,
    /// An ACK with its advertised window.
    Told,
}

/// Records of all flows; selects the records that the observer receives.
#[derive(Default)]
struct Records {
    of: BTreeMap<FlowId, Recorded>,
    interval: Span,
    loss: f64,
    /// Expected number of lost records so far, minus the number of records that were lost.
    to_lose: f64,
}

/// Record of a flow, and what decides which packets it notes and when it is made.
struct Recorded {
    record: Record,
    /// Times of the last record of each kind.
    sent: [Option<Time>; 3],
    numbers: Numbers,
}

impl Records {
    fn open(&mut self, flow: FlowId) -> &mut Recorded {
        self.of.entry(flow).or_insert_with(|| Recorded {
            record: Record::new(flow),
            sent: [None; 3],
            numbers: Numbers::default(),
        })
    }

    /// Whether a segment to the mobile is inside its connection's window. Counts data that passed before.
    fn believe_data(&mut self, segment: &Segment) -> bool {
        let Recorded { record, numbers, .. } = self.open(segment.flow);
        record.passed.repeated += u64::from(numbers.is_repetition(segment));
        numbers.on_data(segment)
    }

    /// Whether a segment from the mobile is inside its connection's window. A flow without data has a record from its
    /// SYN on.
    fn believe_ack(&mut self, segment: &Segment) -> bool {
        if segment.flags.intersects(Flags::SYN) {
            self.open(segment.flow).numbers.on_syn(segment);
            return true;
        }
        self.of.get_mut(&segment.flow).is_none_or(|recorded| recorded.numbers.on_ack(segment))
    }

    /// Updates the record of a flow with a packet. Returns the record if it has new information, the minimum time since
    /// the flow's last record of this kind has passed, and the record is not lost.
    fn note(&mut self, flow: FlowId, kind: Kind, note: impl FnOnce(&mut Record) -> bool) -> Option<&Record> {
        let Recorded { record, sent, .. } = self.of.get_mut(&flow)?;
        let sent = &mut sent[kind as usize];
        if !note(record) || sent.is_some_and(|sent| record.at.since(sent) < self.interval) {
            return None;
        }
        *sent = Some(record.at);
        self.to_lose += self.loss;
        if self.to_lose >= 1.0 {
            self.to_lose -= 1.0;
            return None;
        }
        Some(record)
    }
}

impl Bearer for Observed {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        if segment.is_tcp() {
            match direction {
                Direction::Down => self.on_down(now, segment),
                Direction::Up => self.on_up(now, segment),
            }
            while let Some((at, left)) = self.observer.poll_left() {
                self.emit(at, Direction::Down, LinkEvent::Departed, &left);
            }
        }
        self.emit(now, direction, LinkEvent::DELIVERED, segment);
        Ok(())
    }

    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        let (at, event, _) = self.events[direction as usize].front()?;
        (*at <= now).then_some((*at, *event))
    }

    fn take_segment(&mut self, direction: Direction) -> Segment {
        let (_, _, segment) = self.events[direction as usize].pop_front().expect("an event was told before");
        segment
    }

    fn due(&self, direction: Direction) -> Time {
        self.events[direction as usize].front().map_or(Time::NEVER, |(at, ..)| *at)
    }

    fn want_departures(&mut self, direction: Direction, departures: Departures) {
        if direction == Direction::Down {
            self.departures = departures;
            self.observer.heed(departures);
        }
    }

    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        match direction {
            Direction::Down => self.observer.view(now, flow),
            Direction::Up => self.observer.blind(now, flow),
        }
    }

    fn waiting(&mut self, _: Time, _: Direction) -> Load {
        Load::NONE
    }

    fn waits(&self, _: Direction) -> Cow<'_, Histogram> {
        Cow::Owned(Histogram::default())
    }

    fn gauges(&self, direction: Direction) -> Vec<f64> {
        match direction {
            Direction::Down => self.observer.gauges(),
            Direction::Up => vec![0.0; 4],
        }
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.observer.assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.records.of.remove(&flow);
        self.observer.forget(flow);
    }

    fn let_go(&mut self) {
        self.records.of.clear();
        self.observer.clear();
    }

    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.enqueue(now, direction, segment)
    }

    fn waiting_of(&mut self, now: Time, _: u32) -> Load {
        self.waiting(now, Direction::Down)
    }

    fn radio(&self, _: Direction, _: Option<u32>) -> Option<RadioCounts> {
        None
    }

    fn capacity_bps(&mut self, _: Time, _: Direction) -> Option<f64> {
        None
    }

    fn start_capacity(&mut self, _: Time, _: Direction) {}

    fn want_reports(&mut self) {}

    fn poll_report(&mut self, _: Time) -> Option<RadioReport> {
        None
    }

    fn change(&mut self, _: Time, _: Direction, _: Change) {}

    fn classify(&mut self, _: FlowId, _: u8) {}

    fn observing(&mut self) -> Option<&mut dyn Observing> {
        Some(self)
    }
}

impl Observing for Observed {
    fn leave_when(&mut self, left_when: Left) {
        self.observer.leave_when(left_when);
    }

    fn on_told(&mut self, now: Time, segment: &Segment) {
        let recorded = self.records.of.get(&segment.flow);
        if recorded.is_some_and(|recorded| !recorded.numbers.believes_ack(segment)) {
            return;
        }
        let record = self.records.note(segment.flow, Kind::Told, |record| record.on_told(now, segment));
        record.into_iter().for_each(|record| self.observer.on_record(record));
    }

    fn poll_observation(&mut self) -> Option<(Time, Observation)> {
        self.observer.poll_observation()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Seq;

    use super::*;

    /// One segment 2^30 bytes ahead and one ACK of data that never passed, which anybody can send.
    #[test]
    fn forged_numbers_do_not_change_the_estimates() {
        let flow = FlowId(0);
        let gauges = |forged: bool| {
            let mut box_ = Observed::new(&ObservedConfig::default(), Capacity::Packets(20), None);
            box_.want_departures(Direction::Down, Departures::Watched);
            let ack = |number: u32| {
                let mut ack = Segment::pure_ack(flow, Seq(number), 40);
                ack.set_scale(Some(0));
                ack
            };
            for packet in 0..500u32 {
                let at = |millis| Time::ZERO + Span::from_millis(u64::from(10 * packet + millis));
                let mut pass = |now, direction, segment: &Segment| {
                    _ = box_.enqueue(now, direction, segment);
                    if direction == Direction::Up {
                        box_.on_told(now, segment);
                    }
                };
                pass(at(0), Direction::Down, &Segment::data(flow, Seq(1000 * packet), 1000, 40));
                if forged && packet == 100 {
                    pass(at(1), Direction::Down, &Segment::data(flow, Seq(1 << 30), 1000, 40));
                    pass(at(1), Direction::Up, &ack(1 << 29));
                }
                if let Some(acked) = packet.checked_sub(3) {
                    pass(at(5), Direction::Up, &ack(1000 * acked));
                }
            }
            box_.gauges(Direction::Down)
        };
        assert_eq!(gauges(true), gauges(false));
        assert!(gauges(true)[0] > 790_000.0, "a packet of 1000 bytes each 10 ms");
    }
}
