//! What comes in: acceptance, windows and timestamps.

use ackclock_core::{Flags, LARGEST_WINDOW_SCALE, Segment, Seq, Time};

use super::{Due, State, TcpSender};
use crate::cc::BuildControl;
use crate::config::Switch;
use crate::recovery::Recovery;

impl<R: Recovery, C: BuildControl> TcpSender<R, C> {
    /// Takes in a segment of the peer.
    #[inline(always)]
    pub(super) fn take_segment(&mut self, now: Time, seg: &Segment) {
        if !seg.is_tcp() || self.state == State::Closed {
            self.take_last_fin(seg);
            return;
        }
        if seg.flags.intersects(Flags::RST | Flags::SYN) {
            self.take_control(now, seg);
            return;
        }
        let begins = matches!(self.state, State::Idle | State::SynSent);
        if begins || !seg.flags.contains(Flags::ACK) || self.is_old(seg) {
            return;
        }
        // RFC 9293 section 3.10.7.4: what acknowledges the past or the future is not taken.
        if seg.ack.before(self.board.una()) || seg.ack.after(self.board.max()) {
            return;
        }
        if self.state == State::SynReceived && !self.complete_handshake(now, seg) {
            return;
        }
        self.take_peer_data(seg);
        let reopened = self.take_window(seg);
        self.take_ack(now, seg, reopened);
    }

    /// PAWS (RFC 7323 section 5.3), and what to echo.
    fn is_old(&mut self, seg: &Segment) -> bool {
        if self.timestamps == Switch::Off {
            return false;
        }
        let Some(stamps) = seg.timestamps() else { return false };
        if self.stamps.seen && Seq(stamps.value).before(Seq(self.stamps.recent)) {
            return true;
        }
        if seg.seq.at_or_before(self.peer.next) {
            self.stamps.recent = stamps.value;
            self.stamps.seen = true;
        }
        false
    }

    /// The peer sends no data, but its FIN must be acknowledged.
    fn take_peer_data(&mut self, seg: &Segment) {
        if seg.seq == self.peer.next && seg.flags.intersects(Flags::FIN) {
            self.peer.next = seg.end();
        }
        if seg.has_data() {
            self.due = Due::Ack;
        }
    }

    /// The FIN of the peer comes after ours was acknowledged (FIN-WAIT-2 and TIME-WAIT of RFC 9293): it is acknowledged too.
    #[cold]
    fn take_last_fin(&mut self, seg: &Segment) {
        let fin = seg.is_tcp() && seg.flags.intersects(Flags::FIN);
        if fin && self.past.finished_at.is_some() {
            self.take_peer_data(seg);
        }
    }

    /// Takes over the peer's window; whether it was closed before.
    fn take_window(&mut self, seg: &Segment) -> bool {
        let scale = seg.scale().unwrap_or(self.peer.scale).min(LARGEST_WINDOW_SCALE);
        let window = u32::from(seg.window) << scale;
        let was_closed = self.peer.edge.at_or_before(self.board.una());
        self.peer.edge = seg.ack + window;
        self.peer.largest = self.peer.largest.max(window);
        was_closed || window == 0
    }

    /// Everything is acknowledged. A FIN that came along is acknowledged still.
    pub(super) fn close_finished(&mut self) {
        let due = self.due;
        self.close();
        if due == Due::Ack {
            self.due = due;
        }
    }

    /// The connection is over.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.timer = Time::NEVER;
        self.pacing_wake = Time::NEVER;
        self.due = Due::Nothing;
    }
}
