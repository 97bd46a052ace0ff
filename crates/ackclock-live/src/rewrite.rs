//! # Rewriting packets in place
//!
//! ## Source
//! RFC 1624 (incremental update of the Internet checksum), equation 3; RFC 3168 for the ECN bits.
//!
//! ## What it does
//! This module writes a regulator's or queue's changes to a segment into the bytes of its packet. The changeable fields
//! are window, acknowledgement number, flags ECE and CWR, and the ECN codepoint of the IP header. Checksums are updated
//! by the difference and never recomputed, so a payload damaged earlier stays detectable. Unchanged packets leave with
//! the same bytes as they arrived.
//!
//! ## Differences from the source
//! The module does not deviate from these RFCs.
//!
//! ## Validation
//! Property tests and the fuzz target `live_rewrite` compare updated checksums with fully computed checksums, over IPv4
//! and IPv6.

use ackclock_core::{Ecn, Flags, Segment};

use crate::parse::{Layout, codepoint};

/// Writes the changes of `segment` into the packet from which it was parsed. If `segment` is opaque, only the ECN
/// codepoint is written; in a packet that is opaque itself only a mark, and only if the packet is ECN-capable.
pub fn rewrite(bytes: &mut [u8], layout: Layout, segment: &Segment) {
    let tcp = match layout {
        Layout::Opaque => return mark(bytes, segment.ecn),
        Layout::Ipv4(offset) | Layout::Ipv6(offset) => usize::from(offset),
    };
    write_codepoint(bytes, segment.ecn);
    // The TCP header of a protected segment stays unchanged.
    if !segment.is_tcp() {
        return;
    }
    let checksum = Some(tcp + CHECKSUM);
    let acknowledges = segment.flags.contains(Flags::ACK);
    // Without the ACK flag the acknowledgement number has no meaning and stays unchanged.
    if acknowledges {
        replace(bytes, tcp + ACK, (segment.ack.0 >> 16) as u16, checksum);
        replace(bytes, tcp + ACK + 2, segment.ack.0 as u16, checksum);
    }
    let flags = (word(bytes, tcp + FLAGS) & !CHANGEABLE) | (u16::from(segment.flags.0) & CHANGEABLE);
    replace(bytes, tcp + FLAGS, flags, checksum);
    replace(bytes, tcp + WINDOW, segment.window, checksum);
}

/// Marks an opaque packet if a queue has marked its segment.
fn mark(bytes: &mut [u8], ecn: Ecn) {
    if ecn == Ecn::Ce && matches!(codepoint(bytes), Some(Ecn::Ect0 | Ecn::Ect1)) {
        write_codepoint(bytes, ecn);
    }
}

/// Writes the ECN codepoint into the IP header.
fn write_codepoint(bytes: &mut [u8], ecn: Ecn) {
    match bytes[0] >> 4 {
        // In an IPv4 header, the type of service shares a 16-bit word with version and header length.
        4 => {
            let word = (word(bytes, 0) & !0x0003) | u16::from(ecn.bits());
            replace(bytes, 0, word, Some(IPV4_CHECKSUM));
        }
        // The traffic class of IPv6 spans the first two bytes, and no checksum covers it.
        _ => {
            let word = (word(bytes, 0) & !0x0030) | (u16::from(ecn.bits()) << 4);
            replace(bytes, 0, word, None);
        }
    }
}

