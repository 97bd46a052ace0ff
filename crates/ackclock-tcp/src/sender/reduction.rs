//! Reductions of the congestion window: causes, spreading over a recovery, and undo.

use ackclock_core::{Repair, SackBlock, Segment, Time};

use super::TcpSender;
use super::ack::AckOutcome;
use crate::cc::{Congestion, CongestionEvent, Phase, RenewControl};
use crate::config::{Halves, Switch, UndoKind};
use crate::prr::Prr;
use crate::recovery::{Recovery, Tail};
use crate::stack::Stack;
use crate::undo::{Before, Detector, Proof, Redress};

/// kMinimumWindow of RFC 9002 section 7.2, packets.
const MINIMUM_WINDOW: u32 = 2;

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Starts a fast retransmit.
    #[cold]
    pub(super) fn enter(&mut self, now: Time) {
        self.stats.fast_retransmits += 1;
        self.past.unrepaired = Some(Repair::FastRetransmit);
        match self.ecn.reacted.filter(|_| self.config.stack == Stack::Linux) {
            None => {
                let prior = self.event(now, Congestion::FastRetransmit).flight;
                self.reduce(now, Congestion::FastRetransmit);
                self.spread(prior);
            }
            Some(point) => {
                // Linux continues the reduction for the ECN echo. Proof of a spurious retransmission then ends only the
                // recovery.
                self.detectors.repeats.forget();
                self.recovery.take_probe();
                if !self.is_judged(Congestion::FastRetransmit) {
                    self.detectors.echoes.watch(Congestion::FastRetransmit, self.stamp(now));
                }
                self.recovery.ends_at(point);
            }
        }
        self.rtt.stop_timing();
        self.timer = now + self.rtt.rto();
    }

    /// Spreads a reduction from `prior` bytes to the current window over the recovery, if the options select this.
    fn spread(&mut self, prior: u32) {
        if self.spreads_losses() {
            self.reduction = Some(Prr::new(prior, self.cc.window(), self.mss.into(), self.config.stack));
        }
    }

    /// Whether a reduction for a loss is spread over the recovery.
    fn spreads_losses(&self) -> bool {
        R::KNOWS_FLIGHT && self.config.prr == Switch::On && !self.cc.rules_recovery()
    }

    /// Ends a reduction for an ECN echo or for a loss. Linux does not distinguish reductions for an ECN echo from
    /// reductions for a loss.
    pub(super) fn end_reduction(&mut self) {
        self.reduction = None;
        if self.config.stack == Stack::Linux {
            self.ecn.reacted = None;
        }
    }

    /// Ends the recovery because nothing was lost.
    fn end_repair(&mut self, cause: Congestion) {
        self.end_reduction();
        self.recovery.on_spurious(cause, &mut self.board);
    }

    /// Applies the result of a tail probe. No recovery follows, because nothing is left to retransmit.
    #[cold]
    pub(super) fn on_probed(&mut self, now: Time, tail: Tail) {
        if self.cc.rules_recovery() {
            return;
        }
        match tail {
            Tail::Repaired => {
                let window = self.cc.window();
                self.reduce_for_tail(now);
                self.cc.adopt(window, self.cc.ssthresh());
            }
            Tail::Lost => {
                // The reduction starts from the current window, because part of the window may have been restored
                // since.
                let window = self.cc.window();
                self.cc.on_spurious(now, Congestion::FastRetransmit);
                self.cc.adopt(window, self.cc.ssthresh());
                self.reduce_for_tail(now);
            }
            Tail::Arrived => self.cc.on_spurious(now, Congestion::FastRetransmit),
        }
    }

    /// Reduces the window to its minimum (RFC 9002 section 7.6.2). The losses are retransmitted as after any other loss.
    #[cold]
    pub(super) fn on_persistent_congestion(&mut self, now: Time) {
        self.enter(now);
        self.stats.timeouts += 1;
        self.end_reduction();
        self.cc.on_persistent_congestion(MINIMUM_WINDOW * u32::from(self.mss));
    }

    fn reduce_for_tail(&mut self, now: Time) {
        let event = self.event(now, Congestion::FastRetransmit);
        self.cc.on_congestion(&event);
    }

    /// Reduces the window for a loss.
    pub(super) fn reduce(&mut self, now: Time, cause: Congestion) {
        let event = self.open_reduction(now, cause);
        self.cc.on_congestion(&event);
    }

    /// Prepares a reduction of the window. Returns the event for congestion control, and saves the state in case
    /// nothing was lost.
    pub(super) fn open_reduction(&mut self, now: Time, cause: Congestion) -> CongestionEvent {
        // CWR is set for any cause of the reduction (RFC 3168 section 6.1.2).
        self.ecn.cwr = true;
        let event = self.event(now, cause);
        self.ecn.lasting &= event.repeated_timeout;
        let segments = event.window / u32::from(self.mss);
        let probed = self.recovery.take_probe();
        if self.config.stack == Stack::Linux && !event.repeated_timeout {
            self.detectors.repeats.watch(cause, self.board.una(), probed);
        }
        self.stats.loss_cycles.on_loss(now, cause, f64::from(segments));
        if !self.is_judged(cause) {
            self.detectors.echoes.watch(cause, self.stamp(now));
            self.undo.on_reduction(&Before {
                flight: self.board.outstanding(),
                ssthresh: self.cc.ssthresh(),
                rtt: self.rtt.saved(),
            });
        }
        event
    }

    /// Whether timestamp echoes cannot prove a reduction for this cause spurious. Until all losses are repaired, Linux
    /// tests only the first retransmission. Linux tests no retransmission while an earlier one is in flight, because
    /// its timestamp echo would prove nothing (tcp_any_retrans_done). A timeout during a reduction for an ECN echo is
    /// not tested.
    fn is_judged(&self, cause: Congestion) -> bool {
        let linux = || match cause {
            Congestion::Timeout => {
                let repairs = self.recovery.phase() != Phase::Open && !self.recovery.is_repaired(&self.board);
                repairs || self.ecn.reacted.is_some()
            }
            Congestion::FastRetransmit => self.board.holds_repeated(),
            Congestion::Ecn => false,
        };
        self.timestamps == Switch::Off
            || self.detectors.echoes.watches(cause)
            || self.config.stack == Stack::Linux && linux()
    }

    fn event(&self, now: Time, cause: Congestion) -> CongestionEvent {
        let una = self.board.una();
        let cwnd = self.cc.window();
        let halves_window = self.config.halves == Some(Halves::Cwnd);
        // Linux reduces the window only once until all losses are repaired.
        let unrepaired =
            self.recovery.phase() == Phase::FastRecovery && !self.recovery.is_repaired(&self.board);
        let repairs = self.config.stack == Stack::Linux && (unrepaired || self.ecn.reacted.is_some());
        CongestionEvent {
            now,
            cause,
            // During recovery the bytes sent exceed the window's limit on bytes in the network. Limited transmit may
            // also exceed the limit on bytes in the network (RFC 5681 section 3.2 step 2).
            flight: match self.recovery.flight_before() {
                Some(before) if cause == Congestion::FastRetransmit => before,
                _ if halves_window => cwnd,
                _ => self.board.outstanding().min(cwnd),
            },
            window: cwnd.min(self.limit()).max(u32::from(self.mss)),
            repeated_timeout: cause == Congestion::Timeout
                && (self.past.timed_out_at == Some(una) || repairs),
            lost_in_all: self.board.losses(),
        }
    }

    /// Undoes the last timeout, because later arrivals showed that nothing had been lost.
    #[cold]
    pub(super) fn take_back_timeout(&mut self, now: Time) {
        self.stats.on_spurious(Congestion::Timeout);
        self.detectors.echoes = Detector::default();
        self.end_repair(Congestion::Timeout);
        if !self.ecn.lasting {
            self.cc.on_spurious(now, Congestion::Timeout);
        }
    }

    /// Undoes a reduction that D-SACK shows to be spurious, because the original segments had arrived (RFC 3708).
    #[inline(always)]
    pub(super) fn undo_if_repeated(&mut self, now: Time, outcome: &AckOutcome) {
        if let Some(block) = outcome.dsack {
            self.on_repeated(now, block);
        }
    }

    /// Processes a D-SACK: the receiver reported `block` as a duplicate.
    #[inline(never)]
    fn on_repeated(&mut self, now: Time, block: SackBlock) {
        if self.config.stack == Stack::Rfc || self.config.undo != Some(UndoKind::Eifel) {
            return;
        }
        let Some(cause) = self.detectors.repeats.on_duplicate(block, self.mss.into()) else { return };
        self.detectors.repeats.forget();
        self.detectors.echoes = Detector::default();
        self.stats.on_spurious(cause);
        self.end_repair(cause);
        if !self.ecn.lasting {
            self.cc.on_spurious(now, cause);
        }
    }

    /// Undoes the last reduction if Eifel detection shows it to be spurious (RFC 3522, RFC 4015). Returns whether a new
    /// window was computed.
    pub(super) fn undo_if_spurious(&mut self, now: Time, seg: &Segment, outcome: &AckOutcome) -> bool {
        let echo = seg.timestamps().map(|stamps| stamps.echo);
        // A D-SACK shows that the receiver had both copies. If both copies arrived, RFC 3522 rejects the timestamp as
        // proof, but Linux accepts the timestamp.
        let both = outcome.dsack.is_some() && self.config.stack == Stack::Rfc;
        let Some(cause) = self.detectors.echoes.on_advance(echo, both) else { return false };
        self.detectors.repeats.forget();
        self.stats.on_spurious(cause);
        if self.ecn.lasting {
            self.end_repair(cause);
            return false;
        }
        let proof = Proof {
            flight: self.board.outstanding(),
            acked: outcome.acked.bytes,
            initial_window: self.initial_window,
            ecn_echo: self.reports_congestion(seg),
        };
        let redress = self.undo.respond(&proof);
        if redress == Redress::Nothing {
            return false;
        }
        self.end_repair(cause);
        match redress {
            Redress::Adopt { window, rtt } => {
                if let Some((window, ssthresh)) = window {
                    self.cc.adopt(window, ssthresh);
                }
                self.past.rtt_restart = rtt.filter(|_| cause == Congestion::Timeout);
                window.is_some()
            }
            _ => {
                self.cc.on_spurious(now, cause);
                false
            }
        }
    }

    /// Reduces the window for an ECN echo: once per window of data, and not during recovery (RFC 3168 section 6.1.2).
    /// Linux ignores an ECN echo during recovery, and reacts if the echo continues afterwards.
    pub(super) fn take_echo(&mut self, now: Time, seg: &Segment) {
        let una = self.board.una();
        if self.ecn.reacted.is_some_and(|reacted| una.after(reacted)) {
            self.ecn.reacted = None;
            if self.recovery.phase() == Phase::Open {
                self.reduction = None;
            }
        }
        let repairs = self.recovery.phase() != Phase::Open;
        if !self.reports_congestion(seg) {
            return;
        }
        self.ecn.lasting = self.config.stack == Stack::Linux;
        if self.ecn.reacted.is_some() || repairs && self.config.stack == Stack::Linux {
            return;
        }
        self.ecn.reacted = Some(self.board.max());
        self.ecn.cwr = true;
        if repairs {
            return;
        }
        self.stats.ecn_reductions += 1;
        let event = self.event(now, Congestion::Ecn);
        if self.cc.window() <= u32::from(self.mss) && self.config.stack == Stack::Rfc {
            // With a window of one segment the sender waits for its timer instead of reducing the window (RFC 3168, end
            // of section 6.1.2).
            self.pacer.hold(now + self.rtt.rto());
        }
        self.cc.on_congestion(&event);
        if self.config.stack == Stack::Linux {
            self.detectors.repeats.forget();
            self.spread(event.flight);
        }
    }
}
