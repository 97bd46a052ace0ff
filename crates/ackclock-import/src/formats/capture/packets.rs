//! IP packets of a pcap or pcapng file, with the TCP timestamps of segments.

use std::io::{ErrorKind, Read};
use std::net::IpAddr;

use crate::TraceError;
use ackclock_core::TcpOptions;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{PcapError, TsResolution};

use super::account::{Count, Recent};
use super::packet::{Fate, Packet, Segment};

/// First bytes of capture files: pcap with microseconds and nanoseconds in both byte orders, and pcapng.
pub(super) const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    PCAPNG,
];
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Kind of the timestamps option (RFC 7323 section 3).
const TIMESTAMPS: u8 = 8;

/// Whether a file with these first bytes is a packet capture.
pub fn is_capture(begin: &[u8]) -> bool {
    MAGICS.iter().any(|magic| begin.starts_with(magic))
}

/// End of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    /// Whether the file is complete; the last packet of an incomplete file is cut off and left out.
    pub(super) complete: bool,
    /// Frames without an IP packet, and packets without a time.
    pub(super) unread: Count,
}

/// Calls `on` with each IP packet of a capture.
///
/// # Errors
/// Fails if the file is not a capture, cannot be read, or all its packets have an unknown link type.
pub(super) fn each(mut source: impl Read, mut on: impl FnMut(&Packet)) -> Result<Ended, TraceError> {
    let mut begin = [0; 4];
    source
        .read_exact(&mut begin)
        .map_err(|_| TraceError::whole("the file is shorter than the header of a capture"))?;
    let mut found = Found::default();
    let whole = begin.chain(source);
    let ended = if begin == PCAPNG {
        each_of_pcapng(whole, &mut found, &mut on)
    } else {
        each_of_pcap(whole, &mut found, &mut on)
    };
    let complete = match ended {
        Ok(()) => true,
        Err(PcapError::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => false,
        Err(error) => {
            return Err(TraceError::whole(format!(
                "the capture is invalid after packet {}: {error}",
                found.packets
            )));
        }
    };
    if found.packets == 0 && found.untimed {
        return Err(TraceError::whole("its packets have no times: simple packet blocks hold none"));
    }
    match found.unknown {
        Some(link) if found.packets == 0 => Err(TraceError::whole(format!(
            "its packets have link type {link}; Ethernet (1), raw IP (101), loopback (0, 108), Linux cooked (113, 276), IPv4 (228) and IPv6 (229) are read"
        ))),
        _ => Ok(Ended { complete, unread: found.unread }),
    }
}

/// Packets read so far.
#[derive(Default)]
struct Found {
    packets: u64,
    unknown: Option<u32>,
    /// Whether a packet had no time.
    untimed: bool,
    unread: Count,
    recent: Recent,
}

impl Found {
    /// Passes on a frame if it contains an IP packet.
    fn pass(
        &mut self,
        (interface, link): (u32, u32),
        at: f64,
        length: u32,
        frame: &[u8],
        on: &mut impl FnMut(&Packet),
    ) {
        let Some(parsed) = parsed(link, frame) else {
            self.unknown = Some(link);
            self.unread.add(length.into());
            return;
        };
        self.packets += 1;
        match parsed.and_then(|parsed| packet(&parsed, interface, at, length)) {
            Some(mut packet) => {
                packet.fate = self.recent.fate(&packet);
                on(&packet);
            }
            None => self.unread.add(length.into()),
        }
    }
}

fn each_of_pcap(source: impl Read, found: &mut Found, on: &mut impl FnMut(&Packet)) -> Result<(), PcapError> {
    let mut reader = PcapReader::new(source)?;
    let header = reader.header();
    let unit = if header.ts_resolution == TsResolution::NanoSecond { 1e-9 } else { 1e-6 };
    // The upper bits of the link type describe checksums at the end of frames.
    let link = u32::from(header.datalink) & 0xffff;
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet?;
        let at = f64::from(packet.ts_sec) + f64::from(packet.ts_frac) * unit;
        found.pass((0, link), at, packet.orig_len, &packet.data, on);
    }
    Ok(())
}

