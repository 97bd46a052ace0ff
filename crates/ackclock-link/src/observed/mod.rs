//! # The observed bearer
//!
//! ## Source
//! Ours: `forecast-regulator.md` section 8 and `gateway.md` section 3.
//!
//! ## What it does
//! A box that only sees traffic pass has no queue, delay or loss of its own. The queue that it regulates stands elsewhere: between the box
//! and the mobiles (`side = "network"`), as for a gateway of an operator; or between the box and the servers (`side = "mobile"`), as for a
//! router behind an LTE or satellite link. No rate is configured. What is known of the queue follows from what passes:
//! - `record`: what passed of a flow, as sums; all that is learnt follows from such records (`observer`), so that a box that cannot tell of
//!   each packet, or whose records get lost, learns the same;
//! - `flow`: windows told to the source of a flow, data that passed, ACKs for it;
//! - `meter`: how fast data leaves the queue: acknowledged (network) or arrived (mobile);
//! - `detour`: how long the other way of a loop took, on which the queue does not stand: by the timestamps of TCP, where both ends have them;
//! - `floor`: the least loop. A loop is the time from the passing of data to its ACK (network), or from the telling of a window to
//!   the arrival of the data that it called for (mobile);
//! - `user`: what the flows of a user share: rate, what waits, for how long nothing waited;
//! - `probe`: closes windows for a moment where a standing queue and a longer route could be taken for each other.
//!
//! The buffer `B` of the edge is divided among a user's flows with data in the last two seconds, at least two packets each. A segment has
//! left the queue when it is acknowledged, or arrives. For regulators that act on estimates ([`Left::Estimated`]) it has left also when it is among the
//! bytes that leave in one least loop; on the mobiles' side, where all that the box sees has left, these bytes are added to the buffer instead.
//!
//! ## Differences from the source
//! SACKed bytes count among those that leave in a least loop. A probe is given up after 5 s. What the other way took beyond its least is no part of a loop, and on the side of
//! the network what is acknowledged left the queue by as much earlier. On the side of the mobiles only data that its source sent as soon as it was told teaches, by its echo
//! of the mobile's clock, and of a source that sends less than it may no more is taken to be on its way than came in the last second or two.
//!
//! ## Validation
//! The accounts by hand (unit tests); the laws of bearers; Window Regulators and our own beside the same regulators at the
//! queue, whose loop is as long (`crates/ackclock-scenario/tests/observed.rs`).

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

/// When data counts as having left a queue that nobody here sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// When it is among the bytes that leave in one least loop at the rate of late: an estimate of what no ACK shows yet.
    Estimated,
    /// When that is certain: it is acknowledged, or has arrived.
    Certain,
}

/// What of a flow each packet shows by itself, and a right edge follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The number of the ACK.
    Acked,
    /// The number of the ACK and the bytes that its sender has selectively acknowledged.
    Sacked,
    /// The end of the data that has arrived.
    Arrived,
}

impl Base {
    /// What has left a queue for certain that is observed from that side.
    const fn of(side: Side) -> Self {
        match side {
            Side::Network => Self::Sacked,
            Side::Mobile => Self::Arrived,
        }
    }
}

/// What a box has learnt from an ACK, or from data that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The flow.
    pub flow: FlowId,
    /// Bytes of its payload that have left the queue.
    pub bytes: u64,
    /// For how long the queue was empty before.
    pub idle: Span,
    /// Whether the window had called for this data: its source sent it as soon as it could.
    pub called: bool,
    /// From the telling of a window until its effect on what leaves the queue.
    pub horizon: Span,
    /// They left so much earlier than if the news of it had come as fast as it can.
    pub late: Span,
    /// Whether a probe keeps the windows closed.
    pub probing: bool,
    /// What shows which data has left the queue for certain.
    pub base: Base,
    /// Bytes beyond it that have left in the estimate.
    pub leaves: u64,
}

/// A bearer that passes everything on at once and makes a record of each packet for its [`Observer`].
pub struct Observed {
    observer: Observer,
    records: BTreeMap<FlowId, Record>,
    /// What is to be told of each direction, all of it due.
    events: [VecDeque<(Time, LinkEvent, Segment)>; 2],
    /// Whether the regulator acts on what has left the queue.
    departures: Departures,
}

impl Observed {
    fn new(observer: Observer) -> Self {
        Self {
            observer,
            records: BTreeMap::new(),
            events: Default::default(),
            departures: Departures::Unwatched,
        }
    }

    /// A box between the queue and the mobiles, whose flows share `capacity`, with the usual probe.
    pub fn beside_mobiles(capacity: Capacity) -> Self {
        let config = ObservedConfig { side: Side::Mobile, ..ObservedConfig::default() };
        Self::new(config.observer(capacity))
    }

    fn emit(&mut self, now: Time, direction: Direction, event: LinkEvent, segment: &Segment) {
        self.events[direction as usize].push_back((now, event, *segment));
    }

    /// Data or an answer passes to the mobile. Behind the queue, data that passes has left it.
    fn on_down(&mut self, now: Time, segment: &Segment) {
        let id = segment.flow;
        let record = self.records.entry(id).or_insert_with(|| Record::new(id));
        if record.on_down(now, segment) {
            self.observer.on_record(record);
        }
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
            self.records.entry(segment.flow).or_insert_with(|| Record::new(segment.flow));
        }
        let Some(record) = self.records.get_mut(&segment.flow) else { return };
        if record.on_up(now, segment) {
            self.observer.on_record(record);
        }
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
        self.records.remove(&flow);
        self.observer.forget(flow);
    }

    fn let_go(&mut self) {
        self.records.clear();
        self.observer.clear();
    }

    fn leave_when(&mut self, left_when: Left) {
        self.observer.leave_when(left_when);
    }

    fn on_told(&mut self, now: Time, segment: &Segment) {
        let Some(record) = self.records.get_mut(&segment.flow) else { return };
        if record.on_told(now, segment) {
            self.observer.on_record(record);
        }
    }

    fn poll_observation(&mut self) -> Option<(Time, Observation)> {
        self.observer.poll_observation()
    }
}
