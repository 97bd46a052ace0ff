//! Transmission of outgoing segments.

use ackclock_core::{Copied, Ecn, Flags, Port, SackBlock, Segment, Seq, Sink, Time, Timestamps};

use super::usage::Look;
use super::{Due, Fin, SenderState, TcpSender};
use crate::cc::{Departure, Phase, RenewControl};
use crate::config::{Growth, Switch};
use crate::ecn::EcnMode;
use crate::recovery::{Next, Recovery, Sending, Window};
use crate::sent::{Index, Marks};
use crate::stack::Stack;

/// Window that the sender advertises. The advertised window is arbitrary, because the sender accepts no data.
pub(super) const OWN_WINDOW: u16 = u16::MAX;

/// Number of segments that Linux sends before pacing starts. Linux's pacing queue discipline has an equal limit.
const UNPACED: u64 = 10;

/// Sink that keeps the last segment sent.
pub(super) struct Captured(pub(super) Option<Segment>);

impl Sink for Captured {
    fn pass(&mut self, _: Port, segment: &Segment) {
        self.0 = Some(*segment);
    }

    fn discard(&mut self, _: &Segment) {}

    fn copied(&mut self, _: &Segment, _: Copied) {}
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Sends the next segment at `port`. Returns whether a segment was sent.
    // The segment is passed by reference, because copying it between functions costs more than choosing it. This
    // function is inlined, because most calls find no segment.
    #[inline(always)]
    pub(super) fn send_next(&mut self, now: Time, port: Port, out: &mut dyn Sink) -> bool {
        if self.due != Due::Nothing
            && let Some(segment) = self.take_due(now)
        {
            out.pass(port, &segment);
            return true;
        }
        if self.state != SenderState::Established {
            // A connection that ended while pacing held a segment has no segment to send.
            self.pacing_wake = Time::NEVER;
            return false;
        }
        if let Some(until) = self.pacer.holds(now) {
            self.pacing_wake = until;
            return false;
        }
        self.pacing_wake = Time::NEVER;
        if self.buffer.is_written_to() {
            self.write();
        }
        if self.past.quiet_since != Time::NEVER && self.fresh() > 0 {
            self.restart(now);
        }
        self.send_allowed(now, port, out)
    }

    /// Sends the next segment that recovery and the windows allow. Returns whether a segment was sent.
    #[inline(always)]
    fn send_allowed(&mut self, now: Time, port: Port, out: &mut dyn Sink) -> bool {
        loop {
            let window = self.window();
            match self.recovery.poll(&window, &mut self.board) {
                Some(Next::Fresh) if self.defers(now, window) => {
                    if self.refill_buffer(window) && self.outgoing.is_forced() {
                        continue;
                    }
                    self.on_quiet(now, window, true);
                    return false;
                }
                Some(Next::Fresh) => self.send_new(now, window, port, out),
                Some(Next::Again(index)) => out.pass(port, &self.send_again(now, index)),
                None if self.buffer.may_be_refilled() && self.refill_buffer(window) => continue,
                None => {
                    self.on_quiet(now, window, false);
                    return false;
                }
            }
            return true;
        }
    }

    /// Timestamp value for the time `now`.
    pub(super) fn stamp(&self, now: Time) -> u32 {
        // The timestamp clock wraps, which serial arithmetic handles (RFC 7323 section 5.4).
        (now.as_nanos() / self.stamps.tick.as_nanos()) as u32
    }

    /// Bytes above the left edge that the peer's window and the configuration allow.
    pub(super) fn limit(&self) -> u32 {
        self.max_window.min(self.peer.edge.since(self.board.una()))
    }

    pub(super) fn window(&self) -> Window {
        let mss = u32::from(self.mss);
        let cwnd = self.reduction.map_or_else(|| self.cc.window(), |reduction| reduction.window());
        Window { cwnd, limit: self.limit(), mss, fresh: self.fresh() }
    }

