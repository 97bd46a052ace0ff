//! Reference version of the kernel's window clipping for one connection: computes the window field of each ACK.
//!
//! The window follows the [`WindowLaw`] that all Window Regulators use. `bpf/clip.bpf.c` implements the law a second
//! time, because the kernel cannot verify Rust. `tests/law.rs` checks that both implementations write equal window
//! fields.

use ackclock_core::{Flags, Segment, Seq};
use ackclock_edge::{AckKind, WindowLaw};

/// Base from which an allowance is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The ACK number is the base, as in the regulator WRS.
    Acked,
    /// The end of the data that arrived is the base, as in the regulator WRD.
    Arrived,
    /// The ACK number plus the bytes that SACK reports is the base, as on the network side of the radio.
    Sacked,
}

/// Allowance of a server: the data that it may send beyond the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Base from which the allowance is counted.
    pub base: Base,
    /// Number of bytes that the server may send beyond the base.
    pub bytes: u32,
    /// Smallest window to advertise, bytes.
    pub least: u32,
}

/// Clipping state of one connection.
#[derive(Debug)]
pub struct Clip {
    law: WindowLaw,
    scale: u8,
    arrived: Seq,
    acked: Seq,
    offered: u16,
}

impl Clip {
    /// Creates the state of a connection after its handshake. The server's data starts at the sequence number `first`,
    /// and the mobile's SYN advertised the window `window`.
    pub fn new(scale: u8, first: Seq, window: u16) -> Self {
        Self { law: WindowLaw::new(None), scale, arrived: first, acked: first, offered: window }
    }

    /// Notes that data from the server arrived up to the sequence number `end`.
    pub fn on_data(&mut self, end: Seq) {
        self.arrived = self.arrived.max(end);
    }

    /// Writes the window of an ACK. The ACK keeps the receiver's window without an allowance, and if it acknowledges data
    /// that did not pass here.
    pub fn on_ack(&mut self, ack: &mut Segment, allowed: Option<Allowed>) {
        ack.set_scale(Some(self.scale));
        let ahead = self.arrived.after(ack.ack);
        let kind = self.kind_of(ack, ahead);
        self.offered = ack.window;
        let ends = ack.flags.intersects(Flags::FIN) && !ahead;
        // The mobile has data that did not pass here: the data takes another path. A FIN counts as one byte.
        let elsewhere = ack.ack.after(self.arrived + 1);
        let Some(Allowed { base, bytes, least }) = allowed.filter(|_| !ends && !elsewhere) else {
            return self.law.pass(ack);
        };
        let base = match base {
            Base::Acked => ack.ack,
            Base::Arrived => self.arrived.max(ack.ack),
            Base::Sacked => ack.ack + sacked(ack),
        };
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

/// Bytes beyond an ACK that its SACK blocks report.
fn sacked(ack: &Segment) -> u32 {
    ack.sack().iter().map(|block| block.right.since(block.left.max(ack.ack))).sum()
}
