//! Storage of all queue disciplines: first in, first out, with insertion at the front.

use ackclock_core::{FlowId, Segment, Time};

use super::Choose;
use crate::Load;
use crate::serial::{Packets, Parted};

/// Segments in order of arrival, their arrival times, and their total size.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    segments: Parted,
    load: Load,
}

impl Fifo {
    #[inline]
    pub(super) fn push(&mut self, now: Time, segment: &Segment) {
        self.load += Load::of(segment);
        self.segments.push(now, segment);
    }

    /// Inserts a segment before all other segments.
    pub(super) fn push_front(&mut self, now: Time, segment: &Segment) {
        self.load += Load::of(segment);
        self.segments.push_front(now, segment);
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
