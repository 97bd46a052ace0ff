//! # A hop with a smaller MTU
//!
//! ## Source
//! RFC 791 (fragmentation), RFC 1191 and RFC 1812 section 4.3.2 (IPv4), RFC 8201 and RFC 4443 (IPv6), RFC 2923 (black
//! holes).
//!
//! ## What it does
//! The hop stands in front of the link in both directions and forwards packets of at most its MTU. It fragments a larger
//! IPv4 packet without DF, and drops every other larger packet. The sender of a dropped packet gets ICMP type 3 code 4 or
//! ICMPv6 type 2, with the MTU of the hop, at once: at most [`MOST_MESSAGES`] in a second. A black hole sends no messages.
//!
//! ## Differences from the source
//! Fragments keep all IP options. IPv6 packets of up to 1280 bytes pass any hop, because a link with a smaller MTU
//! fragments below IPv6 (RFC 8200 section 5). The hop does not decrement the TTL. Messages to the wired side come from the
//! address inside, because the router's address belongs to the wired side's kernel, which would not accept them.
//!
//! ## Validation
//! Unit tests parse the fragments and messages with an independent parser. Tests of `ackclock link` observe the kernel:
//! its path MTU falls to the MTU of the hop, TCP continues with smaller segments, and a black hole stalls TCP until the
//! kernel probes (RFC 4821).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ackclock_core::Time;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr};

use crate::namespace::{Pair, v6};
use crate::port::Side;

/// Maximum number of messages to one sender in a second.
pub const MOST_MESSAGES: u8 = 10;

/// A hop with a smaller MTU than the links around it.
#[derive(Clone, Debug)]
pub struct Hop {
    mtu: u16,
    /// Addresses from which messages come, by the side of the dropped packet; `None` for a black hole.
    addresses: Option<[Addresses; 2]>,
    limit: Limit,
}

type Addresses = (Ipv4Addr, Ipv6Addr);

/// Numbers of messages sent in the current second.
#[derive(Clone, Debug, Default)]
struct Limit {
    second: u64,
    sent: BTreeMap<IpAddr, u8>,
}

impl Hop {
    /// Creates a hop between the two ends of a link that tells senders its MTU.
    pub fn new(mtu: u16, pair: &Pair) -> Self {
        let addresses = [pair.inside, pair.router()].map(|address| (address, v6(address)));
        Self { mtu, addresses: Some(addresses), limit: Limit::default() }
    }

    /// Creates a hop that drops larger packets silently.
    pub fn black_hole(mtu: u16) -> Self {
        Self { mtu, addresses: None, limit: Limit::default() }
    }

    /// Whether the hop forwards a packet unchanged.
    pub(crate) fn passes(&self, packet: &[u8]) -> bool {
        packet.len()
            <= usize::from(if version(packet) == Some(6) { self.mtu.max(LEAST_V6) } else { self.mtu })
    }

    /// Writes the fragment of an IPv4 packet that starts at byte `at` of its data, and returns the length of the fragment
    /// and the number of data bytes in it. Returns `None` at the end of the data, and for packets that must not be
    /// fragmented.
    pub(crate) fn fragment(&self, packet: &[u8], at: usize, out: &mut [u8]) -> Option<(usize, usize)> {
        if version(packet) != Some(4) {
            return None;
        }
        let whole = Ipv4Packet::new_checked(packet).ok().filter(|whole| !whole.dont_frag())?;
        let header = usize::from(whole.header_len());
        let data = whole.payload().get(at..).filter(|data| !data.is_empty())?;
        let room = usize::from(self.mtu).checked_sub(header)?;
        let is_last = data.len() <= room;
        let length = if is_last { data.len() } else { room & !7 };
        let out = out.get_mut(..header + length)?;
        out[..header].copy_from_slice(packet.get(..header)?);
        out[header..].copy_from_slice(&data[..length]);
        let mut part = Ipv4Packet::new_unchecked(out);
        part.set_total_len((header + length) as u16);
        part.set_frag_offset(whole.frag_offset() + at as u16);
        part.set_more_frags(!is_last || whole.more_frags());
        part.fill_checksum();
        Some((header + length, length))
    }

