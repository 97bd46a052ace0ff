//! Data structures shared by the kernel's BPF program and user space, as declared in `bpf/clip.bpf.c`.
//!
//! Integers use the machine's byte order; addresses and ports use network byte order.

// All structs consist of integers without padding, so any bytes are a valid value.
#![allow(unsafe_code)]

use std::net::Ipv6Addr;

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

/// First address of a subscriber's prefix; an IPv4 address as IPv4-mapped IPv6 address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscriber {
    /// The address in network byte order.
    pub address: [u32; 4],
}

impl From<Ipv6Addr> for Subscriber {
    fn from(address: Ipv6Addr) -> Self {
        let octets = address.octets();
        let word = |at| u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        Self { address: [0, 4, 8, 12].map(word) }
    }
}

impl From<Subscriber> for Ipv6Addr {
    fn from(subscriber: Subscriber) -> Self {
        let mut octets = [0; 16];
        for (at, word) in subscriber.address.into_iter().enumerate() {
            octets[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        octets.into()
    }
}

/// Traffic to one subscriber since the box added the subscriber.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of all packets from the servers.
    pub in_bytes: u64,
    /// Bytes of the data packets on connections whose windows can be clipped.
    pub in_flow_bytes: u64,
}

/// Allowance of a subscriber's servers: the data that each may send beyond the base.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Time at which the allowance was written, ns of the monotonic clock; 0 if it was never written.
    pub at_ns: u64,
    /// Number of bytes that each server may send beyond the base.
    pub bytes: u32,
    /// Base of the allowance: 0 for the ACK number, 1 for the end of the data that arrived, 2 for the ACK number plus
    /// the bytes that SACK reports.
    pub base: u32,
    /// Smallest window to advertise, bytes.
    pub least: u32,
    /// Whether windows of this subscriber may be lowered. With the value 0, the allowance only counts in
    /// [`Counts::lower`].
    pub act: u32,
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
    /// Number of ACKs of connections whose handshake or data the box did not see.
    pub unknown: u64,
    /// Number of ACKs left unchanged because the packet's bytes differed between reading and writing.
    pub refused: u64,
    /// Number of records lost because the ring buffer was full.
    pub lost_records: u64,
    /// Number of connections whose handshake was seen in both directions.
    pub opened: u64,
    /// Number of packets from the servers that the program saw. Offload joins several packets of the link into one.
    pub in_packets: u64,
    /// Number of packets from the mobiles that the program saw.
    pub out_packets: u64,
    /// Number of packets of the link that the packets from the servers consist of.
    pub in_segments: u64,
    /// Number of packets of the link that the packets from the mobiles consist of.
    pub out_segments: u64,
    /// Number of ACKs left unchanged because their TCP options forbid a change ([`ackclock_core::PROTECTING_OPTIONS`]).
    pub protected: u64,
    /// Payload of all TCP packets from the servers, bytes.
    pub in_payload_bytes: u64,
    /// Payload of all TCP packets from the mobiles, bytes.
    pub out_payload_bytes: u64,
}

impl Counts {
    /// Whether nearly all TCP data of these counters came from the mobiles: they upload, or the box is on the other side
    /// of the radio than it was told.
    pub const fn has_data_from_mobiles(&self) -> bool {
        /// Payload that handshakes of TLS and requests do not reach, bytes.
        const MUCH: u64 = 20_000;
        self.out_payload_bytes >= MUCH && self.out_payload_bytes / 10 >= self.in_payload_bytes
    }

    /// Adds up the counters of all processors.
    pub fn sum(parts: &[Self]) -> Self {
        parts.iter().fold(Self::default(), |a, b| a.with(b, |a, b| a + b))
    }

