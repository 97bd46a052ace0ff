//! What becomes of segments in a link, in the order in which it is told.

use std::collections::VecDeque;

use ackclock_core::{Segment, Time};

use crate::LinkEvent;
use crate::serial::{Flight, Parted};

/// Departures and drops that have happened and were not told yet, and the packets under way: events by their instants, and at
/// one instant what has happened before what arrives.
#[derive(Default)]
pub(crate) struct Outcomes {
    happened: VecDeque<(Time, LinkEvent, Segment)>,
    /// Packets in transmission and in flight by time of arrival; equal times in order of departure.
    pub(crate) flight: Flight<Parted>,
}

impl Outcomes {
    /// A segment has departed or was dropped at `at`; instants never decrease.
    pub(crate) fn push(&mut self, at: Time, event: LinkEvent, segment: Segment) {
        self.happened.push_back((at, event, segment));
    }

    /// The instant of the next event; [`Time::NEVER`] where there is none.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.happened.front().map_or(Time::NEVER, |&(at, ..)| at).min(self.flight.due())
    }

    /// The next event with an instant of at most `now`.
    #[inline]
    pub(crate) fn next(&self, now: Time) -> Option<(Time, LinkEvent)> {
        let arrives = self.flight.due();
        match self.happened.front() {
            Some(&(at, event, _)) if at <= arrives => Some((at, event)),
            _ if arrives <= now => Some((arrives, LinkEvent::DELIVERED)),
            _ => None,
        }
    }

    /// Whether the next event is an arrival.
    pub(crate) fn next_is_delivery(&self) -> bool {
        self.happened.front().is_none_or(|&(at, ..)| at > self.flight.due())
    }

    /// Takes the segment of the next event out.
    ///
    /// # Panics
    /// Where there is no event.
    #[inline]
    pub(crate) fn take(&mut self) -> Segment {
        let arrives = self.flight.due();
        match self.happened.pop_front_if(|&mut (at, ..)| at <= arrives) {
            Some((.., segment)) => segment,
            None => self.flight.pop(),
        }
    }
}
