//! # The observing bearer
//!
//! ## Source
//! Our own: `forecast-regulator.md` section 8 and `gateway.md` section 3.
//!
//! ## What it does
//! A box that only sees traffic pass has no queue, delay or loss. The queue that it regulates is elsewhere: between
//! the box and the mobiles (`side = "network"`), as for an operator's gateway; or between the box and the servers
//! (`side = "mobile"`), as for a router behind an LTE or satellite link. You configure no rate. The state of the queue
//! is inferred from passing traffic:
//! - `record`: what passed of a flow, as cumulative sums. All estimates derive from such records (`observer`), so a
//!   box that cannot report each packet, or whose records get lost, estimates the same;
//! - `flow`: windows advertised to the sender of a flow, data that passed, and its ACKs;
//! - `meter`: the rate at which data leaves the queue: acknowledged (network) or arriving (mobile);
//! - `detour`: duration of the part of a loop without the queue, from TCP timestamps of both ends;
//! - `floor`: the minimum loop. A loop is the time from data to its ACK (network), or from an advertised window to the
//!   data that it triggers (mobile);
//! - `user`: state shared by the flows of a user: rate, queue, and idle time;
//! - `probe`: briefly closes windows when a standing queue and a longer route cannot be distinguished.
//!
//! The buffer `B` of the edge is divided among a user's flows with data in the last two seconds, at least two packets
//! each. A segment has left the queue when it is acknowledged, or arrives. For regulators that use estimates
//! ([`Left::Estimated`]) the bytes that leave within one minimum loop have also left. On the mobile side, where
//! everything the box sees has left, these bytes are added to the buffer instead.
//!
//! ## Differences from the source
//! Our own. SACKed bytes count as leaving within a minimum loop. A probe ends after at most 5 s. Excess delay of the
//! part without the queue is not part of a loop; on the network side it also shifts the time at which acknowledged
//! data left the queue. On the mobile side only data sent as soon as it was allowed gives samples, judged by its echo
//! of the mobile's TSval. For a sender that leaves its window unused, data in transit is at most what arrived in the
//! last one to two seconds.
//!
//! ## Validation
//! Sequences by hand (unit tests); the laws of bearers; Window Regulators and our own compared with the same
//! regulators at the queue, with an equally long loop (`crates/ackclock-scenario/tests/observed.rs`).

mod config;
mod detour;
mod floor;
mod flow;
mod meter;
mod observer;
mod outstanding;
mod probe;
mod record;
mod user;
mod vocabulary;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{Flags, FlowId, Histogram, Segment, Span, Time};

pub use self::config::{ObservedConfig, Side};
pub use self::observer::Observer;
pub use self::record::{Acked, Advertised, Passed, Record};
use crate::{Bearer, Capacity, Cause, Departures, Direction, LinkEvent, LinkView, Load};

/// When data counts as departed from a queue that is only observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// When it is within the bytes that leave in one minimum loop at the recent rate: estimates departures that no ACK
    /// shows yet.
    Estimated,
    /// When it is certain: acknowledged, or arrived.
    Certain,
}

/// The state of a flow from which a right edge is calculated, visible in its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The ACK number.
    Acked,
    /// The ACK number plus the SACKed bytes.
    Sacked,
    /// The end of the data that has arrived.
    Arrived,
}

impl Base {
    /// Base that shows what has certainly left a queue observed from this side.
    const fn of(side: Side) -> Self {
        match side {
            Side::Network => Self::Sacked,
            Side::Mobile => Self::Arrived,
        }
    }
}

/// An estimate derived from an ACK or from arriving data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The flow.
    pub flow: FlowId,
    /// Bytes of its payload that have left the queue.
    pub bytes: u64,
    /// How long the queue was empty before.
    pub idle: Span,
    /// Whether the window triggered this data: the sender sent it as soon as it was allowed.
    pub called: bool,
    /// Delay from an advertised window to its effect on departures from the queue.
    pub horizon: Span,
    /// Excess delay of the news of these departures.
    pub late: Span,
    /// Whether a probe keeps the windows closed.
    pub probing: bool,
    /// Base that shows which data has certainly left the queue.
    pub base: Base,
    /// Bytes beyond `base` that have left by the estimate.
    pub leaves: u64,
}

/// A bearer that passes everything on at once and makes records of it for its [`Observer`].
pub struct Observed {
    observer: Observer,
    records: Records,
    /// Pending events of each direction, all due.
    events: [VecDeque<(Time, LinkEvent, Segment)>; 2],
    /// Whether the regulator acts on departures from the queue.
    departures: Departures,
}

impl Observed {
    fn new(config: &ObservedConfig, capacity: Capacity) -> Self {
        Self {
            observer: config.observer(capacity),
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

    /// Data or a SYN-ACK passes to the mobile. For a box behind the queue, passing data has left it.
    fn on_down(&mut self, now: Time, segment: &Segment) {
        self.records.open(segment.flow);
        let record = self.records.note(segment.flow, |record| record.on_down(now, segment));
        record.into_iter().for_each(|record| self.observer.on_record(record));
        if self.observer.side() == Side::Mobile
            && self.departures == Departures::Watched
            && segment.has_data()
            && !segment.flags.intersects(Flags::SYN)
        {
            self.emit(now, Direction::Down, LinkEvent::Departed, segment);
        }
    }

    /// A SYN or an ACK arrives from the mobile.
    fn on_up(&mut self, now: Time, segment: &Segment) {
        if segment.flags.intersects(Flags::SYN) {
            self.records.open(segment.flow);
        }
        let record = self.records.note(segment.flow, |record| record.on_up(now, segment));
        record.into_iter().for_each(|record| self.observer.on_record(record));
    }
}

/// The records of all flows; decides which of them the observer receives.
#[derive(Default)]
struct Records {
    of: BTreeMap<FlowId, (Record, Option<Time>)>,
    interval: Span,
    loss: f64,
    /// Records to lose so far, minus those lost.
    to_lose: f64,
}

impl Records {
    fn open(&mut self, flow: FlowId) {
        self.of.entry(flow).or_insert_with(|| (Record::new(flow), None));
    }

    /// Notes a packet. Returns the record if it contains something new, the minimum time since the flow's last record
    /// has passed, and the record is not lost.
    fn note(&mut self, flow: FlowId, note: impl FnOnce(&mut Record) -> bool) -> Option<&Record> {
        let (record, sent) = self.of.get_mut(&flow)?;
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

    fn leave_when(&mut self, left_when: Left) {
        self.observer.leave_when(left_when);
    }

    fn on_told(&mut self, now: Time, segment: &Segment) {
        let record = self.records.note(segment.flow, |record| record.on_told(now, segment));
        record.into_iter().for_each(|record| self.observer.on_record(record));
    }

    fn poll_observation(&mut self) -> Option<(Time, Observation)> {
        self.observer.poll_observation()
    }
}