fn each_of_pcapng(
    source: impl Read,
    found: &mut Found,
    on: &mut impl FnMut(&Packet),
) -> Result<(), PcapError> {
    let mut reader = PcapNgReader::new(source)?;
    // Link type, unit of time and offset of each interface.
    let mut interfaces: Vec<(u32, f64, f64)> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block? {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(block) => interfaces.push(interface(&block)),
            Block::EnhancedPacket(block) => {
                let Some((link, unit, offset)) = interfaces.get(block.interface_id as usize) else {
                    continue;
                };
                // The library returns the time in units of the interface as nanoseconds.
                let at = block.timestamp.as_nanos() as f64 * unit + offset;
                found.pass((block.interface_id, *link), at, block.original_len, &block.data, on);
            }
            Block::Packet(block) => {
                let number = u32::from(block.interface_id);
                let Some((link, unit, offset)) = interfaces.get(number as usize) else { continue };
                let at = block.timestamp as f64 * unit + offset;
                found.pass((number, *link), at, block.original_len, &block.data, on);
            }
            Block::SimplePacket(block) => {
                found.untimed = true;
                found.unread.add(block.original_len.into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn interface(block: &InterfaceDescriptionBlock<'_>) -> (u32, f64, f64) {
    let (mut unit, mut offset) = (1e-6, 0.0);
    for option in &block.options {
        match *option {
            InterfaceDescriptionOption::IfTsResol(resolution) => {
                let base: f64 = if resolution & 0x80 == 0 { 10.0 } else { 2.0 };
                unit = base.powi(-i32::from(resolution & 0x7f));
            }
            InterfaceDescriptionOption::IfTsOffset(seconds) => offset = seconds as i64 as f64,
            _ => {}
        }
    }
    (u32::from(block.linktype), unit, offset)
}

/// Parses a frame of a link type; `None` for an unknown link type, and an inner `None` for an invalid frame.
fn parsed(link: u32, frame: &[u8]) -> Option<Option<LaxSlicedPacket<'_>>> {
    let typed = |at: usize, header: usize| unwrapped(u16_at(frame, at)?, frame.get(header..)?);
    let ip = |header: usize| LaxSlicedPacket::from_ip(frame.get(header..)?).ok();
    Some(match link {
        1 => typed(12, 14),
        0 | 108 => ip(4),
        12 | 14 | 101 | 228 | 229 => ip(0),
        113 => typed(14, 16),
        276 => typed(0, 20),
        _ => return None,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

/// Ethernet types of VLAN tags (IEEE 802.1Q, 802.1ad, and as used before it), PPPoE sessions (RFC 2516) and MPLS
/// (RFC 5332).
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const PPPOE: u16 = 0x8864;
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// Largest number of tags and labels around a packet.
const MOST_WRAPPED: usize = 16;

/// Parses what is inside VLAN tags, PPPoE and MPLS labels.
fn unwrapped(mut number: u16, mut bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    for _ in 0..MOST_WRAPPED {
        if VLAN.contains(&number) {
            (number, bytes) = (u16_at(bytes, 2)?, bytes.get(4..)?);
        } else if number == PPPOE {
            // PPP protocols 0x0021 and 0x0057 are IPv4 and IPv6.
            return match u16_at(bytes, 6)? {
                0x21 | 0x57 => LaxSlicedPacket::from_ip(bytes.get(8..)?).ok(),
                _ => None,
            };
        } else if MPLS.contains(&number) {
            let is_last = *bytes.get(2)? & 1 == 1;
            bytes = bytes.get(4..)?;
            if is_last {
                return LaxSlicedPacket::from_ip(bytes).ok();
            }
        } else {
            return Some(LaxSlicedPacket::from_ether_type(EtherType(number), bytes));
        }
    }
    None
}

fn packet(parsed: &LaxSlicedPacket<'_>, interface: u32, at: f64, length: u32) -> Option<Packet> {
    let (from, to, header, total): (IpAddr, IpAddr, _, u64) = match parsed.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let total = u64::from(header.total_len());
            (header.source_addr().into(), header.destination_addr().into(), header.slice(), total)
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let payload = u64::from(header.payload_length());
            let total = if payload == 0 { 0 } else { payload + header.slice().len() as u64 };
            (header.source_addr().into(), header.destination_addr().into(), header.slice(), total)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    // The kernel may leave the length of super-packets at zero.
    let bytes = if total == 0 { u64::from(length) } else { total };
    let payload = parsed.net.as_ref()?.ip_payload_ref()?.payload;
    let before = (payload.as_ptr() as usize).saturating_sub(header.as_ptr() as usize) as u64;
    let segment = segment(parsed, bytes.saturating_sub(before));
    let identification = if header[0] >> 4 == 4 { u16_at(header, 4)? } else { 0 };
    let has_identification = identification != 0;
    let is_told_apart = has_identification || segment.is_some_and(|segment| segment.data > 0);
    let parts = [&interface.to_be_bytes()[..], &identification.to_be_bytes(), &bytes.to_be_bytes()];
    let addresses = if header[0] >> 4 == 4 { header.get(12..20)? } else { header.get(8..40)? };
    let digest = is_told_apart.then(|| {
        let start = &payload[..payload.len().min(DIGESTED)];
        digest(parts.into_iter().chain([addresses, start]))
    });
    Some(Packet { interface, at, from, to, bytes, segment, digest, has_identification, fate: Fate::New })
}

/// Bytes behind the IP header that identify a packet: a TCP header with its options.
const DIGESTED: usize = 60;

/// FNV-1a hash of several texts.
fn digest<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let bytes = parts.flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// TCP header of a packet whose TCP header and data have `length` bytes.
fn segment(parsed: &LaxSlicedPacket<'_>, length: u64) -> Option<Segment> {
    let Some(TransportSlice::Tcp(tcp)) = &parsed.transport else { return None };
    // The iterator of the library ends at the first option that it does not know, such as a signature.
    let stamps = TcpOptions::new(tcp.options()).flatten().find_map(|option| match option {
        (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
            let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            Some((value, tcp.ack().then_some(echo)))
        }
        _ => None,
    });
    Some(Segment {
        ports: (tcp.source_port(), tcp.destination_port()),
        data: length.saturating_sub(tcp.header_slice().len() as u64),
        is_first: tcp.syn() && !tcp.ack(),
        stamps,
    })
}
