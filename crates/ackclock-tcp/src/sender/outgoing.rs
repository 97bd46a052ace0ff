//! Transmission of data in chunks, as with segmentation offload (TSO).
//!
//! The sender transmits chunks of at least two segments and at most half of the window. The network device splits the
//! chunks into segments (TSO). The last segment of each chunk has PSH. A receiver that reads at once then acknowledges
//! each chunk at once, so ACKs keep step with chunks. If the window would cut a chunk short, the chunk waits for an ACK
//! expected within a millisecond.

use ackclock_core::{Seq, Span, Time};

use super::TcpSender;
use crate::cc::{Phase, RenewControl};
use crate::recovery::{Recovery, Window};
use crate::sent::{Index, Record};
use crate::stack::Stack;

/// Time that a chunk takes at the pacing rate (sk_pacing_shift).
const PACED: Span = Span::from_nanos(1_000_000_000 >> 10);
/// Smallest chunk in segments, unless the controller sets its bursts, and largest chunk in bytes.
const LEAST: u32 = 2;
const MOST_BYTES: u32 = 65_536;
/// Increase of the smallest round-trip time that halves the additional size of chunks (tcp_tso_rtt_log).
const HALVING_RTT: Span = Span::from_micros(512);
/// Largest time since the last transmission at which an incomplete chunk may wait for more data.
const JUST_NOW: Span = Span::from_millis(1);
/// A chunk is sent at once if its size is at least the window divided by this number (tcp_tso_win_divisor).
const DEFER_DIVISOR: u32 = 3;
/// Pacing rates in per cent of a window per round trip, in slow start and otherwise (tcp_pacing_ss_ratio,
/// tcp_pacing_ca_ratio).
const SLOW_START: u64 = 200;
const AVOIDANCE: u64 = 120;

/// State of the current chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outgoing {
    /// Last retransmission; `None` once anything else was sent or nothing more can follow.
    repeated: Option<Repeated>,
    /// End of the last partial segment of new data.
    short: Option<Seq>,
    /// Number of segments left to complete the chunk.
    chunk: u16,
    next: Next,
    /// Whether a chunk was sent since the last event.
    begun: bool,
}

/// Time at which the next chunk is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Next {
    /// The chunk is sent at once, unless waiting for an ACK would make it longer.
    #[default]
    Undecided,
    /// The chunk is sent after an acknowledgement or a timer.
    Deferred,
    /// The chunk is sent at once, because the application has filled it.
    Forced,
}

/// A segment that was retransmitted.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    end: Seq,
    /// Whether the segment's end splits a chunk that was originally sent as a whole.
    parted: bool,
}

impl Outgoing {
    /// Reconsiders a waiting chunk after an event.
    #[inline]
    pub(super) fn on_event(&mut self) {
        (self.next, self.begun) = (Next::Undecided, false);
    }

    /// Sends one chunk at once, because the application has filled all unsent space (tcp_push_one).
    pub(super) fn force(&mut self) {
        self.next = Next::Forced;
    }

    /// Ends the forced transmission once its chunk was sent.
    fn unforce(&mut self) {
        if self.is_forced() {
            self.next = Next::Undecided;
        }
    }

    /// Whether the next chunk is sent without waiting.
    #[inline]
    pub(super) fn is_forced(&self) -> bool {
        self.next == Next::Forced
    }

    /// Whether a partial segment is in flight. `una` is the left edge.
    pub(super) fn is_short_out(&self, una: Seq) -> bool {
        self.short.is_some_and(|end| end.after(una))
    }

    /// Records a partial segment up to `end` that is sent.
    pub(super) fn note_short(&mut self, end: Seq) {
        self.short = Some(end);
    }

    /// Whether the next segment starts a chunk.
    #[inline]
    pub(super) fn begins_chunk(&self) -> bool {
        self.chunk == 0
    }

