//! The bearer: both directions of a radio channel.

use ackclock_core::{FlowId, Histogram, RadioReport, Rate, Segment, Time};

use crate::{Departures, Link, LinkEvent, LinkView, Medium, Refused};

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
}

/// Both directions of a radio channel. As [`Link`], with a [`Direction`].
pub trait Bearer: Send {
    /// Takes a segment at `now`, or gives it back. Events that are due are drained before.
    ///
    /// # Errors
    /// [`Refused`] where the queue of that direction does not take it.
    fn enqueue(&mut self, now: Time, direction: Direction, segment: Segment) -> Result<(), Refused>;

    /// The next event of a direction with an instant of at most `now`; instants never decrease within a direction.
    fn poll_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)>;

    /// The instant of the next event, or an earlier one at which more will be known.
    fn poll_timeout(&self) -> Option<Time>;

    /// Whether departures downwards are events; those upwards never are.
    fn watch(&mut self, departures: Departures);

    /// What an edge may see of the queue that serves `flow`.
    fn view(&self, now: Time, direction: Direction, flow: FlowId) -> LinkView;

    /// The long-run mean rate of a direction.
    fn mean_rate(&self, direction: Direction) -> Rate;

    /// How long segments had waited in the queue of a direction.
    fn waits(&self, direction: Direction) -> &Histogram;

    /// What the radio controller has to tell.
    fn poll_report(&mut self, _now: Time) -> Option<RadioReport> {
        None
    }

    /// From `now` on a direction has another medium, as [`Link::exchange`].
    fn exchange(&mut self, _now: Time, _direction: Direction, _medium: Box<dyn Medium>) {}

    /// Tells whose flow it is, for queues that are kept by user.
    fn assign(&mut self, _flow: FlowId, _user: u32) {}

    /// The flow has ended.
    fn forget(&mut self, _flow: FlowId) {}
}

/// Two links that know nothing of each other.
pub struct PlainBearer {
    links: [Box<dyn Link>; 2],
    /// The next event of each link, so that a link is asked only when it has something to say.
    due: [Time; 2],
}

impl PlainBearer {
    /// A bearer of two links.
    pub fn new(down: Box<dyn Link>, up: Box<dyn Link>) -> Self {
        Self { links: [down, up], due: [Time::NEVER; 2] }
    }

    fn note_due(&mut self, direction: Direction) {
        self.due[direction as usize] = self.links[direction as usize].poll_timeout().unwrap_or(Time::NEVER);
    }
}

impl Bearer for PlainBearer {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: Segment) -> Result<(), Refused> {
        let taken = self.links[direction as usize].enqueue(now, segment);
        self.note_due(direction);
        taken
    }

    fn poll_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        if self.due[direction as usize] > now {
            return None;
        }
        let event = self.links[direction as usize].poll_event(now);
        self.note_due(direction);
        event
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due[0].min(self.due[1])).filter(|&time| time != Time::NEVER)
    }

    fn watch(&mut self, departures: Departures) {
        self.links[Direction::Down as usize].watch(departures);
        self.note_due(Direction::Down);
    }

    fn view(&self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        self.links[direction as usize].view(now, flow)
    }

    fn mean_rate(&self, direction: Direction) -> Rate {
        self.links[direction as usize].mean_rate()
    }

    fn waits(&self, direction: Direction) -> &Histogram {
        self.links[direction as usize].waits()
    }

    fn exchange(&mut self, now: Time, direction: Direction, medium: Box<dyn Medium>) {
        self.links[direction as usize].exchange(now, medium);
        self.note_due(direction);
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.links.iter_mut().for_each(|link| link.assign(flow, user));
    }

    fn forget(&mut self, flow: FlowId) {
        self.links.iter_mut().for_each(|link| link.forget(flow));
    }
}
