//! What goes from the application to the device: the socket's buffer, and the chunks that leave it.
//!
//! In the stack of Linux a socket takes what its send buffer holds, sent or not, and then keeps the application waiting until a third
//! is free. The buffer grows to twice the window (BBR: three times), where an acknowledgement comes while the application waits
//! and the window is not full (tcp_sndbuf_expand). What may be sent leaves in chunks of two segments and more, which the
//! device splits (TSO); the last segment of each carries PSH, as does the last one that was written. A receiver that
//! reads at once acknowledges it at once, so ACKs keep step with the chunks.

use ackclock_core::{Seq, Span};

use super::TcpSender;
use crate::cc::RenewControl;
use crate::recovery::{Recovery, Window};
use crate::stack::Stack;

/// A chunk is what is paced in this time (sk_pacing_shift), but at least ...
const PACED: Span = Span::from_nanos(1_000_000_000 >> 10);
/// ... so many segments, where the controller does not say otherwise, and at most so many bytes.
const LEAST: u32 = 2;
const MOST_BYTES: u32 = 65_536;
/// Bytes that a chunk has more on short paths: halved for each of this time that the smallest round trip takes
/// (tcp_tso_rtt_log).
const HALVES_EACH: Span = Span::from_micros(512);
/// Per cent of the window that is paced in a round trip, in slow start and else (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
const SLOW_START: u64 = 200;
const AVOIDANCE: u64 = 120;

/// Segments of the first window, whatever it is (TCP_INIT_CWND).
const FIRST_WINDOW: u32 = 10;
/// Memory of a full segment alone: with headers up to the next power of two, and its description.
const HEADERS: u32 = 512;
const DESCRIPTION: u32 = 256;
/// Memory of a chunk beside its payload.
const CHUNK: u32 = 832;

/// The state of both. Of the socket in sequence numbers, which may lie far ahead where there is no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    /// Segments that the chunk under way is still to have.
    chunk: u32,
    /// Where what was sent again ends, while nothing else has left and more may.
    repeated: Option<Seq>,
    /// Memory of the buffer, bytes; unlimited where the stack is not that of Linux.
    size: u32,
    /// One past what the application has written, while it waits.
    written: Option<Seq>,
    /// An acknowledgement has come since the buffer was looked at.
    acknowledged: bool,
}

impl Outgoing {
    /// Of a socket whose segments carry `mss` bytes.
    pub(super) fn new(stack: Stack, mss: u16) -> Self {
        let size = if stack == Stack::Linux { memory(FIRST_WINDOW, 2, mss.into()) } else { u32::MAX };
        Self { chunk: 0, repeated: None, size, written: None, acknowledged: false }
    }

    /// An acknowledgement comes, which may make room.
    #[inline]
    pub(super) fn on_ack(&mut self) {
        self.acknowledged = true;
    }

    /// Nothing more may leave for now.
    pub(super) fn end_chunk(&mut self) {
        self.chunk = 0;
        self.repeated = None;
    }

    /// A segment is sent again, from `seq` to `end`; whether that before it was just sent again too, so that both leave as one chunk.
    pub(super) fn continues_repeated(&mut self, seq: Seq, end: Seq) -> bool {
        self.repeated.replace(end) == Some(seq)
    }

    /// What of `payload` bytes from `next` on the application could write.
    #[inline]
    pub(super) fn written(&self, next: Seq, payload: u32) -> u32 {
        self.written.map_or(payload, |end| end.since(next).min(payload))
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Whether the segment of new data that goes out now ends a chunk of several.
    pub(super) fn ends_chunk(&mut self, window: &Window) -> bool {
        if self.outgoing.chunk == 0 {
            let room = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board)) / window.mss;
            // Never more than half of a window, so that two chunks are under way (tcp_cwnd_test).
            let half = window.cwnd / window.mss / 2;
            self.outgoing.chunk = room.min(half).min(self.longest_chunk()).max(1) - 1;
            return false;
        }
        self.outgoing.chunk -= 1;
        self.outgoing.chunk == 0
    }

    /// Segments of a chunk that no window cuts short (tcp_tso_autosize).
    fn longest_chunk(&self) -> u32 {
        let mss = u32::from(self.mss);
        if let Some(burst) = self.cc.burst() {
            return burst / mss;
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

    /// The application writes, as much as there is room for. Linux asks now whether it had kept the sender waiting
    /// (tcp_rate_check_app_limited), and not when everything has left.
    pub(super) fn note_write(&mut self) {
        if self.config.stack == Stack::Rfc {
            return;
        }
        let window = self.window();
        let waits = self.unsent.at_most(window.mss) < window.mss
            && self.board.lost_from(self.board.sent().first()).is_none();
        let in_flight = self.recovery.in_flight(&self.board);
        if let Some(rate) = self.rate.as_mut().filter(|_| waits && in_flight < window.cwnd) {
            rate.on_app_limited(in_flight);
        }
    }

    /// As much of what is to be sent is written as the buffer has room for.
    pub(super) fn fill_buffer(&mut self) {
        if self.outgoing.size == u32::MAX {
            return;
        }
        let (next, unsent) = (self.board.max(), self.unsent.at_most(self.outgoing.size));
        let room = self.outgoing.size.saturating_sub(self.memory_outstanding());
        // The segment that fills it may reach beyond.
        let room = room.div_ceil(self.mss.into()).saturating_mul(self.mss.into());
        let before = self.outgoing.written.map_or(0, |end| end.since(next));
        self.outgoing.written =
            (room < unsent || unsent == self.outgoing.size).then(|| next + room.max(before));
    }

    /// Everything that was written has left, or may not yet. Where the application waits, the buffer grows if the window is not full,
    /// and is filled if enough of it is free; whether there is more to send now.
    pub(super) fn refill_buffer(&mut self) -> bool {
        let Some(end) = self.outgoing.written else { return false };
        if !std::mem::take(&mut self.outgoing.acknowledged) {
            return false;
        }
        let (mss, window) = (u32::from(self.mss), self.window().cwnd);
        if self.recovery.in_flight(&self.board) + mss <= window {
            let times = if self.cc.rules_recovery() { 3 } else { 2 };
            let size = memory((window / mss).max(FIRST_WINDOW), times, mss);
            self.outgoing.size = self.outgoing.size.max(size);
        }
        let used = self.memory_outstanding() + end.since(self.board.max());
        if used / 2 > self.outgoing.size.saturating_sub(used) {
            return false;
        }
        self.fill_buffer();
        self.outgoing.written != Some(end)
    }

    /// Memory of what is outstanding, in chunks of two.
    fn memory_outstanding(&self) -> u32 {
        let out = self.board.outstanding();
        out.saturating_add(out / (2 * u32::from(self.mss)) * CHUNK)
    }
}

/// Memory of a buffer for so many `times` a window of `segments`.
fn memory(segments: u32, times: u32, mss: u32) -> u32 {
    let each = (mss + HEADERS).next_power_of_two() + DESCRIPTION;
    segments.saturating_mul(times).saturating_mul(each).min(u32::MAX - 1)
}
