//! # Reading packets
//!
//! ## Source
//! RFC 791, RFC 8200 (IPv6 and its extension headers), RFC 9293, RFC 7323, RFC 2018, RFC 3168.
//!
//! ## What it does
//! This parser converts the bytes of an IP packet to a [`Segment`]: TCP with its options, or an opaque packet of a
//! certain size. The parser also returns the packet's addresses and ports ([`Tuple`]) and the offset of its TCP header
//! ([`Layout`]), so that fields can be changed in place.
//!
//! Packets that a regulator could not change safely are opaque and never changed. A packet is opaque if it is not TCP,
//! is a fragment, has malformed headers or options, or has a wrong IP or TCP checksum. Packets with remaining source
//! route hops are opaque, because their pseudo-header has another destination. TCP segments with an option that forbids
//! changes of the header ([`ackclock_core::PROTECTING_OPTIONS`]) are protected: they are parsed, and never regulated.
//!
//! ## Differences from the source
//! Only the first three of four SACK blocks are parsed. Jumbograms (RFC 2675) are opaque. A window scale above 14
//! counts as 14 (RFC 7323 section 2.3).
//!
//! ## Validation
//! Unit tests compare the parser with an independent builder of packets; property tests and the fuzz target
//! `live_parse` use random and mutated bytes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use ackclock_core::{
    Ecn, Flags, FlowId, LARGEST_WINDOW_SCALE, SackBlock, Segment, Seq, SynOptions, Timestamps, is_protected,
};
use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, Ipv6ExtHeader, Ipv6Packet, TcpOption, TcpPacket};

/// Parsed contents of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Parsed segment; its flow and its raw packet are not set.
    pub segment: Segment,
    /// Addresses, ports and protocol; `None` if the packet is not IP.
    pub tuple: Option<Tuple>,
    /// Offsets of the packet's headers.
    pub layout: Layout,
    /// Whether the packet is a TCP segment whose options forbid changes of its header.
    pub protected: bool,
}

/// Addresses, ports and protocol of a packet; ports are 0 if unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// Source of the packet.
    pub source: End,
    /// Destination of the packet.
    pub destination: End,
    /// IP protocol number.
    pub protocol: u8,
}

/// IP address and port of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// IP address of the end.
    pub address: std::net::IpAddr,
    /// Port number of the end.
    pub port: u16,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.address, self.port).fmt(f)
    }
}

/// Offsets of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Layout {
    /// Packet that is not TCP or cannot be read. It is passed on unchanged, except that a queue may set its ECN field.
    #[default]
    Opaque,
    /// TCP over IPv4, with the TCP header at this offset.
    Ipv4(u16),
    /// TCP over IPv6, with the TCP header at this offset.
    Ipv6(u16),
}

/// Parses a packet. Parsing never fails: unreadable packets are opaque. An opaque packet has the ECN codepoint of its IP
/// header, if that can be read.
pub fn parse(bytes: &[u8]) -> Parsed {
    let network = network(bytes);
    let mut opaque = Segment::opaque(FlowId::default(), u16::try_from(bytes.len()).unwrap_or(u16::MAX));
    let Some(network) = network else {
        return Parsed { segment: opaque, tuple: None, layout: Layout::Opaque, protected: false };
    };
    let tuple = Some(network.tuple());
    match network.tcp(bytes.len()) {
        Some((segment, protected)) => Parsed { segment, tuple, layout: network.layout, protected },
        None => {
            opaque.ecn = network.ecn;
            Parsed { segment: opaque, tuple, layout: Layout::Opaque, protected: false }
        }
    }
}

/// ECN codepoint in the IP header of a packet; `None` if the header cannot be read.
pub(crate) fn codepoint(bytes: &[u8]) -> Option<Ecn> {
    network(bytes).map(|network| network.ecn)
}

/// Identification of a fragment's datagram (RFC 791 section 3.2, RFC 8200 section 4.5). The source comes first, so that
/// the table lists the datagrams of one source together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Datagram {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number in IPv4; the number of the fragment header in IPv6.
    pub protocol: u8,
    /// Identification field.
    pub identification: u32,
}

impl Datagram {
    const fn of(tuple: &Tuple, protocol: u8, identification: u32) -> Self {
        let Tuple { source, destination, .. } = *tuple;
        Self { source: source.address, destination: destination.address, protocol, identification }
    }
}

