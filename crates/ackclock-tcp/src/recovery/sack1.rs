//! # sack1
//!
//! SACK recovery as in the ns-2 agent `Sack1`, which the papers of 2002 to 2004 used.
//!
//! ## Source
//! Fall and Floyd 1996 ("Simulation-based comparisons of Tahoe, Reno and SACK TCP"), as implemented in ns-2 2.35 with
//! `bugFix_` off.
//!
//! ## What it does
//! Recovery starts with the third duplicate that has new information, with `pipe` = packets in flight - 3. In recovery
//! each acknowledgement subtracts one from `pipe`, a partial acknowledgement two, and each segment sent adds one. While
//! `pipe < cwnd`, the agent sends the next hole not yet retransmitted, or else the next segment in sequence. The
//! scoreboard is cleared when recovery ends and at a timeout. Duplicates after a timeout do not count until the left
//! edge advances.
//!
//! ## Differences from the source
//! If the guard is on (`bugFix_`), a timeout blocks fast retransmit until the data in flight is acknowledged. As in the
//! agent, a finished recovery does not block fast retransmit.
//!
//! ## Validation
//! On the nine items of CR02 Table 1, goodput is within 1 % of ns-2 2.35. The simulator and ns-2 have at most five
//! timeouts each (items 1 and 4: `tests/table_one.rs`). Since 2006 the agent also halves fractions of segments (`halves
//! = "exact-window"`).

use ackclock_core::{Seq, Time};

use super::{AckFacts, Exit, Next, Recovery, Timer, Verdict, Window, in_sequence};
use crate::cc::{Congestion, Phase};
use crate::config::{Halves, SenderConfig, Switch};
use crate::scoreboard::Scoreboard;
use crate::sent::Index;

/// State of sack1 recovery.
#[derive(Clone, Debug)]
pub struct Sack1 {
    duplicates: u32,
    phase: Phase,
    /// Estimated number of packets in the network.
    pipe: i64,
    /// End of the data in flight at the last loss; `None` once that data is acknowledged.
    recover: Option<Seq>,
    /// Index below which all holes were retransmitted.
    cursor: Index,
    /// Whether the left edge must be retransmitted, regardless of the window.
    retransmit: bool,
    /// Whether a timeout occurred and no acknowledgement has arrived since.
    timed_out: bool,
    guard: Switch,
    limited_transmit: Switch,
    dup_thresh: u32,
}

impl Recovery for Sack1 {
    const USES_SACK: bool = true;
    const HALVES: Halves = Halves::Window;

    const OPTIONS: &'static [&'static str] = &["recover_guard", "limited_transmit"];
    type InLinux = Self;

    fn new(config: &SenderConfig) -> Self {
        Self {
            duplicates: 0,
            phase: Phase::Open,
            pipe: 0,
            recover: None,
            cursor: 0,
            retransmit: false,
            timed_out: false,
            guard: config.recover_guard,
            limited_transmit: config.limited_transmit,
            dup_thresh: config.dup_thresh.least(),
        }
    }

    #[inline(always)]
    fn on_advance(&mut self, _: &AckFacts, board: &mut Scoreboard) -> Verdict {
        let reached = self.recover.is_none_or(|recover| !board.una().before(recover));
        if self.phase == Phase::FastRecovery && !reached {
            self.pipe -= 2;
            self.cursor = self.cursor.max(board.sent().first());
            return Verdict::Partial(Timer::Restart);
        }
        self.duplicates = 0;
        self.timed_out = false;
        if board.sacked() > 0 {
            board.forget_sack();
        }
        if reached {
            self.recover = None;
        }
        match self.phase {
            Phase::FastRecovery => {
                self.phase = Phase::Open;
                Verdict::Leave(Exit::Hold)
            }
            Phase::TimeoutRecovery if reached => {
                self.phase = Phase::Open;
                Verdict::Open
            }
            _ => Verdict::Open,
        }
    }

    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        // A window update counts as a duplicate if it SACKs new data.
        if (!ack.duplicate && ack.sacked == 0) || self.timed_out {
            return Verdict::Open;
        }
        if self.phase == Phase::FastRecovery {
            self.pipe -= 1;
            return Verdict::Open;
        }
        if ack.sacked == 0 && board.sacked() > 0 {
            return Verdict::Open;
        }
        self.duplicates += 1;
        if self.duplicates != self.dup_thresh || (self.guard == Switch::On && self.recover.is_some()) {
            return Verdict::Open;
        }
        self.recover = Some(board.max());
        self.phase = Phase::FastRecovery;
        self.pipe = i64::from(board.outstanding().div_ceil(ack.mss)) - i64::from(self.dup_thresh);
        self.retransmit = true;
        Verdict::Enter
    }

    fn on_timeout(&mut self, _: Time, board: &mut Scoreboard) {
        self.duplicates = 0;
        self.recover = Some(board.max());
        self.phase = Phase::TimeoutRecovery;
        self.timed_out = true;
        self.retransmit = true;
        board.go_back();
    }

    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard) {
        self.duplicates = 0;
        self.recover = None;
        self.phase = Phase::Open;
        self.timed_out = false;
        self.retransmit = false;
        if cause == Congestion::Timeout {
            board.undo_go_back();
        }
    }

    #[inline]
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next> {
        if std::mem::take(&mut self.retransmit) && !board.sent().is_empty() {
            self.cursor = board.sent().first() + 1;
            return Some(Next::Again(board.sent().first()));
        }
        if self.phase != Phase::FastRecovery {
            let limited = self.limited_transmit == Switch::On && self.duplicates < self.dup_thresh;
            let inflation = if limited { self.duplicates * window.mss } else { 0 };
            // Outside recovery the agent sends nothing on a duplicate acknowledgement.
            return if self.duplicates > 0 && !limited {
                None
            } else {
                in_sequence(window, window.cwnd.saturating_add(inflation), board)
            };
        }
        if self.pipe >= i64::from(window.cwnd / window.mss) {
            return None;
        }
        let next = self.next_segment(window, board)?;
        self.pipe += 1;
        Some(next)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_duplicates(&self) -> bool {
        self.duplicates > 0
    }
}

impl Sack1 {
    fn next_segment(&mut self, window: &Window, board: &Scoreboard) -> Option<Next> {
        if let Some(index) = board.next_hole(&mut self.cursor, board.sacked_end()) {
            let within = self.recover.is_some_and(|recover| board.sent().get(index).seq.before(recover));
            self.cursor = if within { index + 1 } else { self.cursor };
            return within.then_some(Next::Again(index));
        }
        in_sequence(window, window.limit, board)
    }
}
