//! # NewReno
//!
//! NewReno: fast recovery that lasts until all data in flight at the loss is acknowledged.
//!
//! ## Source
//! RFC 6582 for recovery, RFC 3042 for limited transmit.
//!
//! ## What it does
//! A partial acknowledgement retransmits the new left edge at once, and deflates the window by the acknowledged bytes.
//! NewReno repairs one loss per round trip. The retransmission timer restarts only at the first partial acknowledgement
//! ("impatient"), or at every partial acknowledgement ("slow but steady").
//!
//! ## Differences from the source
//! The heuristics of RFC 6582 section 4 for retransmissions after a timeout are not implemented.
//!
//! ## Validation
//! `tests/exchanges.rs` checks exchanges of segments.

use ackclock_core::{Seq, Time};

use super::{AckFacts, Counted, Exit, Next, Recovery, Timer, Verdict, Window, in_sequence};
use crate::cc::{Congestion, Phase};
use crate::config::{Halves, PartialAckTimer, SenderConfig, Switch};
use crate::scoreboard::Scoreboard;

/// State of NewReno recovery.
#[derive(Clone, Debug)]
pub struct NewReno {
    duplicates: u32,
    /// Bytes that recovery adds to the window; negative after a large partial acknowledgement.
    inflation: i32,
    /// Whether the left edge must be retransmitted, regardless of the window.
    retransmit: bool,
    phase: Phase,
    /// End of the data in flight at the last loss; `None` once more than that data is acknowledged.
    recover: Option<Seq>,
    /// Number of partial acknowledgements in this recovery so far.
    partials: u32,
    timer: PartialAckTimer,
    limited_transmit: Switch,
    dup_thresh: u32,
}

impl Recovery for NewReno {
    const USES_SACK: bool = false;
    const HALVES: Halves = Halves::Flight;

    const OPTIONS: &'static [&'static str] = &["partial_ack_timer", "limited_transmit"];
    type InLinux = Counted;

    fn new(config: &SenderConfig) -> Self {
        Self {
            duplicates: 0,
            inflation: 0,
            retransmit: false,
            phase: Phase::Open,
            recover: None,
            partials: 0,
            timer: config.partial_ack_timer,
            limited_transmit: config.limited_transmit,
            dup_thresh: config.dup_thresh.least(),
        }
    }

    #[inline(always)]
    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        self.duplicates = 0;
        let full = self.recover.is_none_or(|recover| !board.una().before(recover));
        if self.recover.is_some_and(|recover| board.una().after(recover)) {
            self.recover = None;
        }
        if self.phase == Phase::FastRecovery && !full {
            return self.on_partial(ack);
        }
        self.inflation = 0;
        match self.phase {
            Phase::FastRecovery => {
                self.phase = Phase::Open;
                // Full acknowledgement by RFC 6582 section 3.2 step 3, option (1).
                Verdict::Leave(Exit::Cap(board.outstanding().max(ack.mss) + ack.mss))
            }
            Phase::TimeoutRecovery if full => {
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
        if self.phase == Phase::FastRecovery {
            self.inflation = self.inflation.saturating_add(ack.mss as i32);
            return Verdict::Open;
        }
        self.duplicates += 1;
        if self.duplicates < self.dup_thresh {
            if self.limited_transmit == Switch::On {
                self.inflation = (self.duplicates * ack.mss) as i32;
            }
            return Verdict::Open;
        }
        self.inflation = 0;
        // Recovery starts only if the acknowledgement covers more than `recover` (RFC 6582 section 3.2 step 2).
        if self.duplicates > self.dup_thresh || self.recover.is_some() {
            return Verdict::Open;
        }
        self.recover = Some(board.max());
        self.partials = 0;
        self.phase = Phase::FastRecovery;
        self.inflation = (self.dup_thresh * ack.mss) as i32;
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
        // `recover` keeps its value: duplicates due to retransmissions after the timeout indicate no loss (RFC 6582
        // section 3.2 step 4).
        if cause == Congestion::Timeout {
            board.undo_go_back();
        }
    }

    #[inline]
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next> {
        if std::mem::take(&mut self.retransmit) && !board.sent().is_empty() {
            return Some(Next::Again(board.sent().first()));
        }
        // The congestion window itself never falls below one segment.
        let usable = window.cwnd.saturating_add_signed(self.inflation).max(window.mss);
        in_sequence(window, usable, board)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_duplicates(&self) -> bool {
        self.duplicates > 0
    }
}

impl NewReno {
    /// Handles a partial acknowledgement by RFC 6582 section 3.2 step 3.
    fn on_partial(&mut self, ack: &AckFacts) -> Verdict {
        self.partials += 1;
        self.retransmit = true;
        let back = if ack.acked >= ack.mss { ack.mss } else { 0 };
        // The deflation cannot exceed the inflated window.
        let deflated = i64::from(self.inflation) + i64::from(back) - i64::from(ack.acked);
        self.inflation = deflated.max(-i64::from(ack.cwnd)) as i32;
        let restart = self.partials == 1 || self.timer == PartialAckTimer::Slow;
        Verdict::Partial(if restart { Timer::Restart } else { Timer::Keep })
    }
}
