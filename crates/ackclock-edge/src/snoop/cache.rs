//! Copies of the data that the mobile has not acknowledged, in the order of their numbers.

use std::collections::VecDeque;

use ackclock_core::{Segment, Seq, Span, Time};

/// A packet of which a copy is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    pub(super) segment: Segment,
    /// When its last byte left the queue; none while it waits there.
    pub(super) departed: Option<Time>,
    /// How often it was sent again from here.
    pub(super) retransmissions: u32,
    /// Since when it has been asked for, where what overtook it is waited for.
    pub(super) asked: Option<Time>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Cache(VecDeque<Cached>);

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a packet behind all others.
    pub(super) fn push(&mut self, segment: Segment) {
        self.0.push_back(Cached { segment, departed: None, retransmissions: 0, asked: None });
    }

    pub(super) fn oldest(&self) -> Option<&Cached> {
        self.0.front()
    }

    /// The packet that begins with this byte.
    pub(super) fn get_mut(&mut self, seq: Seq) -> Option<&mut Cached> {
        let at = self.at(seq)?;
        self.0.get_mut(at)
    }

    /// Takes it out.
    pub(super) fn remove(&mut self, seq: Seq) -> Option<Segment> {
        let at = self.at(seq)?;
        self.0.remove(at).map(|cached| cached.segment)
    }

    /// How many packets there are behind the one that begins with this byte.
    pub(super) fn behind(&self, seq: Seq) -> u32 {
        (self.0.len() - self.0.partition_point(|cached| !cached.segment.seq.after(seq))) as u32
    }

    /// Takes out the packets before `ack`. With how long the hop took for the last of them, where no other was waited for: each
    /// byte from `last` on was sent once, and here is its copy.
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

    /// Takes out everything.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = Segment> {
        self.0.drain(..).map(|cached| cached.segment)
    }

    fn at(&self, seq: Seq) -> Option<usize> {
        let at = self.0.partition_point(|cached| cached.segment.seq.before(seq));
        self.0.get(at).filter(|cached| cached.segment.seq == seq).map(|_| at)
    }
}
