//! # Scoreboard
//!
//! Scoreboard: the sender's record of every segment in flight, and the counts derived from these records.
//!
//! ## Source
//! RFC 6675 sections 3 and 4 (`Update`, `IsLost`, `SetPipe`), and RFC 2018.
//!
//! ## What it does
//! Cumulative and selective acknowledgements mark the records of [`Sent`]. Each mark updates `pipe` and the set of lost
//! segments, so neither needs a recount at each ACK. An ACK thus costs O(1) amortised at any window size. A run of
//! SACKed records stores its length at both ends, so that it is skipped in one step.
//!
//! `IsLost` is monotone: if a segment is lost, so is every unSACKed segment below it. The lost segments are therefore
//! the unSACKed records below one moving edge. Only SACKed records above the moving edge need counting.
//!
//! ## Differences from the source
//! The scoreboard works on whole segments: a SACK block marks the segments that it covers entirely.
//!
//! ## Validation
//! Unit tests below compare the scoreboard with the definitions of RFC 6675, written out byte by byte, under random
//! blocks.

mod chunks;
mod latest;
mod lost;
mod runs;

use ackclock_core::{SackBlock, Seq, Time};

pub use self::latest::{Arrivals, Latest, Sendings};
use crate::sent::{Index, Marks, Record, Sent};

/// Number of duplicate acknowledgements, or of discontiguous SACKed runs, that indicates a loss (RFC 6675 section 2).
pub const DUP_THRESH: u32 = 3;

/// Records of the segments in flight, with counts of their marks.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    sent: Sent,
    una: Seq,
    max: Seq,
    /// Next record to send in sequence; below `end` only during a go-back-N after a timeout.
    next: Index,
    /// Three counts: bytes SACKed, bytes lost and not SACKed, and bytes retransmitted and not SACKed.
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Index after the highest SACKed record.
    sacked_end: Index,
    /// Index below which every unSACKed record is lost.
    edge: Index,
    /// SACKed bytes and SACKed runs at or above `edge`.
    above_bytes: u32,
    above_runs: u32,
    /// Number of times that a segment or its retransmission was found lost.
    losses: u32,
    /// Number of records that start a chunk; zero if the sender does not mark chunks.
    chunks: u32,
}

/// Result of a cumulative acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// Number of sequence numbers acknowledged, in bytes.
    pub bytes: u32,
    /// Acknowledged bytes that had not been SACKed before.
    pub delivered: u32,
    /// Transmission time of the newest acknowledged segment; `None` if any of them was sent more than once (Karn's
    /// rule).
    pub newest: Option<Time>,
}

impl Scoreboard {
    /// Creates an empty scoreboard. `first` is the first sequence number to send.
    pub fn new(first: Seq) -> Self {
        Self {
            sent: Sent::default(),
            una: first,
            max: first,
            next: 0,
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            sacked_end: 0,
            edge: 0,
            above_bytes: 0,
            above_runs: 0,
            losses: 0,
            chunks: 0,
        }
    }

    /// Lowest unacknowledged sequence number.
    pub fn una(&self) -> Seq {
        self.una
    }

    /// Sequence number after the highest byte sent.
    pub fn max(&self) -> Seq {
        self.max
    }

    /// Bytes sent and not cumulatively acknowledged (FlightSize).
    pub fn outstanding(&self) -> u32 {
        self.max.since(self.una)
    }

    /// Estimate of the bytes still in the network (`pipe` of RFC 6675). After a go-back-N, only bytes sent since then
    /// count.
    #[inline(always)]
    pub fn in_flight(&self) -> u32 {
        self.next_seq().since(self.una).saturating_sub(self.sacked + self.lost) + self.retransmitted
    }

    /// Bytes lost and not SACKed.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Number of losses of segments and retransmissions over the whole connection; wraps.
    pub fn losses(&self) -> u32 {
        self.losses
    }

    /// Bytes SACKed above `una`.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Records of the segments that were sent and not acknowledged.
    pub fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Next record to send in sequence. The result is the end of the records if new data is next.
    pub fn next(&self) -> Index {
        self.next
    }

