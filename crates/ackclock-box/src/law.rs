//! The clip of one connection, as the kernel does it: which ACK gets which window.
//!
//! The window is that of the [`WindowLaw`] that every Window Regulator writes. `bpf/clip.bpf.c` is the same law once
//! more, because the kernel verifies no Rust; `tests/law.rs` holds the two equal, field for field.

use ackclock_core::{Flags, Segment, Seq};
use ackclock_edge::{AckKind, WindowLaw};

/// From where on an allowance counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The ACK number (WRS).
    Acked,
    /// The end of the data that arrived (WRD).
    Arrived,
}

/// What a source may have ahead of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// From where on it counts.
    pub base: Base,
    /// Bytes beyond the base.
    pub bytes: u32,
    /// Smallest window, bytes.
    pub least: u32,
}

/// State of one connection.
#[derive(Debug)]
pub struct Clip {
    law: WindowLaw,
    scale: u8,
    arrived: Seq,
    acked: Seq,
    offered: u16,
}

impl Clip {
    /// A connection whose handshake was seen: the server's data begins at `first`, the mobile's SYN had this window
    /// field.
    pub fn new(scale: u8, first: Seq, window: u16) -> Self {
        Self { law: WindowLaw::new(None), scale, arrived: first, acked: first, offered: window }
    }

    /// Data of the server up to `end` arrives.
    pub fn on_data(&mut self, end: Seq) {
        self.arrived = self.arrived.max(end);
    }

    /// Writes the window of an ACK; without an allowance it keeps the receiver's.
    pub fn on_ack(&mut self, ack: &mut Segment, allowed: Option<Allowed>) {
        ack.set_scale(Some(self.scale));
        let ahead = self.arrived.after(ack.ack);
        let kind = self.kind_of(ack, ahead);
        self.offered = ack.window;
        let ends = ack.flags.intersects(Flags::FIN) && !ahead;
        let Some(Allowed { base, bytes, least }) = allowed.filter(|_| !ends) else {
            return self.law.pass(ack);
        };
        let base = if base == Base::Acked { ack.ack } else { self.arrived.max(ack.ack) };
        self.law.write(ack, kind, Some(base + bytes), least);
    }

    fn kind_of(&mut self, ack: &Segment, ahead: bool) -> AckKind {
        if ack.ack.after(self.acked) {
            self.acked = ack.ack;
            return AckKind::Advance;
        }
        let repeats = ack.ack == self.acked && self.offered == ack.window && !ack.has_data();
        if repeats && ahead { AckKind::Duplicate } else { AckKind::Other }
    }
}
