//! The [`Bearer`] trait, which models the two directions of a radio channel. Each bearer is one file.

mod change;
mod config;
mod links;
mod observation;
mod users;

use std::borrow::Cow;

use ackclock_core::results::RadioCounts;
use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Time};
use delegate::delegate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AnyLink, Cause, Departures, LinkEvent, LinkView, Load};

pub use change::{CellChange, Change, ChangeContext, DedicatedChange, Handover, HandoverTo, OutageKind};
pub use config::{BearerConfig, BearerContext, BearerLinks};
pub use links::{LinksConfig, PlainBearer};
pub use observation::{Base, Left, Observation, Side};
pub use users::{CellUser, ClassConfig, FadingKind};

/// Direction of a segment over the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Downlink: from the network to the mobile.
    Down = 0,
    /// Uplink: from the mobile to the network.
    Up = 1,
}

impl Direction {
    /// The two directions, downlink first: simultaneous events are reported in this order.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];

    /// The opposite direction of the radio.
    pub const fn other(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

/// The two directions of a radio channel. The methods correspond to those of [`Link`](crate::Link), with a
/// [`Direction`] added.
///
/// No method has a default implementation, so that a bearer that wraps another bearer cannot forget to forward a method.
/// Bearers that observe a queue also implement [`Observing`].
pub trait Bearer: Send {
    /// Accepts a segment at `now`, or refuses it. The caller drains due events first.
    ///
    /// # Errors
    /// Returns the cause if the queue in this direction refuses the segment.
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;

    /// Accepts a segment at the front of the queue; see [`Link::enqueue_front`](crate::Link::enqueue_front).
    ///
    /// # Errors
    /// Returns the cause if the queue in this direction refuses the segment.
    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;

    /// Returns the next event of a direction at or before `now`; the events of one direction come in order of time.
    /// Repeated calls return the same event until [its segment is taken](Self::take_segment).
    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)>;

    /// Takes the segment of the event that [`peek_event`](Self::peek_event) last returned for this direction.
    ///
    /// # Panics
    /// Panics if `peek_event` returned `None`.
    fn take_segment(&mut self, direction: Direction) -> Segment;

    /// Time of the next event of a direction, or an earlier time at which to poll again; [`Time::NEVER`] if no event is
    /// pending.
    fn due(&self, direction: Direction) -> Time;

    /// Sets whether departures of a direction are reported as events. A bearer that only observes reports departures of
    /// the downlink only.
    fn want_departures(&mut self, direction: Direction, departures: Departures);

    /// State of the queue that serves `flow`.
    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView;

    /// Number of packets and bytes in all queues of a direction; see [`Link::waiting`](crate::Link::waiting).
    fn waiting(&mut self, now: Time, direction: Direction) -> Load;

    /// Number of packets and bytes of a user in all downlink queues; of all users if the bearer does not tell its users
    /// apart.
    fn waiting_of(&mut self, now: Time, user: u32) -> Load;

    /// Queueing delays of segments in a direction.
    fn waits(&self, direction: Direction) -> Cow<'_, Histogram>;

    /// Link-layer state of a direction: one value for each name in [`BearerConfig::gauges`], in the order of the names.
    fn gauges(&self, direction: Direction) -> Vec<f64>;

    /// Counters of the radio network in a direction, for all users or for the user with this number. `None` without
    /// radio link control, or if the bearer does not tell its users apart.
    fn radio(&self, direction: Direction, user: Option<u32>) -> Option<RadioCounts>;

    /// Mean capacity of a direction from the start until `until`; see
    /// [`Link::capacity_bps`](crate::Link::capacity_bps).
    fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64>;

    /// Traffic of a direction starts at `now`; see [`Link::start_capacity`](crate::Link::start_capacity).
    fn start_capacity(&mut self, now: Time, direction: Direction);

    /// Starts to generate radio reports, if the bearer supports reports.
    fn want_reports(&mut self);

    /// Returns the next report of the radio controller up to `now`.
    fn poll_report(&mut self, now: Time) -> Option<RadioReport>;

    /// Changes a direction at `now`. The caller only requests changes that [`BearerConfig`] allows.
    fn change(&mut self, now: Time, direction: Direction, change: Change);

    /// Sets the user of a flow, for per-user queues.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// Sets the class of service of a flow, after its user; by default 0, the class without a name.
    fn classify(&mut self, flow: FlowId, class: u8);

    /// Frees the state of a flow that ended.
    fn forget(&mut self, flow: FlowId);

    /// Frees large state when the run is over; afterwards only counters are read.
    fn let_go(&mut self);

    /// The bearer as an observer of a queue; `None` if the bearer has the queue itself.
    fn observing(&mut self) -> Option<&mut dyn Observing>;
}

/// A bearer that only observes a queue beyond the edge.
pub trait Observing {
    /// Sets the condition under which data counts as departed from a queue that the bearer only observes.
    fn leave_when(&mut self, left_when: Left);