    /// Payload of the next new segment, bytes: 1 for a lone FIN, 0 without new data or if the peer's window is too
    /// small.
    fn fresh(&self) -> u32 {
        let usable = self.peer.edge.since(self.board.max());
        let payload = self.written(self.mss.into());
        if payload == 0 {
            let ends = self.fin == Fin::Ahead && self.unsent.at_most(1) == 0;
            return u32::from(ends && usable > 0);
        }
        if payload <= usable {
            let held = payload < u32::from(self.mss) && self.buffer.is_full() && self.holds_short();
            return if held { 0 } else { payload };
        }
        // Silly window avoidance (RFC 9293 section 3.8.6.2.1 (3)): a partial segment must have at least half of the
        // largest window advertised. Linux applies silly window avoidance to whole chunks, and fills the rest of the
        // window with part of a chunk (tcp_mss_split_point).
        let worthwhile = usable >= self.peer.largest / 2 || self.may_end_short();
        if usable > 0 && worthwhile { usable } else { 0 }
    }

    /// Whether the next segment may be partial because it is part of a chunk.
    fn may_end_short(&self) -> bool {
        !self.outgoing.begins_chunk() && !self.holds_short()
    }

    /// Whether a segment that is partial due to a full buffer or the peer's window must wait. A partial segment waits
    /// if an earlier partial segment is in flight and TCP_NODELAY is off (Nagle's rule as in tcp_minshall_check). The
    /// last segment of an object never waits.
    #[cold]
    fn holds_short(&self) -> bool {
        !self.buffer.has_nodelay() && self.outgoing.is_short_out(self.board.una())
    }

