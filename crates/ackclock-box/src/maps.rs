//! Data structures shared by the kernel's BPF program and user space, as declared in `bpf/clip.bpf.c`.
//!
//! Integers use the machine's byte order; addresses and ports use network byte order.

// All structs consist of integers without padding, so any bytes are a valid value.
#![allow(unsafe_code)]

use aya::Pod;

/// Settings of the BPF program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knobs {
    /// Age above which an allowance is ignored, ns.
    pub stale_ns: u64,
    /// Whether the program lowers windows. With the value 0, the program only measures and changes no packet.
    pub act: u32,
    /// Length of the link header before the IP header, bytes.
    pub header: u32,
    /// A value other than 0 means that no packet is changed, whatever `act` says.
    pub bypass: u32,
    /// Reserved field, always 0.
    pub unused: u32,
}

impl Knobs {
    /// Returns whether the program lowers windows.
    pub const fn acts(&self) -> bool {
        self.act != 0 && self.bypass == 0
    }
}

/// Allowance of the servers: the data that each may send beyond the base.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Time at which the allowance was written, ns of the monotonic clock; 0 if it was never written.
    pub at_ns: u64,
    /// Number of bytes that each server may send beyond the base.
    pub bytes: u32,
    /// Base of the allowance: 0 for the ACK number, 1 for the end of the data that arrived.
    pub base: u32,
    /// Smallest window to advertise, bytes.
    pub least: u32,
    /// Reserved field, always 0.
    pub unused: u32,
}

/// Counters since the BPF program was loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Bytes of all packets from the servers.
    pub in_bytes: u64,
    /// Bytes of all packets from the mobiles.
    pub out_bytes: u64,
    /// Payload from the servers on connections whose windows can be clipped, bytes.
    pub in_regulated_bytes: u64,
    /// Bytes, with headers, of the data packets from servers on connections whose windows can be clipped.
    pub in_flow_bytes: u64,
    /// Bytes of all TCP packets from the servers.
    pub in_tcp_bytes: u64,
    /// Bytes of QUIC from the servers, recognised as UDP on port 443.
    pub in_quic_bytes: u64,
    /// Bytes of UDP other than QUIC from the servers.
    pub in_udp_bytes: u64,
    /// Bytes of IPsec (ESP) from the servers.
    pub in_esp_bytes: u64,
    /// Number of ACKs of connections whose windows can be clipped.
    pub acks: u64,
    /// Number of ACKs whose window was lowered.
    pub clipped: u64,
    /// Number of ACKs for which the law asks for a window below the receiver's, whether or not the lower window was
    /// written.
    pub lower: u64,
    /// Number of ACKs left unchanged because the allowance was too old.
    pub stale: u64,
    /// Number of ACKs of connections whose handshake the box did not see.
    pub unknown: u64,
    /// Number of ACKs left unchanged because the packet's bytes differed between reading and writing.
    pub refused: u64,
    /// Number of records lost because the ring buffer was full.
    pub lost_records: u64,
    /// Number of connections whose handshake was seen in both directions.
    pub opened: u64,
}

impl Counts {
    /// Adds up the counters of all processors.
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

/// Addresses and ports of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuple {
    /// IP address of the mobile; an IPv4 address is in the first word.
    pub mobile: [u32; 4],
    /// IP address of the server; an IPv4 address is in the first word.
    pub server: [u32; 4],
    /// TCP port of the mobile.
    pub mobile_port: u16,
    /// TCP port of the server.
    pub server_port: u16,
}

/// The BPF program's state of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Payload of the connection that arrived from the server for the first time, bytes.
    pub passed: u64,
    /// Time of the last record about data of this connection, ns.
    pub data_told_ns: u64,
    /// Time of the last record about an ACK of this connection, ns.
    pub ack_told_ns: u64,
    /// Number of the connection, assigned by the BPF program.
    pub number: u32,
    /// Sequence number at the end of the data that arrived.
    pub arrived: u32,
    /// Highest right edge advertised, a sequence number.
    pub told: u32,
    /// Highest ACK number of the mobile.
    pub acked: u32,
    /// ACK number of the last ACK that passed.
    pub written_ack: u32,
    /// Largest payload of a packet of this connection, bytes.
    pub segment: u32,
    /// Window field written into the last ACK that passed.
    pub written: u16,
    /// Window field of the receiver's last ACK, before any clip.
    pub offered: u16,
    /// Window scale of the mobile.
    pub scale: u8,
    /// Bit mask of valid fields: 1 for `arrived`; 2 for `told` and `written`; 4 for `acked`.
    pub flags: u8,
    /// Reserved field, always 0.
    pub unused: u16,
}

/// Event of a connection, sent from the kernel to user space. Sums are cumulative, so a lost record loses the time of
/// an event but no bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Time of the event, ns of the monotonic clock.
    pub at_ns: u64,
    /// Payload of the connection that arrived for the first time, summed up to this record, bytes.
    pub passed: u64,
    /// Kind of the event: [`Record::DATA`], [`Record::ACK`] or [`Record::OPENED`].
    pub kind: u32,
    /// Number of the connection, assigned by the BPF program.
    pub flow: u32,
    /// Sequence number at the end of the data that arrived.
    pub arrived: u32,
    /// Highest right edge advertised; for a new connection, the window of its SYN in bytes.
    pub told: u32,
    /// Highest ACK number of the mobile.
    pub acked: u32,
    /// Largest payload of a packet of this connection, bytes.
    pub segment: u32,
    /// TCP timestamp of the packet; for a new connection, the round-trip time of its handshake in microseconds.
    pub value: u32,
    /// TCP timestamp echo of the packet.
    pub echo: u32,
    /// Whether the packet had TCP timestamps, 0 or 1.
    pub stamped: u32,
    /// Reserved field, always 0.
    pub unused: u32,
}

impl Record {
    /// Kind of a record about data from a server.
    pub const DATA: u32 = 0;
    /// Kind of a record about an ACK that moved the right edge.
    pub const ACK: u32 = 1;
    /// Kind of a record about a connection that completed its handshake.
    pub const OPENED: u32 = 2;

    /// Reads a record from the bytes of the ring buffer. Returns `None` if there are too few bytes for a record.
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

// SAFETY: `Knobs` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Knobs {}
// SAFETY: `Allowance` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Allowance {}
// SAFETY: `Counts` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Counts {}
// SAFETY: `Tuple` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Tuple {}
// SAFETY: `Flow` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Flow {}