/// Fragment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Packet to which the fragment belongs.
    pub datagram: Datagram,
    /// Addresses, protocol, and the ports if this is the first fragment.
    pub tuple: Tuple,
    /// Whether this is the first fragment, which has the ports.
    pub is_first: bool,
}

/// Parses a fragment (RFC 791 section 3.2, RFC 8200 section 4.5); `None` for a complete or unreadable packet.
pub fn fragment(bytes: &[u8]) -> Option<Fragment> {
    match bytes.first()? >> 4 {
        4 => fragment_v4(bytes),
        6 => fragment_v6(bytes),
        _ => None,
    }
}

fn fragment_v4(bytes: &[u8]) -> Option<Fragment> {
    let network = ipv4(bytes)?;
    let packet = Ipv4Packet::new_unchecked(bytes);
    let is_first = packet.frag_offset() == 0;
    if is_first && !packet.more_frags() {
        return None;
    }
    let transport = if is_first { packet.payload() } else { &[] };
    let protocol = network.protocol.into();
    let tuple = Network { transport, ..network }.tuple();
    Some(Fragment { datagram: Datagram::of(&tuple, protocol, packet.ident().into()), tuple, is_first })
}

fn fragment_v6(bytes: &[u8]) -> Option<Fragment> {
    let network = ipv6(bytes)?;
    let packet = Ipv6Packet::new_unchecked(bytes);
    let (IpProtocol::Ipv6Frag, Err(at)) = skip_extensions(packet.next_header(), packet.payload()) else {
        return None;
    };
    let (header, rest) = packet.payload().get(at..)?.split_at_checked(8)?;
    let next = IpProtocol::from(header[0]);
    let is_first = u16::from_be_bytes([header[2], header[3]]) >> 3 == 0;
    let (protocol, skipped) = if is_first { skip_extensions(next, rest) } else { (next, Ok(0)) };
    let transport =
        skipped.ok().filter(|_| is_first).and_then(|skipped| rest.get(skipped..)).unwrap_or_default();
    let identification = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let tuple = Network { protocol, transport, ..network }.tuple();
    let datagram = Datagram::of(&tuple, IpProtocol::Ipv6Frag.into(), identification);
    Some(Fragment { datagram, tuple, is_first })
}

/// Position of the bytes behind the transport header of a packet, which only the receiver's checksum covers. The range
/// is empty for a fragment and for a protocol other than TCP, UDP and ICMP.
pub fn payload(bytes: &[u8]) -> Range<usize> {
    let Some(Network { protocol, transport, layout: Layout::Ipv4(at) | Layout::Ipv6(at), .. }) =
        network(bytes)
    else {
        return 0..0;
    };
    let header = match (protocol, transport.get(DATA_OFFSET)) {
        (IpProtocol::Tcp, Some(offset)) => usize::from(offset >> 4) * 4,
        (IpProtocol::Udp | IpProtocol::Icmp | IpProtocol::Icmpv6, _) => 8,
        _ => return 0..0,
    };
    usize::from(at) + header..usize::from(at) + transport.len()
}

/// Differentiated services code point (DSCP) of an IP packet, 0 to 63; 0 for other packets.
pub fn services(bytes: &[u8]) -> u8 {
    match *bytes {
        [first, second, ..] if first >> 4 == 4 => second >> 2,
        [first, second, ..] if first >> 4 == 6 => (first & 0xf) << 2 | second >> 6,
        _ => 0,
    }
}

struct Network<'a> {
    source: IpAddress,
    destination: IpAddress,
    protocol: IpProtocol,
    ecn: Ecn,
    /// Bytes after the IP headers; empty for a fragment.
    transport: &'a [u8],
    layout: Layout,
}

fn network(bytes: &[u8]) -> Option<Network<'_>> {
    match bytes.first()? >> 4 {
        4 => ipv4(bytes),
        6 => ipv6(bytes),
        _ => None,
    }
}

fn ipv4(bytes: &[u8]) -> Option<Network<'_>> {
    const LEAST_HEADER: u8 = 20;
    let packet = Ipv4Packet::new_checked(bytes).ok()?;
    if packet.header_len() < LEAST_HEADER || !packet.verify_checksum() {
        return None;
    }
    let fragment = packet.more_frags() || packet.frag_offset() != 0;
    Some(Network {
        source: packet.src_addr().into(),
        destination: packet.dst_addr().into(),
        protocol: packet.next_header(),
        ecn: Ecn::from_bits(packet.ecn()),
        transport: if fragment { &[] } else { packet.payload() },
        layout: Layout::Ipv4(packet.header_len().into()),
    })
}