    /// Sends the segment that is due regardless of the windows.
    #[cold]
    fn take_due(&mut self, now: Time) -> Option<Segment> {
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Nothing => None,
            Due::Syn => Some(self.syn(now)),
            Due::SynAck => Some(self.syn_ack(now)),
            due @ (Due::Ack | Due::SynAckAck) => {
                let mut ack = self.segment(now, self.board.max(), 0);
                if due == Due::Ack {
                    self.write_ace(&mut ack)
                } else {
                    self.write_handshake_ace(&mut ack)
                }
                Some(ack)
            }
            Due::Probe => Some(self.probe(now)),
            Due::Repair => self.send_requested(now),
        }
    }

    #[inline(always)]
    fn send_new(&mut self, now: Time, window: Window, port: Port, out: &mut dyn Sink) {
        // A lone FIN takes one byte of sequence space that is not payload.
        let ends_alone = self.fin == Fin::Ahead && self.unsent.at_most(1) == 0;
        let payload = if ends_alone { 0 } else { window.fresh };
        // The segment is written early, because the processor stalls when it copies a value that was just written in
        // parts.
        let mut segment = self.segment(now, self.board.max(), payload as u16);
        if self.ecn.mode.is_on() {
            self.write_ecn(&mut segment);
        }
        let linux = self.config.stack == Stack::Linux;
        let begins_chunk = linux && self.outgoing.begins_chunk();
        if linux && self.is_pushed(window, segment.seq, payload) {
            segment.flags |= Flags::PSH;
        }
        if payload < u32::from(self.mss) {
            self.outgoing.note_short(segment.seq + payload);
        }
        self.push(now, &mut segment);
        if begins_chunk {
            self.board.begin_chunk();
        }
        out.pass(port, &segment);
    }

    /// Codepoint of new data, if the connection is ECN-capable.
    fn codepoint(&self) -> Ecn {
        match self.ecn.mode {
            EcnMode::Accurate | EcnMode::Dctcp if self.is_silent() => Ecn::NotEct,
            EcnMode::Accurate | EcnMode::Dctcp => self.cc.codepoint(),
            EcnMode::On => Ecn::Ect0,
            EcnMode::Off => Ecn::NotEct,
        }
    }

    /// Makes new data ECN-capable.
    fn write_ecn(&mut self, segment: &mut Segment) {
        segment.ecn = self.codepoint();
        let reduced = std::mem::take(&mut self.ecn.cwr);
        match self.ecn.mode {
            EcnMode::Accurate => self.write_ace(segment),
            _ if reduced => segment.flags |= Flags::CWR,
            _ => {}
        }
    }

    /// Whether new data of `payload` bytes from `seq` ends a chunk, or was written to be sent without delay.
    fn is_pushed(&mut self, window: Window, seq: Seq, payload: u32) -> bool {
        self.ends_chunk(window) || (payload > 0 && self.buffer.pushes(seq + payload))
    }

    /// Records the new data in `segment`. Adds the FIN if the data is the last and the peer's window has room.
    #[inline(always)]
    fn push(&mut self, now: Time, segment: &mut Segment) {
        let payload = u32::from(segment.payload);
        let ends = self.fin == Fin::Ahead
            && self.unsent.ends_with(payload)
            && (payload == 0 || self.peer.edge.since(segment.seq) > payload);
        self.unsent.take(payload);
        let len = segment.payload + u16::from(ends);
        let pushed = if segment.flags.intersects(Flags::PSH) { Marks::PUSHED } else { Marks::default() };
        self.board.push(now, len, if ends { Marks::FIN.with(pushed) } else { pushed });
        self.rtt.on_sent(now, self.board.max());
        if ends {
            self.fin = Fin::Sent;
            segment.flags |= Flags::FIN;
        }
        self.on_sent(now, segment);
    }

    #[inline(never)]
    pub(super) fn send_again(&mut self, now: Time, index: Index) -> Segment {
        let record = self.board.resend(now, index);
        self.recovery.on_sent_again(index, &self.board);
        self.rtt.on_sent_again(record.end());
        self.stats.retransmits += 1;
        if self.config.stack == Stack::Linux && index == self.board.sent().first() {
            self.timer = now + self.rtt.rto();
        }
        if self.recovery.phase() != Phase::Open {
            self.detectors.repeats.on_sent_again();
        }
        let mut segment = self.segment(now, record.seq, record.payload());
        if record.marks.has(Marks::FIN) {
            segment.flags |= Flags::FIN;
        }
        let joined = self.repeats_in_chunk(index, &record);
        let last = record.end() == self.board.max() && self.unsent.at_most(1) == 0;
        if record.marks.has(Marks::PUSHED) && (joined || last) {
            segment.flags |= Flags::PSH;
        }
        if let Some(repair) = self.past.unrepaired.take() {
            segment.set_repair(repair);
        }
        // Retransmissions are not ECN-capable (RFC 3168 section 6.1.5). Those of an L4S flow are, because they would
        // otherwise wait in the classic queue (RFC 9331 section 4.1, RFC 8311 section 4.3).
        if self.codepoint() == Ecn::Ect1 {
            segment.ecn = Ecn::Ect1;
        }
        self.write_ace(&mut segment);
        self.on_sent(now, &segment);
        segment
    }

    /// Probes a closed window with one byte, or fills a window too small for a segment (RFC 9293 section 3.8.6.1).
    /// Linux probes a closed window with an already acknowledged sequence number.
    #[cold]
    fn probe(&mut self, now: Time) -> Segment {
        if self.board.sent().is_empty() {
            if self.config.stack == Stack::Linux && self.peer.edge.at_or_before(self.board.una()) {
                return self.segment(now, self.board.una() - 1, 0);
            }
            let usable = self.peer.edge.since(self.board.max()).max(1);
            let payload = self.unsent.at_most(usable.min(self.mss.into()));
            let mut segment = self.segment(now, self.board.max(), payload as u16);
            self.push(now, &mut segment);
            if self.config.stack == Stack::Linux {
                self.board.begin_chunk();
            }
            self.recovery.on_window_probe();
            return segment;
        }
        let first = self.board.sent().first();
        let record = self.board.touch(first);
        self.rtt.on_sent_again(record.end());
        self.stats.segments_sent += 1;
        self.stats.retransmits += 1;
        let mut segment = self.segment(now, record.seq, record.payload().min(1));
        if record.payload() == 0 {
            segment.flags |= Flags::FIN;
        }
        segment
    }

    #[inline(always)]
    fn on_sent(&mut self, now: Time, segment: &Segment) {
        self.stats.segments_sent += 1;
        self.past.sent_at = now;
        if self.timer == Time::NEVER || self.config.probe_timeout == Switch::On {
            // The timer starts if it is not running (RFC 6298 (5.1)). A probe timeout counts from the last transmission
            // (RFC 9002 section 6.2.1).
            self.timer = now + self.rtt.rto();
        }
        let mut app_limited = false;
        if let Some(rate) = &mut self.rate {
            app_limited = rate.is_app_limited();
            let range = SackBlock { left: segment.seq, right: segment.end() };
            // Bytes sent and not acknowledged before this segment, including bytes marked lost.
            let before = self.board.outstanding().saturating_sub(segment.sequence_space());
            rate.on_sent(now, range, before);
        }
        let sending = Sending { now, rto: self.rtt.rto(), srtt: self.rtt.srtt() };
        self.recovery.on_sent(&sending, &self.board);
        let payload = u32::from(segment.payload);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(payload);
        }
        let in_flight = self.board.in_flight();
        self.cc.on_sent(&Departure { now, bytes: payload, in_flight, app_limited });
        // Linux does not pace the first window of data.
        let first = self.config.stack == Stack::Linux && self.stats.segments_sent < UNPACED;
        if let Some(rate) = self.cc.pacing_rate().filter(|_| !first) {
            match self.cc.burst() {
                None => self.pacer.on_sent(now, payload, rate),
                Some(burst) => self.pacer.on_sent_in_burst(now, payload, rate, burst),
            }
        }
    }

    /// Called when nothing can be sent: there is no data, or the peer's window is closed and must be probed.
    #[inline(always)]
    fn on_quiet(&mut self, now: Time, window: Window, defers: bool) {
        self.outgoing.end_chunk();
        if self.timer == Time::NEVER && !self.is_starved() {
            self.timer = now + self.rtt.rto();
        }
        if self.config.growth == Growth::Bytes {
            self.note_usage(now, window, defers);
        }
        if self.rate.is_some() && self.config.stack == Stack::Rfc && self.is_starved() {
            let in_flight = self.board.in_flight();
            if in_flight < window.cwnd
                && let Some(rate) = &mut self.rate
            {
                rate.on_app_limited(in_flight);
            }
        }
    }

    /// Records whether the window limits sending. If the window has not limited sending for long, the window is reduced
    /// towards the amount used.
    #[inline]
    fn note_usage(&mut self, now: Time, window: Window, defers: bool) {
        let look = Look {
            una: self.board.una(),
            max: self.board.max(),
            full: defers || self.recovery.in_flight(&self.board) + window.mss > window.cwnd,
            starved: self.is_starved(),
        };
        if !self.usage.note(&look) {
            return;
        }
        if self.usage.limits(self.cc.window(), self.cc.ssthresh(), self.mss) {
            self.usage.on_limited(now);
        } else if self.config.stack == Stack::Linux && look.starved {
            self.give_back_unused(now);
        }
    }

    /// Number of bytes, at most `most`, that the application has written and the sender can send.
    #[inline]
    pub(super) fn written(&self, most: u32) -> u32 {
        self.buffer.written(self.board.max(), self.unsent.at_most(most))
    }

    /// Whether all available data has been sent.
    fn is_starved(&self) -> bool {
        self.written(1) == 0 && (self.fin != Fin::Ahead || self.unsent.at_most(1) > 0)
    }

    /// Creates a segment with the fields that all segments have.
    #[inline]
    pub(super) fn segment(&self, now: Time, seq: Seq, payload: u16) -> Segment {
        let mut segment = Segment::data(self.flow, seq, payload, self.header);
        segment.ack = self.peer.next;
        segment.sending = self.stats.segments_sent as u16;
        segment.window = OWN_WINDOW;
        segment.set_scale(Some(0));
        if self.timestamps == Switch::On {
            segment.set_timestamps(Timestamps { value: self.stamp(now), echo: self.stamps.recent });
        }
        segment
    }
}