    /// Writes the message to the sender of a dropped packet that came from the side `from`, and returns its length.
    /// Returns `None` if the sender gets no message.
    pub(crate) fn message(&mut self, now: Time, from: Side, packet: &[u8], out: &mut [u8]) -> Option<usize> {
        let (own, own6) = self.addresses?[from as usize];
        match version(packet)? {
            4 => {
                let sender = sender_v4(&Ipv4Packet::new_checked(packet).ok()?)?;
                self.limit
                    .allows(now, sender.into())
                    .then(|| too_big_v4(self.mtu, (own, sender), packet, out))?
            }
            6 => {
                let sender = sender_v6(&Ipv6Packet::new_checked(packet).ok()?)?;
                let mtu = self.mtu.max(LEAST_V6);
                self.limit.allows(now, sender.into()).then(|| too_big_v6(mtu, (own6, sender), packet, out))?
            }
            _ => None,
        }
    }
}

impl Limit {
    fn allows(&mut self, now: Time, sender: IpAddr) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            *self = Self { second, sent: BTreeMap::new() };
        }
        if self.sent.len() >= MOST_SENDERS && !self.sent.contains_key(&sender) {
            return false;
        }
        let sent = self.sent.entry(sender).or_default();
        let allowed = *sent < MOST_MESSAGES;
        *sent += u8::from(allowed);
        allowed
    }
}

/// Maximum number of senders that get messages in the same second, which limits memory.
const MOST_SENDERS: usize = 1024;
/// Smallest MTU of a link under IPv6 (RFC 8200 section 5).
const LEAST_V6: u16 = 1280;
/// Maximum length of an ICMP message (RFC 1812 section 4.3.2.3).
const LONGEST_V4: usize = 576;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;
const HOP_LIMIT: u8 = 64;

fn version(packet: &[u8]) -> Option<u8> {
    packet.first().map(|first| first >> 4)
}

/// Address of the host that gets a message about a packet; `None` if no message may be sent about the packet (RFC 1812
/// section 4.3.2.7).
fn sender_v4(packet: &Ipv4Packet<&[u8]>) -> Option<Ipv4Addr> {
    let (sender, receiver) = (packet.src_addr(), packet.dst_addr());
    let is_host =
        !(sender.is_unspecified() || sender.is_loopback() || sender.is_multicast() || sender.is_broadcast());
    let is_error = packet.next_header() == IpProtocol::Icmp
        && matches!(packet.payload().first(), Some(3 | 4 | 5 | 11 | 12));
    let is_first = packet.frag_offset() == 0;
    (is_host && is_first && !is_error && !receiver.is_multicast() && !receiver.is_broadcast())
        .then_some(sender)
}

/// Address of the host that gets a message about a packet; `None` if no message may be sent about the packet (RFC 4443
/// section 2.4).
fn sender_v6(packet: &Ipv6Packet<&[u8]>) -> Option<Ipv6Addr> {
    let sender = packet.src_addr();
    let is_host = !(sender.is_unspecified() || sender.is_loopback() || sender.is_multicast());
    let is_error = packet.next_header() == IpProtocol::Icmpv6
        && packet.payload().first().is_some_and(|kind| *kind < 128);
    (is_host && !is_error).then_some(sender)
}

/// Writes ICMP type 3 code 4 with as much of the dropped packet as fits.
fn too_big_v4(mtu: u16, (from, to): (Ipv4Addr, Ipv4Addr), packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let quoted = packet.get(..packet.len().min(LONGEST_V4 - IPV4_HEADER - ICMP_HEADER))?;
    let payload_len = ICMP_HEADER + quoted.len();
    let out = out.get_mut(..IPV4_HEADER + payload_len)?;
    let ip = Ipv4Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Icmp,
        payload_len,
        hop_limit: HOP_LIMIT,
    };
    let mut header = Ipv4Packet::new_unchecked(&mut *out);
    ip.emit(&mut header, &ChecksumCapabilities::ignored());
    header.fill_checksum();
    let [high, low] = mtu.to_be_bytes();
    out[IPV4_HEADER..][..ICMP_HEADER].copy_from_slice(&[3, 4, 0, 0, 0, 0, high, low]);
    out[IPV4_HEADER + ICMP_HEADER..].copy_from_slice(quoted);
    Icmpv4Packet::new_unchecked(&mut out[IPV4_HEADER..]).fill_checksum();
    Some(out.len())
}