fn ipv6(bytes: &[u8]) -> Option<Network<'_>> {
    let packet = Ipv6Packet::new_checked(bytes).ok()?;
    let (protocol, skipped) = skip_extensions(packet.next_header(), packet.payload());
    let skipped = skipped.ok();
    let transport = skipped.and_then(|skipped| packet.payload().get(skipped..)).unwrap_or_default();
    // The offset fits into 16 bits: an IPv6 payload has at most 65535 bytes and is not empty if it contains TCP.
    let offset = u16::try_from(packet.header_len() + skipped.unwrap_or(0)).ok()?;
    Some(Network {
        source: packet.src_addr().into(),
        destination: packet.dst_addr().into(),
        protocol,
        ecn: Ecn::from_bits(packet.traffic_class()),
        transport,
        layout: Layout::Ipv6(offset),
    })
}

/// Protocol after the extension headers, and the length of the headers. If the bytes after them cannot be parsed, the
/// error is the position of the header at which parsing ended.
fn skip_extensions(mut next: IpProtocol, payload: &[u8]) -> (IpProtocol, Result<usize, usize>) {
    // RFC 8200 section 4.1 allows seven extension headers; longer chains are not followed.
    const MOST: usize = 8;
    let mut at = 0;
    for _ in 0..MOST {
        match next {
            IpProtocol::HopByHop | IpProtocol::Ipv6Opts | IpProtocol::Ipv6Route => {}
            IpProtocol::Ipv6Frag => return (next, Err(at)),
            _ => return (next, Ok(at)),
        }
        let rest = payload.get(at..).unwrap_or_default();
        let Ok(header) = Ipv6ExtHeader::new_checked(rest) else { return (next, Err(at)) };
        // The fourth byte of a routing header is the number of remaining hops (RFC 8200 section 4.4).
        if next == IpProtocol::Ipv6Route && rest[3] != 0 {
            return (next, Err(at));
        }
        next = header.next_header();
        at += (usize::from(header.header_len()) + 1) * 8;
    }
    (next, Err(at))
}

impl Network<'_> {
    /// Addresses and ports of the packet. Every protocol with ports has them first in its header.
    fn tuple(&self) -> Tuple {
        let port = |at: usize| match (self.protocol, self.transport.get(at..at + 2)) {
            (IpProtocol::Tcp | IpProtocol::Udp, Some(&[high, low])) => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        Tuple {
            source: End { address: self.source.into(), port: port(0) },
            destination: End { address: self.destination.into(), port: port(2) },
            protocol: self.protocol.into(),
        }
    }

    /// Parsed segment, and whether its options forbid changes, if the packet is TCP and can be trusted.
    fn tcp(&self, wire_bytes: usize) -> Option<(Segment, bool)> {
        if self.protocol != IpProtocol::Tcp {
            return None;
        }
        let tcp = TcpPacket::new_checked(self.transport).ok()?;
        if !tcp.verify_checksum(&self.source, &self.destination) {
            return None;
        }
        let payload = u16::try_from(tcp.payload().len()).ok()?;
        let header = u16::try_from(wire_bytes - usize::from(payload)).ok()?;
        let mut segment = Segment::data(FlowId::default(), Seq(tcp.seq_number().0 as u32), payload, header);
        segment.ack = Seq(tcp.ack_number().0 as u32);
        segment.window = tcp.window_len();
        segment.flags = Flags(self.transport[FLAGS]);
        segment.set_ae(self.transport[DATA_OFFSET] & AE != 0);
        segment.ecn = self.ecn;
        options(&mut segment, tcp.options())?;
        Some((segment, is_protected(tcp.options(), segment.flags)))
    }
}

