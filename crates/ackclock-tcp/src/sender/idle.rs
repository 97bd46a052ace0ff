//! Reduces the congestion window when the application sends nothing, or less than the window allows.

use ackclock_core::{Span, Time};

use super::TcpSender;
use crate::cc::{Phase, RenewControl};
use crate::recovery::Recovery;
use crate::stack::Stack;

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Reduces the window when sending resumes after an idle period longer than a timeout. The window falls to the
    /// initial window (RFC 5681 section 4.1); in Linux the window halves for each timeout that the idle period lasted.
    /// The window then regrows in slow start.
    #[cold]
    pub(super) fn restart(&mut self, now: Time) {
        let idle = now.since(std::mem::replace(&mut self.past.quiet_since, Time::NEVER));
        if idle <= self.rtt.rto() || self.cc.rules_recovery() {
            return;
        }
        if self.config.stack == Stack::Linux {
            self.restart_as_linux(idle);
        } else if self.cc.window() > self.initial_window {
            self.cc.adopt(self.initial_window, self.cc.ssthresh());
        }
    }

    /// Halves the window in whole segments and raises the threshold (tcp_cwnd_restart). During a window reduction only
    /// the current window falls; the reduction still ends at its threshold (tcp_current_ssthresh).
    fn restart_as_linux(&mut self, idle: Span) {
        let (mss, before) = (u32::from(self.mss), self.window().cwnd);
        let halvings = (idle.as_nanos() - 1) / self.rtt.rto().as_nanos().max(1);
        let halved = (before / mss).checked_shr(halvings.min(32) as u32).unwrap_or(0) * mss;
        let window = halved.max(self.initial_window.min(before));
        match &mut self.reduction {
            Some(reduction) => reduction.restart(window),
            None => self.cc.adopt(window, self.threshold_of_use()),
        }
    }

    /// Reduces a window that was not fully used for the duration of a timeout (RFC 2861).
    #[cold]
    pub(super) fn give_back_unused(&mut self, now: Time) {
        let mss = u32::from(self.mss);
        let since = self.usage.on_unlimited(self.board.outstanding());
        if now.since(since) < self.rtt.rto() {
            return;
        }
        let window = self.cc.window();
        let used = self.usage.take_used(now).max(self.initial_window).div_ceil(mss);
        let undisturbed = self.recovery.phase() == Phase::Open && self.reduction.is_none();
        if undisturbed && !self.cc.rules_recovery() && used < window / mss {
            self.cc.adopt(u32::midpoint(window / mss, used) * mss, self.threshold_of_use());
        }
    }

    /// Slow-start threshold for a window that falls because it was unused: at least three quarters of the window
    /// (tcp_current_ssthresh).
    fn threshold_of_use(&self) -> u32 {
        let mss = u32::from(self.mss);
        let segments = self.cc.window() / mss;
        self.cc.ssthresh().max((segments / 2 + segments / 4) * mss)
    }
}
