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

use ackclock_core::{Segment, Seq, Time};

use super::Receiver;
use super::window::Policy;

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
    fn free(&self, bytes: u32, delivered: u64) -> u32 {
        bytes.saturating_sub(u32::try_from(delivered - self.read).unwrap_or(u32::MAX))
    }
}

impl Receiver {
    /// The application has read `bytes` of payload in total. Sends a window update if the right edge moves by two
    /// segments or half of the buffer. No effect unless the window follows reading
    /// ([`WindowPolicy::Unread`](super::WindowPolicy::Unread)).
    pub fn read_up_to(&mut self, now: Time, bytes: u64, out: &mut impl FnMut(&Segment)) {
        let worthwhile = (2 * u32::from(self.config.mss)).min(self.config.max_window / 2);
        let Some(Policy::Unread(unread)) = self.policy.as_deref_mut() else { return };
        unread.read = bytes.min(self.delivered);
        let free = unread.free(self.config.max_window, self.delivered);
        let moves = !(self.next + free).before(unread.edge + worthwhile);
        if moves && self.is_established() {
            self.advertise_free();
            self.acknowledge(now, None, out);
        }
    }

    /// The peer's first sequence number is known at `now`: the window counts from there.
    pub(super) fn anchor(&mut self, now: Time) {
        let window = self.window();
        match self.policy.as_deref_mut() {
            Some(Policy::Unread(unread)) => *unread = Unread::new(self.next),
            Some(Policy::Tuned(autotune)) => {
                autotune.on_advertised(self.next, window);
                autotune.on_established(now);
            }
            None => {}
        }
        self.advertise_free();
    }

    /// Advertises the free space in the next ACK.
    pub(super) fn advertise_free(&mut self) {
        let Some(Policy::Unread(unread)) = self.policy.as_deref_mut() else { return };
        let free = unread.free(self.config.max_window, self.delivered);
        self.window_field = u16::try_from(free >> self.scale).unwrap_or(u16::MAX);
        unread.edge = unread.edge.max(self.next + (u32::from(self.window_field) << self.scale));
    }
}
