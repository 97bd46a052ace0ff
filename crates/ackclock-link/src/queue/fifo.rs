//! Storage of all queue disciplines: first in, first out, with insertion at the front.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Time};

use super::{Choose, Place};
use crate::serial::{Packets, Parted};
use crate::{Capacity, Cause, Load};

/// Storage of a discipline with one queue: its packets, its capacity, and the packets dropped from it.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) fifo: Fifo,
    pub(super) capacity: Capacity,
    pub(super) dropped: VecDeque<(Segment, Cause)>,
}

impl Buffer {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Whether a segment fits, while the load `unqueued` counts against the capacity.
    #[inline]
    pub(super) fn admits(&self, segment: &Segment, unqueued: Load) -> bool {
        self.capacity.admits(self.fifo.load() + unqueued, segment)
    }

    /// Adds a segment, or refuses it if it does not fit.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        now: Time,
        segment: &Segment,
        unqueued: Load,
        place: Place,
    ) -> Result<(), Cause> {
        if !self.admits(segment, unqueued) {
            return Err(Cause::Full);
        }
        self.fifo.put(now, segment, place);
        Ok(())
    }
}

/// Segments in order of arrival, their arrival times, and their total size.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    segments: Parted,
    load: Load,
}

impl Fifo {
    #[inline(always)]
    pub(super) fn put(&mut self, now: Time, segment: &Segment, place: Place) {
        self.load += Load::of(segment);
        match place {
            Place::Back => self.segments.push(now, segment),
            Place::Front => self.segments.push_front(now, segment),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Time, Segment)> {
        let arrived = self.segments.first()?;
        let segment = self.segments.pop();
        self.load -= Load::of(&segment);
        Some((arrived, segment))
    }

    /// Removes the segment whose index `choose` returns.
    pub(super) fn remove(&mut self, choose: Choose<'_>) -> Option<Segment> {
        let index = choose(&mut self.segments.iter().map(|(_, segment)| segment))?;
        let segment = self.segments.remove(index)?;
        self.load -= Load::of(&segment);
        Some(segment)
    }

    /// Arrival time of the head segment; [`Time::NEVER`] if the queue is empty.
    pub(super) fn oldest(&self) -> Time {
        self.segments.first().unwrap_or(Time::NEVER)
    }

    /// Flow of the oldest segment in the queue.
    pub(super) fn head(&self) -> Option<FlowId> {
        self.segments.iter().next().map(|(_, segment)| segment.flow)
    }

    /// Arrival time of the oldest segment in the queue.
    pub(super) fn first(&self) -> Option<Time> {
        self.segments.first()
    }

    pub(super) fn load(&self) -> Load {
        self.load
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.segments.first().is_none()
    }
}
