//! Socket send buffer: limits how much data the application can write.
//!
//! In the Linux stack a socket accepts data up to its buffer size, sent or not, then blocks the application until a
//! third is free (tcp_sendmsg, sk_stream_write_space). The buffer grows to twice the window (BBR: three times) if an
//! acknowledgement arrives while the application waits and the window is not full (tcp_check_space, tcp_sndbuf_expand).
//! Captures of the kernel's buffer (`ss -m`) show that it also grows when one acknowledgement releases two chunks:
//! between them the window is not full.
//!
//! Written data is kept in pieces as large as the device accepts, at most half of the peer's window
//! (tcp_xmit_size_goal). Only a new piece checks for room; the last piece is always filled, even while its start is
//! already being sent. After half of the peer's window is written, it is sent before more is written (forced_push).
//!
//! Memory is counted per piece. Sent data counts per [chunk](crate::scoreboard), as sent and split since.

use ackclock_core::Seq;

use super::TcpSender;
use crate::cc::RenewControl;
use crate::recovery::{Recovery, Window};
use crate::stack::Stack;

/// Size of the first buffer, segments, whatever the first window (TCP_INIT_CWND).
const FIRST_WINDOW: u32 = 10;
/// Memory of a single full segment: with headers rounded up to a power of two, plus its descriptor.
const HEADERS: u32 = 512;
const DESCRIPTION: u32 = 256;
/// Memory overhead of a piece, or of a sent chunk, in addition to its payload.
const OVERHEAD: u32 = 832;
/// Largest piece, payload and headers, bytes (GSO_LEGACY_MAX_SIZE without MAX_TCP_HEADER).
const LARGEST_PIECE: u32 = 65_215;

/// Send buffer, in sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// Buffer size, bytes of memory.
    size: u32,
    /// One past the last written byte.
    end: Seq,
    /// One past the last byte written to be sent without delay: its segment has PSH.
    pushed: Seq,
    /// Payload of the last piece, bytes.
    piece: u32,
    application: Application,
    /// TCP_NODELAY is set.
    nodelay: bool,
}

/// State of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// All data is written, or the buffer is unlimited.
    Done,
    /// Writing: it writes before anything more is sent.
    Writes,
    /// Waiting for room.
    Waits,
    /// Waiting for room, and an acknowledgement has arrived.
    WaitsAcked,
}

impl SendBuffer {
    /// Buffer of a socket with segments of `mss` bytes, starting at sequence number `first`.
    pub(super) fn new(first: Seq, mss: u16) -> Self {
        let size = memory(FIRST_WINDOW, 2, mss.into());
        Self { size, end: first, pushed: first, piece: 0, application: Application::Done, nodelay: false }
    }

    /// An acknowledgement arrives, which may free room.
    #[inline]
    pub(super) fn on_ack(&mut self) {
        if self.application == Application::Waits {
            self.application = Application::WaitsAcked;
        }
    }

    /// Sets TCP_NODELAY.
    pub(super) fn set_nodelay(&mut self) {
        self.nodelay = true;
    }

    /// Whether TCP_NODELAY is set.
    pub(super) fn has_nodelay(&self) -> bool {
        self.nodelay
    }

    /// Whether the application writes before anything more is sent.
    #[inline]
    pub(super) fn is_written_to(&self) -> bool {
        self.application == Application::Writes
    }

    /// Whether the application waits for room and an acknowledgement may have freed some.
    #[inline]
    pub(super) fn may_be_refilled(&self) -> bool {
        self.application == Application::WaitsAcked
    }

    /// Whether the application waits for room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        matches!(self.application, Application::Waits | Application::WaitsAcked)
    }

    /// Whether a third of the buffer is free when `used` bytes of memory are in use.
    #[inline]
    fn has_room(&self, used: u32) -> bool {
        used / 2 <= self.size.saturating_sub(used)
    }

    /// Bytes of the `payload` from `next` on that were written.
    #[inline]
    pub(super) fn written(&self, next: Seq, payload: u32) -> u32 {
        match self.application {
            Application::Done => payload,
            _ => self.end.since(next).min(payload),
        }
    }

    /// Whether the segment that ends at `end` completes data written to be sent without delay.
    pub(super) fn pushes(&self, end: Seq) -> bool {
        self.pushed == end
    }
}

/// State of the buffer while the application writes. Amounts are bytes of payload.
struct Writing {
    /// Bytes in flight or being sent; their number of chunks; bytes that may still be sent.
    sent: u32,
    chunks: u32,
    room: u32,
    /// Bytes written and not sent; those in the last piece.
    unsent: u32,
    piece: u32,
    /// Bytes still to be written.
    left: u32,
}

impl Writing {
    /// Memory in use, bytes.
    fn memory(&self, largest: u32) -> u32 {
        let pieces = self.chunks + self.unsent.div_ceil(largest);
        self.sent.saturating_add(self.unsent).saturating_add(pieces.saturating_mul(OVERHEAD))
    }

    /// Fills a piece up to `largest` bytes.
    fn fill(&mut self, largest: u32) {
        let bytes = largest.saturating_sub(self.piece).min(self.left);
        self.piece += bytes;
        self.unsent += bytes;
        self.left -= bytes;
    }

