//! # A window of what is free
//!
//! The window of a receiver whose application reads late: what is free of its buffer.
//!
//! ## Source
//! RFC 9293 section 3.8.6; section 3.8.6.2.2 for when an update is worth an ACK.
//!
//! ## What it does
//! Bytes in order stay in the buffer until they are read, and the window ends where the buffer does. Its right edge never
//! moves back: where the scale rounds the window of an ACK down, what earlier ACKs allowed is still taken.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! By hand (tests of the receiver); a relay never holds more than its buffer (`tests/relay.rs`).

use ackclock_core::{Segment, Seq, Time};

use super::Receiver;
use super::window::Policy;

/// What is known of the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread {
    /// Payload that the application has read, bytes.
    read: u64,
    /// The right edge of the window, as far as any ACK told it.
    edge: Seq,
}

impl Unread {
    pub(super) const fn new(edge: Seq) -> Self {
        Self { read: 0, edge }
    }

    /// The right edge of the window.
    pub(super) const fn edge(&self) -> Seq {
        self.edge
    }

    /// Free bytes of a buffer of `bytes`, when `delivered` bytes came in all.
    fn free(&self, bytes: u32, delivered: u64) -> u32 {
        bytes.saturating_sub(u32::try_from(delivered - self.read).unwrap_or(u32::MAX))
    }
}

impl Receiver {
    /// The application has read `bytes` of payload in all. Where that moves the right edge of the window by two segments or
    /// half of the buffer, the peer is told. Without effect unless the window follows what is read
    /// ([`WindowPolicy::Unread`](super::WindowPolicy::Unread)).
    pub fn read_up_to(&mut self, now: Time, bytes: u64, out: &mut impl FnMut(&Segment)) {
        let worthwhile = (2 * u32::from(self.config.mss)).min(self.config.max_window / 2);
        let Some(Policy::Unread(unread)) = self.policy.as_deref_mut() else { return };
        unread.read = bytes.min(self.delivered);
        let free = unread.free(self.config.max_window, self.delivered);
        let moves = !(self.next + free).before(unread.edge + worthwhile);
        if moves && self.is_established() {
            self.tell_free();
            self.acknowledge(now, None, out);
        }
    }

    /// The first number of the peer is known at `now`: the window counts from there.
    pub(super) fn anchor(&mut self, now: Time) {
        let window = self.window();
        match self.policy.as_deref_mut() {
            Some(Policy::Unread(unread)) => *unread = Unread::new(self.next),
            Some(Policy::Tuned(autotune)) => {
                autotune.on_offered(self.next, window);
                autotune.on_established(now);
            }
            None => {}
        }
        self.tell_free();
    }

    /// The next ACK tells what is free.
    pub(super) fn tell_free(&mut self) {
        let Some(Policy::Unread(unread)) = self.policy.as_deref_mut() else { return };
        let free = unread.free(self.config.max_window, self.delivered);
        self.window_field = u16::try_from(free >> self.scale).unwrap_or(u16::MAX);
        unread.edge = unread.edge.max(self.next + (u32::from(self.window_field) << self.scale));
    }
}