/// Replaces a 16-bit word of the packet, and updates the checksum at offset `checksum` that covers it.
pub(crate) fn replace(bytes: &mut [u8], at: usize, new: u16, checksum: Option<usize>) {
    let old = word(bytes, at);
    if old == new {
        return;
    }
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    if let Some(checksum) = checksum {
        let sum = update(word(bytes, checksum), old, new);
        bytes[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Updates a checksum by RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    // The sum of three words has a carry of at most two; adding the carry can overflow once more.
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Offset of the checksum in an IPv4 header; the next constants are offsets in a TCP header.
const IPV4_CHECKSUM: usize = 10;
const ACK: usize = 8;
const FLAGS: usize = 12;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;
/// TCP flags that a regulator may change.
const CHANGEABLE: u16 = (Flags::ECE.0 | Flags::CWR.0) as u16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use ackclock_core::Seq;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    /// Packet with checksums computed completely by an independent implementation.
    fn recomputed(bytes: &[u8], layout: Layout) -> Vec<u8> {
        use smoltcp::wire::{Ipv4Packet, Ipv6Packet, TcpPacket};
        let mut bytes = bytes.to_vec();
        match layout {
            Layout::Ipv4(tcp) => {
                let mut ip = Ipv4Packet::new_unchecked(&mut bytes[..]);
                ip.fill_checksum();
                let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
                TcpPacket::new_unchecked(&mut bytes[usize::from(tcp)..]).fill_checksum(&from, &to);
            }
            Layout::Ipv6(tcp) => {
                let ip = Ipv6Packet::new_unchecked(&bytes[..]);
                let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
                TcpPacket::new_unchecked(&mut bytes[usize::from(tcp)..]).fill_checksum(&from, &to);
            }
            Layout::Opaque => {}
        }
        bytes
    }

    fn packet(v6: bool, seq: u32, ack: u32, window: u16, payload: &[u8]) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6([3; 16], [4; 16], 9)
        } else {
            PacketBuilder::ipv4([1; 4], [2; 4], 9)
        };
        let mut bytes = Vec::new();
        ip.tcp(1, 2, seq, window).ack(ack).write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn a_segment_that_was_not_changed_leaves_its_packet_alone() {
        for v6 in [false, true] {
            let before = packet(v6, 1, 2, 3, b"payload");
            let mut after = before.clone();
            let parsed = parse(&before);
            rewrite(&mut after, parsed.layout, &parsed.segment);
            assert_eq!(before, after);
        }
    }

    #[test]
    fn an_opaque_packet_is_left_alone_whatever_the_segment_says() {
        let before = vec![0xff; 40];
        let mut after = before.clone();
        rewrite(&mut after, Layout::Opaque, &Segment::pure_ack(Default::default(), Seq(1), 40));
        assert_eq!(before, after);
    }

    #[test]
    fn a_protected_segment_is_only_marked_in_its_ip_header() {
        for v6 in [false, true] {
            let before = packet(v6, 1, 2, 3, b"payload");
            let (mut after, layout) = (before.clone(), parse(&before).layout);
            let mut segment = Segment::opaque(Default::default(), before.len() as u16);
            segment.ecn = Ecn::Ce;
            rewrite(&mut after, layout, &segment);
            let (Layout::Ipv4(tcp) | Layout::Ipv6(tcp)) = layout else { panic!("TCP") };
            assert_eq!(after[usize::from(tcp)..], before[usize::from(tcp)..]);
            assert_eq!(parse(&after).segment.ecn, Ecn::Ce);
        }
    }

    #[test]
    fn a_datagram_is_marked_if_it_is_ecn_capable_and_otherwise_left_alone() {
        for (version, codepoint) in [(4, 0u8), (4, 1), (4, 2), (6, 0), (6, 1), (6, 2)] {
            let mut before = Vec::new();
            let ip = if version == 6 {
                PacketBuilder::ipv6([3; 16], [4; 16], 9)
            } else {
                PacketBuilder::ipv4([1; 4], [2; 4], 9)
            };
            ip.udp(443, 4000).write(&mut before, b"quic").unwrap();
            let shift = if version == 6 { 4 } else { 0 };
            let checksum = (version == 4).then_some(IPV4_CHECKSUM);
            let capable = word(&before, 0) | u16::from(codepoint) << shift;
            replace(&mut before, 0, capable, checksum);
            let parsed = parse(&before);
            assert_eq!((parsed.layout, parsed.segment.ecn), (Layout::Opaque, Ecn::from_bits(codepoint)));
            let mut segment = parsed.segment;
            segment.ecn = Ecn::Ce;
            let mut after = before.clone();
            rewrite(&mut after, parsed.layout, &segment);
            let marked = if codepoint == 0 { Ecn::NotEct } else { Ecn::Ce };
            // The checksum of the header is right, or the codepoint could not be read.
            assert_eq!((parse(&after).tuple, parse(&after).segment.ecn), (parsed.tuple, marked));
            assert_eq!(after[12..], before[12..]);
        }
    }

    #[test]
    fn the_example_of_the_rfc_comes_out() {
        // The example of RFC 1624 section 4: HC = DD2F, m = 5555, m' = 3285 give HC' = 0000.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn checksums_are_those_of_a_full_computation(
            v6: bool, seq: u32, ack: u32, window: u16, new_ack: u32, new_window: u16, flags: u8, mark: bool,
            payload in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes = packet(v6, seq, ack, window, &payload);
            let parsed = parse(&bytes);
            prop_assert!(parsed.segment.is_tcp());
            let mut segment = parsed.segment;
            segment.ack = Seq(new_ack);
            segment.window = new_window;
            segment.flags |= Flags(flags & (Flags::ECE | Flags::CWR).0);
            segment.ecn = if mark { Ecn::Ce } else { segment.ecn };
            rewrite(&mut bytes, parsed.layout, &segment);
            prop_assert_eq!(&recomputed(&bytes, parsed.layout), &bytes);
            prop_assert_eq!(parse(&bytes).segment, segment);
        }
    }
}
