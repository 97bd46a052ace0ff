//! # Window of free buffer space
//!
//! Advertised window of a receiver whose application reads late: the free part of its buffer.
//!
//! ## Source
//! RFC 9293 section 3.8.6; section 3.8.6.2.2 for when to send a window update.
//!
//! ## What it does
//! In-order bytes stay in the buffer until they are read, and the window ends where the buffer does. Its right edge
//! never moves back: if the window scale rounds down the window of an ACK, data allowed by earlier ACKs is still
//! accepted.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! Hand-computed values (tests of the receiver); a relay never holds more than its buffer (`tests/relay.rs`).

use ackclock_core::Seq;

/// State of the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread {
    /// Payload that the application has read, bytes.
    read: u64,
    /// Right edge of the window, as last advertised.
    edge: Seq,
}

impl Unread {
    pub(super) const fn new(edge: Seq) -> Self {
        Self { read: 0, edge }
    }

    /// Right edge of the window.
    pub(super) const fn edge(&self) -> Seq {
        self.edge
    }

    /// Free bytes of a buffer of `bytes`, after `delivered` bytes in total.
    pub(super) fn free(&self, bytes: u32, delivered: u64) -> u32 {
        bytes.saturating_sub(u32::try_from(delivered - self.read).unwrap_or(u32::MAX))
    }
    /// The application has read `bytes` of payload in total.
    pub(super) const fn read_up_to(&mut self, bytes: u64) {
        self.read = bytes;
    }

    /// A window that ends at `edge` is advertised. The edge does not move back.
    pub(super) fn advertise(&mut self, edge: Seq) {
        self.edge = self.edge.max(edge);
    }
}
