//! Smallest round-trip time and ProbeRTT (draft, "ProbeRTT Logic").

use ackclock_core::{Span, Time};

use super::{Ack, Bbr3, PROBE_RTT_CWND_GAIN, State};

/// BBR.ProbeRTTInterval, BBR.MinRTTFilterLen and BBR.ProbeRTTDuration.
const INTERVAL: Span = Span::from_secs(5);
const FILTER: Span = Span::from_secs(10);
const DURATION: Span = Span::from_millis(200);

/// Round-trip times, and the schedule of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrips {
    /// BBR.min_rtt, and when it was measured.
    min: Option<(Span, Time)>,
    /// BBR.probe_rtt_min_delay, and when it was measured.
    recent: Option<(Span, Time)>,
    /// BBR.probe_rtt_done_stamp: when ProbeRTT may end.
    done: Option<Time>,
    round_done: bool,
}

impl RoundTrips {
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.min.map(|(span, _)| span)
    }

    /// UpdateMinRTT. Returns whether the recent minimum had expired (BBR.probe_rtt_expired).
    fn update(&mut self, ack: &Ack) -> bool {
        let expired = self.recent.is_some_and(|(_, at)| ack.now > at + INTERVAL);
        if let Some(rtt) = ack.rtt
            && (expired || self.recent.is_none_or(|(recent, _)| rtt < recent))
        {
            self.recent = Some((rtt, ack.now));
        }
        if let Some((recent, at)) = self.recent {
            let replaced = self.min.is_none_or(|(min, at)| recent < min || ack.now > at + FILTER);
            if replaced {
                self.min = Some((recent, at));
            }
        }
        expired
    }
}

impl Bbr3 {
    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(PROBE_RTT_CWND_GAIN).max(self.least_cwnd())
    }

    /// UpdateMinRTT and CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack) {
        let expired = self.trips.update(ack);
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.trips.done = None;
            self.probing.stop();
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, ack: &Ack) {
        // Segments in flight during ProbeRTT do not show the rate (MarkConnectionAppLimited).
        self.app_limited_until = self.delivered.saturating_add(ack.in_flight as u64).max(1);
        match self.trips.done {
            None if ack.in_flight <= self.probe_rtt_cwnd() => {
                self.trips.done = Some(ack.now + DURATION);
                self.trips.round_done = false;
                self.start_round();
            }
            None => {}
            Some(_) => {
                self.trips.round_done |= self.round_start;
                if self.trips.round_done {
                    self.check_probe_rtt_done(ack.now);
                }
            }
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.trips.done.is_none_or(|done| now <= done) {
            return;
        }
        self.trips.recent = self.trips.recent.map(|(span, _)| (span, now));
        self.restore_cwnd();
        self.short.release();
        if self.full.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
