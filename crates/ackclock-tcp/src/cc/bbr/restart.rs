//! Restart from idle: sending resumes with nothing in flight (draft section 4.4.3, BBRHandleRestartFromIdle).

use super::{Bbr, Mode, Stack};
use crate::congestion_control::Departure;

impl Bbr {
    /// Handles the departure of a segment. Linux checks whether the application limited the sending. For an
    /// application-limited sender, Linux also restarts the count of aggregated ACKs and ends a PROBE_RTT that has
    /// lasted long enough.
    pub(super) fn handle_restart_from_idle(&mut self, sent: &Departure) {
        let probes = self.app_limited_until > self.delivered;
        let starved = self.stack == Stack::Rfc || sent.app_limited || probes;
        let undisturbed = self.stack == Stack::Linux || self.repair == super::Repair::None;
        if sent.in_flight > sent.bytes || !starved || !undisturbed {
            return;
        }
        self.idle_restart = true;
        match (self.mode, self.stack) {
            (Mode::ProbeBw(_), _) => self.set_pacing_rate(1.0),
            (Mode::ProbeRtt(probe), Stack::Linux) => self.end_probe_rtt(sent.now, probe),
            _ => {}
        }
        if let Some(aggregation) = self.aggregation.as_mut().filter(|_| self.stack == Stack::Linux) {
            aggregation.restart(sent.now);
        }
    }
}