    /// Counters of the time since the counters were `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Combines each counter with its counterpart.
    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            in_bytes: of(self.in_bytes, other.in_bytes),
            out_bytes: of(self.out_bytes, other.out_bytes),
            in_regulated_bytes: of(self.in_regulated_bytes, other.in_regulated_bytes),
            in_flow_bytes: of(self.in_flow_bytes, other.in_flow_bytes),
            in_tcp_bytes: of(self.in_tcp_bytes, other.in_tcp_bytes),
            in_quic_bytes: of(self.in_quic_bytes, other.in_quic_bytes),
            in_udp_bytes: of(self.in_udp_bytes, other.in_udp_bytes),
            in_esp_bytes: of(self.in_esp_bytes, other.in_esp_bytes),
            acks: of(self.acks, other.acks),
            clipped: of(self.clipped, other.clipped),
            lower: of(self.lower, other.lower),
            stale: of(self.stale, other.stale),
            unknown: of(self.unknown, other.unknown),
            refused: of(self.refused, other.refused),
            lost_records: of(self.lost_records, other.lost_records),
            opened: of(self.opened, other.opened),
            in_packets: of(self.in_packets, other.in_packets),
            out_packets: of(self.out_packets, other.out_packets),
            in_segments: of(self.in_segments, other.in_segments),
            out_segments: of(self.out_segments, other.out_segments),
            protected: of(self.protected, other.protected),
            in_payload_bytes: of(self.in_payload_bytes, other.in_payload_bytes),
            out_payload_bytes: of(self.out_payload_bytes, other.out_payload_bytes),
        }
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
    /// Time of the last packet with data of this connection, ns.
    pub data_ns: u64,
    /// Time of the last ACK of this connection, ns.
    pub ack_ns: u64,
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
    /// Furthest right edge that the server knows, also from the SYN.
    pub reach: u32,
    /// Sequence number at the end of the last data outside the window.
    pub elsewhere: u32,
    /// Number of packets with data that passed before: retransmissions and reordered packets.
    pub repeated: u32,
    /// Window field written into the last ACK that passed.
    pub written: u16,
    /// Window field of the receiver's last ACK, before any clip.
    pub offered: u16,
    /// Window scale of the mobile.
    pub scale: u8,
    /// Bit mask: 1 if `told` and `written` are of an ACK; 2 if an ACK passed; 4 if `elsewhere` is valid; 8 if another SYN
    /// passed since the handshake.
    pub flags: u8,
    /// Length of the prefix of the connection's subscriber, bits.
    pub bits: u8,
    /// Reserved bytes, always 0.
    pub unused: [u8; 5],
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
    /// Bytes to the subscriber outside of connections, summed up to this record; 0 in a record of an ACK.
    pub others: u64,
    /// Time of the packet before this one, of the same connection and kind; 0 if there was none, ns of the monotonic
    /// clock.
    pub previous_ns: u64,
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
    /// Number of packets with data that passed before, summed up to this record.
    pub repeated: u32,
    /// Right edge that was advertised before the one of this ACK; 0 in other records.
    pub told_before: u32,
    /// Fills the record to a multiple of eight bytes.
    pub unused: u32,
    /// Subscriber to whom the connection belongs.
    pub subscriber: Subscriber,
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
            others: long(16)?,
            previous_ns: long(24)?,
            kind: word(32)?,
            flow: word(36)?,
            arrived: word(40)?,
            told: word(44)?,
            acked: word(48)?,
            segment: word(52)?,
            value: word(56)?,
            echo: word(60)?,
            stamped: word(64)?,
            repeated: word(68)?,
            told_before: word(72)?,
            unused: word(76)?,
            subscriber: Subscriber { address: [word(80)?, word(84)?, word(88)?, word(92)?] },
        })
    }
}

// SAFETY: `Knobs` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Knobs {}
// SAFETY: `Allowance` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Allowance {}
// SAFETY: `Subscriber` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Subscriber {}
// SAFETY: `Totals` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Totals {}
// SAFETY: `Counts` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Counts {}
// SAFETY: `Tuple` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Tuple {}
// SAFETY: `Flow` is a `repr(C)` struct of integers without padding.
unsafe impl Pod for Flow {}
