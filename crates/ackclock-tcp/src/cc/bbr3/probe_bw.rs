//! ProbeBW: down, cruise, refill and up (draft, "ProbeBW Algorithm Details" and "Probing for Bandwidth In ProbeBW").

use ackclock_core::{Span, Time};

use super::{Ack, BETA, Bbr3, LOSS_THRESHOLD, State};

/// Shortest time between probes, and largest random addition.
const WAIT: Span = Span::from_secs(2);
const MORE_WAIT: u64 = 1_000_000_000;
/// Most rounds between probes: as many as Reno would need to regain its window.
const RENO_ROUNDS: f64 = 63.0;
/// Most doublings of the slope at which a probe raises the bytes in flight.
const MOST_DOUBLINGS: u32 = 30;

/// Meaning of the ACKs that arrive (BBR.ack_phase).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State of the probing cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    phase: AckPhase,
    /// BBR.is_bw_probe_sample: whether ACKs show the result of a probe.
    is_sample: bool,
    /// BBR.probe_up_acked_per_inc and BBR.bw_probe_up_acked, bytes.
    per_increase: f64,
    acked: f64,
    doublings: u32,
    pub(super) rounds_since_up: u64,
    wait: Span,
    cycle_at: Time,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    too_high: bool,
    precautionary: bool,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            phase: AckPhase::default(),
            is_sample: false,
            per_increase: f64::INFINITY,
            acked: 0.0,
            doublings: 0,
            rounds_since_up: 0,
            wait: Span::ZERO,
            cycle_at: Time::ZERO,
            too_high: false,
            precautionary: false,
        }
    }
}

impl Probing {
    /// PickProbeWait, with a hash of the time in place of random numbers.
    fn pick_wait(&mut self, now: Time) {
        let mixed = (now.as_nanos() | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32;
        self.rounds_since_up = mixed & 1;
        self.wait = WAIT + Span::from_nanos(((mixed >> 1) * MORE_WAIT) >> 31);
    }

    /// Ends the samples of a probe, as ProbeRTT begins.
    pub(super) fn stop(&mut self) {
        self.phase = AckPhase::ProbeStopping;
    }
}

impl Bbr3 {
    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Time) {
        self.short.reset_signals();
        self.probing.per_increase = f64::INFINITY;
        self.probing.pick_wait(now);
        self.probing.cycle_at = now;
        self.probing.phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.short.release();
        (self.probing.doublings, self.probing.acked) = (0, 0.0);
        self.probing.precautionary = false;
        self.probing.phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, ack: &Ack) {
        self.probing.phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full.restart(ack.rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw(&mut self, ack: &Ack) {
        if !self.full.reached || self.adapt_long_term(ack) {
            return;
        }
        let ends = self.state == State::Up && self.is_time_to_go_down(ack);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.round_start => {
                self.probing.is_sample = true;
                self.start_up(ack);
            }
            State::Up if ends => {
                self.probing.too_high = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let segments = self.target_inflight() / self.mss;
        now > self.probing.cycle_at + self.probing.wait
            || self.probing.rounds_since_up as f64 >= segments.min(RENO_ROUNDS)
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        let bdp = self.trips.min_rtt().map_or(self.initial_window, |min_rtt| {
            self.with_budget(self.long.max_bandwidth() * min_rtt.as_secs_f64())
        });
        ack.in_flight <= self.inflight_with_headroom() && ack.in_flight <= bdp
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, ack: &Ack) -> bool {
        if self.probing.too_high && ack.in_flight >= self.long.inflight {
            self.probing.precautionary = true;
            return true;
        }
        if ack.window_limited && self.cwnd >= self.long.inflight {
            self.full.restart(ack.rate);
            return false;
        }
        self.full.now
    }

    /// RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = f64::from(1u32 << self.probing.doublings);
        self.probing.doublings = (self.probing.doublings + 1).min(MOST_DOUBLINGS);
        self.probing.per_increase = (self.cwnd / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    fn raise_inflight(&mut self, ack: &Ack) {
        if !ack.window_limited || self.cwnd < self.long.inflight {
            return;
        }
        self.probing.acked += ack.newly_acked;
        if self.probing.acked >= self.probing.per_increase {
            let steps = (self.probing.acked / self.probing.per_increase).floor();
            self.probing.acked -= steps * self.probing.per_increase;
            self.long.inflight += steps * self.mss;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel. Returns whether it changed the state.
    fn adapt_long_term(&mut self, ack: &Ack) -> bool {
        if self.probing.phase == AckPhase::ProbeStarting && self.round_start {
            self.probing.phase = AckPhase::ProbeFeedback;
        }
        if self.probing.phase == AckPhase::ProbeStopping && self.round_start {
            self.probing.is_sample = false;
            self.probing.phase = AckPhase::Init;
            if self.state.is_probe_bw() && !ack.app_limited {
                self.long.advance();
            }
            if self.state.is_probe_bw() && self.probing.precautionary && !self.probing.too_high {
                self.start_refill();
                return true;
            }
        }
        if !is_too_high(ack) && self.long.inflight.is_finite() {
            self.long.inflight = self.long.inflight.max(ack.tx_in_flight);
            if self.state == State::Up {
                self.raise_inflight(ack);
            }
        }
        false
    }

    /// HandleLostPacket and HandleInflightTooHigh.
    pub(super) fn handle_losses(&mut self, ack: &Ack) {
        if !self.probing.is_sample || !is_too_high(ack) {
            return;
        }
        self.probing.too_high = true;
        self.probing.is_sample = false;
        if !ack.app_limited {
            self.long.inflight = inflight_at_loss(ack, self.mss).max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(ack.now);
        }
    }
}

/// IsInflightTooHigh.
fn is_too_high(ack: &Ack) -> bool {
    ack.lost > ack.tx_in_flight * LOSS_THRESHOLD
}

/// InflightAtLoss: bytes in flight at which the losses reached the threshold.
fn inflight_at_loss(ack: &Ack, size: f64) -> f64 {
    let (inflight_before, lost_before) = (ack.tx_in_flight - size, ack.lost - size);
    let prefix = (LOSS_THRESHOLD * inflight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
    inflight_before + prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_two_to_three_seconds() {
        let mut probing = Probing::default();
        let mut rounds = [0; 2];
        for millis in 0..1000 {
            probing.pick_wait(Time::ZERO + Span::from_millis(millis));
            assert!((WAIT..WAIT + Span::from_secs(1)).contains(&probing.wait), "{}", probing.wait);
            rounds[probing.rounds_since_up as usize] += 1;
        }
        assert!(rounds.iter().all(|&count| count > 400), "{rounds:?}");
    }
}
