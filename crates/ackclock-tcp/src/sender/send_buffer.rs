//! The buffer of the socket: how much of what the application has to send it may write.
//!
//! In the stack of Linux a socket takes what its buffer holds, sent or not, and then keeps the application waiting until a third
//! is free (tcp_sendmsg, sk_stream_write_space). The buffer grows to twice the window (BBR: three times), where an acknowledgement
//! comes while the application waits and the window is not full (tcp_check_space, tcp_sndbuf_expand). Captures of the kernel's buffer
//! (`ss -m`) show that it also grows where one acknowledgement lets two chunks leave: between them the window is not full.
//!
//! What is written is kept in pieces, each as large as the device takes at once but no larger than half of the peer's window
//! (tcp_xmit_size_goal). Only a new piece asks whether there is room: the last one is filled up in any case, also while its
//! beginning leaves already. More than half of the peer's window is sent before more is written (forced_push).
//!
//! Memory is counted by pieces, and of what was sent by [chunks](crate::scoreboard) as they left and were parted since.

use ackclock_core::Seq;

use super::TcpSender;
use crate::cc::RenewControl;
use crate::recovery::{Recovery, Window};
use crate::stack::Stack;

/// Segments of the first window, whatever it is (TCP_INIT_CWND).
const FIRST_WINDOW: u32 = 10;
/// Memory of a full segment alone: with headers up to the next power of two, and its description.
const HEADERS: u32 = 512;
const DESCRIPTION: u32 = 256;
/// Memory of a piece, or of a chunk that was sent, beside its payload.
const BESIDE: u32 = 832;
/// Payload and headers of the largest piece, bytes (GSO_LEGACY_MAX_SIZE without MAX_TCP_HEADER).
const LARGEST_PIECE: u32 = 65_215;

/// The buffer, in sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// Memory, bytes.
    size: u32,
    /// One past what was written.
    end: Seq,
    /// One past what was to be sent without delay when it was written: that segment carries PSH.
    pushed: Seq,
    /// Payload of the last piece, bytes.
    piece: u32,
    application: Application,
    /// It has set TCP_NODELAY.
    nodelay: bool,
}

/// What the application does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// All that there is has been written, or there is no limit.
    Done,
    /// It writes before anything more is sent.
    Writes,
    /// It waits for room.
    Waits,
    /// The same, and an acknowledgement has come.
    Hears,
}

impl SendBuffer {
    /// Of a socket whose segments carry `mss` bytes, the first with the number `first`.
    pub(super) fn new(first: Seq, mss: u16) -> Self {
        let size = memory(FIRST_WINDOW, 2, mss.into());
        Self { size, end: first, pushed: first, piece: 0, application: Application::Done, nodelay: false }
    }

    /// An acknowledgement comes, which may make room.
    #[inline]
    pub(super) fn on_ack(&mut self) {
        if self.application == Application::Waits {
            self.application = Application::Hears;
        }
    }

    /// The application sets TCP_NODELAY.
    pub(super) fn set_nodelay(&mut self) {
        self.nodelay = true;
    }

    /// Whether the application has set TCP_NODELAY.
    pub(super) fn has_nodelay(&self) -> bool {
        self.nodelay
    }

    /// Whether the application writes before anything more is sent.
    #[inline]
    pub(super) fn is_written_to(&self) -> bool {
        self.application == Application::Writes
    }

    /// Whether the application waits for room and an acknowledgement may have made it.
    #[inline]
    pub(super) fn may_be_refilled(&self) -> bool {
        self.application == Application::Hears
    }

