//! Writes the window of an allowance into ACKs. Like a program in the data path, the clip sees only the packets
//! themselves.

use ackclock_core::{Flags, Segment, Seq};
use ackclock_link::Base;

use super::dequeued::AckKind;
use super::law::WindowLaw;
use super::tells_a_window;
use crate::Allowance;

/// Windows advertised to the sender of one flow. The right edge is the maximum of the previous right edge and `base +
/// bytes`.
#[derive(Debug)]
pub struct Clip {
    law: WindowLaw,
    /// Sequence number at the end of the data that arrived.
    arrived: Option<Seq>,
    acked: Option<Seq>,
    offered: u16,
}

impl Clip {
    /// Creates the clip of a flow before any traffic. Windows are not changed if the handshake was not seen, unless a
    /// window scale is assumed.
    pub fn new(assumed_scale: Option<u8>) -> Self {
        Self { law: WindowLaw::new(assumed_scale), arrived: None, acked: None, offered: 0 }
    }

    /// Processes data sent to the mobile.
    pub fn on_data(&mut self, segment: &Segment) {
        if segment.has_data() && !segment.flags.intersects(Flags::SYN) {
            self.arrived = Some(self.arrived.map_or(segment.end(), |end| end.max(segment.end())));
        }
    }

    /// Writes the window of an ACK from the mobile. The ACK stays unchanged without an allowance, or if the window
    /// cannot be written.
    pub fn on_ack(&mut self, ack: &mut Segment, allowance: Option<Allowance>) {
        if !tells_a_window(ack) {
            return;
        }
        let offered = std::mem::replace(&mut self.offered, ack.window);
        let kind = AckKind::of(ack, self.acked, offered, self.arrived);
        let acked = self.acked.map_or(ack.ack, |acked| acked.max(ack.ack));
        self.acked = Some(acked);
        let Some(Allowance { base, bytes, least }) = allowance else { return };
        let base = match base {
            Base::Acked => ack.ack,
            Base::Sacked => acked + sacked(ack, acked),
            Base::Arrived => self.arrived.map_or(acked, |arrived| arrived.max(acked)),
        };
        self.law.write(ack, kind, Some(base + bytes), least);
    }

    /// Highest right edge advertised; `None` before the first window was written.
    pub fn edge(&self) -> Option<Seq> {
        self.law.edge()
    }
}

/// Number of bytes beyond `acked` that an ACK acknowledges selectively (SACK).
fn sacked(ack: &Segment, acked: Seq) -> u32 {
    ack.sack().iter().map(|block| block.right.since(block.left.max(acked))).sum()
}
