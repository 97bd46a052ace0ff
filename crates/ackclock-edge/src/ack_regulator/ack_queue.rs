//! The FIFO of held ACKs.

use std::collections::VecDeque;

use ackclock_core::{Flags, Segment, Seq};

/// An ACK and the packets of buffer space that it asks for; a duplicate asks for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) segment: Segment,
    pub(super) cost: u32,
}

/// Held ACKs in order of arrival, whole.
#[derive(Debug, Default)]
pub(super) struct AckQueue(VecDeque<Held>);

impl AckQueue {
    pub(super) fn push(&mut self, segment: Segment, cost: u32) {
        self.0.push_back(Held { segment, cost });
    }

    pub(super) fn head(&self) -> Option<Held> {
        self.0.front().copied()
    }

    pub(super) fn pop(&mut self) -> Option<Held> {
        self.0.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out the advancing ACKs for `ack` or less; duplicates stay, in order.
    pub(super) fn discard_up_to(&mut self, ack: Seq) -> Vec<Segment> {
        let mut stale = Vec::new();
        self.0.retain(|held| {
            let keep = held.cost == 0 || held.segment.ack.after(ack);
            if !keep {
                stale.push(held.segment);
            }
            keep
        });
        stale
    }

    /// Merges the two oldest neighbours that both advance and say nothing but a number: the later one then stands for
    /// both. Gives back the earlier.
    pub(super) fn merge_oldest(&mut self) -> Option<Segment> {
        let at = (1..self.0.len()).find(|&at| self.0[at - 1].is_plain() && self.0[at].is_plain())?;
        let earlier = self.0.remove(at - 1)?;
        self.0[at - 1].cost += earlier.cost;
        Some(earlier.segment)
    }
}

impl Held {
    /// Whether it advances and carries no SACK, ECE or other news that a later ACK might not repeat.
    fn is_plain(&self) -> bool {
        self.cost > 0 && self.segment.sack().is_empty() && !self.segment.flags.intersects(Flags::ECE)
    }
}
