//! # Transmission order
//!
//! Keeps the segments in flight in order of transmission for RACK, and lost segments in order of sequence number.
//!
//! ## Source
//! RFC 8985 section 6.2 step 5, and Linux's list in transmission order (tsorted_sent_queue).
//!
//! ## What it does
//! Segments sent only once are in order of both sequence number and transmission, so only retransmissions are queued. A
//! segment is overtaken if a segment sent after it has arrived. An overtaken segment stays in a second queue until it
//! is old enough to be lost. Each transmission enters and leaves a queue once, so an ACK costs O(log n) amortised at
//! any window size.
//!
//! ## Differences from the source
//! At each ACK, Linux examines all overtaken segments that are too young. This implementation examines only the first
//! and the last overtaken segment, and gets an equal result.
//!
//! ## Validation
//! Unit tests below compare the order with a walk over all segments in flight, under random arrivals. The module
//! `overshoot` counts examined segments by window size.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_core::Time;

use crate::scoreboard::{Latest, Scoreboard};
use crate::sent::{Index, Marks};

/// Segments in flight, in order of transmission.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Index below which all records are overtaken or queued as retransmissions.
    once: Index,
    /// Retransmissions that are not overtaken, in order of transmission.
    again: VecDeque<Sending>,
    /// Transmissions overtaken by a later transmission that has arrived. When a transmission was queued, its segment
    /// was neither lost nor known to have arrived.
    overtaken: VecDeque<Sending>,
    /// Lost records to retransmit, including records that may have arrived or been retransmitted since.
    lost: BinaryHeap<Reverse<Index>>,
}

/// Queue entry for one transmission of a record. The entry is stale once the record is retransmitted, has arrived or is
/// lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Sending {
    at: Time,
    index: Index,
}

impl Sending {
    fn of(index: Index, board: &Scoreboard) -> Self {
        Self { at: board.sent().get(index).sent_at, index }
    }

    /// Whether this transmission is the latest of its record, and is neither lost nor known to have arrived.
    fn is_out(&self, board: &Scoreboard) -> bool {
        self.index >= board.sent().first()
            && board.sent().at(self.index).is_some_and(|record| {
                let at = record.sent_at;
                at == self.at && !record.marks.has(Marks::SACKED) && !record.awaits_repair()
            })
    }
}

impl Order {
    /// Order of all segments in flight, with none of them overtaken.
    #[cold]
    pub(super) fn of(board: &Scoreboard) -> Self {
        let all = || board.sent().first()..board.sent().end();
        let repeated = all().filter(|&index| board.sent().get(index).marks.has(Marks::REPEATED));
        let mut again: Vec<_> = repeated.map(|index| Sending::of(index, board)).collect();
        again.sort_unstable();
        let lost = all().filter(|&index| board.awaits_repair(index)).map(Reverse).collect();
        Self { once: board.sent().first(), again: again.into(), overtaken: VecDeque::new(), lost }
    }

    /// Queues a record that was retransmitted.
    pub(super) fn on_sent_again(&mut self, index: Index, board: &Scoreboard) {
        // A record retransmitted several times is queued only once.
        self.again.pop_back_if(|last| last.index == index);
        let sending = Sending::of(index, board);
        let place = self.again.partition_point(|other| *other < sending);
        self.again.insert(place, sending);
    }

    /// Queues as overtaken all transmissions before `latest`, which has arrived.
    pub(super) fn overtake(&mut self, latest: Latest, board: &Scoreboard) {
        while let Some(sending) = self.next(board) {
            let record = board.sent().get(sending.index);
            if !latest.was_sent_after(record.sent_at, record.end()) {
                return;
            }
            if self.again.pop_front_if(|first| *first == sending).is_none() {
                self.once = sending.index + 1;
            }
            self.overtaken.push_back(sending);
        }
    }

    /// Marks overtaken transmissions as lost if `is_old` holds for their transmission time. Returns the first and the
    /// last transmission time, of those after `since`.
    pub(super) fn lose_old(
        &mut self,
        board: &mut Scoreboard,
        since: Time,
        is_old: impl Fn(Time) -> bool,
    ) -> Option<(Time, Time)> {
        let mut lost = None;
        while let Some(first) = self.overtaken.pop_front_if(|first| is_old(first.at) || !first.is_out(board))
        {
            if first.is_out(board) {
                self.lose(first.index, board);
                if first.at > since {
                    lost = Some((lost.map_or(first.at, |(earliest, _)| earliest), first.at));
                }
            }
        }
        lost
    }

    /// Transmission time of the latest overtaken transmission; `None` if there is none.
    pub(super) fn last_overtaken(&mut self, board: &Scoreboard) -> Option<Time> {
        while self.overtaken.pop_back_if(|last| !last.is_out(board)).is_some() {}
        self.overtaken.back().map(|last| last.at)
    }

    /// Marks a record as lost.
    pub(super) fn lose(&mut self, index: Index, board: &mut Scoreboard) {
        if board.lose(index) {
            self.lost.push(Reverse(index));
        }
    }

    /// Removes the first lost record that was not retransmitted since, and returns its index.
    pub(super) fn next_lost(&mut self, board: &Scoreboard) -> Option<Index> {
        while let Some(Reverse(index)) = self.lost.pop() {
            if board.awaits_repair(index) {
                return Some(index);
            }
        }
        None
    }

