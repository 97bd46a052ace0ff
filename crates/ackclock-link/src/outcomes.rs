//! Pending events of a link, in the order in which they are reported.

use std::collections::VecDeque;

use ackclock_core::{Segment, Time};

use crate::serial::flight::Flight;
use crate::serial::packets::Parted;
use crate::{LinkEvent, Repetitions};

/// Departures and drops that were not reported yet, and packets in flight. Events are ordered by time; at equal times
/// departures and drops come before arrivals.
#[derive(Default)]
pub struct Outcomes {
    happened: VecDeque<(Time, LinkEvent, Segment)>,
    /// Packets in transmission and in flight by time of arrival; packets with equal arrival times are in order of
    /// departure.
    pub(crate) flight: Flight<Parted>,
    /// Arrival time and retransmissions of each packet in flight, in the same order as the packets; empty for a link
    /// that does not retransmit.
    repeated: VecDeque<(Time, Repetitions)>,
}

impl Outcomes {
    /// Records that a segment departed or was dropped at `at`, which never decreases from call to call.
    #[inline]
    pub fn push(&mut self, at: Time, event: LinkEvent, segment: Segment) {
        self.happened.push_back((at, event, segment));
    }

    /// Adds a segment that arrives at `arrives`.
    #[inline]
    pub fn put(&mut self, arrives: Time, segment: &Segment) {
        self.flight.put(arrives, segment);
    }

    /// Adds a segment that arrives at `arrives` after link-layer retransmissions. A link must call this method for all
    /// of its packets or for no packet.
    #[inline]
    pub fn put_repeated(&mut self, arrives: Time, segment: &Segment, repetitions: Repetitions) {
        self.flight.put(arrives, segment);
        let later = self.repeated.iter().rev().take_while(|&&(at, _)| at > arrives).count();
        self.repeated.insert(self.repeated.len() - later, (arrives, repetitions));
    }

    /// Frees all packets in flight.
    #[inline]
    pub fn let_go(&mut self) {
        self.flight = Flight::default();
        self.repeated = VecDeque::new();
    }

    /// Time of the next event; [`Time::NEVER`] if no event is pending.
    #[inline]
    pub fn due(&self) -> Time {
        self.happened.front().map_or(Time::NEVER, |&(at, ..)| at).min(self.flight.due())
    }

    /// Returns the next event at or before `now`.
    #[inline]
    pub fn next(&self, now: Time) -> Option<(Time, LinkEvent)> {
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

    /// Takes the segment of the next event.
    ///
    /// # Panics
    /// Panics if there is no event.
    #[inline]
    pub fn take(&mut self) -> Segment {
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
