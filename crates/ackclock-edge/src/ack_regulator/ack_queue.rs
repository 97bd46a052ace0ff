//! First-in, first-out queue of held ACKs.

use std::collections::VecDeque;

use ackclock_core::{Segment, Seq};

/// ACE bits of an ACK that echoes congestion without a counter, or counts 1 modulo 8.
const ECE_ALONE: u8 = 0b001;

/// A held ACK, and its cost in packets of buffer space. The cost of a duplicate ACK is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) segment: Segment,
    pub(super) cost: u32,
}

/// Held ACKs of a flow, in order of arrival.
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

    /// Removes the advancing ACKs up to `ack` and returns them. Duplicate ACKs stay in the queue, in order.
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

    /// Merges the two oldest neighbouring ACKs that both advance and contain only an ACK number. The later of the
    /// merged ACKs gets the cost of both ACKs, and the earlier ACK is returned.
    pub(super) fn merge_oldest(&mut self) -> Option<Segment> {
        let at = (1..self.0.len()).find(|&at| self.0[at - 1].merges_into(&self.0[at]))?;
        let earlier = self.0.remove(at - 1)?;
        self.0[at - 1].cost += earlier.cost;
        Some(earlier.segment)
    }
}

impl Held {
    /// Returns whether a later ACK repeats all information of this ACK. An AccECN counter (RFC 9768) must be equal: its
    /// three bits could wrap unnoticed between ACKs that are far apart.
    fn merges_into(&self, later: &Self) -> bool {
        let ace = self.segment.ace();
        self.is_plain() && later.is_plain() && ace == later.segment.ace() && ace != ECE_ALONE
    }

    /// Returns whether the ACK advances and contains no SACK.
    fn is_plain(&self) -> bool {
        self.cost > 0 && self.segment.sack().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{Flags, FlowId, SackBlock};

    fn ack(number: u32) -> Segment {
        Segment::pure_ack(FlowId(0), Seq(number), 40)
    }

    fn queue_all(queue: &mut AckQueue, numbers_and_costs: &[(u32, u32)]) {
        numbers_and_costs.iter().for_each(|&(number, cost)| queue.push(ack(number), cost));
    }

    fn numbers_and_costs(queue: &AckQueue) -> Vec<(u32, u32)> {
        queue.0.iter().map(|held| (held.segment.ack.0, held.cost)).collect()
    }

    #[test]
    fn the_later_of_two_merged_acks_asks_for_what_both_asked_for() {
        let mut queue = AckQueue::default();
        queue_all(&mut queue, &[(1, 1), (2, 2), (3, 4)]);
        assert_eq!(queue.merge_oldest().map(|merged| merged.ack), Some(Seq(1)));
        assert_eq!(numbers_and_costs(&queue), [(2, 3), (3, 4)]);
    }

    #[test]
    fn acks_that_say_more_than_a_number_are_never_merged() {
        let with_sack = |mut ack: Segment| {
            ack.push_sack(SackBlock { left: ack.ack + 10, right: ack.ack + 20 });
            ack
        };
        let with_echo = |mut ack: Segment| {
            ack.flags |= Flags::ECE;
            ack
        };
        for (news, cost) in [(with_sack(ack(2)), 1), (with_echo(ack(2)), 1), (ack(2), 0)] {
            let mut queue = AckQueue::default();
            queue.push(ack(1), 1);
            queue.push(news, cost);
            queue.push(ack(3), 1);
            assert_eq!(queue.merge_oldest(), None, "{news:?}");
            queue.push(ack(4), 1);
            assert_eq!(queue.merge_oldest().map(|merged| merged.ack), Some(Seq(3)), "{news:?}");
        }
    }

    #[test]
    fn what_is_out_of_date_leaves_and_duplicates_stay() {
        let mut queue = AckQueue::default();
        queue_all(&mut queue, &[(1, 1), (1, 0), (2, 1), (3, 1)]);
        let stale: Vec<_> = queue.discard_up_to(Seq(2)).iter().map(|ack| ack.ack.0).collect();
        assert_eq!(stale, [1, 2]);
        assert_eq!(numbers_and_costs(&queue), [(1, 0), (3, 1)]);
    }

    /// Merging 2, 4 and 2 (10 modulo 8) into one ACK would hide eight marks.
    #[test]
    fn acks_with_different_counters_are_not_merged() {
        let counted = |number, ace| {
            let mut ack = ack(number);
            ack.set_ace(ace);
            ack
        };
        let mut queue = AckQueue::default();
        for (number, ace) in [(1, 2), (2, 4), (3, 2), (4, 2), (5, 5), (6, 5)] {
            queue.push(counted(number, ace), 1);
        }
        let merged: Vec<u32> = std::iter::from_fn(|| queue.merge_oldest()).map(|ack| ack.ack.0).collect();
        assert_eq!(merged, [3, 5]);
    }
}
