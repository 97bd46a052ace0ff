//! Model of the path (draft, "Updating Network Path Model Parameters").

use ackclock_core::Time;

use super::{Ack, BETA, Bbr3, HEADROOM};

/// Rounds after which a sample of the aggregation expires (BBR.ExtraAckedFilterLen).
const AGGREGATION_ROUNDS: u64 = 10;

/// Long-term model: bounds found by probing.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// Largest delivery rate of the previous and of the current probing cycle (BBR.max_bw_filter), bytes per second.
    cycles: [f64; 2],
    /// BBR.inflight_longterm, bytes.
    pub(super) inflight: f64,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self { cycles: [0.0; 2], inflight: f64::INFINITY }
    }
}

impl LongTerm {
    /// BBR.max_bw, bytes per second.
    pub(super) fn max_bandwidth(&self) -> f64 {
        self.cycles[0].max(self.cycles[1])
    }

    /// UpdateMaxBw.
    pub(super) fn update(&mut self, ack: &Ack) {
        if ack.rate > 0.0 && (ack.rate >= self.max_bandwidth() || !ack.app_limited) {
            self.cycles[1] = self.cycles[1].max(ack.rate);
        }
    }

    /// AdvanceMaxBwFilter.
    pub(super) fn advance(&mut self) {
        if self.cycles[1] > 0.0 {
            self.cycles = [self.cycles[1], 0.0];
        }
    }
}

/// Short-term model: bounds that recent losses set, and the delivery of the latest round.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm, bytes per second.
    pub(super) bandwidth: f64,
    /// BBR.inflight_shortterm, bytes.
    pub(super) inflight: f64,
    /// BBR.is_loss_in_round.
    pub(super) is_loss_in_round: bool,
    /// BBR.loss_round_delivered.
    pub(super) round_end: u64,
    /// BBR.bw_latest and BBR.inflight_latest.
    bandwidth_latest: f64,
    inflight_latest: f64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self {
            bandwidth: f64::INFINITY,
            inflight: f64::INFINITY,
            is_loss_in_round: false,
            round_end: 0,
            bandwidth_latest: 0.0,
            inflight_latest: 0.0,
        }
    }
}

impl ShortTerm {
    /// UpdateLatestDeliverySignals. Returns whether the ACK ends a round for losses.
    pub(super) fn update_latest(&mut self, ack: &Ack, delivered: u64) -> bool {
        self.bandwidth_latest = self.bandwidth_latest.max(ack.rate);
        self.inflight_latest = self.inflight_latest.max(ack.delivered);
        let ends = ack.prior_delivered >= self.round_end;
        if ends {
            self.round_end = delivered;
        }
        ends
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, ack: &Ack) {
        (self.bandwidth_latest, self.inflight_latest) = (ack.rate, ack.delivered);
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bandwidth_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// ResetShortTermModel.
    pub(super) fn release(&mut self) {
        (self.bandwidth, self.inflight) = (f64::INFINITY, f64::INFINITY);
    }

    /// BBR.inflight_latest, bytes.
    pub(super) fn inflight_latest(&self) -> f64 {
        self.inflight_latest
    }

    /// InitLowerBounds and LossLowerBounds.
    fn lower(&mut self, max_bandwidth: f64, cwnd: f64) {
        let bandwidth = if self.bandwidth.is_infinite() { max_bandwidth } else { self.bandwidth };
        let inflight = if self.inflight.is_infinite() { cwnd } else { self.inflight };
        self.bandwidth = self.bandwidth_latest.max(BETA * bandwidth);
        self.inflight = self.inflight_latest.max(BETA * inflight);
    }
}

/// Estimate of aggregated ACKs (UpdateACKAggregation).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    since: Time,
    delivered: f64,
    /// Largest excess of the current and of the previous half of the filter, with the round at which the current half
    /// started.
    excess: [f64; 2],
    half: u64,
}

impl Aggregation {
    pub(super) fn restart(&mut self, now: Time) {
        self.since = now;
    }

    /// BBR.extra_acked, bytes.
    pub(super) fn extra(&self) -> f64 {
        self.excess[0].max(self.excess[1])
    }

    /// Updates the estimate with an ACK, given the modelled rate and the number of rounds.
    pub(super) fn update(&mut self, ack: &Ack, bandwidth: f64, cwnd: f64, rounds: u64, is_full: bool) {
        let expected = |since: Time| bandwidth * ack.now.since(since).as_secs_f64();
        if self.delivered <= expected(self.since) {
            (self.delivered, self.since) = (0.0, ack.now);
        }
        self.delivered += ack.newly_acked;
        let excess = (self.delivered - expected(self.since)).clamp(0.0, cwnd);
        let length = if is_full { AGGREGATION_ROUNDS / 2 } else { 1 };
        if rounds >= self.half + length {
            self.excess = [if is_full { self.excess[1] } else { 0.0 }, 0.0];
            self.half = rounds;
        }
        self.excess[1] = self.excess[1].max(excess);
    }
}

impl Bbr3 {
    /// AdaptLowerBoundsFromCongestion: once per round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if !self.state.is_accelerating() && self.short.is_loss_in_round {
            self.short.lower(self.long.max_bandwidth(), self.cwnd);
        }
        self.short.is_loss_in_round = false;
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let inflight = self.long.inflight;
        if inflight.is_infinite() {
            return inflight;
        }
        (inflight - self.mss.max(HEADROOM * inflight)).max(self.least_cwnd())
    }
}
