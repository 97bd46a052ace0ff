//! When acknowledgements of what arrives out of order are merged.
//!
//! As Linux does with SACK (compressed ACKs): the first three for each left edge leave at once, the following wait for each
//! other for a millisecond. They leave before something arrives that begins a third block, or touches one that is not among the
//! two newest (tcp_sack_new_ofo_skb): each block is then told by several SACKs, of which one may be lost. (Linux waits for no more
//! than a third of the round trip.)

use ackclock_core::{SackBlock, Seq, Span};

use crate::reassembly::Reassembly;

/// How long the first of those that wait does (tcp_comp_sack_delay_ns).
pub(super) const WAIT: Span = Span::from_millis(1);
/// That leave at once: DupThresh.
const AT_ONCE: u8 = 3;
/// Newest blocks that what waits may still join (TCP_SACK_BLOCKS_EXPECTED).
const TOLD: usize = 2;
/// That wait at most (tcp_comp_sack_nr).
const MOST: u8 = 44;

/// The acknowledgements of one gap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Merge {
    /// The left edge that they tell.
    edge: Seq,
    left_at_once: u8,
    waiting: u8,
}

impl Merge {
    /// Something arrives out of order while `next` is expected; whether its acknowledgement waits.
    pub(super) fn waits(&mut self, next: Seq) -> bool {
        if self.waiting >= MOST {
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

    /// Whether what waits leaves before `arrival` joins those `ahead` of a gap.
    #[inline]
    pub(super) fn ends_before(&self, arrival: SackBlock, ahead: &Reassembly) -> bool {
        self.waiting > 0 && ahead.joins_none_of(TOLD, arrival)
    }

    /// All that waited leave, but for the last to come.
    pub(super) fn begin_again(&mut self) {
        self.waiting = 1;
    }

    /// An acknowledgement leaves.
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