    /// Ends the current chunk, because nothing more can be sent for now.
    pub(super) fn end_chunk(&mut self) {
        self.chunk = 0;
        self.unforce();
        self.repeated = None;
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Records a retransmission. Returns whether the record before was just retransmitted too, so that the two form one
    /// chunk.
    pub(super) fn repeats_in_chunk(&mut self, index: Index, record: &Record) -> bool {
        let before = self.outgoing.repeated.filter(|before| before.end == record.seq);
        let parted = self.config.stack == Stack::Linux && self.part_from_chunk(index, before);
        self.outgoing.repeated = Some(Repeated { end: record.end(), parted });
        before.is_some()
    }

    /// Splits a retransmitted record from its original chunk, and joins it with the retransmission `before`. Returns
    /// whether the record is newly split from the next record.
    fn part_from_chunk(&mut self, index: Index, before: Option<Repeated>) -> bool {
        match before {
            None => _ = self.board.split(index),
            Some(before) if before.parted => self.board.join(index),
            Some(_) => {}
        }
        self.board.split(index + 1)
    }

    /// Whether the new segment now sent ends a chunk of several segments.
    pub(super) fn ends_chunk(&mut self, window: Window) -> bool {
        if self.outgoing.chunk == 0 {
            let room = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board)) / window.mss;
            // A chunk is at most half of a window, so that two chunks are in flight (tcp_cwnd_test).
            let half = window.cwnd / window.mss / 2;
            let segments = room.min(half).min(self.longest_chunk()).max(1) - 1;
            self.outgoing.chunk = segments.try_into().unwrap_or(u16::MAX);
            self.outgoing.unforce();
            if std::mem::replace(&mut self.outgoing.begun, true) {
                self.expand_buffer(window.cwnd);
            }
            return false;
        }
        self.outgoing.chunk -= 1;
        self.outgoing.chunk == 0
    }

    /// Whether the next chunk waits for the next acknowledgement, which will make the chunk longer
    /// (tcp_tso_should_defer).
    #[inline]
    pub(super) fn defers(&mut self, now: Time, window: Window) -> bool {
        let undecided = self.outgoing.chunk == 0 && self.outgoing.next == Next::Undecided;
        if undecided && self.config.stack == Stack::Linux && self.is_worth_waiting(now, window) {
            self.outgoing.next = Next::Deferred;
        }
        self.outgoing.next == Next::Deferred
    }

    fn is_worth_waiting(&self, now: Time, window: Window) -> bool {
        self.recovery.phase() == Phase::Open
            && now.since(self.past.sent_at.max(self.pacer.until())) < JUST_NOW
            && self.is_cut_short(window)
            && self.hears_soon(now)
    }

    /// Whether more data is waiting, but the windows have no room for a complete chunk or for a large part of the
    /// window.
    fn is_cut_short(&self, window: Window) -> bool {
        let free = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board));
        let room = free.min(window.limit.saturating_sub(self.board.outstanding()));
        // If the room is less than a segment, waiting makes no difference; a tail probe is sent regardless of the
        // window.
        room >= window.mss
            && room < window.cwnd.min(window.limit) / DEFER_DIVISOR
            && room < self.longest_chunk() * window.mss
            && self.written(room + 1) > room
    }

    /// Whether the next acknowledgement is expected within a millisecond, or within half a round trip if that is less.
    fn hears_soon(&self, now: Time) -> bool {
        let srtt = self.rtt.srtt().unwrap_or(Span::ZERO);
        let soon = now + (srtt / 2).min(JUST_NOW);
        self.board.sent().front().is_some_and(|head| head.sent_at + srtt <= soon)
    }

    /// Number of segments in a chunk that no window limits (tcp_tso_autosize).
    pub(super) fn longest_chunk(&self) -> u32 {
        let mss = u32::from(self.mss);
        if let Some(burst) = self.cc.burst() {
            return (burst / mss).max(1);
        }
        let (Some(srtt), Some(min_rtt)) = (self.rtt.srtt(), self.rtt.min_rtt()) else { return LEAST };
        let (cwnd, out) = (self.cc.window(), self.board.outstanding());
        let share = if cwnd < self.cc.ssthresh() / 2 { SLOW_START } else { AVOIDANCE };
        let window = u64::from(cwnd.max(out)) * share / 100;
        let paced = window.saturating_mul(PACED.as_nanos()) / srtt.as_nanos().max(1);
        let halvings = (min_rtt.as_nanos() / HALVING_RTT.as_nanos()).min(31) as u32;
        let bytes = paced.saturating_add(u64::from(MOST_BYTES >> halvings)).min(MOST_BYTES.into()) as u32;
        (bytes / mss).max(LEAST)
    }
}
