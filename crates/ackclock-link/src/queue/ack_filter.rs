//! # ACK filter
//!
//! ## Source
//! The ACK filter of CAKE: the description in Linux commit 8b7138814f29 (Høiland-Jørgensen, 6 July 2018, "sch_cake: Add
//! optional ACK filter") and `tc-cake(8)` of iproute2. RFC 9768 section 3.3.3 for connections with AccECN.
//!
//! ## What it does
//! The filter is added to a queue of any discipline. When an ACK enters the queue, older ACKs of its flow in the same
//! subqueue are redundant if the new ACK acknowledges more: a higher number, or the same number and more by SACK. At most
//! one redundant ACK, the oldest, is dropped for each ACK that enters. The filter keeps the last redundant ACK, so two
//! ACKs stay; an aggressive filter drops it as well.
//!
//! An ACK stays if its information would be lost: SACK blocks that the new ACK does not cover, a report of duplicate data
//! (D-SACK, RFC 2883), a timestamp or an AccECN option that the next ACK of the flow lacks, or an ACE field that differs
//! from that of the next ACK. Duplicate ACKs stay. ACKs with data, SYN, FIN or RST, and encrypted headers, stay.
//!
//! ## Differences from the source
//! - ACKs with ECN feedback are dropped when the next ACK repeats it; the source compares the flags of the ACKs that it
//!   drops and keeps ACKs with options that it does not know, such as AccECN.
//! - The filter stands in front of any queue, and needs no CAKE.
//!
//! ## Validation
//! Unit tests work out by hand which ACKs stay. `crates/ackclock-scenario/tests/ack_filter.rs` checks that marks of
//! AccECN and DCTCP arrive, and that a slow uplink carries a faster download. No kernel with CAKE was at hand as a judge.

use std::collections::VecDeque;

use ackclock_core::{FlowId, SackBlock, Segment, Time, Timestamps};
use delegate::delegate;

use super::{AnyQueue, Choose, Place, Queue};
use crate::{Capacity, Cause, Load};

/// How many redundant ACKs of a flow a filter keeps in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    /// The last redundant ACK stays.
    Conservative,
    /// No redundant ACK stays.
    Aggressive,
}

/// A queue of any discipline whose redundant ACKs are dropped.
pub struct Filtered {
    queue: AnyQueue,
    filter: AckFilter,
    dropped: VecDeque<Segment>,
}

impl Filtered {
    /// Adds a filter to an empty queue.
    pub fn new(queue: AnyQueue, filter: AckFilter) -> Self {
        Self { queue, filter, dropped: VecDeque::new() }
    }
}

/// Index of the ACK that `new` makes redundant among the packets of a subqueue, which include `new`.
fn redundant(filter: AckFilter, new: &Segment, packets: &mut dyn Iterator<Item = Segment>) -> Option<usize> {
    let mut first = None;
    let mut last: Option<(usize, Segment)> = None;
    for (index, ack) in
        packets.enumerate().filter(|(_, packet)| packet.flow == new.flow && packet.is_pure_ack())
    {
        let before = last.replace((index, ack));
        let Some((before, _)) = before.filter(|(_, old)| is_exceeded(old, new) && is_repeated(old, &ack))
        else {
            continue;
        };
        if filter == AckFilter::Aggressive || first.is_some() {
            return first.or(Some(before));
        }
        first = Some(before);
    }
    None
}

/// Whether `new` acknowledges all that `old` does, and more.
fn is_exceeded(old: &Segment, new: &Segment) -> bool {
    let covered = |block: &SackBlock| {
        block.right.at_or_before(new.ack)
            || new
                .sack()
                .iter()
                .any(|by| by.left.at_or_before(block.left) && block.right.at_or_before(by.right))
    };
    let more = old.ack.before(new.ack) || old.ack == new.ack && sacked(old) < sacked(new);
    more && !reports_duplicate(old) && old.sack().iter().all(covered)
}