    /// Sequence number of [`Self::next`].
    #[inline(always)]
    pub fn next_seq(&self) -> Seq {
        self.sent.at(self.next).map_or(self.max, |record| record.seq)
    }

    /// Index after the highest SACKed record.
    pub fn sacked_end(&self) -> Index {
        self.sacked_end
    }

    /// First record in `from..below` that is not SACKed.
    pub fn hole(&self, from: Index, below: Index) -> Option<Index> {
        let mut index = from.max(self.sent.first());
        while index < below {
            let record = self.sent.get(index);
            if !record.marks.has(Marks::SACKED) {
                return Some(index);
            }
            index += self.run_from(index);
        }
        None
    }

    /// Moves `cursor` to the first record below `below` that is not SACKed, or to `below`. Returns the index of the
    /// unSACKed record, if any.
    pub fn next_hole(&self, cursor: &mut Index, below: Index) -> Option<Index> {
        let hole = self.hole(*cursor, below);
        *cursor = hole.unwrap_or(below.max(*cursor));
        hole
    }

    /// Transmission time of the first unSACKed segment, if an acknowledgement up to `ack` covers this segment.
    pub fn oldest_told(&self, ack: Seq) -> Option<Time> {
        let first = self.sent.front()?;
        let told = if first.marks.has(Marks::SACKED) {
            self.sent.get(self.hole(self.sent.first(), self.sent.end())?)
        } else {
            first
        };
        told.seq.before(ack).then_some(told.sent_at)
    }

    /// Whether any retransmitted segment in flight is not yet SACKed.
    #[cold]
    pub fn holds_repeated(&self) -> bool {
        let mut from = self.sent.first();
        while let Some(index) = self.hole(from, self.sent.end()) {
            if self.sent.get(index).marks.has(Marks::REPEATED) {
                return true;
            }
            from = index + 1;
        }
        false
    }

    /// Appends a record of `len` bytes of new data.
    pub fn push(&mut self, now: Time, len: u16, marks: Marks) -> Index {
        let index = self.sent.end();
        self.sent.push(Record { sent_at: now, seq: self.max, run: 0, len, marks });
        self.max += u32::from(len);
        self.next = self.sent.end();
        index
    }

    /// Records a retransmission of the record at `index`.
    pub fn resend(&mut self, now: Time, index: Index) -> Record {
        let in_sequence = index == self.next;
        self.next += u64::from(in_sequence);
        let record = self.sent.get_mut(index);
        // A record sent in sequence already counts as in flight, because it is below `next`.
        if !in_sequence && !record.marks.has(Marks::AGAIN.with(Marks::SACKED)) {
            self.retransmitted += u32::from(record.len);
            record.marks.set(Marks::AGAIN);
        }
        record.marks.set(Marks::REPEATED);
        record.sent_at = now;
        *record
    }

    /// Marks a record as unsuitable for RTT samples, because it is retransmitted in part or is a repeated SYN.
    pub fn touch(&mut self, index: Index) -> Record {
        let record = self.sent.get_mut(index);
        record.marks.set(Marks::REPEATED);
        *record
    }

