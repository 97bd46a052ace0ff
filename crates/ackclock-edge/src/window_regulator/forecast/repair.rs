//! Loss recovery of a sender, inferred from the mobile's ACKs.

use ackclock_core::{Segment, Seq};

use crate::window_regulator::dequeued::AckKind;

/// Loss recovery of a sender, which lasts from the first sign of a loss until all data then in flight is acknowledged.
#[derive(Debug, Default)]
pub(super) struct Repair {
    /// End of the data in flight when the loss was detected.
    until: Option<Seq>,
}

impl Repair {
    /// Whether the sender is in recovery.
    pub(super) const fn is_under_way(&self) -> bool {
        self.until.is_some()
    }

    /// Handles an ACK of the mobile, which arrives when the sender has sent data up to `highest`. A SACK hole or a
    /// duplicate ACK is a sign of loss.
    pub(super) fn on_ack(&mut self, ack: &Segment, kind: AckKind, highest: Option<Seq>) {
        let hole = ack.sack().iter().any(|block| block.left.after(ack.ack));
        if self.until.is_none() && (hole || kind == AckKind::Duplicate) {
            self.until = highest;
        }
        self.until = self.until.filter(|end| end.after(ack.ack));
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::SackBlock;

    use super::*;
    use crate::window_regulator::bench::Bench;

    /// Segments have 1000 bytes.
    fn ack(number: u32, sacked: &[SackBlock]) -> Segment {
        let mut ack = Bench::pure_ack(number / 1000);
        sacked.iter().for_each(|block| ack.push_sack(*block));
        ack
    }

    #[test]
    fn a_hole_or_a_duplicate_begins_and_what_was_outstanding_ends_it() {
        let mut repair = Repair::default();
        let highest = Some(Seq(9000));
        repair.on_ack(&ack(1000, &[]), AckKind::Advance, highest);
        assert!(!repair.is_under_way());
        // A block below the ACK reports a duplicate segment, and is not a hole (RFC 2883).
        let twice = SackBlock { left: Seq(0), right: Seq(500) };
        repair.on_ack(&ack(1000, &[twice]), AckKind::Other, highest);
        assert!(!repair.is_under_way());
        repair.on_ack(
            &ack(1000, &[SackBlock { left: Seq(2000), right: Seq(3000) }]),
            AckKind::Other,
            highest,
        );
        assert!(repair.is_under_way());
        repair.on_ack(&ack(8000, &[]), AckKind::Advance, Some(Seq(12_000)));
        assert!(repair.is_under_way());
        repair.on_ack(&ack(9000, &[]), AckKind::Advance, Some(Seq(12_000)));
        assert!(!repair.is_under_way());
        repair.on_ack(&ack(9000, &[]), AckKind::Duplicate, Some(Seq(12_000)));
        assert!(repair.is_under_way());
    }
}
