//! Tag of the first retransmission after a window reduction, set by simulated senders.

use super::Head;

/// Why a sender reduced its window and retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Duplicate or selective ACKs indicated a loss.
    FastRetransmit = 0,
    /// The retransmission timer expired.
    Timeout = 1,
}

/// Bits in `options` that tag the first retransmission after a fast retransmit and after a timeout.
const REPAIRS: [u8; 2] = [0x04, 0x08];

impl Head {
    /// Cause of the reduction, if this is its first retransmission. Not part of a real packet.
    pub const fn repair(&self) -> Option<Repair> {
        if self.options & REPAIRS[Repair::FastRetransmit as usize] != 0 {
            Some(Repair::FastRetransmit)
        } else if self.options & REPAIRS[Repair::Timeout as usize] != 0 {
            Some(Repair::Timeout)
        } else {
            None
        }
    }

    /// Tags the first retransmission after a reduction.
    pub const fn set_repair(&mut self, repair: Repair) {
        self.options |= REPAIRS[repair as usize];
    }
}
