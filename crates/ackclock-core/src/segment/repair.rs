//! Tag of the first retransmission after a window reduction, set by simulated senders.

use super::Head;

/// Reason for which a sender reduced its window and retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Duplicate or selective ACKs indicated a loss.
    FastRetransmit = 0,
    /// The retransmission timer expired.
    Timeout = 1,
}

/// Bits in `options` that tag the first retransmission of a reduction: one bit for a fast retransmit, one for a
/// timeout.
const REPAIRS: [u8; 2] = [0x04, 0x08];

impl Head {
    /// Cause of the window reduction, if this segment is the first retransmission after the reduction. Real packets do
    /// not contain the repair tag.
    pub const fn repair(&self) -> Option<Repair> {
        if self.options & REPAIRS[Repair::FastRetransmit as usize] != 0 {
            Some(Repair::FastRetransmit)
        } else if self.options & REPAIRS[Repair::Timeout as usize] != 0 {
            Some(Repair::Timeout)
        } else {
            None
        }
    }

    /// Tags this segment as the first retransmission after a window reduction.
    pub const fn set_repair(&mut self, repair: Repair) {
        self.options |= REPAIRS[repair as usize];
    }
}
