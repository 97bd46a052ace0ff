//! Builds packets for segments that a regulator generates, modelled on real packets of the flow.
//!
//! A generated segment has no addresses, hop limit or traffic class. Addresses and ports come from the flow table; the
//! remaining fields come from the last real packet in the segment's direction.

use ackclock_core::{Flags, Segment};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, TcpControl, TcpPacket, TcpRepr,
    TcpSeqNumber, TcpTimestampRepr,
};

use crate::flow::Ends;
use crate::parse::{End, Layout};
use crate::port::Side;

/// Header fields common to packets of a flow, apart from addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    hop_limit: u8,
    /// Differentiated services, the upper six bits of the traffic class.
    services: u8,
    flow_label: u32,
}

impl Default for Template {
    fn default() -> Self {
        Self { hop_limit: 64, services: 0, flow_label: 0 }
    }
}

impl Template {
    /// Stores the header fields of a packet; ignores opaque packets.
    pub(crate) fn learn(&mut self, bytes: &[u8], layout: Layout) {
        match layout {
            Layout::Opaque => {}
            Layout::Ipv4(_) => {
                let ip = Ipv4Packet::new_unchecked(bytes);
                *self = Self { hop_limit: ip.hop_limit(), services: ip.dscp(), flow_label: 0 };
            }
            Layout::Ipv6(_) => {
                let ip = Ipv6Packet::new_unchecked(bytes);
                let services = ip.traffic_class() >> 2;
                *self = Self { hop_limit: ip.hop_limit(), services, flow_label: ip.flow_label() };
            }
        }
    }

    /// Writes the packet of `segment`, sent from the side `from` of the connection `ends`, and returns its length.
    /// Returns `None` if the packet does not fit or has a payload, whose bytes are unknown.
    pub(crate) fn build(&self, segment: &Segment, ends: &Ends, from: Side, out: &mut [u8]) -> Option<usize> {
        if segment.payload > 0 || !segment.is_tcp() {
            return None;
        }
        let (source, destination) = match from {
            Side::Wired => (ends.wired, ends.radio),
            Side::Radio => (ends.radio, ends.wired),
        };
        let repr = tcp(segment, source, destination);
        let (from, to) = (source.address.into(), destination.address.into());
        let header = self.ip(segment, from, to, repr.buffer_len(), out)?;
        let length = header + repr.buffer_len();
        let mut packet = TcpPacket::new_unchecked(out.get_mut(header..length)?);
        repr.emit(&mut packet, &from, &to, &ChecksumCapabilities::ignored());
        packet.set_ece(segment.flags.intersects(Flags::ECE));
        packet.set_cwr(segment.flags.intersects(Flags::CWR));
        packet.set_ns(segment.ae());
        packet.fill_checksum(&from, &to);
        Some(length)
    }

    /// Writes the IP header for `payload_len` bytes and returns its length.
    fn ip(
        &self,
        segment: &Segment,
        from: IpAddress,
        to: IpAddress,
        payload_len: usize,
        out: &mut [u8],
    ) -> Option<usize> {
        let (next_header, hop_limit) = (IpProtocol::Tcp, self.hop_limit);
        match (from, to) {
            (IpAddress::Ipv4(src_addr), IpAddress::Ipv4(dst_addr)) => {
                let repr = Ipv4Repr { src_addr, dst_addr, next_header, payload_len, hop_limit };
                let mut packet = Ipv4Packet::new_unchecked(out.get_mut(..repr.buffer_len() + payload_len)?);
                repr.emit(&mut packet, &ChecksumCapabilities::ignored());
                packet.set_dscp(self.services);
                packet.set_ecn(segment.ecn.bits());
                packet.fill_checksum();
                Some(repr.buffer_len())
            }
            (IpAddress::Ipv6(src_addr), IpAddress::Ipv6(dst_addr)) => {
                let repr = Ipv6Repr { src_addr, dst_addr, next_header, payload_len, hop_limit };
                let mut packet = Ipv6Packet::new_unchecked(out.get_mut(..repr.buffer_len() + payload_len)?);
                repr.emit(&mut packet);
                packet.set_traffic_class((self.services << 2) | segment.ecn.bits());
                packet.set_flow_label(self.flow_label);
                Some(repr.buffer_len())
            }
            _ => None,
        }
    }
}