    /// Sends written data, up to `most` bytes and the window, in chunks of `chunk` bytes; returns whether anything was
    /// sent.
    fn send(&mut self, most: u32, chunk: u32) -> bool {
        let bytes = self.unsent.min(self.room).min(most);
        self.sent += bytes;
        self.chunks += bytes.div_ceil(chunk);
        self.room -= bytes;
        self.unsent -= bytes;
        self.piece = self.piece.min(self.unsent);
        bytes > 0
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// More data is available than the `before` bytes until now. Linux checks at this point whether the application
    /// limited the sender (tcp_rate_check_app_limited), not when all data has been sent.
    pub(super) fn begin_writing(&mut self, before: u32) {
        if self.config.stack == Stack::Rfc || self.buffer.application != Application::Done {
            return;
        }
        let window = self.window();
        let waits = before < window.mss && self.board.lost_from(self.board.sent().first()).is_none();
        let in_flight = self.recovery.in_flight(&self.board);
        if let Some(rate) = self.rate.as_mut().filter(|_| waits && in_flight < window.cwnd) {
            rate.on_app_limited(in_flight);
        }
        self.buffer.end = self.board.max() + before;
        self.buffer.application = Application::Writes;
        self.outgoing.on_event();
    }

    /// The application writes as much as there is room for.
    pub(super) fn write(&mut self) {
        let (next, largest) = (self.board.max(), self.largest_piece());
        let chunk = self.longest_chunk() * u32::from(self.mss);
        let mut writing = self.writing();
        while writing.left > 0 {
            if writing.piece == 0 || writing.piece >= largest {
                if writing.memory(largest) >= self.buffer.size {
                    break;
                }
                writing.piece = 0;
            }
            writing.fill(largest);
            let end = next + (writing.sent - self.board.outstanding()) + writing.unsent;
            if writing.left > 0 && end.since(self.buffer.pushed) > self.half_window() {
                self.buffer.pushed = end;
                writing.send(u32::MAX, chunk);
            } else if writing.left > 0 && writing.piece == writing.unsent && writing.send(chunk, chunk) {
                self.outgoing.force();
            }
        }
        self.buffer.end = next + (writing.sent - self.board.outstanding()) + writing.unsent;
        self.buffer.pushed = self.buffer.end;
        self.buffer.piece = writing.piece;
        self.buffer.application = if writing.left > 0 { Application::Waits } else { Application::Done };
    }

    /// All written data was sent, or cannot be sent yet. If the application waits and an acknowledgement has arrived,
    /// grows the buffer if the window is not full, and refills it if enough is free. Returns whether there is more to
    /// send now.
    pub(super) fn refill_buffer(&mut self, window: Window) -> bool {
        if !self.buffer.may_be_refilled() {
            return false;
        }
        self.buffer.application = Application::Waits;
        if self.recovery.in_flight(&self.board) + window.mss <= window.cwnd {
            self.expand_buffer(window.cwnd);
        }
        // Usually this alone exceeds the limit.
        let least = self.buffer.end.since(self.board.una()) + self.board.chunks() * OVERHEAD;
        if !self.buffer.has_room(least) || !self.buffer.has_room(self.writing().memory(self.largest_piece()))
        {
            return false;
        }
        let before = self.buffer.end;
        self.write();
        self.buffer.end != before
    }

    /// The window is not full, or was not between two chunks sent for one acknowledgement: grows the buffer if the
    /// application waits.
    pub(super) fn expand_buffer(&mut self, cwnd: u32) {
        if !self.buffer.is_full() {
            return;
        }
        let mss = u32::from(self.mss);
        let times = if self.cc.rules_recovery() { 3 } else { 2 };
        // Includes room for reordering.
        let segments = (cwnd / mss).max(FIRST_WINDOW).max(self.recovery.reordered() + 1);
        self.buffer.size = self.buffer.size.max(memory(segments, times, mss));
    }

    /// State of the buffer before more is written.
    fn writing(&self) -> Writing {
        let (sent, window) = (self.board.outstanding(), self.window());
        let unsent = self.buffer.end.since(self.board.max());
        let free = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board));
        // Paced data is sent later.
        let room =
            if self.cc.pacing_rate().is_some() { 0 } else { free.min(window.limit.saturating_sub(sent)) };
        Writing {
            sent,
            chunks: self.board.chunks(),
            room: room - room % window.mss,
            unsent,
            piece: self.buffer.piece.min(unsent),
            left: self.unsent.at_most(u32::MAX) - unsent,
        }
    }

    /// Payload of the largest piece, bytes.
    fn largest_piece(&self) -> u32 {
        let mss = u32::from(self.mss);
        (self.half_window().min(LARGEST_PIECE) / mss).max(1) * mss
    }

    /// Half of the largest window that the peer has advertised, bytes.
    fn half_window(&self) -> u32 {
        if self.peer.largest == 0 { u32::MAX } else { self.peer.largest / 2 }
    }
}

/// Memory of a buffer for `times` a window of `segments`, bytes.
fn memory(segments: u32, times: u32, mss: u32) -> u32 {
    let each = (mss + HEADERS).next_power_of_two() + DESCRIPTION;
    segments.saturating_mul(times).saturating_mul(each).min(u32::MAX - 1)
}
