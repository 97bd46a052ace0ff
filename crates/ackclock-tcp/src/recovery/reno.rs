//! # Reno
//!
//! Reno: fast retransmit, and fast recovery that ends with the first acknowledgement of new data.
//!
//! ## Source
//! RFC 5681 section 3.2, in the form of ns-2's one-way agents (`dupwnd`). Limited transmit follows RFC 3042.
//!
//! ## What it does
//! The third duplicate acknowledgement retransmits the left edge; each further duplicate allows one more segment. Any
//! advance of the left edge deflates the window and ends recovery, so several losses in one window cause several fast
//! retransmits. If the guard is on, a fast retransmit or timeout blocks further fast retransmits until all data in
//! flight at that time is acknowledged. After a timeout everything from the left edge on is retransmitted.
//!
//! ## Differences from the source
//! RFC 5681 requires limited transmit; here limited transmit is an option.
//!
//! ## Validation
//! `tests/table_one.rs` checks the counts of fast retransmits and timeouts in CR02 Table 1 items 1 and 4. On all nine
//! items, goodput is within 2 % of ns-2 2.35, and the number of timeouts differs by at most 10.

use ackclock_core::{Seq, Time};

use super::{AckFacts, Exit, Next, Recovery, Verdict, Window, in_sequence};
use crate::cc::{Congestion, Phase};
use crate::config::{Halves, SenderConfig, Switch};
use crate::scoreboard::Scoreboard;

/// State of Reno recovery.
#[derive(Clone, Debug)]
pub struct Reno {
    duplicates: u32,
    /// Bytes that duplicate acknowledgements add to the window.
    inflation: u32,
    /// Whether the left edge must be retransmitted, regardless of the window.
    retransmit: bool,
    phase: Phase,
    /// End of the data in flight at the last loss; `None` once that data is acknowledged.
    recover: Option<Seq>,
    guard: Switch,
    limited_transmit: Switch,
    dup_thresh: u32,
}

impl Recovery for Reno {
    const USES_SACK: bool = false;
    const HALVES: Halves = Halves::Window;

    const OPTIONS: &'static [&'static str] = &["recover_guard", "limited_transmit"];
    type InLinux = Self;

    fn new(config: &SenderConfig) -> Self {
        Self {
            duplicates: 0,
            inflation: 0,
            retransmit: false,
            phase: Phase::Open,
            recover: None,
            guard: config.recover_guard,
            limited_transmit: config.limited_transmit,
            dup_thresh: config.dup_thresh.least(),
        }
    }

    #[inline(always)]
    fn on_advance(&mut self, _: &AckFacts, board: &mut Scoreboard) -> Verdict {
        self.duplicates = 0;
        self.inflation = 0;
        if self.recover.is_some_and(|recover| board.una().after(recover)) {
            self.recover = None;
        }
        match self.phase {
            Phase::FastRecovery => {
                self.phase = Phase::Open;
                Verdict::Leave(Exit::Grow)
            }
            Phase::TimeoutRecovery if self.recover.is_none_or(|recover| board.una() == recover) => {
                self.phase = Phase::Open;
                Verdict::Open
            }
            _ => Verdict::Open,
        }
    }

    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        if !ack.duplicate {
            return Verdict::Open;
        }
        self.duplicates += 1;
        if self.duplicates < self.dup_thresh {
            if self.limited_transmit == Switch::On {
                self.inflation = self.duplicates * ack.mss;
            }
            return Verdict::Open;
        }
        if self.duplicates > self.dup_thresh {
            if self.phase == Phase::FastRecovery {
                self.inflation = self.inflation.saturating_add(ack.mss);
            }
            return Verdict::Open;
        }
        self.inflation = 0;
        if self.guard == Switch::On && self.recover.is_some() {
            return Verdict::Open;
        }
        self.recover = Some(board.max());
        self.phase = Phase::FastRecovery;
        self.inflation = self.dup_thresh * ack.mss;
        self.retransmit = true;
        Verdict::Enter
    }

    fn on_timeout(&mut self, _: Time, board: &mut Scoreboard) {
        self.duplicates = 0;
        self.inflation = 0;
        self.recover = Some(board.max());
        self.phase = Phase::TimeoutRecovery;
        self.retransmit = true;
        board.go_back();
    }

    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard) {
        self.duplicates = 0;
        self.inflation = 0;
        self.retransmit = false;
        self.phase = Phase::Open;
        if cause == Congestion::Timeout {
            board.undo_go_back();
        }
    }

    #[inline]
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next> {
        if std::mem::take(&mut self.retransmit) && !board.sent().is_empty() {
            return Some(Next::Again(board.sent().first()));
        }
        in_sequence(window, window.cwnd.saturating_add(self.inflation), board)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_duplicates(&self) -> bool {
        self.duplicates > 0
    }
}