/// Writes ICMPv6 type 2 with as much of the dropped packet as fits.
fn too_big_v6(mtu: u16, (from, to): (Ipv6Addr, Ipv6Addr), packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let quoted = packet.get(..packet.len().min(usize::from(LEAST_V6) - IPV6_HEADER - ICMP_HEADER))?;
    let payload_len = ICMP_HEADER + quoted.len();
    let out = out.get_mut(..IPV6_HEADER + payload_len)?;
    let ip = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Icmpv6,
        payload_len,
        hop_limit: HOP_LIMIT,
    };
    ip.emit(&mut Ipv6Packet::new_unchecked(&mut *out));
    let [high, low] = mtu.to_be_bytes();
    out[IPV6_HEADER..][..ICMP_HEADER].copy_from_slice(&[2, 0, 0, 0, 0, 0, high, low]);
    out[IPV6_HEADER + ICMP_HEADER..].copy_from_slice(quoted);
    Icmpv6Packet::new_unchecked(&mut out[IPV6_HEADER..]).fill_checksum(&from, &to);
    Some(out.len())
}

#[cfg(test)]
mod tests {
    use ackclock_core::Span;
    use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, icmpv4};

    use super::*;

    const PAIR: Pair = Pair { base: Ipv4Addr::new(100, 64, 0, 1), inside: Ipv4Addr::new(100, 64, 0, 2) };

    /// A UDP packet of this size; with DF over IPv4.
    fn packet(is_v6: bool, size: usize) -> Vec<u8> {
        let ip = if is_v6 {
            PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 9)
        } else {
            PacketBuilder::ipv4([9; 4], [8; 4], 9)
        };
        let mut bytes = Vec::new();
        let payload: Vec<u8> = (0..size - if is_v6 { 48 } else { 28 }).map(|at| at as u8).collect();
        ip.udp(1, 2).write(&mut bytes, &payload).unwrap();
        bytes
    }

    fn fragmentable(size: usize) -> Vec<u8> {
        let mut bytes = packet(false, size);
        let mut ip = Ipv4Packet::new_unchecked(&mut bytes[..]);
        ip.set_dont_frag(false);
        ip.set_ident(77);
        ip.fill_checksum();
        bytes
    }

    fn fragments(hop: &Hop, packet: &[u8]) -> Vec<Vec<u8>> {
        let (mut at, mut all) = (0, Vec::new());
        let mut out = [0; 1500];
        while let Some((length, data)) = hop.fragment(packet, at, &mut out) {
            all.push(out[..length].to_vec());
            at += data;
        }
        all
    }

    #[test]
    fn fragments_are_the_packet_in_parts_and_may_be_fragmented_again() {
        let whole = fragmentable(1500);
        for most in [576, 580, 1280, 1499] {
            let hop = Hop::black_hole(most);
            let mut parts = fragments(&hop, &whole);
            assert!(parts.iter().all(|part| hop.passes(part)), "{most}");
            if most > 1000 {
                parts = parts.iter().flat_map(|part| fragments(&Hop::black_hole(600), part)).collect();
            }
            let mut data = vec![0; 1480];
            let mut more = Vec::new();
            for part in &parts {
                let ip = SlicedPacket::from_ip(part).unwrap();
                let Some(NetSlice::Ipv4(ip)) = ip.net else { panic!("no IPv4") };
                let header = ip.header();
                assert_eq!((header.identification(), header.source()), (77, [9; 4]));
                assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
                let at = usize::from(header.fragments_offset().value()) * 8;
                data[at..at + ip.payload().payload.len()].copy_from_slice(ip.payload().payload);
                more.push(header.more_fragments());
            }
            assert_eq!(data, whole[20..], "{most}");
            assert_eq!(more.iter().filter(|more| !**more).count(), 1, "{most}: {more:?}");
            assert_eq!(more.last(), Some(&false));
        }
        assert!(fragments(&Hop::black_hole(576), &packet(false, 1500)).is_empty(), "DF");
        assert!(fragments(&Hop::black_hole(576), &packet(true, 1500)).is_empty(), "IPv6");
    }

    #[test]
    fn a_message_has_the_mtu_and_the_packets_first_bytes() {
        let mut hop = Hop::new(1300, &PAIR);
        let mut out = [0; 1500];
        for (side, from) in [(Side::Radio, PAIR.router()), (Side::Wired, PAIR.inside)] {
            let big = packet(false, 1301);
            let length = hop.message(Time::ZERO, side, &big, &mut out).unwrap();
            let told = SlicedPacket::from_ip(&out[..length]).unwrap();
            let Some(NetSlice::Ipv4(ip)) = &told.net else { panic!("no IPv4") };
            assert_eq!((ip.header().source_addr(), ip.header().destination()), (from, [9; 4]));
            let Some(TransportSlice::Icmpv4(icmp)) = &told.transport else { panic!("no ICMP") };
            let kind = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1300 };
            assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(kind));
            assert!(icmp.payload() == &big[..548] && length == 576);
            assert!(icmp.icmp_type().calc_checksum(icmp.payload()) == icmp.checksum());

            let big = packet(true, 1301);
            let mut out = [0; 1500];
            let length = hop.message(Time::ZERO, side, &big, &mut out).unwrap();
            let told = SlicedPacket::from_ip(&out[..length]).unwrap();
            let Some(NetSlice::Ipv6(ip)) = &told.net else { panic!("no IPv6") };
            assert_eq!(ip.header().source_addr(), v6(from));
            let Some(TransportSlice::Icmpv6(icmp)) = &told.transport else { panic!("no ICMPv6") };
            assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1300 });
            assert!(icmp.payload() == &big[..1232] && length == 1280);
            let (source, destination) = (ip.header().source(), ip.header().destination());
            assert!(icmp.is_checksum_valid(source, destination));
        }
    }

    #[test]
    fn each_sender_gets_ten_messages_in_a_second_and_a_black_hole_sends_none() {
        let (mut hop, mut out) = (Hop::new(1280, &PAIR), [0; 1500]);
        let mut other = packet(false, 1500);
        other[12] = 10;
        for second in 0..3 {
            for big in [&packet(false, 1500), &packet(true, 1500), &other] {
                let at = |n: u64| Time::ZERO + Span::from_secs(second) + Span::from_millis(n);
                let told =
                    (0..100).filter(|n| hop.message(at(*n), Side::Radio, big, &mut out).is_some()).count();
                assert_eq!(told, 10);
            }
        }
        assert_eq!(Hop::black_hole(1280).message(Time::ZERO, Side::Radio, &other, &mut out), None);
    }

    #[test]
    fn memory_for_senders_is_limited() {
        let mut limit = Limit::default();
        let told = (0..5000u32).filter(|n| limit.allows(Time::ZERO, Ipv4Addr::from(*n).into())).count();
        assert_eq!((told, limit.sent.len()), (MOST_SENDERS, MOST_SENDERS));
    }

    #[test]
    fn no_message_answers_an_error_a_later_fragment_or_a_group() {
        let mut hop = Hop::new(1280, &PAIR);
        let mut told = |bytes: &[u8]| hop.message(Time::ZERO, Side::Radio, bytes, &mut [0; 1500]).is_some();
        let changed = |changes: &[(usize, u8)], is_v6: bool| {
            let mut bytes = packet(is_v6, 1500);
            changes.iter().for_each(|&(at, value)| bytes[at] = value);
            bytes
        };
        assert!(told(&changed(&[], false)) && told(&changed(&[], true)));
        assert!(told(&changed(&[(9, 1), (20, 8)], false)), "an echo request");
        assert!(told(&changed(&[(24, 0xff)], true)), "RFC 4443: also about packets to a group");
        for (what, changes, is_v6) in [
            ("an error", &[(9, 1), (20, 3)][..], false),
            ("a later fragment", &[(7, 1)], false),
            ("to a group", &[(16, 224)], false),
            ("from a group", &[(12, 224)], false),
            ("an error", &[(6, 58), (40, 2)], true),
            ("from a group", &[(8, 0xff)], true),
            ("no IP", &[(0, 0)], false),
        ] {
            assert!(!told(&changed(changes, is_v6)), "{what}, IPv6 {is_v6}");
        }
    }

    #[test]
    fn ipv6_packets_of_1280_bytes_pass_every_hop() {
        let hop = Hop::new(576, &PAIR);
        assert!(hop.passes(&packet(true, 1280)) && !hop.passes(&packet(true, 1281)));
        assert!(hop.passes(&packet(false, 576)) && !hop.passes(&packet(false, 577)));
    }
}
