//! Merging of acknowledgements for out-of-order segments (compressed ACKs).
//!
//! Merging follows Linux's rules for SACK. The first three ACKs for each left edge are sent at once; later ACKs are
//! merged for up to 1 ms. A waiting ACK is sent before a segment starts a third block, or joins a block other than the
//! two newest (tcp_sack_new_ofo_skb). Each block is then reported in several SACKs, so the loss of one SACK does no
//! harm. Linux also limits the waiting time to a third of the round-trip time.

use ackclock_core::{SackBlock, Seq, Span};

use crate::reassembly::Reassembly;

/// Longest delay of a merged ACK (tcp_comp_sack_delay_ns).
pub(super) const WAIT: Span = Span::from_millis(1);
/// Number of ACKs sent at once for each left edge: DupThresh.
const AT_ONCE: u8 = 3;
/// Number of newest blocks that a waiting ACK may extend (TCP_SACK_BLOCKS_EXPECTED).
const EXPECTED_BLOCKS: usize = 2;
/// Largest number of ACKs merged into one ACK (tcp_comp_sack_nr).
const MOST_MERGED: u8 = 44;

/// State of the acknowledgements for one gap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Merge {
    /// Left edge that the ACKs acknowledge.
    edge: Seq,
    left_at_once: u8,
    waiting: u8,
}

impl Merge {
    /// Handles a segment that arrives out of order while `next` is expected. Returns whether the segment's
    /// acknowledgement waits.
    pub(super) fn waits(&mut self, next: Seq) -> bool {
        if self.waiting >= MOST_MERGED {
            return false;
        }
        if self.edge != next {
            (self.edge, self.left_at_once) = (next, 0);
        }
        if self.left_at_once < AT_ONCE {
            self.left_at_once += 1;
            return false;
        }
        self.waiting += 1;
        true
    }

    /// Whether a waiting ACK must be sent before `arrival` joins the ranges `ahead` of a gap.
    #[inline]
    pub(super) fn ends_before(&self, arrival: SackBlock, ahead: &Reassembly) -> bool {
        self.waiting > 0 && ahead.joins_none_of(EXPECTED_BLOCKS, arrival)
    }

    /// Restarts merging: all waiting acknowledgements except the newest are sent.
    pub(super) fn begin_again(&mut self) {
        self.waiting = 1;
    }

    /// Ends the merging when an acknowledgement is sent.
    pub(super) fn on_ack(&mut self) {
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave_at_once(merge: &mut Merge, edge: u32, arrivals: u32) -> u32 {
        (0..arrivals).map(|_| u32::from(!merge.waits(Seq(edge)))).sum()
    }

    #[test]
    fn three_of_an_edge_leave_at_once() {
        let mut merge = Merge::default();
        assert_eq!(leave_at_once(&mut merge, 1000, 10), 3);
        assert_eq!(leave_at_once(&mut merge, 2000, 10), 3);
    }

    #[test]
    fn no_more_than_44_wait() {
        let mut merge = Merge::default();
        assert_eq!(leave_at_once(&mut merge, 1000, 3 + 44 + 2), 3 + 2);
        merge.on_ack();
        assert_eq!(leave_at_once(&mut merge, 1000, 1), 0);
    }
}