fn tcp<'a>(segment: &Segment, source: End, destination: End) -> TcpRepr<'a> {
    let mut blocks = segment.sack().iter().map(|block| (block.left.0, block.right.0));
    let control = match segment.flags {
        flags if flags.intersects(Flags::RST) => TcpControl::Rst,
        flags if flags.intersects(Flags::SYN) => TcpControl::Syn,
        flags if flags.intersects(Flags::FIN) => TcpControl::Fin,
        _ => TcpControl::None,
    };
    let options = segment.syn_options().unwrap_or_default();
    TcpRepr {
        src_port: source.port,
        dst_port: destination.port,
        control,
        seq_number: TcpSeqNumber(segment.seq.0 as i32),
        ack_number: segment.flags.intersects(Flags::ACK).then_some(TcpSeqNumber(segment.ack.0 as i32)),
        window_len: segment.window,
        window_scale: options.window_scale,
        max_seg_size: options.mss,
        sack_permitted: options.sack_permitted,
        sack_ranges: std::array::from_fn(|_| blocks.next()),
        timestamp: segment.timestamps().map(|t| TcpTimestampRepr { tsval: t.value, tsecr: t.echo }),
        payload: &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use ackclock_core::{Ecn, FlowId, SackBlock, Seq, Timestamps};
    use etherparse::{NetSlice, SlicedPacket};
    use std::net::IpAddr;

    fn ends(v6: bool) -> Ends {
        let end = |last: u8, port| {
            let address = if v6 { IpAddr::from([last; 16]) } else { IpAddr::from([last; 4]) };
            End { address, port }
        };
        Ends { wired: end(1, 80), radio: end(2, 4000), protocol: 6 }
    }

    fn ack() -> Segment {
        let mut ack = Segment::pure_ack(FlowId(3), Seq(0xffff_fff0), 40);
        (ack.seq, ack.window, ack.ecn) = (Seq(77), 1234, Ecn::Ect0);
        ack.flags |= Flags::ECE;
        ack.set_ae(true);
        ack.set_timestamps(Timestamps { value: 5, echo: 6 });
        ack.push_sack(SackBlock { left: Seq(1), right: Seq(2) });
        ack.push_sack(SackBlock { left: Seq(3), right: Seq(4) });
        ack
    }

    #[test]
    fn what_is_built_reads_back_as_the_segment() {
        for v6 in [false, true] {
            let mut out = [0; 200];
            let length = Template::default().build(&ack(), &ends(v6), Side::Radio, &mut out).unwrap();
            let parsed = parse(&out[..length]);
            // The packet has 20 or 40 B of IP header, 20 B of TCP header, and 28 B for 10 B of timestamps and 18 B of
            // SACK.
            let mut expected = ack();
            (expected.flow, expected.header) = (FlowId(0), if v6 { 88 } else { 68 });
            assert_eq!(parsed.segment, expected);
            assert_eq!(parsed.tuple.unwrap().source, ends(v6).radio);
        }
    }

    #[test]
    fn hop_limit_class_and_label_are_those_of_the_flow() {
        let mut sample = Vec::new();
        let builder = etherparse::PacketBuilder::ip(etherparse::IpHeaders::Ipv6(
            etherparse::Ipv6Header {
                traffic_class: etherparse::IpDscp::try_new(10).unwrap().value() << 2,
                flow_label: 0x12345.try_into().unwrap(),
                hop_limit: 33,
                source: [2; 16],
                destination: [1; 16],
                ..Default::default()
            },
            Default::default(),
        ));
        builder.tcp(4000, 80, 1, 2).write(&mut sample, &[]).unwrap();
        let mut template = Template::default();
        template.learn(&sample, parse(&sample).layout);
        let mut out = [0; 200];
        let length = template.build(&ack(), &ends(true), Side::Radio, &mut out).unwrap();
        let sliced = SlicedPacket::from_ip(&out[..length]).unwrap();
        let Some(NetSlice::Ipv6(ip)) = sliced.net else { panic!("IPv6") };
        let header = ip.header();
        assert_eq!(
            (header.hop_limit(), header.flow_label().value(), header.dscp().value()),
            (33, 0x12345, 10)
        );
    }

    #[test]
    fn a_segment_with_a_payload_cannot_be_built() {
        let data = Segment::data(FlowId(0), Seq(0), 1, 40);
        assert_eq!(Template::default().build(&data, &ends(false), Side::Wired, &mut [0; 200]), None);
        assert_eq!(
            Template::default().build(&ack(), &ends(false), Side::Radio, &mut [0; 30]),
            None,
            "no room"
        );
    }
}
