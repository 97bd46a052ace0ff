//! Effect of losses on the congestion window (draft section 4.2.3.5), and Linux's variant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bbr, Mode};
use crate::congestion_control::{AckSample, Congestion, CongestionEvent, Phase};

/// Response of the congestion window to losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossWindow {
    /// Draft: recovery starts with a congestion window of the bytes in flight. A timeout sets the window to one
    /// segment.
    #[default]
    Draft,
    /// Linux: each loss is also subtracted from the congestion window. After a timeout the window still covers the data
    /// in flight that is not lost. A loss ends a bandwidth probe only at the ACK that shows the loss.
    Linux,
}

/// Phase of loss recovery, as far as it affects the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Repair {
    None,
    /// First round of recovery: send as many bytes as are delivered.
    Conserving,
    Growing,
}

impl Bbr {
    /// Sets the congestion window during loss recovery. Returns true if loss recovery set the window; the model must
    /// then not grow the window.
    pub(super) fn follow_losses(&mut self, sample: &AckSample) -> bool {
        if self.repair == Repair::Conserving && self.round_start {
            self.repair = Repair::Growing;
        }
        let conserved = sample.in_flight.saturating_add(sample.delivered);
        match self.losses {
            LossWindow::Draft if self.repair == Repair::Conserving => self.cwnd = conserved,
            LossWindow::Draft => {}
            LossWindow::Linux => self.follow_each_loss(sample, conserved),
        }
        self.repair == Repair::Conserving
    }

    fn follow_each_loss(&mut self, sample: &AckSample, conserved: u32) {
        let before = self.cwnd;
        self.cwnd = self.cwnd.saturating_sub(sample.lost.saturating_mul(self.mss)).max(self.mss);
        if self.repair == Repair::None && sample.phase == Phase::FastRecovery {
            self.prior_cwnd = self.saved_cwnd(before);
            self.repair = Repair::Conserving;
            self.round_end = self.delivered;
            self.cwnd = conserved;
        } else if self.repair != Repair::None && sample.phase == Phase::Open {
            self.repair = Repair::None;
            self.restore_cwnd();
        }
        if self.repair == Repair::Conserving {
            self.cwnd = self.cwnd.max(conserved);
        }
    }

    /// Handles a newly found loss or a timeout.
    pub(super) fn take_loss(&mut self, event: &CongestionEvent) {
        if let Mode::ProbeBw(cycle) = &mut self.mode {
            cycle.lost = self.losses == LossWindow::Draft;
        }
        // As in Linux, recovery starts with the ACK that showed the loss, and a timeout during recovery saves no
        // window.
        let repairs = self.repair != Repair::None || event.repeated_timeout;
        if !(self.losses == LossWindow::Linux && repairs) {
            self.prior_cwnd = self.saved_cwnd(self.cwnd);
        }
        match (event.cause, self.losses) {
            (Congestion::Timeout, LossWindow::Draft) => {
                self.repair = Repair::Growing;
                self.cwnd = self.mss;
            }
            (Congestion::Timeout, LossWindow::Linux) => {
                if self.repair == Repair::None {
                    self.repair = Repair::Growing;
                }
                self.full_pipe.forget_rate();
                self.time_out_policer(event);
            }
            (_, LossWindow::Draft) => {
                self.repair = Repair::Conserving;
                self.cwnd = self.cwnd.min(event.flight.saturating_add(self.mss));
                // The round of packet conservation starts now.
                self.round_end = self.delivered;
            }
            (_, LossWindow::Linux) => {}
        }
    }

    /// BBRSaveCwnd: returns the window to restore after recovery or PROBE_RTT. `cwnd` is the current congestion window,
    /// bytes.
    pub(super) fn saved_cwnd(&self, cwnd: u32) -> u32 {
        let undisturbed = self.repair == Repair::None && !matches!(self.mode, Mode::ProbeRtt(_));
        if undisturbed { cwnd } else { self.prior_cwnd.max(cwnd) }
    }

    /// BBRRestoreCwnd: restores the congestion window from before recovery or PROBE_RTT.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
