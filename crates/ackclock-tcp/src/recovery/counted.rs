//! # Counted duplicates
//!
//! NewReno that counts each duplicate acknowledgement as a segment that has left the network.
//!
//! ## Source
//! Sarolahti and Kuznetsov, "Congestion control in Linux TCP" (USENIX 2002), section 3, describes Linux's recovery when
//! the peer has no SACK. RFC 6582 covers partial acknowledgements, RFC 5682 covers F-RTO.
//!
//! ## What it does
//! Bytes in flight are the bytes sent and not acknowledged, minus one segment per duplicate, minus the lost segment.
//! The third duplicate marks the first segment lost. Each partial acknowledgement also marks the first segment lost,
//! and uses up the duplicates that it explains. More duplicates than segments in flight show that the path reorders
//! segments. The duplicate threshold then rises permanently to the number of segments in flight, up to 300. The window
//! is never inflated. Partial segments count as whole segments.
//!
//! Recovery, also after a timeout, ends when more than the data in flight at its start is acknowledged. When exactly
//! the data in flight at the start is acknowledged, duplicates are not counted, because spurious retransmissions cause
//! them (RFC 6582 section 3.2 step 2). If a timestamp echo shows a timeout to be spurious, the reduction is undone but
//! recovery continues. Duplicates then trigger no fast retransmit until F-RTO also shows the timeout to be spurious.
//!
//! ## Differences from the source
//! No deviations from Linux are known.
//!
//! ## Validation
//! `tests/linux.rs` checks exchanges of segments. `make agree` compares the sender with the kernel's sender in many
//! scenarios.

use ackclock_core::{Seq, Time};

use super::frto::SpuriousTest;
use super::{AckFacts, Exit, Next, Recovery, Sending, Timer, Verdict, Window};
use crate::cc::{Congestion, Phase};
use crate::config::{Halves, SenderConfig};
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::sent::Index;

/// Largest duplicate threshold (tcp_max_reordering).
const MOST_THRESH: u32 = 300;

/// State of recovery by counted duplicates.
#[derive(Clone, Debug)]
pub struct Counted {
    phase: Phase,
    /// End of the data in flight when recovery started; `None` once more than that data is acknowledged.
    recovery_point: Option<Seq>,
    /// Number of segments assumed to have left the network, inferred from duplicate acknowledgements.
    left: u32,
    /// Size of a full segment, bytes; 0 before the first acknowledgement.
    mss: u32,
    /// Index of the first unacknowledged segment.
    first: Index,
    /// Number of bytes that the last acknowledgement delivered.
    delivered: u32,
    /// Whether the first segment must be retransmitted, regardless of the window.
    retransmit: bool,
    /// Index below which no lost record remains to be retransmitted.
    cursor: Index,
    spurious_test: SpuriousTest,
    /// Whether the left edge has not advanced since the last timeout.
    in_a_row: bool,
    /// Whether this acknowledgement has already shown the last timeout to be spurious.
    undone: bool,
    /// Number of duplicate acknowledgements that indicates a loss.
    threshold: u32,
}

impl Recovery for Counted {
    const USES_SACK: bool = false;
    const HALVES: Halves = Halves::Flight;
    const KNOWS_FLIGHT: bool = true;
    const FOLLOWS_ARRIVALS: bool = true;

    type InLinux = Self;

