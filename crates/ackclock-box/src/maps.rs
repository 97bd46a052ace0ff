//! What the program in the kernel and user space share, as `bpf/clip.bpf.c` declares it.
//!
//! Byte order is that of the machine; addresses and ports stand as on the wire.

// Plain numbers without padding: any bytes are a value.
#![allow(unsafe_code)]

use aya::Pod;

/// What the program is told.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knobs {
    /// An allowance that is older is not used, ns.
    pub stale_ns: u64,
    /// 0: measure and write nothing.
    pub act: u32,
    /// Bytes of the link header before the IP header.
    pub header: u32,
    /// Not 0: write nothing, whatever `act` says.
    pub bypass: u32,
    /// 0.
    pub unused: u32,
}

impl Knobs {
    /// Whether windows are lowered.
    pub const fn acts(&self) -> bool {
        self.act != 0 && self.bypass == 0
    }
}

/// What the sources may have ahead of the base.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// When it was written, ns of the monotonic clock; 0: never.
    pub at_ns: u64,
    /// Bytes beyond the base.
    pub bytes: u32,
    /// 0: the base is the ACK; 1: the end of the data that arrived.
    pub base: u32,
    /// Smallest window, bytes.
    pub least: u32,
    /// 0.
    pub unused: u32,
}

/// Counts since the program was loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Bytes of all packets from the servers.
    pub in_bytes: u64,
    /// Bytes of all packets from the mobiles.
    pub out_bytes: u64,
    /// Payload, from the servers, of connections whose windows can be clipped, bytes.
    pub in_regulated_bytes: u64,
    /// Bytes of the packets with that payload.
    pub in_flow_bytes: u64,
    /// Bytes of all TCP packets from the servers.
    pub in_tcp_bytes: u64,
    /// Bytes of QUIC from the servers: UDP of port 443.
    pub in_quic_bytes: u64,
    /// Bytes of other UDP from the servers.
    pub in_udp_bytes: u64,
    /// Bytes of IPsec (ESP) from the servers.
    pub in_esp_bytes: u64,
    /// ACKs of connections whose windows can be clipped.
    pub acks: u64,
    /// ACKs whose window was lowered.
    pub clipped: u64,
    /// ACKs for which the law asks for a lower window than the receiver's, written or not.
    pub lower: u64,
    /// ACKs left as they were because the allowance was too old.
    pub stale: u64,
    /// ACKs of connections whose beginning was not seen.
    pub unknown: u64,
    /// ACKs left as they were because the place of writing did not hold what was read.
    pub refused: u64,
    /// Records that found no room.
    pub lost_records: u64,
    /// Connections whose beginning was seen from both ends.
    pub opened: u64,
}

impl Counts {
    /// The sum over all processors.
    pub fn sum(parts: &[Self]) -> Self {
        parts.iter().fold(Self::default(), |a, b| Self {
            in_bytes: a.in_bytes + b.in_bytes,
            out_bytes: a.out_bytes + b.out_bytes,
            in_regulated_bytes: a.in_regulated_bytes + b.in_regulated_bytes,
            in_flow_bytes: a.in_flow_bytes + b.in_flow_bytes,
            in_tcp_bytes: a.in_tcp_bytes + b.in_tcp_bytes,
            in_quic_bytes: a.in_quic_bytes + b.in_quic_bytes,
            in_udp_bytes: a.in_udp_bytes + b.in_udp_bytes,
            in_esp_bytes: a.in_esp_bytes + b.in_esp_bytes,
            acks: a.acks + b.acks,
            clipped: a.clipped + b.clipped,
            lower: a.lower + b.lower,
            stale: a.stale + b.stale,
            unknown: a.unknown + b.unknown,
            refused: a.refused + b.refused,
            lost_records: a.lost_records + b.lost_records,
            opened: a.opened + b.opened,
        })
    }
}

/// A connection's addresses and ports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuple {
    /// Address of the mobile; of IPv4 the first word.
    pub mobile: [u32; 4],
    /// Address of the server.
    pub server: [u32; 4],
    /// Port of the mobile.
    pub mobile_port: u16,
    /// Port of the server.
    pub server_port: u16,
}

/// What the program knows of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Payload that arrived for the first time, bytes.
    pub passed: u64,
    /// Last record of data, ns.
    pub data_told_ns: u64,
    /// Last record of an ACK, ns.
    pub ack_told_ns: u64,
    /// Its number.
    pub number: u32,
    /// End of the data that arrived.
    pub arrived: u32,
    /// Furthest right edge advertised.
    pub told: u32,
    /// Highest ACK.
    pub acked: u32,
    /// ACK number of the last ACK that passed.
    pub written_ack: u32,
    /// Largest payload of a packet, bytes.
    pub segment: u32,
    /// Window field of the last ACK that passed.
    pub written: u16,
    /// Window field of the receiver's last ACK.
    pub offered: u16,
    /// Window scale of the mobile.
    pub scale: u8,
    /// 1: `arrived` is set; 2: `told`, `written`; 4: `acked`.
    pub flags: u8,
    /// 0.
    pub unused: u16,
}

/// Something that passed. Sums are cumulative, so that a lost record loses an instant and no bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When, ns of the monotonic clock.
    pub at_ns: u64,
    /// Payload that arrived for the first time so far, bytes.
    pub passed: u64,
    /// What passed: [`Record::DATA`], [`Record::ACK`] or [`Record::OPENED`].
    pub kind: u32,
    /// Number of the connection.
    pub flow: u32,
    /// End of the data that arrived.
    pub arrived: u32,
    /// Furthest right edge advertised; of a new connection the window of its SYN, bytes.
    pub told: u32,
    /// Highest ACK.
    pub acked: u32,
    /// Largest payload of a packet, bytes.
    pub segment: u32,
    /// TCP timestamp of the packet; of a new connection the round trip of its handshake, microseconds.
    pub value: u32,
    /// Its echo.
    pub echo: u32,
    /// Whether the packet had timestamps, 0 or 1.
    pub stamped: u32,
    /// 0.
    pub unused: u32,
}

impl Record {
    /// Data from a server.
    pub const DATA: u32 = 0;
    /// An ACK that moved the right edge.
    pub const ACK: u32 = 1;
    /// A connection began.
    pub const OPENED: u32 = 2;

    /// The record in the bytes of the ring; `None` where they are too few.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let long = |at| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let word = |at| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Self {
            at_ns: long(0)?,
            passed: long(8)?,
            kind: word(16)?,
            flow: word(20)?,
            arrived: word(24)?,
            told: word(28)?,
            acked: word(32)?,
            segment: word(36)?,
            value: word(40)?,
            echo: word(44)?,
            stamped: word(48)?,
            unused: word(52)?,
        })
    }
}

// SAFETY: `repr(C)` structs of integers without padding.
unsafe impl Pod for Knobs {}
// SAFETY: as above.
unsafe impl Pod for Allowance {}
// SAFETY: as above.
unsafe impl Pod for Counts {}
// SAFETY: as above.
unsafe impl Pod for Tuple {}
// SAFETY: as above.
unsafe impl Pod for Flow {}
