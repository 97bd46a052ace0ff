//! A simulated segment as the bytes of a real packet: IPv4 and TCP headers with options and correct checksums. A
//! datagram has a UDP header.
//!
//! A simulation may count a fixed header (40 bytes) although its segments have TCP options. A captured packet contains
//! the TCP options, so the packet may be longer than its simulated size.

use ackclock_core::{Ecn, Flags, FlowId, Segment, SynOptions};
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};

/// End of the connection that sent a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Server,
    Client,
}

/// End of the connection at which a packet is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interface {
    Server = 0,
    Client = 1,
}

/// Headers of a packet, and the packet's length including payload.
pub(crate) struct Packet {
    pub(crate) headers: Vec<u8>,
    pub(crate) length: u32,
}

/// Server address at each capture interface, as if a NAT were between the interfaces (documentation addresses of RFC
/// 5737). With a single server address, Wireshark would classify packets of the second interface as retransmissions of
/// the first.
const SERVER: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
/// Unassigned server port, so that Wireshark does not dissect the payload.
const SERVER_PORT: u16 = 49_001;
const CLIENT_PORT: u16 = 49_002;
/// Payload bytes for checksums: all zeros.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];

/// Builds the packet of a segment. `identification` is the IP identification field.
pub(crate) fn packet(segment: &Segment, source: Source, seen: Interface, identification: u16) -> Packet {
    let (server, client) = (SERVER[seen as usize], client(segment.flow));
    let (from, to) = match source {
        Source::Server => (server, client),
        Source::Client => (client, server),
    };
    let ip = |protocol: IpNumber, total: usize| {
        let mut ip = Ipv4Header {
            dscp: IpDscp::ZERO,
            ecn: ecn(segment.ecn),
            total_len: total as u16,
            identification,
            dont_fragment: true,
            time_to_live: 64,
            protocol,
            source: from,
            destination: to,
            ..Ipv4Header::default()
        };
        ip.header_checksum = ip.calc_header_checksum();
        ip
    };
    if !segment.is_tcp() {
        return datagram(&ip(IpNumber::UDP, segment.wire_bytes() as usize), source);
    }
    let mut tcp = tcp_header(segment, source);
    // With TCP options, headers and payload may exceed the 16-bit length field, because the simulation left room for
    // only 40 bytes of headers.
    let room = usize::from(u16::MAX) - Ipv4Header::MIN_LEN - tcp.header_len();
    let payload = usize::from(segment.payload).min(room);
    let total = Ipv4Header::MIN_LEN + tcp.header_len() + payload;
    let ip = ip(IpNumber::TCP, total);
    if let Ok(checksum) = tcp.calc_checksum_ipv4(&ip, &ZEROS[..payload]) {
        tcp.checksum = checksum;
    }
    let mut headers = Vec::with_capacity(Ipv4Header::MIN_LEN + TcpHeader::MAX_LEN);
    headers.extend_from_slice(&ip.to_bytes());
    headers.extend_from_slice(&tcp.to_bytes());
    Packet { headers, length: total as u32 }
}

/// Builds the UDP packet of an IP header.
fn datagram(ip: &Ipv4Header, source: Source) -> Packet {
    let [from, to] = ports(source);
    let payload = usize::from(ip.total_len) - Ipv4Header::MIN_LEN - UdpHeader::LEN;
    let mut headers = ip.to_bytes().to_vec();
    // The payload is far below the limit of UDP, so the length always fits.
    if let Ok(udp) = UdpHeader::with_ipv4_checksum(from, to, ip, &ZEROS[..payload]) {
        headers.extend_from_slice(&udp.to_bytes());
    }
    Packet { headers, length: ip.total_len.into() }
}

/// Ports of a packet: of its source, and of its destination.
fn ports(source: Source) -> [u16; 2] {
    match source {
        Source::Server => [SERVER_PORT, CLIENT_PORT],
        Source::Client => [CLIENT_PORT, SERVER_PORT],
    }
}

fn tcp_header(segment: &Segment, source: Source) -> TcpHeader {
    let [from, to] = ports(source);
    let mut tcp = TcpHeader::new(from, to, segment.seq.0, segment.window);
    let has = |flag| segment.flags.intersects(flag);
    tcp.ack = has(Flags::ACK);
    tcp.syn = has(Flags::SYN);
    tcp.fin = has(Flags::FIN);
    tcp.rst = has(Flags::RST);
    tcp.psh = has(Flags::PSH);
    tcp.ece = has(Flags::ECE);
    tcp.cwr = has(Flags::CWR);
    tcp.ns = segment.ae();
    tcp.acknowledgment_number = if tcp.ack { segment.ack.0 } else { 0 };
    // Timestamps and three SACK blocks take 38 of the 40 option bytes, so the options always fit.
    let fits = tcp.set_options(&options(segment));
    debug_assert!(fits.is_ok(), "{fits:?}");
    if let Some(option) = segment.acc_ecn() {
        // Timestamps, two SACK blocks and this option take exactly 40 bytes.
        let fits = tcp.set_options_raw(&[tcp.options.as_slice(), &option.header()].concat());
        debug_assert!(fits.is_ok(), "{fits:?}");
    }
    tcp
}

