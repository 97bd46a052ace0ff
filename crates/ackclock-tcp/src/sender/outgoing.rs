//! How what goes out leaves: in chunks.
//!
//! What may be sent leaves in chunks of two segments and more, which the device splits (TSO), but no more than half of the window;
//! the last segment of each carries PSH. A receiver that reads at once acknowledges it at once, so ACKs keep step with the chunks.
//! A chunk that the window cuts short waits for an ACK that is a millisecond away at most.

use ackclock_core::{Seq, Span, Time};

use super::TcpSender;
use crate::cc::{Phase, RenewControl};
use crate::recovery::{Recovery, Window};
use crate::sent::{Index, Record};
use crate::stack::Stack;

/// A chunk is what is paced in this time (sk_pacing_shift), but at least ...
const PACED: Span = Span::from_nanos(1_000_000_000 >> 10);
/// ... so many segments, where the controller does not say otherwise, and at most so many bytes.
const LEAST: u32 = 2;
const MOST_BYTES: u32 = 65_536;
/// Bytes that a chunk has more on short paths: halved for each of this time that the smallest round trip takes
/// (tcp_tso_rtt_log).
const HALVES_EACH: Span = Span::from_micros(512);
/// A chunk that the window cuts short waits for the rest only if something was sent within this time.
const JUST_NOW: Span = Span::from_millis(1);
/// It does not wait if it is at least a window over this (tcp_tso_win_divisor).
const WORTHWHILE: u32 = 3;
/// Per cent of the window that is paced in a round trip, in slow start and else (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
const SLOW_START: u64 = 200;
const AVOIDANCE: u64 = 120;

/// The chunk under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outgoing {
    /// What was sent again last, while nothing else has left and more may.
    repeated: Option<Repeated>,
    /// Where the last new segment ends that was less than a full one.
    short: Option<Seq>,
    /// Segments that it is still to have.
    chunk: u16,
    next: Next,
    /// One has left since something happened.
    begun: bool,
}

/// When the chunk that is next leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Next {
    /// If it is not worth waiting.
    #[default]
    Undecided,
    /// After an acknowledgement, or a timer.
    Deferred,
    /// At once: the application has filled it.
    Forced,
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    end: Seq,
    /// It was parted there from the chunk that it belonged to.
    parted: bool,
}

impl Outgoing {
    /// Something has happened, and a chunk that waited for it is looked at again.
    #[inline]
    pub(super) fn on_event(&mut self) {
        (self.next, self.begun) = (Next::Undecided, false);
    }

    /// The application has filled all that was not sent, and lets a chunk of it out at once (tcp_push_one).
    pub(super) fn force(&mut self) {
        self.next = Next::Forced;
    }

    /// That chunk has left.
    fn unforce(&mut self) {
        if self.is_forced() {
            self.next = Next::Undecided;
        }
    }

    /// Whether the chunk that is next waits for nothing.
    #[inline]
    pub(super) fn is_forced(&self) -> bool {
        self.next == Next::Forced
    }

    /// Whether a part of a segment is outstanding where `una` is the left edge.
    pub(super) fn is_short_out(&self, una: Seq) -> bool {
        self.short.is_some_and(|end| end.after(una))
    }

    /// A part of a segment leaves, up to `end`.
    pub(super) fn note_short(&mut self, end: Seq) {
        self.short = Some(end);
    }

    /// Whether what leaves next begins a chunk.
    #[inline]
    pub(super) fn begins_chunk(&self) -> bool {
        self.chunk == 0
    }

    /// Nothing more may leave for now.
    pub(super) fn end_chunk(&mut self) {
        self.chunk = 0;
        self.unforce();
        self.repeated = None;
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// A record is sent again; whether that before it just was too, so that both leave as one chunk.
    pub(super) fn repeats_in_chunk(&mut self, index: Index, record: &Record) -> bool {
        let before = self.outgoing.repeated.filter(|before| before.end == record.seq);
        let parted = self.config.stack == Stack::Linux && self.part_from_chunk(index, before);
        self.outgoing.repeated = Some(Repeated { end: record.end(), parted });
        before.is_some()
    }

    /// What is sent again leaves the chunk that it belonged to, with what was just sent again `before` it; whether it is parted from what
    /// follows.
    fn part_from_chunk(&mut self, index: Index, before: Option<Repeated>) -> bool {
        match before {
            None => _ = self.board.split(index),
            Some(before) if before.parted => self.board.join(index),
            Some(_) => {}
        }
        self.board.split(index + 1)
    }

    /// Whether the segment of new data that goes out now ends a chunk of several.
    pub(super) fn ends_chunk(&mut self, window: Window) -> bool {
        if self.outgoing.chunk == 0 {
            let room = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board)) / window.mss;
            // Never more than half of a window, so that two chunks are under way (tcp_cwnd_test).
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

    /// Whether the chunk that is next waits for the next acknowledgement, which will let it be longer (tcp_tso_should_defer).
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

    /// Whether the windows have no room for a whole chunk, nor for much of themselves, though there is more to send.
    fn is_cut_short(&self, window: Window) -> bool {
        let free = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board));
        let room = free.min(window.limit.saturating_sub(self.board.outstanding()));
        // A probe of the tail leaves whatever the window.
        room >= window.mss
            && room < window.cwnd.min(window.limit) / WORTHWHILE
            && room < self.longest_chunk() * window.mss
            && self.written(room + 1) > room
    }

    /// Whether the next acknowledgement is expected within a millisecond, or half of a round trip where that is less.
    fn hears_soon(&self, now: Time) -> bool {
        let srtt = self.rtt.srtt().unwrap_or(Span::ZERO);
        let soon = now + (srtt / 2).min(JUST_NOW);
        self.board.sent().front().is_some_and(|head| head.sent_at + srtt <= soon)
    }

    /// Segments of a chunk that no window cuts short (tcp_tso_autosize).
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
        let halvings = (min_rtt.as_nanos() / HALVES_EACH.as_nanos()).min(31) as u32;
        let bytes = paced.saturating_add(u64::from(MOST_BYTES >> halvings)).min(MOST_BYTES.into()) as u32;
        (bytes / mss).max(LEAST)
    }
}
