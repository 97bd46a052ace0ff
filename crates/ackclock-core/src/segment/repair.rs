//! Tag of the first retransmission after a window reduction, set by simulated senders.

use super::Head;
use super::bits::{FAST_RETRANSMIT, TIMEOUT};

/// Reason for which a sender reduced its window and retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Duplicate or selective ACKs indicated a loss.
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
}

impl Head {
    /// Cause of the window reduction, if this segment is the first retransmission after the reduction. Real packets do
    /// not contain the repair tag.
    pub const fn repair(&self) -> Option<Repair> {
        if self.options & FAST_RETRANSMIT != 0 {
            Some(Repair::FastRetransmit)
        } else if self.options & TIMEOUT != 0 {
            Some(Repair::Timeout)
        } else {
            None
        }
    }

    /// Tags this segment as the first retransmission after a window reduction.
    pub const fn set_repair(&mut self, repair: Repair) {
        self.options |= match repair {
            Repair::FastRetransmit => FAST_RETRANSMIT,
            Repair::Timeout => TIMEOUT,
        };
    }
}
