//! Copies of unacknowledged downlink data, ordered by sequence number.

use std::collections::VecDeque;

use ackclock_core::{Segment, Seq, Span, Time};

/// A packet of which the agent keeps a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    pub(super) segment: Segment,
    /// Time at which the packet's last byte left the queue; `None` while the packet is queued.
    pub(super) departed: Option<Time>,
    /// Number of local retransmissions of the packet.
    pub(super) retransmissions: u32,
    /// Time of the first duplicate ACK for the packet, while reordering is still possible.
    pub(super) asked: Option<Time>,
}

/// All copies of a flow's packets, ordered by sequence number.
#[derive(Debug, Default)]
pub(super) struct Cache(VecDeque<Cached>);

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends a packet to the cache.
    pub(super) fn push(&mut self, segment: Segment) {
        self.0.push_back(Cached { segment, departed: None, retransmissions: 0, asked: None });
    }

    pub(super) fn oldest(&self) -> Option<&Cached> {
        self.0.front()
    }

    /// Returns the packet that starts with `seq`.
    pub(super) fn get_mut(&mut self, seq: Seq) -> Option<&mut Cached> {
        let at = self.at(seq)?;
        self.0.get_mut(at)
    }

    /// Removes the packet that starts with `seq`.
    pub(super) fn remove(&mut self, seq: Seq) -> Option<Segment> {
        let at = self.at(seq)?;
        self.0.remove(at).map(|cached| cached.segment)
    }

    /// Number of packets in the cache after the packet that starts with `seq`.
    pub(super) fn behind(&self, seq: Seq) -> u32 {
        (self.0.len() - self.0.partition_point(|cached| !cached.segment.seq.after(seq))) as u32
    }

    /// Removes the copies of packets before the sequence number `ack`. The second returned value is the round-trip time
    /// of the last removed packet over the radio hop, if every byte from `last` on was sent once and has a copy.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        last: Option<Seq>,
        ack: Seq,
    ) -> (impl Iterator<Item = Segment>, Option<Span>) {
        let count = self.0.partition_point(|cached| cached.segment.end().at_or_before(ack));
        let acknowledged = self.0.range(..count);
        let whole = self.0.front().is_some_and(|first| last.is_none_or(|last| first.segment.seq == last))
            && acknowledged.clone().all(|cached| cached.retransmissions == 0)
            && acknowledged
                .clone()
                .zip(acknowledged.clone().skip(1))
                .all(|(a, b)| a.segment.end() == b.segment.seq);
        let newest = acknowledged.last().filter(|newest| whole && newest.segment.end() == ack);
        let rtt = newest.and_then(|newest| newest.departed).map(|departed| now.since(departed));
        (self.0.drain(..count).map(|cached| cached.segment), rtt)
    }

    /// Removes all copies from the cache.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = Segment> {
        self.0.drain(..).map(|cached| cached.segment)
    }

    fn at(&self, seq: Seq) -> Option<usize> {
        let at = self.0.partition_point(|cached| cached.segment.seq.before(seq));
        self.0.get(at).filter(|cached| cached.segment.seq == seq).map(|_| at)
    }
}