    fn new(_: &SenderConfig) -> Self {
        Self::begin()
    }

    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        self.mss = ack.mss;
        let first = board.sent().first();
        self.cursor = self.cursor.max(first);
        let acked = (first - std::mem::replace(&mut self.first, first)) as u32;
        // One of the acknowledged segments filled the hole; duplicates had already counted the other segments.
        self.delivered = acked.saturating_sub(self.left).max(acked.min(1)) * ack.mss;
        self.in_a_row = false;
        let undone = std::mem::take(&mut self.undone);
        self.bound(self.left.saturating_sub(acked.saturating_sub(1)), acked, board);
        match (self.phase, self.recovery_point) {
            (Phase::FastRecovery, Some(point)) => self.on_repair(point, board),
            (Phase::TimeoutRecovery, Some(point)) if undone && !board.una().after(point) => Verdict::Open,
            (Phase::TimeoutRecovery, Some(point)) if board.una().before(point) => {
                self.left = 0;
                self.on_ack_after_timeout(ack, point, board)
            }
            (Phase::TimeoutRecovery, Some(point)) if self.spurious_test.is_proved(original(ack), point) => {
                Verdict::Spurious
            }
            (Phase::TimeoutRecovery, Some(point)) if board.una() == point => Verdict::Open,
            _ => {
                *self = self.ended();
                Verdict::Open
            }
        }
    }

    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        (self.delivered, self.mss) = (0, ack.mss);
        if !ack.duplicate || board.sent().is_empty() || self.is_repaired(board) {
            return Verdict::Open;
        }
        if let (Phase::TimeoutRecovery, Some(point)) = (self.phase, self.recovery_point) {
            let new = board.max().after(point);
            let verdict = self.on_ack_after_timeout(ack, point, board);
            if new {
                self.count(board);
            }
            return verdict;
        }
        self.count(board);
        if self.phase == Phase::FastRecovery || self.left < self.threshold {
            return Verdict::Open;
        }
        self.recovery_point = Some(board.max());
        self.phase = Phase::FastRecovery;
        self.lose_first(board);
        // The fast retransmission is sent regardless of the window (RFC 5681 section 3.2 step 3).
        self.retransmit = true;
        Verdict::Enter
    }

    fn on_timeout(&mut self, _: Time, board: &mut Scoreboard) {
        self.spurious_test = SpuriousTest::after_timeout(self.phase, self.in_a_row);
        self.in_a_row = true;
        self.phase = Phase::TimeoutRecovery;
        self.recovery_point = Some(board.max());
        self.left = 0;
        self.retransmit = true;
        self.cursor = board.sent().first();
        for index in board.sent().first()..board.sent().end() {
            board.lose(index);
        }
    }

    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard) {
        // After a spurious timeout, shown by a timestamp echo or by the last acknowledgement, recovery continues until
        // more data is acknowledged.
        if cause == Congestion::Timeout && self.phase == Phase::TimeoutRecovery {
            (self.undone, self.retransmit) = (true, false);
            self.spurious_test.prove();
        } else {
            *self = self.ended();
        }
        board.undo_go_back();
    }

    fn ends_at(&mut self, point: Seq) {
        self.recovery_point = Some(point);
    }

    fn on_sent(&mut self, _: &Sending, board: &Scoreboard) {
        if self.mss == 0 {
            // The SYN does not count as a segment.
            self.first = board.sent().first();
        }
    }

    fn in_flight(&self, board: &Scoreboard) -> u32 {
        // A partial segment counts as a whole segment, like a duplicate, unless more than the first segment is lost.
        let parts = match self.phase {
            Phase::TimeoutRecovery => 0,
            _ => (segments(board) * self.mss).saturating_sub(board.outstanding()),
        };
        (board.in_flight() + parts).saturating_sub(self.left * self.mss)
    }

    fn reordered(&self) -> u32 {
        self.threshold
    }

    fn delivered(&self, _: u32) -> u32 {
        self.delivered
    }

    #[inline]
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next> {
        if std::mem::take(&mut self.retransmit) && !board.sent().is_empty() {
            self.cursor = board.sent().first() + 1;
            return Some(Next::Again(board.sent().first()));
        }
        let room = window.cwnd >= self.in_flight(board).saturating_add(window.mss);
        let fresh = window.fresh > 0 && board.outstanding() + window.fresh <= window.limit;
        self.spurious_test.on_poll(room && fresh, self.recovery_point == Some(board.max()));
        if !room {
            return None;
        }
        if self.spurious_test != SpuriousTest::Testing
            && let Some(index) = board.next_lost(&mut self.cursor)
        {
            return Some(Next::Again(index));
        }
        fresh.then_some(Next::Fresh)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn is_repaired(&self, board: &Scoreboard) -> bool {
        self.phase != Phase::Open && self.recovery_point == Some(board.una())
    }

    fn has_duplicates(&self) -> bool {
        self.left > 0
    }
}

impl Counted {
    /// Creates the recovery of a new connection.
    pub fn begin() -> Self {
        Self {
            phase: Phase::Open,
            recovery_point: None,
            left: 0,
            mss: 0,
            first: 0,
            delivered: 0,
            retransmit: false,
            cursor: 0,
            spurious_test: SpuriousTest::None,
            in_a_row: false,
            undone: false,
            threshold: DUP_THRESH,
        }
    }

    fn ended(&self) -> Self {
        Self {
            phase: Phase::Open,
            recovery_point: None,
            left: 0,
            retransmit: false,
            spurious_test: SpuriousTest::None,
            ..self.clone()
        }
    }

    /// Handles an acknowledgement that advances the left window edge in fast recovery.
    fn on_repair(&mut self, point: Seq, board: &mut Scoreboard) -> Verdict {
        if board.una().after(point) {
            *self = self.ended();
            return Verdict::Leave(Exit::Grow);
        }
        if board.una().before(point) {
            self.lose_first(board);
        } else {
            self.left = 0;
        }
        Verdict::Partial(Timer::Restart)
    }

    fn on_ack_after_timeout(&mut self, ack: &AckFacts, mut point: Seq, board: &Scoreboard) -> Verdict {
        let undone = self.spurious_test == SpuriousTest::Proved;
        if self.spurious_test.on_ack(ack, original(ack), &mut point, board) {
            *self = self.ended();
            return if undone { Verdict::Open } else { Verdict::Spurious };
        }
        self.recovery_point = Some(point);
        Verdict::Open
    }

    /// Counts a duplicate as one segment that left the network, while the first segment is missing.
    fn count(&mut self, board: &Scoreboard) {
        let before = self.left;
        self.bound(before + 1, 0, board);
        self.delivered = self.left.saturating_sub(before) * self.mss;
    }