    /// Applies a cumulative acknowledgement, which must lie within the data sent. Calls `news` for each segment newly
    /// found to have arrived.
    // Records sent only once were sent in order, so the last record is the newest. The records are read in place,
    // because copying one costs more than all reads.
    #[inline(always)]
    pub fn acknowledge(&mut self, ack: Seq, mut news: impl FnMut(&Record)) -> Acked {
        let bytes = ack.since(self.una);
        let mut acked = Acked { bytes, delivered: bytes, newest: None };
        let mut marks = Marks::default();
        while let Some(record) = self.sent.front() {
            if record.end().after(ack) {
                if record.seq != ack {
                    let (record, known) = self.acknowledge_part(ack);
                    acked.delivered -= known;
                    (acked.newest, marks) = (Some(record.sent_at), marks.with(record.marks));
                }
                break;
            }
            let its = record.marks;
            (acked.newest, marks) = (Some(record.sent_at), marks.with(its));
            if !its.has(Marks::SACKED) {
                news(record);
            }
            if its.has(Marks::COUNTED.with(Marks::BEGINS)) {
                self.chunks -= u32::from(its.has(Marks::BEGINS));
                if its.has(Marks::COUNTED) {
                    acked.delivered -= self.uncount();
                }
            }
            self.sent.pop();
        }
        if marks.has(Marks::REPEATED.with(Marks::BEGINS)) {
            if marks.has(Marks::REPEATED) {
                acked.newest = None;
            }
            if marks.has(Marks::BEGINS) {
                // The remainder of a partly acknowledged chunk becomes a chunk.
                self.split(self.sent.first());
            }
        }
        self.una = ack;
        self.next = self.next.max(self.sent.first());
        self.edge = self.edge.max(self.sent.first());
        acked
    }

    /// Marks the segments that `block` covers as arrived. Returns the newly arrived bytes and the newest transmission
    /// time among them. The time is `None` if no segment newly arrived, or if a newly arrived segment was sent more
    /// than once. Calls `news` for each segment newly found to have arrived.
    pub fn sack(&mut self, block: SackBlock, mut news: impl FnMut(&Record)) -> (u32, Option<Time>) {
        // A valid SACK block lies above the cumulative acknowledgement and within the data sent (RFC 2018 section 4).
        if !block.left.after(self.una) || block.right.after(self.max) || !block.left.before(block.right) {
            return (0, None);
        }
        let mut index = self.sent.at_or_after(block.left);
        let (mut new, mut newest, mut repeated) = (0, None, false);
        while index < self.sent.end() {
            let record = *self.sent.get(index);
            if record.marks.has(Marks::SACKED) {
                index += self.run_from(index);
                continue;
            }
            if record.end().after(block.right) {
                break;
            }
            self.mark_sacked(index);
            news(&record);
            new += u32::from(record.len);
            repeated |= record.marks.has(Marks::REPEATED);
            newest = newest.max(Some(record.sent_at));
            index += 1;
        }
        (new, if repeated { None } else { newest })
    }

    /// Starts a go-back-N: everything from `una` on is retransmitted in sequence.
    pub fn go_back(&mut self) {
        self.forget_sack();
        for index in self.sent.first()..self.sent.end() {
            self.sent.get_mut(index).marks.clear(Marks::AGAIN);
        }
        self.retransmitted = 0;
        self.next = self.sent.first();
    }

    /// Undoes a go-back-N: everything sent counts as in flight again, and new data is sent next.
    pub fn undo_go_back(&mut self) {
        for index in self.sent.first()..self.sent.end() {
            self.sent.get_mut(index).marks.clear(Marks::AGAIN.with(Marks::LOST));
        }
        (self.lost, self.retransmitted) = (0, 0);
        self.next = self.sent.end();
        self.recount_above();
    }

    /// Clears all SACK and loss marks.
    pub fn forget_sack(&mut self) {
        for index in self.sent.first()..self.sent.end() {
            self.sent.get_mut(index).marks.clear(Marks::SACKED.with(Marks::LOST));
        }
        (self.sacked, self.lost) = (0, 0);
        (self.above_bytes, self.above_runs) = (0, 0);
        self.edge = self.sent.first();
        self.sacked_end = self.sent.first();
    }

    /// Acknowledges the front record in part, up to `ack`. Returns a copy of the record before the change, and how many
    /// acknowledged bytes were already known to have arrived. The function is separate, so that the common case stays
    /// in registers.
    #[cold]
    fn acknowledge_part(&mut self, ack: Seq) -> (Record, u32) {
        let index = self.sent.first();
        let record = *self.sent.get(index);
        let len = ack.since(record.seq) as u16;
        let known = self.discount(&record, len);
        let rest = self.sent.get_mut(index);
        rest.seq = ack;
        rest.len -= len;
        (record, known)
    }