/// TCP options of a segment in the usual order, each aligned with two bytes of padding.
fn options(segment: &Segment) -> Vec<TcpOptionElement> {
    let mut options = Vec::new();
    let pad = |options: &mut Vec<_>| options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
    if let Some(SynOptions { mss, window_scale, sack_permitted }) = segment.syn_options() {
        options.extend(mss.map(TcpOptionElement::MaximumSegmentSize));
        if sack_permitted {
            pad(&mut options);
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
        }
        if let Some(shift) = window_scale {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(shift)]);
        }
    }
    if let Some(stamps) = segment.timestamps() {
        pad(&mut options);
        options.push(TcpOptionElement::Timestamp(stamps.value, stamps.echo));
    }
    let block = |index: usize| segment.sack().get(index).map(|block| (block.left.0, block.right.0));
    if let Some(first) = block(0) {
        pad(&mut options);
        options.push(TcpOptionElement::SelectiveAcknowledgement(first, [block(1), block(2), None]));
    }
    options
}

/// Client address of a flow: 10.0.0.1 for flow 0, then counting up.
fn client(flow: FlowId) -> [u8; 4] {
    let [_, b, c, d] = (flow.0 + 1).to_be_bytes();
    [10, b, c, d]
}

fn ecn(ecn: Ecn) -> IpEcn {
    [IpEcn::ZERO, IpEcn::ONE, IpEcn::TWO, IpEcn::THREE][usize::from(ecn.bits())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{AccEcn, EctField, SackBlock, Seq, Timestamps};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    #[test]
    fn an_independent_parser_reads_back_what_was_written() {
        let mut ack = Segment::pure_ack(FlowId(300), Seq(77), 40);
        (ack.seq, ack.window, ack.ecn) = (Seq(5), 501, Ecn::Ce);
        ack.set_timestamps(Timestamps { value: 9, echo: 8 });
        for left in [100, 200, 300] {
            ack.push_sack(SackBlock { left: Seq(left), right: Seq(left + 10) });
        }
        let bytes = packet(&ack, Source::Client, Interface::Server, 3).headers;
        let parsed = SlicedPacket::from_ip(&bytes).unwrap();
        let Some(NetSlice::Ipv4(ip)) = parsed.net else { panic!("no IPv4") };
        let Some(TransportSlice::Tcp(tcp)) = parsed.transport else { panic!("no TCP") };
        let header = ip.header();
        assert_eq!((header.source(), header.destination()), ([10, 0, 1, 45], [192, 0, 2, 1]));
        assert_eq!(header.ecn(), IpEcn::THREE);
        assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        let tcp = tcp.to_header();
        assert_eq!((tcp.sequence_number, tcp.acknowledgment_number, tcp.window_size), (5, 77, 501));
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&header.to_header(), &[]).unwrap());
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        assert!(options.contains(&TcpOptionElement::Timestamp(9, 8)));
        let blocks = TcpOptionElement::SelectiveAcknowledgement(
            (100, 110),
            [Some((200, 210)), Some((300, 310)), None],
        );
        assert!(options.contains(&blocks));
    }

    #[test]
    fn an_ack_with_all_options_has_the_ace_field_and_the_accecn_option() {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(77), 40);
        ack.set_timestamps(Timestamps { value: 9, echo: 8 });
        for left in [100, 200] {
            ack.push_sack(SackBlock { left: Seq(left), right: Seq(left + 10) });
        }
        ack.set_ace(0b101);
        let option = AccEcn { field: EctField::Ect1, ect_bytes: 7, ce_bytes: 3000 };
        ack.set_acc_ecn(option);
        let bytes = packet(&ack, Source::Client, Interface::Server, 3).headers;
        let (tcp, _) = TcpHeader::from_slice(&bytes[20..]).unwrap();
        assert_eq!((tcp.ns, tcp.cwr, tcp.ece, tcp.options.len()), (true, false, true, 40));
        assert!(tcp.options.as_slice().ends_with(&option.header()));
    }

    #[test]
    fn a_payload_counts_in_length_and_checksum_and_is_left_out() {
        let data = packet(&Segment::data(FlowId(0), Seq(1), 960, 40), Source::Server, Interface::Client, 0);
        assert_eq!((data.length, data.headers.len()), (1000, 40));
        let parsed = SlicedPacket::from_ip(&[&data.headers[..], &[0; 960]].concat()).unwrap().transport.map(
            |t| match t {
                TransportSlice::Tcp(tcp) => tcp.to_header(),
                _ => panic!("no TCP"),
            },
        );
        let ip = Ipv4Header::from_slice(&data.headers).unwrap().0;
        let tcp = parsed.unwrap();
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &[0; 960]).unwrap());
    }
}
