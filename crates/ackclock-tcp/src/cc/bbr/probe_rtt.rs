//! Smallest round-trip time, and the PROBE_RTT state. PROBE_RTT briefly empties the pipe to measure the round-trip time
//! without a queue (draft sections 4.1.2 and 4.3.5).

use ackclock_core::{Span, Time};

use super::{Bbr, Mode};
use crate::congestion_control::AckSample;
use crate::stack::Stack;

/// RTpropFilterLen: age at which the smallest round-trip time expires.
const ROUND_TRIP_AGE: Span = Span::from_secs(10);
/// ProbeRTTDuration: shortest duration of PROBE_RTT.
const DURATION: Span = Span::from_millis(200);

/// Progress of the PROBE_RTT state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// End time of PROBE_RTT; set once the pipe has drained.
    until: Option<Time>,
    /// Whether a round has passed since the pipe drained.
    round_done: bool,
}

impl Bbr {
    /// Initialises the filter with the first round-trip time.
    pub(super) fn begin_timing(&mut self, now: Time, round_trip: Span) {
        self.round_trip = Some(round_trip);
        self.round_trip_at = now;
        self.init_pacing_rate(round_trip);
    }

    /// BBRUpdateRTprop: updates the smallest round-trip time. Returns whether the old smallest round-trip time had
    /// expired.
    pub(super) fn update_round_trip(&mut self, sample: &AckSample) -> bool {
        let Some(known) = self.round_trip else {
            if let Some(first) = sample.rtt {
                self.begin_timing(sample.now, first);
            }
            return false;
        };
        let expired = sample.now > self.round_trip_at + ROUND_TRIP_AGE;
        // A round-trip time equal to the smallest so far resets the age of the estimate, except in Linux.
        let same = self.stack == Stack::Rfc;
        if let Some(rtt) = sample.rtt.filter(|&rtt| rtt < known || expired || (same && rtt == known)) {
            self.round_trip = Some(rtt);
            self.round_trip_at = sample.now;
        }
        expired
    }

    /// BBRCheckProbeRTT: starts PROBE_RTT when the smallest round-trip time has expired, unless the sender was just
    /// idle.
    pub(super) fn check_probe_rtt(&mut self, sample: &AckSample, expired: bool) {
        if !matches!(self.mode, Mode::ProbeRtt(_)) && expired && !self.idle_restart {
            self.prior_cwnd = self.saved_cwnd(self.cwnd);
            self.mode = Mode::ProbeRtt(Probe::default());
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
        }
        if let Mode::ProbeRtt(probe) = self.mode {
            self.probe_round_trip(sample, probe);
        }
        self.idle_restart = false;
    }

    /// BBRHandleProbeRTT: processes an ACK in PROBE_RTT.
    fn probe_round_trip(&mut self, sample: &AckSample, mut probe: Probe) {
        // The low sending rate is intentional, so segments sent now must not count as samples of the bottleneck rate.
        self.app_limited_until = self.delivered.saturating_add(sample.in_flight.into());
        match probe.until {
            None if sample.in_flight <= self.least_cwnd() => {
                probe = Probe { until: Some(sample.now + DURATION), round_done: false };
                self.round_end = self.delivered;
            }
            None => {}
            Some(_) => probe.round_done |= self.round_start,
        }
        self.mode = Mode::ProbeRtt(probe);
        if probe.round_done {
            self.end_probe_rtt(sample.now, probe);
        }
    }

    /// Ends PROBE_RTT if it has lasted long enough.
    pub(super) fn end_probe_rtt(&mut self, now: Time, probe: Probe) {
        if probe.until.is_some_and(|until| now > until) {
            self.round_trip_at = now;
            self.restore_cwnd();
            self.leave_probe_rtt(now);
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        if self.full_pipe.filled {
            self.enter_probe_bw(now);
        } else {
            self.enter_startup();
        }
    }
}
