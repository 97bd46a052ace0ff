//! Changes and hand-overs of a running edge, in order of time.

use ackclock_core::Time;
use ackclock_link::{Change, Direction, Handover};

use crate::AtHandover;

/// Scheduled changes of the links, ordered from latest to earliest.
#[derive(Default)]
pub(crate) struct Changes(Vec<(Time, Direction, Change)>);

impl Changes {
    /// Time of the next scheduled change; [`Time::NEVER`] without one.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.0.last().map_or(Time::NEVER, |(time, ..)| *time)
    }

    /// Adds a change after the existing changes of the same instant.
    pub(crate) fn add(&mut self, time: Time, direction: Direction, change: Change) {
        let at = self.0.partition_point(|(other, ..)| *other > time);
        self.0.insert(at, (time, direction, change));
    }

    /// Removes and returns the next change if it is due at `now`.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Time, Direction, Change)> {
        if self.due() <= now { self.0.pop() } else { None }
    }
}

/// Event of a hand-over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HandoverEvent {
    /// The hand-over begins.
    Begins(Handover, AtHandover),
    /// The hand-over of the user ends.
    Ends(u32),
}

/// Events of all hand-overs, ordered from latest to earliest.
#[derive(Default)]
pub(crate) struct Handovers(Vec<(Time, HandoverEvent)>);

impl Handovers {
    /// Time of the next event; [`Time::NEVER`] without one.
    pub(crate) fn due(&self) -> Time {
        self.0.last().map_or(Time::NEVER, |&(time, _)| time)
    }

    /// Removes and returns the next event if it is due at `now`.
    pub(crate) fn take(&mut self, now: Time) -> Option<HandoverEvent> {
        self.0.pop_if(|&mut (time, _)| time <= now).map(|(_, event)| event)
    }

    /// Adds an event after the existing events of the same instant.
    pub(crate) fn add(&mut self, time: Time, event: HandoverEvent) {
        let at = self.0.partition_point(|&(other, _)| other > time);
        self.0.insert(at, (time, event));
    }
}
