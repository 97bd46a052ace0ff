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
    /// Furthest right edge advertised, also by the SYN.
    edge: Seq,
    /// End of the last data outside the window.
    elsewhere: Option<Seq>,
    offered: u16,
}

impl Clip {
    /// Creates the state of a connection after its handshake. The server's data starts at the sequence number `first`,
    /// and the mobile's SYN advertised the window `window`.
    pub fn new(scale: u8, first: Seq, window: u16) -> Self {
        let (law, edge) = (WindowLaw::new(None), first + u32::from(window));
        Self { law, scale, arrived: first, acked: first, edge, elsewhere: None, offered: window }
    }

    /// Notes that data from the server arrived up to the sequence number `end`. Anybody can send any numbers; those from
    /// the ACK number up to the right edge are believed (RFC 9293 section 3.10.7.4).
    pub fn on_data(&mut self, end: Seq) {
        if end.after(self.acked) && end.since(self.acked) > self.edge.since(self.acked) {
            self.elsewhere = Some(end);
        } else {
            self.arrived = self.arrived.max(end);
        }
    }

    /// Writes the window of an ACK. The ACK keeps the receiver's window without an allowance. An ACK outside the window of
    /// RFC 5961 section 5, such as one of data that did not pass here, changes nothing.
    pub fn on_ack(&mut self, ack: &mut Segment, allowed: Option<Allowed>) {
        ack.set_scale(Some(self.scale));
        let least = self.acked.0.wrapping_sub(self.largest());
        // A FIN counts as one byte.
        if ack.ack.0.wrapping_sub(least) > (self.arrived + 1).0.wrapping_sub(least) {
            return self.learn_again(ack);
        }
        let ahead = self.arrived.after(ack.ack);
        let kind = self.kind_of(ack, ahead);
        self.offered = ack.window;
        let ends = ack.flags.intersects(Flags::FIN) && !ahead;
        match allowed.filter(|_| !ends) {
            None => self.law.pass(ack),
            Some(allowed) => self.write(ack, kind, allowed),
        }
        if ack.window > 0 {
            self.edge = self.edge.max(ack.ack + (u32::from(ack.window) << self.scale));
        }
    }

    fn write(&mut self, ack: &mut Segment, kind: AckKind, Allowed { base, bytes, least }: Allowed) {
        let base = match base {
            Base::Acked => ack.ack,
            Base::Arrived => self.arrived.max(ack.ack),
            Base::Sacked => ack.ack + sacked(ack),
        };
        self.law.write(ack, kind, Some(base + bytes), least);
    }

    /// Handles an ACK outside the window. If data passed there too, both ends mean it: data took another path meanwhile.
    fn learn_again(&mut self, ack: &mut Segment) {
        let largest = self.largest();
        let meant = |end: &Seq| end.0.wrapping_sub(ack.ack.0) <= largest;
        let Some(arrived) = self.elsewhere.take_if(|end| meant(&*end)) else { return };
        (self.arrived, self.acked, self.offered) = (arrived, ack.ack, ack.window);
        self.edge = ack.ack + (u32::from(ack.window) << self.scale);
        self.law = WindowLaw::new(None);
        self.law.pass(ack);
    }

    /// Largest window that the mobile can offer, bytes.
    fn largest(&self) -> u32 {
        u32::from(u16::MAX) << self.scale
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
