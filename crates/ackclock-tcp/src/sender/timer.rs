//! Handling of expired timers.

use ackclock_core::{Repair, Setting, Time};

use super::{Due, SenderState, TcpSender};
use crate::cc::{Congestion, CongestionEvent, RenewControl};
use crate::prr::Delivery;
use crate::recovery::{Recovery, Timer, Verdict};
use crate::stack::Stack;

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Processes all timers that are due at `now`.
    pub(super) fn expire(&mut self, now: Time) {
        if now >= self.start {
            self.start = Time::NEVER;
            self.state = SenderState::Established;
        }
        if now >= self.recovery.poll_timeout() && self.state == SenderState::Established {
            self.on_recovery_time(now);
        }
        if now >= self.timer {
            match self.state {
                SenderState::SynSent | SenderState::SynReceived => self.on_syn_timeout(now),
                SenderState::Established if self.is_closed_by_peer() => self.on_persist_timeout(now),
                SenderState::Established => self.on_retransmission_timeout(now),
                SenderState::Idle | SenderState::Closed => self.timer = Time::NEVER,
            }
        }
    }

    /// Whether the peer's window blocks sending: the window is closed, or is too small while nothing is in flight.
    fn is_closed_by_peer(&self) -> bool {
        self.board.sent().is_empty() || self.peer.edge.at_or_before(self.board.una())
    }

    fn on_persist_timeout(&mut self, now: Time) {
        self.back_off(now);
        self.due = Due::Probe;
    }

    /// Handles an expired timer of the recovery.
    fn on_recovery_time(&mut self, now: Time) {
        self.outgoing.on_event();
        match self.recovery.on_time(now, &mut self.board) {
            Verdict::Enter => {
                self.enter(now);
                if let Some(reduction) = &mut self.reduction {
                    let in_flight = self.recovery.in_flight(&self.board);
                    reduction.on_ack(&Delivery { delivered: self.mss.into(), in_flight, safe: false });
                }
            }
            Verdict::Partial(Timer::Restart) => self.timer = now + self.rtt.rto(),
            Verdict::Persistent => self.on_persistent_congestion(now),
            _ => {}
        }
    }

    /// Applies a setting from a controller.
    pub(super) fn apply_setting(&mut self, now: Time, setting: &Setting) {
        self.cc.steer(setting);
        let thaws = self.frozen && setting.timer == ackclock_core::Timer::Runs;
        self.frozen = setting.timer == ackclock_core::Timer::Frozen;
        if thaws && self.timer != Time::NEVER {
            // Data already sent may take a complete timeout from now.
            self.timer = now + self.rtt.rto();
        }
    }

    /// Handles an expired retransmission timer (RFC 6298 (5.4) to (5.6)).
    fn on_retransmission_timeout(&mut self, now: Time) {
        if self.frozen {
            self.timer = now + self.rtt.rto();
            return;
        }
        self.outgoing.on_event();
        if self.recovery.on_probe_timeout() {
            // A probe timeout indicates no loss (RFC 9002 section 6.2).
            self.pacer.release(now);
            self.back_off(now);
            return;
        }
        self.stats.timeouts += 1;
        self.past.unrepaired = Some(Repair::Timeout);
        let event = self.open_reduction(now, Congestion::Timeout);
        self.past.timed_out_at = Some(self.board.una());
        self.recovery.on_timeout(now, &mut self.board);
        self.cc.on_congestion(&CongestionEvent { lost_in_all: self.board.losses(), ..event });
        self.end_reduction();
        if self.config.stack == Stack::Linux {
            // After the timeout, segments not marked lost are still in flight, and one more segment is sent.
            let in_flight = self.recovery.in_flight(&self.board);
            self.cc.adopt(in_flight + u32::from(self.mss), self.cc.ssthresh());
        }
        self.pacer.release(now);
        self.back_off(now);
    }

    pub(super) fn back_off(&mut self, now: Time) {
        self.rtt.back_off();
        self.timer = now + self.rtt.rto();
    }
}
