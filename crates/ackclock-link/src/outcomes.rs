//! What becomes of segments in a link, in the order in which it is told.

use std::collections::VecDeque;

use ackclock_core::{Segment, Time};

use crate::serial::flight::Flight;
use crate::serial::packets::Parted;
use crate::{LinkEvent, Repetitions};

/// Departures and drops that have happened and were not told yet, and the packets under way: events by their instants, and at
/// one instant what has happened before what arrives.
#[derive(Default)]
pub(crate) struct Outcomes {
    happened: VecDeque<(Time, LinkEvent, Segment)>,
    /// Packets in transmission and in flight by time of arrival; equal times in order of departure.
    pub(crate) flight: Flight<Parted>,
    /// When each packet in flight arrives and what was repeated of it, in the order of the flight; empty in a link that repeats
    /// nothing.
    repeated: VecDeque<(Time, Repetitions)>,
}

impl Outcomes {
    /// A segment has departed or was dropped at `at`; instants never decrease.
    pub(crate) fn push(&mut self, at: Time, event: LinkEvent, segment: Segment) {
        self.happened.push_back((at, event, segment));
    }

    /// A segment arrives at `arrives`, of which so much was repeated. A link that tells this of one tells it of all.
    pub(crate) fn put_repeated(&mut self, arrives: Time, segment: &Segment, repetitions: Repetitions) {
        self.flight.put(arrives, segment);
        let later = self.repeated.iter().rev().take_while(|&&(at, _)| at > arrives).count();
        self.repeated.insert(self.repeated.len() - later, (arrives, repetitions));
    }

    /// Lets go of what is under way.
    pub(crate) fn let_go(&mut self) {
        self.flight = Flight::default();
        self.repeated = VecDeque::new();
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
            _ if arrives <= now => Some((arrives, LinkEvent::Delivered(self.repeated_of_next()))),
            _ => None,
        }
    }

    #[inline]
    fn repeated_of_next(&self) -> Repetitions {
        self.repeated.front().map_or(Repetitions::NONE, |&(_, repetitions)| repetitions)
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
            None => {
                self.repeated.pop_front();
                self.flight.pop()
            }
        }
    }
}
