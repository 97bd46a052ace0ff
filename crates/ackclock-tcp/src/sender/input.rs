//! Processing of incoming segments: acceptance, windows and timestamps.

use ackclock_core::{Flags, LARGEST_WINDOW_SCALE, Segment, Seq, Time};

use super::ack::Offer;
use super::{Due, SenderState, TcpSender};
use crate::cc::RenewControl;
use crate::config::Switch;
use crate::recovery::Recovery;
use crate::stack::Stack;

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Processes a segment received from the peer.
    #[inline(always)]
    pub(super) fn take_segment(&mut self, now: Time, seg: &Segment) {
        if !seg.is_tcp() || self.state == SenderState::Closed {
            self.take_last_fin(seg);
            return;
        }
        if seg.flags.intersects(Flags::RST | Flags::SYN) {
            self.take_control(now, seg);
            return;
        }
        let begins = matches!(self.state, SenderState::Idle | SenderState::SynSent);
        if begins || !seg.flags.contains(Flags::ACK) || self.is_old(seg) {
            return;
        }
        // A segment that acknowledges unsent data is dropped (RFC 9293 section 3.10.7.4).
        if seg.ack.after(self.board.max()) {
            return;
        }
        if seg.ack.before(self.board.una()) {
            self.take_overtaken(now, seg);
            return;
        }
        if self.config.nacks == Switch::On && self.takes_request(seg) {
            return;
        }
        self.take_stamp(seg);
        if self.state == SenderState::SynReceived && !self.complete_handshake(now, seg) {
            return;
        }
        self.take_peer_data(seg);
        let window = self.take_window(seg);
        self.take_ack(now, seg, window);
    }

    /// Processes a segment with an old ACK number, which a newer segment has overtaken. All fields of the segment
    /// except the ACK number still count.
    #[cold]
    fn take_overtaken(&mut self, now: Time, seg: &Segment) {
        if self.state != SenderState::Established {
            return;
        }
        self.take_peer_data(seg);
        let edge = seg.ack + self.window_of(seg);
        if edge.after(self.peer.edge) {
            self.peer.edge = edge;
        }
        self.take_sack(now, seg);
    }

    /// Whether PAWS rejects a segment as old (RFC 7323 section 5.3, R1).
    fn is_old(&self, seg: &Segment) -> bool {
        self.timestamps == Switch::On
            && self.stamps.seen
            && seg.timestamps().is_some_and(|stamps| Seq(stamps.value).before(Seq(self.stamps.recent)))
    }

    /// Updates the timestamp to echo from an acceptable segment, if the segment has the next expected sequence number
    /// (section 5.3, R3).
    fn take_stamp(&mut self, seg: &Segment) {
        if self.timestamps == Switch::Off {
            return;
        }
        let next = self.peer.next;
        let holds = seg.seq == next || (seg.seq.before(next) && seg.end().after(next));
        if let Some(stamps) = seg.timestamps().filter(|_| holds) {
            self.stamps.recent = stamps.value;
            self.stamps.seen = true;
        }
    }

    /// Acknowledges the peer's FIN. Only the FIN needs an acknowledgement, because the peer sends no data.
    fn take_peer_data(&mut self, seg: &Segment) {
        if !seg.has_data() {
            return;
        }
        if seg.seq == self.peer.next && seg.flags.intersects(Flags::FIN) {
            self.peer.next = seg.end();
        }
        self.due = Due::Ack;
    }

    /// Acknowledges a FIN that the peer sends after our FIN was acknowledged (FIN-WAIT-2 and TIME-WAIT of RFC 9293).
    #[cold]
    fn take_last_fin(&mut self, seg: &Segment) {
        let fin = seg.is_tcp() && seg.flags.intersects(Flags::FIN);
        if fin && self.past.finished_at != Time::NEVER {
            self.take_peer_data(seg);
        }
    }

    /// Window that a segment advertises, bytes.
    pub(super) fn window_of(&self, seg: &Segment) -> u32 {
        let scale = seg.scale().unwrap_or(self.peer.scale).min(LARGEST_WINDOW_SCALE);
        u32::from(seg.window) << scale
    }

    /// Updates the peer's window from a segment.
    #[inline]
    fn take_window(&mut self, seg: &Segment) -> Offer {
        let window = self.window_of(seg);
        let edge = seg.ack + window;
        let (before, una) = (self.peer.edge, self.board.una());
        let advances = seg.ack != una;
        if !advances && edge.before(before) && window > 0 && self.config.stack == Stack::Linux {
            // Linux accepts a smaller window only if the ACK number advances.
            return Offer::Same;
        }
        self.peer.edge = edge;
        if before.at_or_before(una) && edge.after(una) {
            self.on_opening(seg);
        }
        let first = self.peer.largest == 0;
        self.peer.largest = self.peer.largest.max(window);
        if advances {
            // An acknowledgement that advances is no duplicate, even if the window is unchanged.
            return Offer::New;
        }
        let same = edge == before && before.after(una);
        if window > 0 && (same || first) { Offer::Same } else { Offer::New }
    }

    /// Handles a peer's window that opens after being closed.
    #[cold]
    fn on_opening(&mut self, seg: &Segment) {
        if self.config.stack == Stack::Linux {
            self.rtt.end_backoff();
        } else if seg.ack == self.board.una() && self.board.outstanding() == 1 {
            // The peer refused the probe, so the probe was not lost; the sender therefore repeats the probe at once
            // (RFC 9293 section 3.8.6.1).
            self.due = Due::Probe;
        }
    }

    /// Closes the connection once everything is acknowledged. A FIN that arrived with the last acknowledgement is still
    /// acknowledged.
    pub(super) fn close_finished(&mut self) {
        let due = self.due;
        self.close();
        if due == Due::Ack {
            self.due = due;
        }
    }

    /// Ends the connection.
    pub(super) fn close(&mut self) {
        self.state = SenderState::Closed;
        self.timer = Time::NEVER;
        self.pacing_wake = Time::NEVER;
        self.due = Due::Nothing;
    }
}
