//! Startup and Drain (draft, "Startup" and "Drain").

use super::{Ack, Bbr3, LOSS_THRESHOLD, State};

/// Growth of the delivery rate that shows a pipe not yet full, and rounds without it that show a full one.
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;
/// BBRStartupFullLossCnt: ACKs of a round that reveal losses and show a full pipe.
const LOSSES: u32 = 6;
/// Rounds after which Drain ends in any case.
const LONGEST_DRAIN: u64 = 3;

/// Estimator of a full pipe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached: whether the pipe was ever full.
    pub(super) reached: bool,
    /// BBR.full_bw_now.
    pub(super) now: bool,
    /// BBR.full_bw, bytes per second.
    baseline: f64,
    count: u32,
    /// ACKs of this round that revealed losses, and bytes lost in it.
    losses: u32,
    lost: f64,
    /// Bytes delivered at the start of the recovery in progress.
    recovery: Option<u64>,
}

impl FullPipe {
    /// ResetFullBW, with a new baseline.
    pub(super) fn restart(&mut self, baseline: f64) {
        (self.baseline, self.count, self.now) = (baseline, 0, false);
    }

    /// CheckFullBWReached.
    pub(super) fn check(&mut self, ack: &Ack, round_start: bool) {
        if self.now || !round_start || ack.app_limited {
            return;
        }
        if ack.rate >= self.baseline * GROWTH {
            self.restart(ack.rate);
            return;
        }
        self.count += 1;
        self.now = self.count >= ROUNDS;
        self.reached |= self.now;
    }

    /// Records the start of a recovery.
    pub(super) fn on_recovery(&mut self, delivered: u64) {
        self.recovery.get_or_insert(delivered);
    }

    /// Whether the losses of the round that ends show a full pipe (CheckStartupHighLoss).
    fn is_lossy(&mut self, ack: &Ack, round_start: bool, recovers: bool) -> bool {
        if ack.newly_lost > 0.0 {
            self.losses += 1;
            self.lost += ack.newly_lost;
        }
        if !recovers {
            self.recovery = None;
        }
        if !round_start {
            return false;
        }
        let whole_round = self.recovery.is_some_and(|began| ack.prior_delivered >= began);
        let many = self.losses >= LOSSES && self.lost > LOSS_THRESHOLD * (ack.delivered + self.lost);
        (self.losses, self.lost) = (0, 0.0);
        whole_round && many
    }
}

impl Bbr3 {
    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, ack: &Ack) {
        if self.state != State::Startup {
            return;
        }
        if self.full.is_lossy(ack, self.round_start, self.recovers) {
            self.undo.state = Some(State::Startup);
            self.full.reached = true;
            self.long.inflight = self.bdp(1.0).max(self.short.inflight_latest());
        }
        if self.full.reached {
            self.state = State::Drain;
            self.drain_start = self.rounds;
        }
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, ack: &Ack) {
        let late = self.rounds > self.drain_start + LONGEST_DRAIN;
        if self.state == State::Drain && (ack.in_flight <= self.inflight(1.0) || late) {
            self.start_down(ack.now);
        }
    }
}