/// Parses the TCP options into `segment`; `None` if they are malformed.
fn options(segment: &mut Segment, mut rest: &[u8]) -> Option<()> {
    let mut syn = SynOptions::default();
    while !rest.is_empty() {
        let option;
        (rest, option) = TcpOption::parse(rest).ok()?;
        match option {
            TcpOption::EndOfList => break,
            TcpOption::NoOperation => {}
            TcpOption::MaxSegmentSize(mss) => syn.mss = Some(mss),
            TcpOption::WindowScale(shift) => syn.window_scale = Some(shift.min(LARGEST_WINDOW_SCALE)),
            TcpOption::SackPermitted => syn.sack_permitted = true,
            TcpOption::SackRange(ranges) if !segment.flags.intersects(Flags::SYN) => {
                for (left, right) in ranges.into_iter().flatten() {
                    segment.push_sack(SackBlock { left: Seq(left), right: Seq(right) });
                }
            }
            TcpOption::SackRange(_) => {}
            TcpOption::TimeStamp { tsval, tsecr } => {
                segment.set_timestamps(Timestamps { value: tsval, echo: tsecr });
            }
            TcpOption::Unknown { .. } => {}
        }
    }
    if segment.flags.intersects(Flags::SYN) {
        segment.set_syn_options(syn);
    }
    Some(())
}