    /// Removes the acknowledged front record from the counts. Returns how many bytes of the record were already known
    /// to have arrived.
    #[cold]
    fn uncount(&mut self) -> u32 {
        let record = *self.sent.get(self.sent.first());
        let known = self.discount(&record, record.len);
        self.shorten_run(&record);
        known
    }

    /// Removes `len` acknowledged bytes of the front record from the counts. Returns how many of the acknowledged bytes
    /// were already known to have arrived.
    fn discount(&mut self, record: &Record, len: u16) -> u32 {
        let len = u32::from(len);
        if record.marks.has(Marks::SACKED) {
            self.sacked -= len;
            if self.sent.first() >= self.edge {
                self.above_bytes -= len;
            }
            return len;
        }
        if record.marks.has(Marks::LOST) {
            self.lost -= len;
        }
        if record.marks.has(Marks::AGAIN) {
            self.retransmitted -= len;
        }
        0
    }

    fn is_sacked(&self, index: Index) -> bool {
        (self.sent.first()..self.sent.end()).contains(&index) && self.sent.get(index).marks.has(Marks::SACKED)
    }

    fn recount_above(&mut self) {
        self.edge = self.sent.first();
        (self.above_bytes, self.above_runs) = (0, 0);
        for index in self.sent.first()..self.sent.end() {
            if self.is_sacked(index) {
                self.above_bytes += u32::from(self.sent.get(index).len);
                self.above_runs += u32::from(!self.is_sacked(index + 1));
            }
        }
    }
}

