//! The bearer: both directions of a radio channel.

use ackclock_core::{FlowId, RadioReport, Rate, Segment, Time};

use crate::{Link, LinkEvent, LinkView, Refused};

/// Which way a segment travels over the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the network to the mobile.
    Down,
    /// From the mobile to the network.
    Up,
}

impl Direction {
    /// Both directions, down first: the order in which simultaneous events are told.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];
}

/// Both directions of a radio channel. As [`Link`], with a [`Direction`].
pub trait Bearer: Send {
    /// Takes a segment at `now`, or gives it back. Events that are due are drained before.
    ///
    /// # Errors
    /// [`Refused`] where the queue of that direction does not take it.
    fn enqueue(&mut self, now: Time, direction: Direction, segment: Segment) -> Result<(), Refused>;

    /// The next event with an instant of at most `now`; instants never decrease within a direction.
    fn poll_event(&mut self, now: Time) -> Option<(Time, Direction, LinkEvent)>;

    /// The instant of the next event: of any kind downwards where `departures` are watched, else of the next delivery.
    fn poll_timeout(&self, departures: Departures) -> Option<Time>;

    /// What an edge may see of the queue that serves `flow`.
    fn view(&self, now: Time, direction: Direction, flow: FlowId) -> LinkView;

    /// The long-run mean rate of a direction.
    fn mean_rate(&self, direction: Direction) -> Rate;

    /// What the radio controller has to tell.
    fn poll_report(&mut self, _now: Time) -> Option<RadioReport> {
        None
    }

    /// The flow has ended.
    fn forget(&mut self, _flow: FlowId) {}
}

/// Whether a caller must learn of departures at their instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departures {
    /// At their instant: a regulator acts on them.
    Watched,
    /// Some time later is soon enough: only statistics need them. Saves a wake a packet.
    Unwatched,
}

/// Two links that know nothing of each other.
pub struct PlainBearer {
    down: Box<dyn Link>,
    up: Box<dyn Link>,
}

impl PlainBearer {
    /// A bearer of two links.
    pub fn new(down: Box<dyn Link>, up: Box<dyn Link>) -> Self {
        Self { down, up }
    }

    fn link(&self, direction: Direction) -> &dyn Link {
        match direction {
            Direction::Down => &*self.down,
            Direction::Up => &*self.up,
        }
    }

    fn link_mut(&mut self, direction: Direction) -> &mut dyn Link {
        match direction {
            Direction::Down => &mut *self.down,
            Direction::Up => &mut *self.up,
        }
    }
}

impl Bearer for PlainBearer {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: Segment) -> Result<(), Refused> {
        self.link_mut(direction).enqueue(now, segment)
    }

    fn poll_event(&mut self, now: Time) -> Option<(Time, Direction, LinkEvent)> {
        Direction::BOTH.into_iter().find_map(|direction| {
            self.link_mut(direction).poll_event(now).map(|(at, event)| (at, direction, event))
        })
    }

    fn poll_timeout(&self, departures: Departures) -> Option<Time> {
        let down = match departures {
            Departures::Watched => self.down.poll_timeout(),
            Departures::Unwatched => self.down.next_delivery(),
        };
        earlier(down, self.up.next_delivery())
    }

    fn view(&self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        self.link(direction).view(now, flow)
    }

    fn mean_rate(&self, direction: Direction) -> Rate {
        self.link(direction).mean_rate()
    }

    fn forget(&mut self, flow: FlowId) {
        self.down.forget(flow);
        self.up.forget(flow);
    }
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