/// Bytes above the acknowledgement number that an ACK reports.
fn sacked(ack: &Segment) -> u32 {
    ack.sack()
        .iter()
        .filter(|block| ack.ack.before(block.left))
        .map(|block| block.right.since(block.left))
        .sum()
}

/// Whether the first SACK block reports data that arrived twice (RFC 2883 section 4).
fn reports_duplicate(ack: &Segment) -> bool {
    let inside = |inner: &SackBlock, outer: &SackBlock| {
        outer.left.at_or_before(inner.left) && inner.right.at_or_before(outer.right)
    };
    match ack.sack() {
        [first, ..] if first.left.before(ack.ack) => true,
        [first, second, ..] => inside(first, second),
        _ => false,
    }
}

/// Whether the next ACK of a flow repeats what `old` says about congestion marks and time.
fn is_repeated(old: &Segment, next: &Segment) -> bool {
    let is_older = match (old.timestamps(), next.timestamps()) {
        (Some(old), Some(next)) => !Timestamps::is_later(old.value, next.value),
        (old, _) => old.is_none(),
    };
    is_older && old.ace() == next.ace() && (old.acc_ecn().is_none() || next.acc_ecn().is_some())
}

impl Queue for Filtered {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.queue.put(now, segment, unqueued, place)?;
        if place == Place::Back && segment.is_pure_ack() && !segment.is_encrypted() {
            let filter = self.filter;
            let dropped = self.queue.remove(now, segment.flow, &mut |acks| redundant(filter, segment, acks));
            self.dropped.extend(dropped);
        }
        Ok(())
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.queue.poll_dropped().or_else(|| self.dropped.pop_front().map(|ack| (ack, Cause::Filtered)))
    }

    delegate! {
        to self.queue {
            fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;
            fn pass(&mut self, now: Time, segment: &Segment);
            fn is_empty(&self) -> bool;
            fn oldest(&self) -> Time;
            fn remove_oldest(&mut self, now: Time) -> Option<Segment>;
            fn remove(&mut self, now: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment>;
            fn waiting(&self, flow: FlowId) -> Load;
            fn load(&self) -> Load;
            fn together(&self, a: FlowId, b: FlowId) -> bool;
            fn capacity(&self, flow: FlowId) -> Capacity;
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{AccEcn, EctField, Flags, Seq};

    use super::*;
    use crate::queue::DropTail;

    fn ack(number: u32, blocks: &[(u32, u32)]) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(number), 40);
        blocks
            .iter()
            .for_each(|&(left, right)| ack.push_sack(SackBlock { left: Seq(left), right: Seq(right) }));
        ack
    }

    /// Numbers of the ACKs that stay, and of those that are dropped, in order.
    fn left(filter: AckFilter, acks: &[Segment]) -> (Vec<u32>, Vec<u32>) {
        let mut queue = Filtered::new(DropTail::new(Capacity::Packets(1000)).any(), filter);
        for ack in acks {
            queue.enqueue(Time::ZERO, ack, Load::NONE).unwrap();
        }
        let dropped: Vec<_> = std::iter::from_fn(|| queue.poll_dropped()).collect();
        assert!(dropped.iter().all(|&(_, cause)| cause == Cause::Filtered));
        assert_eq!(queue.load().packets as usize, acks.len() - dropped.len());
        let stay = std::iter::from_fn(|| queue.dequeue(Time::ZERO)).map(|(_, ack)| ack.ack.0).collect();
        (stay, dropped.iter().map(|(ack, _)| ack.ack.0).collect())
    }

    fn stay(filter: AckFilter, acks: &[Segment]) -> Vec<u32> {
        left(filter, acks).0
    }

    use AckFilter::{Aggressive, Conservative};

    #[test]
    fn two_acks_stay_or_one() {
        let acks = [100, 200, 300, 400, 500].map(|number| ack(number, &[]));
        assert_eq!(left(Conservative, &acks), (vec![400, 500], vec![100, 200, 300]));
        assert_eq!(left(Aggressive, &acks), (vec![500], vec![100, 200, 300, 400]));
    }

    #[test]
    fn packets_of_other_flows_and_other_packets_stay() {
        let mut other = ack(100, &[]);
        other.flow = FlowId(1);
        let mut hidden = ack(100, &[]);
        hidden.encrypt();
        let mut fin = ack(250, &[]);
        fin.flags |= Flags::FIN;
        let data = Segment::data(FlowId(0), Seq(7), 960, 40);
        let acks = [other, ack(100, &[]), data, ack(200, &[]), fin, ack(300, &[])];
        assert_eq!(stay(Aggressive, &acks), [100, 0, 250, 300]);
        hidden.ack = Seq(400);
        assert_eq!(stay(Aggressive, &[ack(100, &[]), hidden]), [100, 400]);
    }

    #[test]
    fn duplicate_acks_stay_and_those_with_more_sack_replace_others() {
        assert_eq!(stay(Aggressive, &[ack(100, &[]); 4]), [100; 4]);
        let same = ack(100, &[(200, 300)]);
        assert_eq!(stay(Aggressive, &[same, same]), [100, 100]);
        let more = [ack(100, &[]), ack(100, &[(200, 300)]), ack(100, &[(200, 400)])];
        assert_eq!(stay(Aggressive, &more), [100]);
        assert_eq!(stay(Conservative, &more), [100, 100]);
        // The new ACK does not report the block 500 to 600.
        let fewer = [ack(100, &[(500, 600)]), ack(100, &[(200, 400)])];
        assert_eq!(stay(Aggressive, &fewer).len(), 2);
        // Acknowledged in full.
        assert_eq!(stay(Aggressive, &[ack(100, &[(500, 600)]), ack(600, &[])]), [600]);
    }

    #[test]
    fn a_report_of_duplicate_data_stays() {
        let below = [ack(300, &[(100, 200)]), ack(400, &[])];
        assert_eq!(stay(Aggressive, &below), [300, 400]);
        let inside = [ack(100, &[(300, 400), (200, 500)]), ack(500, &[])];
        assert_eq!(stay(Aggressive, &inside), [100, 500]);
    }

    /// Of ACKs with the ACE values 5, 5, 6, 6, 7 the first of each pair is repeated by the second.
    #[test]
    fn the_last_ack_before_a_change_of_the_feedback_stays() {
        let acks: Vec<_> = [(100, 5), (200, 5), (300, 6), (400, 6), (500, 7)]
            .into_iter()
            .map(|(number, ace)| {
                let mut ack = ack(number, &[]);
                ack.set_ace(ace);
                ack
            })
            .collect();
        assert_eq!(stay(Aggressive, &acks), [200, 400, 500]);
        let option = AccEcn { field: EctField::Ect0, ect_bytes: 1, ce_bytes: 0 };
        let mut with = ack(100, &[]);
        with.set_acc_ecn(option);
        assert_eq!(stay(Aggressive, &[with, ack(200, &[])]), [100, 200]);
        assert_eq!(stay(Aggressive, &[ack(100, &[]), with]), [100, 100]);
        let mut later = with;
        later.ack = Seq(200);
        assert_eq!(stay(Aggressive, &[with, later]), [200]);
    }

    #[test]
    fn an_ack_with_a_later_timestamp_stays() {
        let at = |number, value| {
            let mut ack = ack(number, &[]);
            ack.set_timestamps(Timestamps { value, echo: 0 });
            ack
        };
        assert_eq!(stay(Aggressive, &[at(100, 7), at(200, 7)]), [200]);
        assert_eq!(stay(Aggressive, &[at(100, 8), at(200, 7)]), [100, 200]);
        assert_eq!(stay(Aggressive, &[at(100, 8), ack(200, &[])]), [100, 200]);
    }
}
