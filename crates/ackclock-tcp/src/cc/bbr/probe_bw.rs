//! PROBE_BW: cruises at the estimated rate, and probes for a higher rate in one of eight round trips (draft section
//! 4.3.4).

use ackclock_core::{Span, Time};

use super::{Bbr, LossWindow, Mode};
use crate::congestion_control::AckSample;

/// Pacing gains of the cycle: probe, drain the queue of the probe, then cruise.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the congestion window, with room for delayed and aggregated ACKs.
const CWND_GAIN: f64 = 2.0;

/// Position in the gain cycle of PROBE_BW.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) phase: usize,
    since: Time,
    /// Whether a loss was found since the phase started.
    pub(super) lost: bool,
}

impl Bbr {
    /// BBREnterProbeBW: starts PROBE_BW in any phase of the gain cycle except draining. The draft draws the phase at
    /// random. This implementation selects the phase by the nanoseconds of the current time: flows spread out, but
    /// identical runs stay identical.
    pub(super) fn enter_probe_bw(&mut self, now: Time) {
        let drawn = (now.as_nanos() % (GAINS.len() as u64 - 1)) as usize;
        self.cwnd_gain = CWND_GAIN;
        self.enter_phase(now, (GAINS.len() - drawn) % GAINS.len());
    }

    /// BBRCheckCyclePhase: advances to the next phase if the current phase is over.
    pub(super) fn check_cycle(&mut self, sample: &AckSample) {
        let Mode::ProbeBw(cycle) = self.mode else { return };
        if self.phase_is_over(cycle, sample) {
            self.enter_phase(sample.now, (cycle.phase + 1) % GAINS.len());
        }
    }

    /// Whether this ACK shows a loss that ends a bandwidth probe at once.
    fn ends_probe(&self, sample: &AckSample) -> bool {
        self.losses == LossWindow::Linux && sample.lost > 0
    }

    fn enter_phase(&mut self, now: Time, phase: usize) {
        // Behind a policer BBR does not probe for a higher rate.
        self.pacing_gain = if self.is_policed() { 1.0 } else { GAINS[phase] };
        self.mode = Mode::ProbeBw(Cycle { phase, since: now, lost: false });
    }

    /// BBRIsNextCyclePhase: a probe phase lasts until the pipe is full or a loss occurs. A drain phase lasts until the
    /// queue is empty.
    fn phase_is_over(&self, cycle: Cycle, sample: &AckSample) -> bool {
        let full_length = sample.now.since(cycle.since) > self.round_trip.unwrap_or(Span::ZERO);
        let before = self.in_flight_at_departure(sample, sample.in_flight.saturating_add(sample.delivered));
        let gain = self.pacing_gain;
        if gain > 1.0 {
            full_length && (cycle.lost || self.ends_probe(sample) || before >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || before <= self.inflight(1.0)
        } else {
            full_length
        }
    }
}