/// Offset of the flags in a TCP header.
const FLAGS: usize = 13;
/// Offset of the byte whose upper half is the length of a TCP header in words.
const DATA_OFFSET: usize = 12;
/// Control bit AE in the byte of the data offset (RFC 9768 section 3.1).
const AE: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpNumber, Ipv6RawExtHeader, PacketBuilder, TcpOptionElement};
    use proptest::prelude::*;

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];

    fn v4(options: &[TcpOptionElement], payload: &[u8]) -> Vec<u8> {
        let builder = PacketBuilder::ipv4(A, B, 64).tcp(80, 4000, 1000, 500).ack(7).options(options).unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    fn v6_extended() -> Vec<u8> {
        let (from, to) = ([1; 16], [2; 16]);
        let mut bytes = Vec::new();
        PacketBuilder::ipv6(from, to, 64).tcp(80, 4000, 1000, 500).write(&mut bytes, b"data").unwrap();
        // Inserts a hop-by-hop and a destination header of 8 and 16 bytes, which the TCP checksum does not cover.
        let mut headers = Vec::new();
        let hop = Ipv6RawExtHeader::new_raw(IpNumber::IPV6_DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0]).unwrap();
        let to_end =
            Ipv6RawExtHeader::new_raw(IpNumber::TCP, &[1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        hop.write(&mut headers).unwrap();
        to_end.write(&mut headers).unwrap();
        bytes[6] = IpNumber::IPV6_HEADER_HOP_BY_HOP.0;
        bytes.splice(40..40, headers);
        let length = (bytes.len() - 40) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn a_data_segment_is_read_field_by_field() {
        let blocks = [Some((20, 30)), Some((40, 50)), None];
        let options = [
            TcpOptionElement::Timestamp(111, 222),
            TcpOptionElement::SelectiveAcknowledgement((2, 3), blocks),
        ];
        let parsed = parse(&v4(&options, b"hello"));
        let ackclock_core::Head { seq, ack, window, flags, payload, .. } = *parsed.segment.head();
        assert_eq!((seq, ack, window, flags, payload), (Seq(1000), Seq(7), 500, Flags::ACK, 5));
        assert_eq!(parsed.segment.timestamps(), Some(Timestamps { value: 111, echo: 222 }));
        assert_eq!(parsed.segment.sack().len(), 3);
        assert_eq!(parsed.segment.sack()[1], SackBlock { left: Seq(20), right: Seq(30) });
        // The packet has 20 B of IP header, 20 B of TCP header, 10 + 26 B of options in 36 B, and 5 B of payload.
        assert_eq!((parsed.segment.wire_bytes(), parsed.layout), (81, Layout::Ipv4(20)));
        let tuple = parsed.tuple.unwrap();
        assert_eq!((tuple.source.port, tuple.destination.port, tuple.protocol), (80, 4000, 6));
    }

    #[test]
    fn a_syn_offers_its_options_and_its_scale_ends_at_14() {
        let options = [
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::WindowScale(200),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
        ];
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv4(A, B, 64).tcp(80, 4000, 1, 500).syn().options(&options).unwrap();
        builder.write(&mut bytes, &[]).unwrap();
        let offered = SynOptions { mss: Some(1460), window_scale: Some(14), sack_permitted: true };
        assert_eq!(parse(&bytes).segment.syn_options(), Some(offered));
    }

    #[test]
    fn tcp_is_found_behind_extension_headers() {
        let parsed = parse(&v6_extended());
        assert_eq!((parsed.layout, parsed.segment.payload), (Layout::Ipv6(64), 4));
        assert_eq!(parsed.tuple.unwrap().source.address, std::net::IpAddr::from([1; 16]));
    }

    #[test]
    fn what_a_regulator_could_not_act_on_is_opaque() {
        let sound = v4(&[], b"hello");
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = sound.clone();
            change(&mut bytes);
            // The test corrects the IP checksum, so that only the change itself is tested.
            bytes[10..12].fill(0);
            let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes[..20]).ones_complement();
            bytes[10..12].copy_from_slice(&sum.to_ne_bytes());
            parse(&bytes)
        };
        assert!(with(&|_| {}).segment.is_tcp(), "the change is none");
        type Change<'a> = (&'a str, &'a dyn Fn(&mut Vec<u8>));
        let changes: [Change<'_>; 6] = [
            ("a checksum that is wrong", &|bytes| bytes[40] ^= 1),
            ("a fragment", &|bytes| bytes[6] |= 0x20),
            ("the rest of a fragment", &|bytes| bytes[7] = 1),
            ("a header longer than the packet", &|bytes| bytes[32] = 0xf0),
            ("a header shorter than it can be", &|bytes| bytes[32] = 0x40),
            ("UDP", &|bytes| bytes[9] = 17),
        ];
        for (what, change) in changes {
            let parsed = with(change);
            assert!(!parsed.segment.is_tcp() && parsed.layout == Layout::Opaque, "{what}");
            assert_eq!(parsed.segment.wire_bytes(), 45, "{what}");
        }
        assert_eq!(parse(&[]).tuple, None);
        assert_eq!(parse(&sound[..19]).tuple, None, "truncated");
        assert!(with(&|bytes| bytes[6] |= 0x20).tuple.unwrap().source.port == 0, "a fragment has no ports");
    }

    #[test]
    fn segments_whose_options_forbid_changes_are_protected() {
        for kind in (0..=u8::MAX).filter(|kind| ![0, 1, 2, 3, 4, 5, 8].contains(kind)) {
            for flags in [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK] {
                let tcp = PacketBuilder::ipv4(A, B, 64).tcp(80, 4000, 1000, 500);
                let tcp = tcp.options_raw(&[kind, 4, 0, 1]).unwrap();
                let tcp = if flags.intersects(Flags::SYN) { tcp.syn() } else { tcp };
                let tcp = if flags.contains(Flags::ACK) { tcp.ack(7) } else { tcp };
                let mut bytes = Vec::new();
                tcp.write(&mut bytes, &[]).unwrap();
                let parsed = parse(&bytes);
                assert!(parsed.segment.is_tcp());
                assert_eq!(parsed.protected, ackclock_core::is_protecting(kind, flags), "{kind} {flags:?}");
            }
        }
    }

    #[test]
    fn malformed_options_are_opaque() {
        // Kind and length of invalid options: zero length, length beyond the end, SACK of odd length.
        for option in [[8, 0], [8, 11], [5, 3]] {
            let mut segment = Segment::data(FlowId(0), Seq(0), 0, 40);
            assert_eq!(options(&mut segment, &[option[0], option[1], 0, 0]), None, "{option:?}");
        }
        let mut segment = Segment::data(FlowId(0), Seq(0), 0, 40);
        assert_eq!(
            options(&mut segment, &[1, 1, 253, 4, 0, 0, 0, 255]),
            Some(()),
            "unknown ones are skipped"
        );
    }

    #[test]
    fn a_route_with_stops_to_go_and_an_endless_chain_are_opaque() {
        let mut bytes = v6_extended();
        bytes[6] = 43;
        bytes[43] = 1;
        assert!(!parse(&bytes).segment.is_tcp());
        assert!(skip_extensions(IpProtocol::HopByHop, &[0; 100]).1.is_err());
        assert!(skip_extensions(IpProtocol::HopByHop, &[0; 7]).1.is_err());
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_the_size_is_right(bytes in prop::collection::vec(any::<u8>(), 0..200), version in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x00])) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version;
            }
            prop_assert_eq!(parse(&bytes).segment.wire_bytes() as usize, bytes.len());
            prop_assert!(fragment(&bytes).is_none() || !parse(&bytes).segment.is_tcp());
        }
    }
}
