//! Socket send buffer: limits how much data the application can write.
//!
//! In the Linux stack a socket accepts data up to its buffer size, including data already sent. The socket then blocks
//! the application until a third of the buffer is free (tcp_sendmsg, sk_stream_write_space). The buffer grows to twice
//! the window (BBR: three times) if an acknowledgement arrives while the application waits and the window is not full
//! (tcp_check_space, tcp_sndbuf_expand). Captures of the kernel's buffer (`ss -m`) also show growth if one
//! acknowledgement releases two chunks, because the window is not full between the chunks.
//!
//! Written data is kept in pieces as large as the device accepts, at most half of the peer's window
//! (tcp_xmit_size_goal). Room in the buffer is checked only for a new piece; the last piece is always filled, even
//! while its start is already being sent. Data up to half of the peer's window is sent before the application writes
//! more (forced_push).
//!
//! Memory of unsent data is counted per piece. Sent data is counted per [chunk](crate::scoreboard), including chunks
//! split after transmission.

use ackclock_core::Seq;

use super::TcpSender;
use crate::cc::RenewControl;
use crate::recovery::{Recovery, Window};
use crate::stack::Stack;

/// Size of the first buffer in segments, regardless of the initial window (TCP_INIT_CWND).
const FIRST_WINDOW: u32 = 10;
/// Memory for the headers of a single full segment, rounded up to a power of two, plus the descriptor, bytes.
const HEADERS: u32 = 512;
const DESCRIPTION: u32 = 256;
/// Memory of a piece or of a sent chunk in addition to the payload, bytes.
const OVERHEAD: u32 = 832;
/// Largest piece including headers, bytes (GSO_LEGACY_MAX_SIZE without MAX_TCP_HEADER).
const LARGEST_PIECE: u32 = 65_215;

/// Socket send buffer. Positions in the buffer are sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// Buffer size in bytes of memory.
    size: u32,
    /// Sequence number after the last written byte.
    end: Seq,
    /// Sequence number after the last byte written to be sent without delay. The segment with that byte has PSH.
    pushed: Seq,
    /// Payload of the last piece, bytes.
    piece: u32,
    application: Application,
    /// Whether TCP_NODELAY is set.
    nodelay: bool,
}

/// State of the writing application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// All data is written, or the buffer is unlimited.
    Done,
    /// The application writes before anything more is sent.
    Writes,
    /// The application waits for room in the buffer.
    Waits,
    /// The application waits for room in the buffer, and an acknowledgement has arrived.
    WaitsAcked,
}

impl SendBuffer {
    /// Creates the buffer of a socket. Segments have `mss` bytes, and data starts at sequence number `first`.
    pub(super) fn new(first: Seq, mss: u16) -> Self {
        let size = memory(FIRST_WINDOW, 2, mss.into());
        Self { size, end: first, pushed: first, piece: 0, application: Application::Done, nodelay: false }
    }

    /// Records an acknowledgement, which may free room in the buffer.
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

    /// Whether the application waits for room in the buffer, and an acknowledgement may have freed room.
    #[inline]
    pub(super) fn may_be_refilled(&self) -> bool {
        self.application == Application::WaitsAcked
    }

    /// Whether the application waits for room in the buffer.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        matches!(self.application, Application::Waits | Application::WaitsAcked)
    }

    /// Whether a third of the buffer is free when `used` bytes of memory are in use.
    #[inline]
    fn has_room(&self, used: u32) -> bool {
        used / 2 <= self.size.saturating_sub(used)
    }

    /// Number of written bytes among the `payload` bytes from `next` on.
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

/// State of the buffer while the application writes. All amounts are bytes of payload.
struct Writing {
    /// Bytes in flight or being sent, the number of their chunks, and the bytes that may still be sent.
    sent: u32,
    chunks: u32,
    room: u32,
    /// Bytes written and not sent, and bytes in the last piece.
    unsent: u32,
    piece: u32,
    /// Bytes that the application still has to write.
    left: u32,
}

impl Writing {
    /// Memory in use in bytes, with pieces of `largest` bytes.
    fn memory(&self, largest: u32) -> u32 {
        let pieces = self.chunks + self.unsent.div_ceil(largest);
        self.sent.saturating_add(self.unsent).saturating_add(pieces.saturating_mul(OVERHEAD))
    }

    /// Fills the last piece up to `largest` bytes.
    fn fill(&mut self, largest: u32) {
        let bytes = largest.saturating_sub(self.piece).min(self.left);
        self.piece += bytes;
        self.unsent += bytes;
        self.left -= bytes;
    }

    /// Sends written data in chunks of `chunk` bytes, up to `most` bytes and within the window. Returns whether any
    /// written data was sent.
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
    /// Starts writing when more data is available than the previous `before` bytes. Linux checks when writing starts,
    /// not when all data has been sent, whether the application limited the sender (tcp_rate_check_app_limited).
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

    /// Writes as much of the application's data as the buffer has room for.
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

    /// Called when all written data was sent or cannot be sent yet. If the application waits and an acknowledgement has
    /// arrived, the buffer grows while the window is not full. The application then refills the buffer if enough room
    /// is free. Returns whether there is more to send now.
    pub(super) fn refill_buffer(&mut self, window: Window) -> bool {
        if !self.buffer.may_be_refilled() {
            return false;
        }
        self.buffer.application = Application::Waits;
        if self.recovery.in_flight(&self.board) + window.mss <= window.cwnd {
            self.expand_buffer(window.cwnd);
        }
        // In most calls this lower bound of the memory already exceeds the limit.
        let least = self.buffer.end.since(self.board.una()) + self.board.chunks() * OVERHEAD;
        if !self.buffer.has_room(least) || !self.buffer.has_room(self.writing().memory(self.largest_piece()))
        {
            return false;
        }
        let before = self.buffer.end;
        self.write();
        self.buffer.end != before
    }

    /// Grows the buffer if the application waits. Called when the window is not full, or was not full between two
    /// chunks sent for one acknowledgement.
    pub(super) fn expand_buffer(&mut self, cwnd: u32) {
        if !self.buffer.is_full() {
            return;
        }
        let mss = u32::from(self.mss);
        let times = if self.cc.rules_recovery() { 3 } else { 2 };
        // The number of segments includes room for reordering.
        let segments = (cwnd / mss).max(FIRST_WINDOW).max(self.recovery.reordered() + 1);
        self.buffer.size = self.buffer.size.max(memory(segments, times, mss));
    }

    /// State of the buffer before the application writes more.
    fn writing(&self) -> Writing {
        let (sent, window) = (self.board.outstanding(), self.window());
        let unsent = self.buffer.end.since(self.board.max());
        let free = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board));
        // Paced data is sent later, so paced data does not count as sent at once.
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

/// Memory of a buffer for `times` times a window of `segments` segments, bytes.
fn memory(segments: u32, times: u32, mss: u32) -> u32 {
    let each = (mss + HEADERS).next_power_of_two() + DESCRIPTION;
    segments.saturating_mul(times).saturating_mul(each).min(u32::MAX - 1)
}
