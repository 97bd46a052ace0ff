//! The least round-trip time, and PROBE_RTT, which empties the pipe for a moment to see it without a queue (draft sections 4.1.2
//! and 4.3.5).

use ackclock_core::{Span, Time};

use super::{Bbr, Mode};
use crate::cc::AckSample;
use crate::stack::Stack;

/// RTpropFilterLen.
const ROUND_TRIP_AGE: Span = Span::from_secs(10);
/// ProbeRTTDuration.
const DURATION: Span = Span::from_millis(200);

/// How far PROBE_RTT has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// Set when the pipe is as empty as it gets: when the probe may end.
    until: Option<Time>,
    /// A round has passed since.
    round_done: bool,
}

impl Bbr {
    /// The first round-trip time is known.
    pub(super) fn begin_timing(&mut self, now: Time, round_trip: Span) {
        self.round_trip = Some(round_trip);
        self.round_trip_at = now;
        self.init_pacing_rate(round_trip);
    }

    /// BBRUpdateRTprop; whether the old value was out of date.
    pub(super) fn update_round_trip(&mut self, sample: &AckSample) -> bool {
        let Some(known) = self.round_trip else {
            if let Some(first) = sample.rtt {
                self.begin_timing(sample.now, first);
            }
            return false;
        };
        let expired = sample.now > self.round_trip_at + ROUND_TRIP_AGE;
        // An equal one is as good, but in Linux.
        let same = self.stack == Stack::Rfc;
        if let Some(rtt) = sample.rtt.filter(|&rtt| rtt < known || expired || (same && rtt == known)) {
            self.round_trip = Some(rtt);
            self.round_trip_at = sample.now;
        }
        expired
    }

    /// BBRCheckProbeRTT: begins where the round-trip time is out of date, unless the sender was idle just now.
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

    /// BBRHandleProbeRTT.
    fn probe_round_trip(&mut self, sample: &AckSample, mut probe: Probe) {
        // The rate is low on purpose: what is sent now must not be taken for the bottleneck's.
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

    /// Ends the probe where it has lasted long enough.
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