    /// Whether the application waits for room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        matches!(self.application, Application::Waits | Application::Hears)
    }

    /// Whether a third is free where so much memory is `used`.
    #[inline]
    fn has_room(&self, used: u32) -> bool {
        used / 2 <= self.size.saturating_sub(used)
    }

    /// What of `payload` bytes from `next` on was written.
    #[inline]
    pub(super) fn written(&self, next: Seq, payload: u32) -> u32 {
        match self.application {
            Application::Done => payload,
            _ => self.end.since(next).min(payload),
        }
    }

    /// Whether what ends before `end` was to be sent without delay.
    pub(super) fn pushes(&self, end: Seq) -> bool {
        self.pushed == end
    }
}

/// What becomes of the buffer while the application writes. Amounts are bytes of payload.
struct Writing {
    /// Outstanding, or leaves meanwhile; in how many chunks; and what more may leave.
    sent: u32,
    chunks: u32,
    room: u32,
    /// Written and not sent, and of that the last piece.
    unsent: u32,
    piece: u32,
    /// Still to be written.
    left: u32,
}

impl Writing {
    /// Memory in use.
    fn memory(&self, largest: u32) -> u32 {
        let pieces = self.chunks + self.unsent.div_ceil(largest);
        self.sent.saturating_add(self.unsent).saturating_add(pieces.saturating_mul(BESIDE))
    }

    /// A piece is filled as far as it may be `largest`.
    fn fill(&mut self, largest: u32) {
        let bytes = largest.saturating_sub(self.piece).min(self.left);
        self.piece += bytes;
        self.unsent += bytes;
        self.left -= bytes;
    }

    /// Of what is written leaves as much as `most`, and the window, allows, in chunks of so many bytes; whether anything does.
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
    /// There is more to send than the `before` bytes until now. Linux asks now whether the application had kept the sender waiting
    /// (tcp_rate_check_app_limited), and not when everything has left.
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

    /// Everything that was written has left, or may not yet. Where the application waits and an acknowledgement has come, the buffer
    /// grows if the window is not full, and is filled if enough of it is free; whether there is more to send now.
    pub(super) fn refill_buffer(&mut self, window: Window) -> bool {
        if !self.buffer.may_be_refilled() {
            return false;
        }
        self.buffer.application = Application::Waits;
        if self.recovery.in_flight(&self.board) + window.mss <= window.cwnd {
            self.expand_buffer(window.cwnd);
        }
        // Mostly that is too much already.
        let least = self.buffer.end.since(self.board.una()) + self.board.chunks() * BESIDE;
        if !self.buffer.has_room(least) || !self.buffer.has_room(self.writing().memory(self.largest_piece()))
        {
            return false;
        }
        let before = self.buffer.end;
        self.write();
        self.buffer.end != before
    }

    /// The window is not full, or was not between two chunks that leave for one acknowledgement: where the application waits, the buffer
    /// grows.
    pub(super) fn expand_buffer(&mut self, cwnd: u32) {
        if !self.buffer.is_full() {
            return;
        }
        let mss = u32::from(self.mss);
        let times = if self.cc.rules_recovery() { 3 } else { 2 };
        // What the path reorders has room too.
        let segments = (cwnd / mss).max(FIRST_WINDOW).max(self.recovery.reordered() + 1);
        self.buffer.size = self.buffer.size.max(memory(segments, times, mss));
    }

    /// The buffer before anything more is written.
    fn writing(&self) -> Writing {
        let (sent, window) = (self.board.outstanding(), self.window());
        let unsent = self.buffer.end.since(self.board.max());
        let free = window.cwnd.saturating_sub(self.recovery.in_flight(&self.board));
        // What is paced leaves later.
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

    /// Half of the largest window that the peer ever offered, bytes.
    fn half_window(&self) -> u32 {
        if self.peer.largest == 0 { u32::MAX } else { self.peer.largest / 2 }
    }
}

/// Memory of a buffer for so many `times` a window of `segments`.
fn memory(segments: u32, times: u32, mss: u32) -> u32 {
    let each = (mss + HEADERS).next_power_of_two() + DESCRIPTION;
    segments.saturating_mul(times).saturating_mul(each).min(u32::MAX - 1)
}
