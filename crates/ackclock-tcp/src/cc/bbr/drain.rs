//! DRAIN: empties the queue that STARTUP built (draft section 4.3.3).

use super::startup::HIGH_GAIN;
use super::{Bbr, Mode};
use crate::congestion_control::AckSample;

impl Bbr {
    /// BBRCheckDrain: starts DRAIN once STARTUP has filled the pipe. DRAIN ends when the bytes in flight are within the
    /// pipe's capacity.
    pub(super) fn check_drain(&mut self, sample: &AckSample) {
        if matches!(self.mode, Mode::Startup) && self.full_pipe.filled {
            self.mode = Mode::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        let in_flight = self.in_flight_at_departure(sample, sample.in_flight);
        if matches!(self.mode, Mode::Drain) && in_flight <= self.inflight(1.0) {
            self.enter_probe_bw(sample.now);
        }
    }
}
