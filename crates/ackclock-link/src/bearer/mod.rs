//! The bearer: both directions of a radio channel. One file a bearer; the registry [`BEARERS`] names them.

mod config;
mod links;

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Time};
use delegate::delegate;

use crate::{AnyLink, Cause, Departures, Left, LinkEvent, LinkView, Load, Medium, Observation};

pub use config::{BearerConfig, BearerContext, BearerLinks};
pub use links::{LinksConfig, PlainBearer};

ackclock_core::registry! {
    /// Bearers by the name that scenario files give them.
    pub static BEARERS: dyn BearerConfig = "bearer" {
        "links" => LinksConfig,
        "umts-rlc-am" => crate::UmtsRlcAmConfig,
        "observed" => crate::ObservedConfig,
        "autorate" => crate::AutorateConfig,
    }
}

/// Which way a segment travels over the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the network to the mobile.
    Down = 0,
    /// From the mobile to the network.
    Up = 1,
}

impl Direction {
    /// Both directions, down first: the order in which simultaneous events are told.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

/// Both directions of a radio channel. As [`Link`](crate::Link), with a [`Direction`].
///
/// The defaults are those of a bearer that has nothing to report, no medium to replace and no state of a link layer. A bearer
/// around another one must pass every method on.
pub trait Bearer: Send {
    /// Takes a segment at `now`, or refuses it. Events that are due are drained before.
    ///
    /// # Errors
    /// The cause, where the queue of that direction does not take it.
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;

    /// Takes a segment to the front of the queue, as [`Link::enqueue_front`](crate::Link::enqueue_front).
    ///
    /// # Errors
    /// The cause, where the queue of that direction does not take it.
    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.enqueue(now, direction, segment)
    }

    /// The next event of a direction with an instant of at most `now`; instants never decrease within a direction. It stays the
    /// next until [its segment is taken](Self::take_segment).
    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)>;

    /// Takes the segment of the event that [`peek_event`](Self::peek_event) gave last of this direction.
    ///
    /// # Panics
    /// Where it gave none.
    fn take_segment(&mut self, direction: Direction) -> Segment;

    /// The instant of the next event of a direction, or an earlier one at which more will be known; [`Time::NEVER`] where there
    /// is none.
    fn due(&self, direction: Direction) -> Time;

    /// Whether departures downwards are events; those upwards never are.
    fn want_departures(&mut self, departures: Departures);

    /// What an edge may see of the queue that serves `flow`.
    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView;

    /// What waits in all queues of a direction, as [`Link::waiting`](crate::Link::waiting).
    fn waiting(&mut self, now: Time, direction: Direction) -> Load;

    /// How long segments had waited in the queue of a direction.
    fn waits(&self, direction: Direction) -> Cow<'_, Histogram>;

    /// The state of its link layer in a direction: a value for each of [`BearerConfig::gauges`], in their order.
    fn gauges(&self, _direction: Direction) -> Vec<f64> {
        Vec::new()
    }

    /// Mean rate that a direction could have carried until `until`, as [`Link::capacity_bps`](crate::Link::capacity_bps).
    fn capacity_bps(&mut self, _until: Time, _direction: Direction) -> Option<f64> {
        None
    }

    /// Somebody acts on reports: from now on they are made, where the bearer has any.
    fn want_reports(&mut self) {}

    /// What the radio controller has to tell up to `now`.
    fn poll_report(&mut self, _now: Time) -> Option<RadioReport> {
        None
    }

    /// From `now` on a direction has another medium, as [`Link::replace_medium`](crate::Link::replace_medium); only of a bearer of links is
    /// it asked.
    fn replace_medium(&mut self, _now: Time, _direction: Direction, _medium: Box<dyn Medium>) {}

    /// Tells whose flow it is, for queues that are kept by user.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// The flow has ended.
    fn forget(&mut self, flow: FlowId);

    /// Nothing more will be asked but what was counted: what takes much room may go.
    fn let_go(&mut self) {}

    /// When data counts as having left a queue that the bearer only observes.
    fn leave_when(&mut self, _left_when: Left) {}

    /// A segment leaves the edge towards the servers, with the window advertised to its source.
    fn on_told(&mut self, _now: Time, _segment: &Segment) {}

    /// What a bearer that only observes has learnt since the last call, and when.
    fn poll_observation(&mut self) -> Option<(Time, Observation)> {
        None
    }
}

/// A bearer as an edge holds it: two links in place, because that is the usual one and a call through a pointer would be
/// much of its cost; every other behind a pointer.
// There is one to an edge, so it does not matter that one kind is larger than the other.
#[allow(clippy::large_enum_variant)]
pub enum AnyBearer {
    /// Two links.
    Plain(PlainBearer),
    /// Any other.
    Other(Box<dyn Bearer>),
}

/// Who hears what a bearer does.
pub trait BearerListener {
    /// The bearer, at which it may look while it hears.
    fn bearer(&mut self) -> &mut AnyBearer;

    /// Something has happened to a segment of a direction.
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
    /// Tells the listener each event of a direction up to `now`, with its instant and its segment.
    #[inline(always)]
    pub fn drain(listener: &mut impl BearerListener, now: Time, direction: Direction) {
        // By itself, so that the compiler sees that all events are deliveries: nearly every link is such a one.
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

    /// The same, whatever the bearer is.
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
            fn want_departures(&mut self, departures: Departures);
            fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView;
            fn waiting(&mut self, now: Time, direction: Direction) -> Load;
            fn waits(&self, direction: Direction) -> Cow<'_, Histogram>;
            fn gauges(&self, direction: Direction) -> Vec<f64>;
            fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64>;
            fn want_reports(&mut self);
            fn poll_report(&mut self, now: Time) -> Option<RadioReport>;
            fn replace_medium(&mut self, now: Time, direction: Direction, medium: Box<dyn Medium>);
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
            fn let_go(&mut self);
            fn leave_when(&mut self, left_when: Left);
            #[inline(always)]
            fn on_told(&mut self, now: Time, segment: &Segment);
            #[inline(always)]
            fn poll_observation(&mut self) -> Option<(Time, Observation)>;
        }
    }
}