/// Treatment of SACK marks after a timeout.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SackMemory {
    /// Keep the SACK marks, like current stacks. Reneging by the receiver is detected at the left edge.
    #[default]
    Keep,
    /// Clear the SACK marks, as RFC 2018 section 8 advises.
    Clear,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 100;

    /// Reference scoreboard: RFC 6675 over segments, recounted every time.
    #[derive(Default)]
    struct Definition {
        /// State of each segment: sequence number, length, SACKed, retransmitted.
        segments: Vec<(Seq, u32, bool, bool)>,
        lost: Vec<Seq>,
    }

    impl Definition {
        fn is_lost(&self, at: usize) -> bool {
            let above = &self.segments[at + 1..];
            let bytes: u32 = above.iter().filter(|s| s.2).map(|s| s.1).sum();
            let runs = (0..above.len()).filter(|&i| above[i].2 && !(i > 0 && above[i - 1].2)).count();
            // If the segment itself is not SACKed, every SACKed run above it starts above it.
            bytes > (DUP_THRESH - 1) * MSS || runs >= DUP_THRESH as usize
        }

        fn update_lost(&mut self) {
            let now: Vec<_> =
                (0..self.segments.len()).filter(|&i| !self.segments[i].2 && self.is_lost(i)).collect();
            self.lost.extend(now.into_iter().map(|i| self.segments[i].0));
        }

        fn pipe(&self) -> u32 {
            let unsacked = self.segments.iter().filter(|s| !s.2);
            unsacked.map(|s| u32::from(!self.lost.contains(&s.0)) * s.1 + u32::from(s.3) * s.1).sum()
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Send(u32),
        Again(usize),
        Sack(usize, usize),
        Ack(usize),
        AckWithin(usize, u32),
        LoseAll,
        Forget,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            2 => (1u32..=MSS).prop_map(Op::Send),
            // Three runs of short segments have fewer bytes than three full segments.
            2 => (1u32..=10).prop_map(Op::Send),
            2 => (0usize..40).prop_map(Op::Again),
            6 => (0usize..40, 1usize..8).prop_map(|(at, count)| Op::Sack(at, count)),
            1 => (0usize..6).prop_map(Op::Ack),
            1 => (0usize..3, 1u32..MSS).prop_map(|(at, bytes)| Op::AckWithin(at, bytes)),
            1 => Just(Op::LoseAll),
            1 => Just(Op::Forget),
        ]
    }

    fn apply(op: &Op, board: &mut Scoreboard, model: &mut Definition) {
        let count = model.segments.len();
        match *op {
            Op::Send(len) => {
                model.segments.push((board.max(), len, false, false));
                board.push(Time::ZERO, len as u16, Marks::default());
            }
            Op::Again(at) if at < count && !model.segments[at].2 => {
                model.segments[at].3 = true;
                board.resend(Time::ZERO, board.sent().first() + at as u64);
            }
            Op::Sack(at, many) if at > 0 && at < count => {
                let last = (at + many).min(count) - 1;
                for segment in &mut model.segments[at..=last] {
                    (segment.2, segment.3) = (true, false);
                }
                let right = model.segments[last].0 + model.segments[last].1;
                board.sack(SackBlock { left: model.segments[at].0, right }, |_| {});
            }
            Op::Ack(at) if at < count => {
                let ack = model.segments[at].0 + model.segments[at].1;
                model.segments.drain(..=at);
                board.acknowledge(ack, |_| {});
            }
            Op::AckWithin(at, bytes) if at < count && bytes < model.segments[at].1 => {
                model.segments.drain(..at);
                model.segments[0].0 += bytes;
                model.segments[0].1 -= bytes;
                // The remainder of a lost segment also counts as lost.
                if model.lost.contains(&(model.segments[0].0 - bytes)) {
                    model.lost.push(model.segments[0].0);
                }
                board.acknowledge(model.segments[0].0, |_| {});
            }
            Op::LoseAll if count > 0 && !model.segments[0].2 => {
                for segment in &mut model.segments {
                    segment.3 = false;
                }
                model.lost.extend(model.segments.iter().map(|s| s.0));
                board.lose_all(SackMemory::Keep);
            }
            Op::Forget => {
                for segment in &mut model.segments {
                    segment.2 = false;
                }
                model.lost.clear();
                board.forget_sack();
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn counts_follow_the_definitions(first in any::<u32>(), ops in prop::collection::vec(op(), 1..120)) {
            let mut board = Scoreboard::new(Seq(first));
            let mut model = Definition::default();
            for op in &ops {
                apply(op, &mut board, &mut model);
                board.update_lost(MSS, DUP_THRESH);
                model.update_lost();
                prop_assert_eq!(board.in_flight(), model.pipe(), "after {:?}", op);
                prop_assert_eq!(board.sacked(), model.segments.iter().filter(|s| s.2).map(|s| s.1).sum::<u32>());
                prop_assert_eq!(board.outstanding(), model.segments.iter().map(|s| s.1).sum::<u32>());
                let hole = board.hole(board.sent().first(), board.sent().end());
                let expected = model.segments.iter().position(|s| !s.2).map(|at| board.sent().first() + at as u64);
                prop_assert_eq!(hole, expected);
            }
        }
    }

    #[test]
    fn each_loss_counts_once_and_that_of_a_repair_too() {
        let mut board = Scoreboard::new(Seq(0));
        for _ in 0..8 {
            board.push(Time::ZERO, MSS as u16, Marks::default());
        }
        // RFC 6675: two segments are lost if three segments beyond them are SACKed.
        board.sack(SackBlock { left: Seq(2 * MSS), right: Seq(5 * MSS) }, |_| {});
        board.update_lost(MSS, DUP_THRESH);
        assert_eq!((board.lost(), board.losses()), (2 * MSS, 2));
        board.lose(0);
        assert_eq!(board.losses(), 2, "it is lost already");
        board.resend(Time::ZERO, 0);
        board.lose(0);
        assert_eq!(board.losses(), 3, "the repair is lost");
        board.lose_all(SackMemory::Keep);
        assert_eq!((board.lost(), board.losses()), (5 * MSS, 6), "and the three that no SACK told of");
    }

    /// Sends segments of `len` bytes, 1 ms apart.
    fn board_of(count: u64, len: u16) -> Scoreboard {
        let mut board = Scoreboard::new(Seq(0));
        for n in 0..count {
            board.push(Time::from_nanos(1_000_000 * n), len, Marks::default());
        }
        board
    }

    fn sack(board: &mut Scoreboard, left: u32, right: u32) -> (u32, Option<Time>) {
        board.sack(SackBlock { left: Seq(left), right: Seq(right) }, |_| {})
    }

    #[test]
    fn three_runs_make_a_loss_however_short_they_are() {
        let mut board = board_of(8, 10);
        for left in [10, 30] {
            sack(&mut board, left, left + 10);
        }
        board.update_lost(MSS, DUP_THRESH);
        assert_eq!(board.lost(), 0, "two runs");
        sack(&mut board, 50, 60);
        board.update_lost(MSS, DUP_THRESH);
        // 30 bytes are far less than three segments of 100 bytes. Above 20 there are only two runs.
        assert_eq!(board.lost(), 10);
    }

    #[test]
    fn a_receiver_that_goes_back_on_a_sack_is_noticed_at_the_left_edge() {
        let mut board = board_of(4, 100);
        sack(&mut board, 100, 200);
        board.acknowledge(Seq(100), |_| {});
        board.lose_all(SackMemory::Keep);
        assert_eq!((board.sacked(), board.lost()), (0, 300), "200 would have been acknowledged too");
        let mut kept = board_of(4, 100);
        sack(&mut kept, 200, 300);
        kept.lose_all(SackMemory::Keep);
        assert_eq!((kept.sacked(), kept.lost()), (100, 300));
    }

    #[test]
    fn what_was_sent_twice_tells_no_round_trip_where_it_is_sacked_or_acknowledged() {
        let mut board = board_of(4, 100);
        board.resend(Time::from_nanos(50_000_000), 1);
        assert_eq!(sack(&mut board, 100, 300), (200, None), "Karn");
        assert_eq!(sack(&mut board, 300, 400).1, Some(Time::from_nanos(3_000_000)));
        assert_eq!(board.acknowledge(Seq(200), |_| {}).newest, None);
    }

    #[test]
    fn the_oldest_and_the_newest_that_an_acknowledgement_covers_are_told_apart() {
        let mut board = board_of(4, 100);
        sack(&mut board, 0, 100);
        sack(&mut board, 100, 200);
        // The block starts above the left edge, so no part of the first 100 bytes is SACKed; the second segment is
        // SACKed.
        assert_eq!(board.oldest_told(Seq(400)), Some(Time::ZERO));
        assert_eq!(board.acknowledge(Seq(400), |_| {}).newest, Some(Time::from_nanos(3_000_000)));
        let mut board = board_of(4, 100);
        sack(&mut board, 100, 200);
        board.acknowledge(Seq(100), |_| {});
        assert_eq!(board.oldest_told(Seq(400)), Some(Time::from_nanos(2_000_000)), "200 were told of");
        assert_eq!(board.oldest_told(Seq(200)), None);
    }

    #[test]
    fn after_going_on_losses_are_found_by_what_is_still_sacked() {
        let mut board = board_of(6, 100);
        sack(&mut board, 300, 600);
        board.lose_all(SackMemory::Keep);
        board.undo_go_back();
        assert_eq!((board.lost(), board.in_flight()), (0, 300));
        board.update_lost(MSS, DUP_THRESH);
        assert_eq!(board.lost(), 300, "three SACKed segments lie above each");
    }

    #[test]
    fn a_block_outside_of_what_is_outstanding_is_not_taken() {
        let mut board = Scoreboard::new(Seq(0));
        for _ in 0..4 {
            board.push(Time::ZERO, 100, Marks::default());
        }
        board.acknowledge(Seq(100), |_| {});
        for (left, right) in [(0, 200), (100, 200), (200, 500), (300, 300), (300, 200)] {
            let block = SackBlock { left: Seq(left), right: Seq(right) };
            assert_eq!(board.sack(block, |_| {}).0, 0, "{left}..{right}");
        }
        let block = SackBlock { left: Seq(150), right: Seq(350) };
        assert_eq!(board.sack(block, |_| {}).0, 100, "only the segment that is covered entirely");
    }
}
