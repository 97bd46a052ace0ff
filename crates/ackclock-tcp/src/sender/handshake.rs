//! Opens a connection by the peer's SYN or by the sender's own SYN (RFC 9293 section 3.5), and ends a connection on a
//! reset.

use ackclock_core::{Flags, LARGEST_WINDOW_SCALE, Segment, Seq, Span, SynOptions, Time};

use super::connection::Repeated;
use super::output::OWN_WINDOW;
use super::{Due, SenderState, TcpSender};
use crate::cc::RenewControl;
use crate::config::{HeaderSize, PLAIN_HEADER, Switch, context};
use crate::recovery::Recovery;
use crate::rtt::{RtoConfig, RttEstimator};
use crate::scoreboard::Scoreboard;
use crate::sent::Marks;
use crate::stack::{LINEAR_SYN_TIMEOUTS, Stack};

/// First retransmission timeout of data if the SYN or SYN-ACK was lost (RFC 6298 (5.7)).
const AFTER_LOST_SYN: Span = Span::from_secs(3);
/// Shortest interval between Linux's answers to repeated SYNs (tcp_invalid_ratelimit).
const ANSWER_INTERVAL: Span = Span::from_millis(500);

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Opens the connection with a SYN instead of waiting for the peer's SYN.
    pub(super) fn open(&mut self, now: Time) {
        if self.state == SenderState::Idle && self.config.handshake == Switch::On {
            self.send_own_syn(now, SenderState::SynSent, Due::Syn);
        }
    }

    /// Processes the SYN and RST flags of a segment.
    #[cold]
    pub(super) fn take_control(&mut self, now: Time, seg: &Segment) {
        if seg.flags.intersects(Flags::RST) {
            self.take_reset(seg);
            return;
        }
        let asks = !seg.flags.intersects(Flags::ACK);
        match self.state {
            SenderState::Idle if asks && self.config.handshake == Switch::On => self.answer_syn(now, seg),
            SenderState::SynReceived if asks && seg.seq + 1 == self.peer.next => {
                self.note_syn(seg.ecn);
                self.answer_again(now);
            }
            SenderState::SynSent if !asks && seg.ack == self.params.first => self.take_syn_ack(now, seg),
            // The peer repeats its SYN-ACK because our acknowledgement was lost.
            SenderState::Established if !asks && seg.seq + 1 == self.peer.next => {
                self.note_syn_ack(seg.ecn);
                self.due = Due::SynAckAck;
            }
            _ => {}
        }
    }

    fn take_reset(&mut self, seg: &Segment) {
        let believed = match self.state {
            SenderState::Idle => false,
            // Before the peer has a sequence number, the ACK number shows that the reset is valid (RFC 9293 section
            // 3.10.7.3).
            SenderState::SynSent => seg.flags.contains(Flags::ACK) && seg.ack == self.params.first,
            // A reset anywhere in the window is accepted (RFC 9293 section 3.5.3). RFC 5961 would challenge all resets
            // without the next sequence number. This sender does not process the peer's data, and the peer's resets
            // come after that data.
            _ => {
                let (next, end) = (self.peer.next, self.peer.next + u32::from(OWN_WINDOW));
                next.at_or_before(seg.seq) && seg.seq.before(end)
            }
        };
        if believed {
            self.close();
        }
    }

    /// Answers the peer's SYN with a SYN-ACK.
    fn answer_syn(&mut self, now: Time, syn: &Segment) {
        self.agree(syn);
        self.ecn.mode = self.ecn.mode.of_syn(syn.ace());
        self.note_syn(syn.ecn);
        self.send_own_syn(now, SenderState::SynReceived, Due::SynAck);
    }

    /// Answers a repeated SYN of the peer.
    fn answer_again(&mut self, now: Time) {
        let linux = self.config.stack == Stack::Linux;
        let repeated = self.repeated();
        if !linux {
            repeated.lost_syns += 1;
        } else if repeated.answered_at.is_some_and(|last| now.since(last) < ANSWER_INTERVAL) {
            return;
        }
        repeated.answered_at = Some(now);
        self.repeat_syn(Due::SynAck);
    }

    /// Record of handshake retransmissions; created at the first retransmission.
    fn repeated(&mut self) -> &mut Repeated {
        let first_at = self.board.sent().front().map_or(Time::ZERO, |syn| syn.sent_at);
        self.extra.get_or_insert_default().repeated.get_or_insert(Repeated {
            lost_syns: 0,
            first_at,
            answered_at: None,
        })
    }

    fn lost_syns(&self) -> u32 {
        self.repetitions().map_or(0, |repeated| repeated.lost_syns)
    }

    fn repetitions(&self) -> Option<&Repeated> {
        self.extra.as_ref()?.repeated.as_ref()
    }

    /// Processes the peer's SYN-ACK to our SYN.
    fn take_syn_ack(&mut self, now: Time, answer: &Segment) {
        self.agree(answer);
        self.ecn.mode = self.ecn.mode.of_syn_ack(answer.ace());
        self.note_syn_ack(answer.ecn);
        self.complete_handshake(now, answer);
        self.due = Due::SynAckAck;
    }

    /// Adopts the options of the peer's SYN.
    fn agree(&mut self, syn: &Segment) {
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
        self.recovery.agree(if offer.sack_permitted { Switch::On } else { Switch::Off });
        // The peer's MSS is not reduced by the size of options (RFC 6691). A header of fixed size has no options.
        let options = if self.params.header == HeaderSize::Real { self.header - PLAIN_HEADER } else { 0 };
        let most = self.params.packet - self.header;
        let mss = offer.mss.map_or(most, |mss| mss.saturating_sub(options).max(1).min(most));
        if mss != self.mss {
            self.mss = mss;
            let context = context(&self.config, &self.params, mss);
            self.cc.renew(&self.config, &context, self.config.halves.unwrap_or(R::HALVES));
            self.initial_window = context.initial_window;
        }
    }

    /// Schedules our SYN or SYN-ACK as the next segment.
    fn send_own_syn(&mut self, now: Time, state: SenderState, due: Due) {
        self.board = Scoreboard::new(self.params.first - 1);
        self.board.push(now, 1, Marks::SYN);
        self.state = state;
        self.due = due;
        self.timer = now + self.rtt.rto();
    }

    /// Retransmits our SYN. The acknowledgement of a retransmitted SYN gives no round-trip time (Karn's rule).
    fn repeat_syn(&mut self, due: Due) {
        let first = self.board.sent().first();
        self.board.touch(first);
        self.due = due;
    }

    /// Retransmits our SYN when no answer arrived in time.
    pub(super) fn on_syn_timeout(&mut self, now: Time) {
        self.repeated().lost_syns += 1;
        let opens = self.state == SenderState::SynSent;
        if opens && self.config.stack == Stack::Linux && self.lost_syns() <= LINEAR_SYN_TIMEOUTS {
            self.timer = now + self.rtt.rto();
        } else {
            self.back_off(now);
        }
        self.repeat_syn(if opens { Due::Syn } else { Due::SynAck });
    }

    fn without_timestamps(&mut self) {
        self.timestamps = Switch::Off;
        self.header = self.params.header_bytes(Switch::Off);
        self.stats.spurious_timeouts = None;
        self.stats.spurious_fast_retransmits = None;
    }

    /// Processes the peer's acknowledgement of our SYN. Returns whether `seg` is the acknowledgement of our SYN.
    #[cold]
    pub(super) fn complete_handshake(&mut self, now: Time, seg: &Segment) -> bool {
        if seg.ack != self.params.first {
            return false;
        }
        let acked = self.board.acknowledge(seg.ack, |_| {});
        self.state = SenderState::Established;
        self.due = Due::Nothing;
        self.timer = Time::NEVER;
        let answers = !seg.flags.intersects(Flags::SYN);
        if answers {
            self.note_answer(seg);
        }
        if self.config.stack == Stack::Linux {
            if answers {
                // The window in the acknowledgement of our SYN replaces the window of the peer's SYN.
                self.peer.largest = self.window_of(seg);
                self.peer.edge = seg.ack + self.peer.largest;
            }
            if let Some(rate) = &mut self.rate {
                // Before the application wrote data, the sender had nothing to send.
                rate.on_app_limited(0);
            }
        }
        if let Some(round_trip) = acked.newest.map(|sent_at| now.since(sent_at)).or(self.echoed_syn(now, seg))
        {
            self.take_rtt(round_trip);
            self.cc.on_established(now, round_trip);
        }
        if self.costs_initial_window(seg) {
            // After a lost SYN the initial window is one segment (RFC 5681 section 3.1).
            self.cc.adopt(u32::from(self.mss), self.cc.ssthresh());
        }
        if self.lost_syns() > 0 && (self.config.stack == Stack::Rfc || self.rtt.srtt().is_none()) {
            let initial = self.config.rto.initial.max(AFTER_LOST_SYN);
            self.rtt = RttEstimator::new(RtoConfig { initial, ..self.config.rto });
        }
        true
    }

    /// Round-trip time of a retransmitted SYN from the timestamp echo, as in Linux; at least one tick.
    fn echoed_syn(&self, now: Time, seg: &Segment) -> Option<Span> {
        let echoed = self.echoed(now, seg).filter(|_| self.config.stack == Stack::Linux);
        echoed.map(|round_trip| round_trip.max(self.stamps.tick))
    }

    /// Whether handshake losses reduce the initial window. Linux tolerates one retransmission of the SYN, and further
    /// retransmissions if the peer echoes the first SYN.
    fn costs_initial_window(&self, seg: &Segment) -> bool {
        let Some(repeated) = self.repetitions() else { return false };
        let first_arrived = || {
            let echo = seg.timestamps().filter(|_| self.timestamps == Switch::On).map(|stamps| stamps.echo);
            echo == Some(self.stamp(repeated.first_at))
        };
        match self.config.stack {
            Stack::Rfc => repeated.lost_syns > 0,
            Stack::Linux => repeated.lost_syns > 1 && !first_arrived(),
        }
    }

    /// Builds our SYN segment.
    pub(super) fn syn(&mut self, now: Time) -> Segment {
        let mut segment = self.offer(now, Some(0));
        segment.ack = Seq(0);
        segment.flags = Flags::SYN;
        segment.set_ace(self.ecn.mode.request(self.lost_syns(), self.config.stack == Stack::Linux));
        segment
    }

    /// Builds our SYN-ACK, which answers the peer's SYN.
    pub(super) fn syn_ack(&mut self, now: Time) -> Segment {
        // A window scale is offered only if the peer offered one (RFC 7323 section 2.2).
        let mut segment = self.offer(now, self.peer.scales.then_some(0));
        segment.flags |= Flags::SYN;
        segment.set_ace(self.ecn.mode.answer(self.syn_codepoint()));
        segment
    }

    /// Builds a segment with the options of a SYN.
    fn offer(&self, now: Time, window_scale: Option<u8>) -> Segment {
        let mut segment = self.segment(now, self.params.first - 1, 0);
        let options = SynOptions {
            mss: Some(self.params.packet - self.params.header_bytes(Switch::Off)),
            window_scale,
            sack_permitted: R::USES_SACK,
        };
        segment.set_syn_options(options);
        if self.params.header == HeaderSize::Real {
            segment.header += options.header_bytes(self.timestamps == Switch::On);
        }
        segment
    }
}