    /// Handles a segment that leaves the edge towards the servers, with the window that the segment advertises to the
    /// sender.
    fn on_told(&mut self, now: Time, segment: &Segment);

    /// Returns the first new estimate since the last call, with its time.
    fn poll_observation(&mut self) -> Option<(Time, Observation)>;
}

/// A bearer as an edge stores it: a bearer of two links inline, any other bearer behind a pointer. Most bearers consist
/// of two links, and a call through a pointer would be a large part of their cost.
// The size difference of the variants does not matter: an edge has only one bearer.
#[allow(clippy::large_enum_variant)]
pub enum AnyBearer {
    /// A bearer that consists of two links.
    Plain(PlainBearer),
    /// A bearer of any other kind.
    Other(Box<dyn Bearer>),
}

/// Receives the events of a bearer.
pub trait BearerListener {
    /// Returns the bearer, which stays accessible while its events are handled.
    fn bearer(&mut self) -> &mut AnyBearer;

    /// Handles an event of a segment in a direction.
    fn on_event(&mut self, at: Time, direction: Direction, event: LinkEvent, segment: &Segment);
}

impl From<PlainBearer> for AnyBearer {
    fn from(bearer: PlainBearer) -> Self {
        Self::Plain(bearer)
    }
}

impl From<Box<dyn Bearer>> for AnyBearer {
    fn from(bearer: Box<dyn Bearer>) -> Self {
        Self::Other(bearer)
    }
}

impl AnyBearer {
    /// Calls the listener for each event of a direction up to `now`, with the event's time and segment.
    #[inline(always)]
    pub fn drain(listener: &mut impl BearerListener, now: Time, direction: Direction) {
        // The loop for two links is separate so that the compiler can specialise it: most bearers consist of two links.
        while let Self::Plain(PlainBearer { links, due }) = listener.bearer()
            && let AnyLink::Serial(link) = &mut links[direction as usize]
            && let Some(planned) = link.planned()
        {
            let Some((at, event)) = planned.peek_event(now) else { return };
            let segment = planned.take_segment();
            due[direction as usize] = planned.due();
            listener.on_event(at, direction, event, &segment);
        }
        Self::drain_any(listener, now, direction);
    }

    /// Calls the listener for each event of a direction up to `now`, for any kind of bearer.
    #[inline(never)]
    fn drain_any(listener: &mut impl BearerListener, now: Time, direction: Direction) {
        while listener.bearer().due(direction) <= now {
            let Some((at, event)) = listener.bearer().peek_event(now, direction) else { return };
            let segment = listener.bearer().take_segment(direction);
            listener.on_event(at, direction, event, &segment);
        }
    }
}

impl Bearer for AnyBearer {
    delegate! {
        to match self {
            Self::Plain(bearer) => bearer,
            Self::Other(bearer) => bearer,
        } {
            #[inline(always)]
            fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;
            fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;
            #[inline(always)]
            fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)>;
            #[inline(always)]
            fn take_segment(&mut self, direction: Direction) -> Segment;
            #[inline(always)]
            fn due(&self, direction: Direction) -> Time;
            fn want_departures(&mut self, direction: Direction, departures: Departures);
            fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView;
            fn waiting(&mut self, now: Time, direction: Direction) -> Load;
            fn waiting_of(&mut self, now: Time, user: u32) -> Load;
            fn waits(&self, direction: Direction) -> Cow<'_, Histogram>;
            fn gauges(&self, direction: Direction) -> Vec<f64>;
            fn radio(&self, direction: Direction, user: Option<u32>) -> Option<RadioCounts>;
            fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64>;
            fn start_capacity(&mut self, now: Time, direction: Direction);
            fn want_reports(&mut self);
            fn poll_report(&mut self, now: Time) -> Option<RadioReport>;
            fn change(&mut self, now: Time, direction: Direction, change: Change);
            fn assign(&mut self, flow: FlowId, user: u32);
            fn classify(&mut self, flow: FlowId, class: u8);
            fn forget(&mut self, flow: FlowId);
            fn let_go(&mut self);
            #[inline(always)]
            fn observing(&mut self) -> Option<&mut dyn Observing>;
        }
    }
}
