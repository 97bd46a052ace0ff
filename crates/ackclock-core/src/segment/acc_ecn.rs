//! More accurate ECN feedback of a TCP header: the ACE field and the AccECN option (RFC 9768).

use super::bits::{AE, BLOCK_COUNT, HAS_ACC_ECN, HAS_OTHER_OPTIONS};
use super::{Flags, SackBlock, Segment, Seq};

/// AccECN option of a segment, with its first two counters (RFC 9768 section 3.2.3, length 8). Both counters wrap at
/// 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccEcn {
    /// Codepoint that the first counter counts.
    pub field: EctField,
    /// Payload bytes received with the codepoint `field`: EE0B or EE1B.
    pub ect_bytes: u32,
    /// Payload bytes received with the codepoint CE: ECEB.
    pub ce_bytes: u32,
}

/// Codepoint counted by the first field of an AccECN option, which also determines the option kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EctField {
    /// ECT(0) comes first: order 0, kind 172.
    Ect0,
    /// ECT(1) comes first: order 1, kind 174.
    Ect1,
}

/// Bits of a counter of the option.
const COUNTER: u32 = 0xff_ffff;
/// Bit of the stored first counter that is set for order 1.
const ORDER_ONE: u32 = 1 << 31;

impl AccEcn {
    /// Bytes of the option in a TCP header.
    pub const HEADER_BYTES: u16 = 8;

    /// Increase of a counter from `before` to `after`, modulo 2^24.
    pub const fn increase(before: u32, after: u32) -> u32 {
        after.wrapping_sub(before) & COUNTER
    }

    /// Bytes of the option in a TCP header, in network order.
    pub fn header(&self) -> [u8; Self::HEADER_BYTES as usize] {
        let kind = match self.field {
            EctField::Ect0 => 172,
            EctField::Ect1 => 174,
        };
        let [_, ect @ ..] = self.ect_bytes.to_be_bytes();
        let [_, ce @ ..] = self.ce_bytes.to_be_bytes();
        [kind, Self::HEADER_BYTES as u8, ect[0], ect[1], ect[2], ce[0], ce[1], ce[2]]
    }
}

impl Segment {
    /// ACE field: the control bits AE, CWR and ECE as a number of three bits (RFC 9768 section 3.2.2). The field is a
    /// counter only on connections that negotiated AccECN, and never on a SYN.
    pub fn ace(&self) -> u8 {
        let bit = |flag| u8::from(self.flags.intersects(flag));
        u8::from(self.ae()) << 2 | bit(Flags::CWR) << 1 | bit(Flags::ECE)
    }

    /// Sets the ACE field to the three lowest bits of `value`.
    pub fn set_ace(&mut self, value: u8) {
        self.set_ae(value & 4 != 0);
        self.flags = Flags(self.flags.0 & !(Flags::CWR | Flags::ECE).0);
        let bit = |bit, flag| if value & bit != 0 { flag } else { Flags::default() };
        self.flags |= bit(2, Flags::CWR) | bit(1, Flags::ECE);
    }

    /// Whether the TCP control bit AE is set.
    pub const fn ae(&self) -> bool {
        self.head.scale & AE != 0
    }

    /// Sets or clears the TCP control bit AE.
    pub const fn set_ae(&mut self, is_set: bool) {
        self.head.scale = (self.head.scale & !AE) | if is_set { AE } else { 0 };
    }

    /// AccECN option of the segment, or `None` without the option.
    pub fn acc_ecn(&self) -> Option<AccEcn> {
        if self.head.scale & HAS_ACC_ECN == 0 {
            return None;
        }
        let SackBlock { left: Seq(ect), right: Seq(ce_bytes) } = self.rest.blocks[Self::MAX_SACK - 1];
        let field = if ect & ORDER_ONE != 0 { EctField::Ect1 } else { EctField::Ect0 };
        Some(AccEcn { field, ect_bytes: ect & COUNTER, ce_bytes })
    }

    /// Adds an AccECN option. A SYN and a segment with [`Self::MAX_SACK`] SACK blocks have no room for the option, and
    /// stay unchanged.
    pub fn set_acc_ecn(&mut self, option: AccEcn) {
        let blocks = usize::from(self.head.options & BLOCK_COUNT);
        if blocks == Self::MAX_SACK || self.flags.intersects(Flags::SYN) {
            return;
        }
        let order = if option.field == EctField::Ect1 { ORDER_ONE } else { 0 };
        let (ect, ce) = (option.ect_bytes & COUNTER, option.ce_bytes & COUNTER);
        self.rest.blocks[Self::MAX_SACK - 1] = SackBlock { left: Seq(ect | order), right: Seq(ce) };
        self.head.options |= HAS_OTHER_OPTIONS;
        self.head.scale |= HAS_ACC_ECN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, SynOptions};

    fn ack() -> Segment {
        Segment::pure_ack(FlowId(1), Seq(9), 40)
    }

    #[test]
    fn the_ace_field_is_the_bits_ae_cwr_ece() {
        let mut segment = ack();
        for value in 0..8 {
            segment.set_ace(value);
            assert_eq!(segment.ace(), value);
            let has = |flag| segment.flags.contains(flag);
            assert_eq!(
                (segment.ae(), has(Flags::CWR), has(Flags::ECE)),
                (value > 3, value & 2 > 0, value & 1 > 0)
            );
            assert!(has(Flags::ACK) && segment.scale().is_none() && !segment.is_corrupt());
        }
    }

    #[test]
    fn the_option_keeps_its_counters_beside_two_sack_blocks() {
        let option = AccEcn { field: EctField::Ect1, ect_bytes: 0x12_3456, ce_bytes: 0xff_fffe };
        let mut segment = ack();
        let blocks = [1, 2, 3].map(|n| SackBlock { left: Seq(n * 10), right: Seq(n * 10 + 5) });
        segment.push_sack(blocks[0]);
        segment.set_acc_ecn(option);
        segment.push_sack(blocks[1]);
        segment.push_sack(blocks[2]);
        assert_eq!((segment.sack(), segment.acc_ecn()), (&blocks[..2], Some(option)));
        assert_eq!((segment.syn_options(), segment.rest().is_some()), (None, true));
        // Kind 174, length 8, then both counters in network order.
        assert_eq!(option.header(), [174, 8, 0x12, 0x34, 0x56, 0xff, 0xff, 0xfe]);
        // The counter wraps from 2^24 - 2 to 3.
        assert_eq!(AccEcn::increase(option.ce_bytes, 3), 5);
    }

    #[test]
    fn a_syn_and_three_blocks_leave_no_room_for_the_option() {
        let option = AccEcn { field: EctField::Ect0, ect_bytes: 1, ce_bytes: 0 };
        let (mut full, mut syn) = (ack(), ack());
        (0..3).for_each(|n| full.push_sack(SackBlock { left: Seq(n), right: Seq(n + 1) }));
        syn.flags |= Flags::SYN;
        syn.set_syn_options(SynOptions::default());
        for segment in [&mut full, &mut syn] {
            let before = *segment;
            segment.set_acc_ecn(option);
            assert_eq!((*segment, segment.acc_ecn()), (before, None));
        }
    }
}
