//! The mark on what a simulated sender repeats first after a reduction of its window.

use super::Head;

/// Why a sender has reduced its window for a loss and sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Duplicate or selective acknowledgements told it of a loss.
    FastRetransmit = 0,
    /// Its timer expired.
    Timeout = 1,
}

/// Set in `options` of the segment that a simulated sender repeats first after a fast retransmit, and after a timeout.
const REPAIRS: [u8; 2] = [0x04, 0x08];

impl Head {
    /// Which reduction it is the first repetition of, if it is one of a simulated sender. No wire carries it.
    pub const fn repair(&self) -> Option<Repair> {
        if self.options & REPAIRS[Repair::FastRetransmit as usize] != 0 {
            Some(Repair::FastRetransmit)
        } else if self.options & REPAIRS[Repair::Timeout as usize] != 0 {
            Some(Repair::Timeout)
        } else {
            None
        }
    }

    /// Says which reduction it is the first repetition of.
    pub const fn set_repair(&mut self, repair: Repair) {
        self.options |= REPAIRS[repair as usize];
    }
}
