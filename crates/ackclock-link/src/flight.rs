//! Packets under way, by time of arrival.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Time};

/// Packets under way; equal times in the order in which they were put in.
///
/// Nearly every packet arrives behind all others, so the ring is only looked through where one overtakes.
#[derive(Debug)]
pub(crate) struct Flight {
    ring: VecDeque<(Time, Segment)>,
    due: Time,
}

impl Default for Flight {
    fn default() -> Self {
        Self { ring: VecDeque::new(), due: Time::NEVER }
    }
}

impl Flight {
    /// When the next packet arrives; [`Time::NEVER`] where none is under way.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Puts a packet in, behind all that arrive no later.
    #[inline]
    pub(crate) fn put(&mut self, arrives: Time, segment: &Segment) {
        self.due = self.due.min(arrives);
        match self.ring.back() {
            Some(&(last, _)) if last > arrives => self.put_between(arrives, segment),
            _ => self.ring.push_back((arrives, *segment)),
        }
    }

    /// Takes the next packet out; [`due`](Self::due) says that there is one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Segment {
        let (_, segment) = self.ring[0];
        self.ring.pop_front();
        self.due = self.ring.front().map_or(Time::NEVER, |&(time, _)| time);
        segment
    }

    /// Takes out the last packet of `flow` that arrives at `arrives`.
    pub(crate) fn remove(&mut self, arrives: Time, flow: FlowId) -> Option<Segment> {
        let at = self.ring.iter().rposition(|(time, segment)| *time == arrives && segment.flow == flow)?;
        let (_, segment) = self.ring.remove(at)?;
        self.due = self.ring.front().map_or(Time::NEVER, |&(time, _)| time);
        Some(segment)
    }

    /// The packets under way and when they arrive, in that order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Time, Segment)> {
        self.ring.iter()
    }

    /// How many packets are under way.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    fn put_between(&mut self, arrives: Time, segment: &Segment) {
        let at = self.ring.partition_point(|&(time, _)| time <= arrives);
        self.ring.insert(at, (arrives, *segment));
    }
}