    /// Earliest transmission that is not overtaken.
    fn next(&mut self, board: &Scoreboard) -> Option<Sending> {
        while self.again.pop_front_if(|first| !first.is_out(board)).is_some() {}
        let again = self.again.front().copied();
        let end = board.sent().end();
        while let Some(index) = board.next_hole(&mut self.once, end) {
            let once = Sending::of(index, board);
            if !board.awaits_repair(index) && !self.is_queued(&once, board) {
                return Some(again.map_or(once, |again| again.min(once)));
            }
            self.once += 1;
        }
        again
    }

    /// Whether a record is queued as a retransmission. A record retransmitted in part is not queued.
    fn is_queued(&self, sending: &Sending, board: &Scoreboard) -> bool {
        board.sent().get(sending.index).marks.has(Marks::REPEATED)
            && self.again.binary_search(sending).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{SackBlock, Seq, Span};
    use proptest::prelude::*;

    use super::*;

    const MSS: u32 = 100;

    /// Reference detection by RFC 8985 section 6.2 step 5, over all segments in flight. Returns the latest transmission
    /// time among overtaken segments that are not old.
    fn walk(board: &mut Scoreboard, latest: Latest, is_old: impl Fn(Time) -> bool) -> Option<Time> {
        let mut last = None;
        for index in board.sent().first()..board.sent().end() {
            let record = *board.sent().get(index);
            let overtaken = latest.was_sent_after(record.sent_at, record.end());
            if record.marks.has(Marks::SACKED) || record.awaits_repair() || !overtaken {
                continue;
            }
            if is_old(record.sent_at) {
                board.lose(index);
            } else {
                last = last.max(Some(record.sent_at));
            }
        }
        last
    }

    #[derive(Clone, Debug)]
    enum Op {
        Send,
        Again(u64),
        TouchFirst,
        Sack(u64, u64),
        Ack(u64),
        Timeout,
        Undo,
        Detect(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            5 => Just(Op::Send),
            3 => (0u64..20).prop_map(Op::Again),
            1 => Just(Op::TouchFirst),
            4 => (1u64..20, 1u64..4).prop_map(|(at, count)| Op::Sack(at, count)),
            1 => (0u64..5).prop_map(Op::Ack),
            1 => Just(Op::Timeout),
            1 => Just(Op::Undo),
            6 => (0u64..30).prop_map(Op::Detect),
        ]
    }

    /// A scoreboard with its transmission order, and the latest transmission known to have arrived.
    struct Bench {
        board: Scoreboard,
        order: Order,
        latest: Option<Latest>,
    }

    impl Bench {
        fn apply(&mut self, now: Time, op: &Op) {
            let (first, end) = (self.board.sent().first(), self.board.sent().end());
            let latest = &mut self.latest;
            let news = |record: &crate::sent::Record| {
                *latest = Some(Latest::later_of(*latest, Latest::of(record)));
            };
            match *op {
                Op::Send => _ = self.board.push(now, MSS as u16, Marks::default()),
                Op::Again(at)
                    if first + at < end && !self.board.sent().get(first + at).marks.has(Marks::SACKED) =>
                {
                    self.board.resend(now, first + at);
                    self.order.on_sent_again(first + at, &self.board);
                }
                Op::TouchFirst if first < end => _ = self.board.touch(first),
                Op::Sack(at, count) if first + at + count <= end => {
                    let left = Seq((first + at) as u32 * MSS);
                    self.board.sack(SackBlock { left, right: left + count as u32 * MSS }, news);
                }
                Op::Ack(at) if first + at < end => {
                    _ = self.board.acknowledge(Seq((first + at + 1) as u32 * MSS), news);
                }
                Op::Timeout => (first..end).for_each(|index| self.order.lose(index, &mut self.board)),
                Op::Undo => {
                    self.board.undo_go_back();
                    self.order = Order::of(&self.board);
                }
                _ => {}
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_lost_and_what_may_be_is_what_a_walk_over_all_finds(
            ops in prop::collection::vec((op(), 0u64..3), 1..150),
        ) {
            let mut bench =
                Bench { board: Scoreboard::new(Seq(0)), order: Order::default(), latest: None };
            let mut now = Time::ZERO;
            for (op, passes) in &ops {
                now += Span::from_millis(*passes);
                bench.apply(now, op);
                if let (Op::Detect(age), Some(latest)) = (op, bench.latest) {
                    let is_old = |sent_at| sent_at + Span::from_millis(*age) <= now;
                    let mut expected = bench.board.clone();
                    let last = walk(&mut expected, latest, is_old);
                    bench.order.overtake(latest, &bench.board);
                    bench.order.lose_old(&mut bench.board, Time::ZERO, is_old);
                    prop_assert_eq!(bench.order.last_overtaken(&bench.board), last);
                    for index in expected.sent().first()..expected.sent().end() {
                        prop_assert_eq!(bench.board.awaits_repair(index), expected.awaits_repair(index), "{}", index);
                    }
                }
                let first = bench.board.lost_from(bench.board.sent().first());
                prop_assert_eq!(bench.order.clone().next_lost(&bench.board), first);
            }
        }
    }
}