    /// Sets the number of segments assumed to have left the network to `left`, up to the possible maximum. If `left`
    /// exceeds the maximum, Linux infers reordering over the segments in flight and the `acked` segments just
    /// acknowledged. Linux then raises its duplicate threshold to the number of segments counted as reordered.
    fn bound(&mut self, left: u32, acked: u32, board: &Scoreboard) {
        let outstanding = segments(board);
        let most = outstanding.saturating_sub(board.lost().div_ceil(self.mss.max(1)).max(1));
        self.left = left.min(most);
        if left > most {
            self.threshold = (outstanding + acked).min(MOST_THRESH);
        }
    }

    fn lose_first(&mut self, board: &mut Scoreboard) {
        let first = board.sent().first();
        board.lose(first);
        self.cursor = self.cursor.min(first);
    }
}

/// End of the lowest segment that arrived by its first transmission; `None` if the acknowledgement also covers a
/// retransmitted segment. Without SACK, a segment may have waited behind a retransmitted segment, so an acknowledgement
/// of both segments is no evidence.
fn original(ack: &AckFacts) -> Option<Seq> {
    ack.original.filter(|_| !ack.passed_repeated)
}

/// Number of segments in flight.
fn segments(board: &Scoreboard) -> u32 {
    (board.sent().end() - board.sent().first()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent::Marks;

    const MSS: u32 = 1000;

    fn facts(acked: u32) -> AckFacts {
        AckFacts {
            now: Time::ZERO,
            latest: None,
            last: None,
            original: None,
            passed_repeated: false,
            highest_sacked: None,
            dsack: None,
            srtt: None,
            rto: ackclock_core::Span::from_secs(1),
            base_rto: ackclock_core::Span::from_secs(1),
            min_rtt: None,
            acked,
            sacked: 0,
            duplicate: acked == 0,
            mss: MSS,
            cwnd: 10 * MSS,
        }
    }

    fn push(board: &mut Scoreboard, segments: u32) {
        for _ in 0..segments {
            board.push(Time::ZERO, MSS as u16, Marks::default());
        }
    }

    /// Sends duplicate acknowledgements until recovery starts or `most` are sent. Returns the number sent.
    fn duplicates(counted: &mut Counted, board: &mut Scoreboard, most: u32) -> u32 {
        (1..=most).find(|_| counted.on_duplicate(&facts(0), board) == Verdict::Enter).unwrap_or(most + 1)
    }

    fn advance(counted: &mut Counted, board: &mut Scoreboard, to: u32) {
        advance_by(counted, board, to * MSS - board.una().since(Seq(0)));
    }

    fn advance_by(counted: &mut Counted, board: &mut Scoreboard, bytes: u32) {
        let acked = board.acknowledge(board.una() + bytes, |_| {}).bytes;
        counted.on_advance(&facts(acked), board);
    }

    /// State of recovery after four segments. Duplicates account for all segments but the first; later more than the
    /// first segment proves lost.
    fn overcounted() -> (Counted, Scoreboard) {
        let mut board = Scoreboard::new(Seq(0));
        push(&mut board, 14);
        let mut counted = Counted::new(&SenderConfig::default());
        advance(&mut counted, &mut board, 10);
        assert_eq!(duplicates(&mut counted, &mut board, 9), 3);
        advance(&mut counted, &mut board, 11);
        advance(&mut counted, &mut board, 14);
        push(&mut board, 9);
        advance(&mut counted, &mut board, 15);
        (counted, board)
    }

    #[test]
    fn more_duplicates_than_segments_raise_the_threshold_to_what_was_outstanding() {
        let (mut counted, mut board) = overcounted();
        // 3 segments are in flight and one is acknowledged, when duplicates had accounted for three.
        assert_eq!(duplicates(&mut counted, &mut board, 9), 4);
    }

    #[test]
    fn a_timeout_leaves_the_threshold_as_it_is() {
        let (mut counted, mut board) = overcounted();
        assert_eq!(duplicates(&mut counted, &mut board, 3), 4);
        counted.on_timeout(Time::ZERO, &mut board);
        assert_eq!(counted.threshold, 4);
    }

    #[test]
    fn parts_of_segments_count_as_whole_ones() {
        let mut board = Scoreboard::new(Seq(0));
        push(&mut board, 4);
        for _ in 0..6 {
            board.push(Time::ZERO, 100, Marks::default());
        }
        let mut counted = Counted::new(&SenderConfig::default());
        // Duplicates account for the nine segments behind the first, which is lost.
        assert_eq!(duplicates(&mut counted, &mut board, 9), 3);
        assert_eq!(duplicates(&mut counted, &mut board, 6), 7, "repair has begun");
        assert_eq!(counted.in_flight(&board), 0);
        push(&mut board, 9);
        advance_by(&mut counted, &mut board, 4600);
        advance_by(&mut counted, &mut board, MSS);
        assert_eq!(duplicates(&mut counted, &mut board, 9), 3, "nothing was reordered");
    }
}
