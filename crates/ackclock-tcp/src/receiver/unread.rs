//! # Window of free buffer space
//!
//! Advertised window of a receiver whose application reads late: the free part of the buffer.
//!
//! ## Source
//! RFC 9293 section 3.8.6, and section 3.8.6.2.2 for when to send a window update.
//!
//! ## What it does
//! In-order bytes stay in the buffer until the application reads them, and the window ends where the buffer ends. The
//! right edge of the window never moves back. If the window scale rounds down the window of an ACK, data that earlier
//! ACKs allowed is still accepted.
//!
//! ## Differences from the source
//! No deviations from RFC 9293 are known.
//!
//! ## Validation
//! Unit tests of the receiver compare with hand-computed values. `tests/relay.rs` checks that a relay never holds more
//! than its buffer.

use ackclock_core::Seq;

/// State of a receive buffer that the application reads late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread {
    /// Total of payload that the application has read, bytes.
    read: u64,
    /// Right edge of the last advertised window.
    edge: Seq,
}

impl Unread {
    pub(super) const fn new(edge: Seq) -> Self {
        Self { read: 0, edge }
    }

    /// Right edge of the advertised window.
    pub(super) const fn edge(&self) -> Seq {
        self.edge
    }

    /// Free bytes in a buffer of `bytes`, after a total of `delivered` bytes has arrived in order.
    pub(super) fn free(&self, bytes: u32, delivered: u64) -> u32 {
        bytes.saturating_sub(u32::try_from(delivered - self.read).unwrap_or(u32::MAX))
    }
    /// Records that the application has read `bytes` of payload in total.
    pub(super) const fn read_up_to(&mut self, bytes: u64) {
        self.read = bytes;
    }

    /// Records that a window up to `edge` is advertised. The right edge of the window does not move back.
    pub(super) fn advertise(&mut self, edge: Seq) {
        self.edge = self.edge.max(edge);
    }
}
