//! What comes in: acceptance, the handshake, windows and timestamps.

use ackclock_core::{Flags, LARGEST_WINDOW_SCALE, Segment, Seq, Span, Time};

use super::{Due, State, TcpSender};
use crate::cc::BuildControl;
use crate::config::{HeaderSize, PLAIN_HEADER, Repair, Switch, context};
use crate::recovery::Recovery;
use crate::rtt::{RtoConfig, RttEstimator};
use crate::scoreboard::Scoreboard;
use crate::sent::Marks;

/// RFC 6298 (5.7): first timeout of data where the SYN's answer was lost.
const AFTER_LOST_SYN: Span = Span::from_secs(3);

impl<R: Recovery, C: BuildControl> TcpSender<R, C> {
    /// Takes in a segment of the peer.
    #[inline(always)]
    pub(super) fn take_segment(&mut self, now: Time, seg: &Segment) {
        if !seg.is_tcp() || self.state == State::Closed {
            return;
        }
        if seg.flags.intersects(Flags::RST | Flags::SYN) {
            self.take_control(now, seg);
            return;
        }
        if self.state == State::Idle || !seg.flags.contains(Flags::ACK) || self.is_old(seg) {
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

    /// SYN and RST.
    #[cold]
    fn take_control(&mut self, now: Time, seg: &Segment) {
        if seg.flags.intersects(Flags::RST) {
            // RFC 5961 section 3.2.
            if self.state != State::Idle && seg.seq == self.peer.next {
                self.close();
            }
            return;
        }
        let asks = !seg.flags.intersects(Flags::ACK);
        match self.state {
            State::Idle if asks && self.config.handshake == Switch::On => self.answer_syn(now, seg),
            State::SynReceived if asks && seg.seq + 1 == self.peer.next => {
                self.on_lost_answer();
                self.due = Due::SynAck;
            }
            _ => {}
        }
    }

    /// Agrees with what the peer's SYN offers.
    fn answer_syn(&mut self, now: Time, syn: &Segment) {
        let offer = syn.syn_options().unwrap_or_default();
        self.peer.next = syn.seq + 1;
        self.peer.scales = offer.window_scale.is_some();
        self.peer.scale = offer.window_scale.unwrap_or(0).min(LARGEST_WINDOW_SCALE);
        self.peer.edge = self.params.first + u32::from(syn.window);
        self.peer.largest = u32::from(syn.window);
        match syn.timestamps().filter(|_| self.timestamps == Switch::On) {
            Some(stamps) => self.stamps.recent = stamps.value,
            None => self.without_timestamps(),
        }
        self.stamps.seen = self.timestamps == Switch::On;
        if !syn.flags.contains(Flags::ECE | Flags::CWR) {
            self.ecn.enabled = Switch::Off;
        }
        // RFC 6691: what the peer offers counts no options; a header of fixed size has none.
        let options = if self.params.header == HeaderSize::Real { self.header - PLAIN_HEADER } else { 0 };
        let offered = offer.mss.map(|mss| mss.saturating_sub(options).max(1));
        if let Some(mss) = offered.filter(|&mss| mss < self.mss) {
            self.mss = mss;
            let context = context(&self.config, &self.params, mss);
            self.cc = C::build(&self.config, &context, self.config.halves.unwrap_or(R::HALVES));
            self.initial_window = context.initial_window;
        }
        self.board = Scoreboard::new(self.params.first - 1);
        self.board.push(now, 1, Marks::SYN);
        self.state = State::SynReceived;
        self.due = Due::SynAck;
        self.timer = now + self.rtt.rto();
    }

    /// The answer to the peer's SYN goes out again: its acknowledgement tells no round-trip time (Karn).
    pub(super) fn on_lost_answer(&mut self) {
        self.past.lost_answers += 1;
        let first = self.board.sent().first();
        self.board.touch(first);
    }

    fn without_timestamps(&mut self) {
        self.timestamps = Switch::Off;
        self.header = self.params.header_bytes(Switch::Off);
        self.stats.spurious_timeouts = None;
        self.stats.spurious_fast_retransmits = None;
    }

    /// The peer acknowledges our SYN.
    fn complete_handshake(&mut self, now: Time, seg: &Segment) -> bool {
        if seg.ack != self.params.first {
            return false;
        }
        let acked = self.board.acknowledge(seg.ack, |_| {});
        self.state = State::Established;
        self.due = Due::Nothing;
        self.timer = Time::NEVER;
        if self.config.repair == Repair::Linux
            && let Some(rate) = &mut self.rate
        {
            // Until the application wrote, there was nothing to send.
            rate.on_app_limited(0);
        }
        if let Some(sent_at) = acked.newest {
            self.take_rtt(now.since(sent_at));
        }
        if self.past.lost_answers > 0 {
            // RFC 5681 section 3.1: the initial window is then one segment.
            self.cc.adopt(u32::from(self.mss), self.cc.ssthresh());
            let initial = self.config.rto.initial.max(AFTER_LOST_SYN);
            self.rtt = RttEstimator::new(RtoConfig { initial, ..self.config.rto });
        }
        true
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

    /// Takes over the peer's window; whether it was closed before.
    fn take_window(&mut self, seg: &Segment) -> bool {
        let scale = seg.scale().unwrap_or(self.peer.scale).min(LARGEST_WINDOW_SCALE);
        let window = u32::from(seg.window) << scale;
        let was_closed = self.peer.edge.at_or_before(self.board.una());
        self.peer.edge = seg.ack + window;
        self.peer.largest = self.peer.largest.max(window);
        was_closed || window == 0
    }

    /// The connection is over.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.timer = Time::NEVER;
        self.pacing_wake = Time::NEVER;
        self.due = Due::Nothing;
    }
}
