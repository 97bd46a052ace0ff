//! A captured packet.

use std::net::IpAddr;

/// Captured IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Number of the interface that captured the packet.
    pub(super) interface: u32,
    /// Time of the capture, seconds since 1970.
    pub(super) at: f64,
    /// Address of the sender.
    pub(super) from: IpAddr,
    /// Address of the receiver.
    pub(super) to: IpAddr,
    /// Length by the IP header, also if the capture contains only the start of the packet.
    pub(super) bytes: u64,
    /// TCP header of the packet, if it is captured.
    pub(super) segment: Option<Segment>,
    /// Digest of the headers, without those that a router changes, of packets whose copies can be told from
    /// retransmissions and repeated ACKs.
    pub(super) digest: Option<u64>,
    /// Whether the packet has an IP identification.
    pub(super) has_identification: bool,
    /// What the packets before say about this one.
    pub(super) fate: Fate,
}

/// Parts of a TCP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Ports of sender and receiver.
    pub(super) ports: (u16, u16),
    /// Data in bytes, also if the capture contains only the start of it.
    pub(super) data: u64,
    /// Whether the segment begins a connection: SYN without ACK.
    pub(super) is_first: bool,
    /// Value of the sender's clock (TSval), and the echoed value of the receiver's clock (TSecr) if it is valid.
    pub(super) stamps: Option<(u32, Option<u32>)>,
}

/// What the order of a file says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Seen for the first time.
    New,
    /// A copy of an earlier packet: a capture on all interfaces sees a forwarded packet twice.
    Repeated,
    /// The clock was set back: the packet is older than earlier ones.
    Back,
}

/// Largest IP packet of an Ethernet frame; longer ones were merged before the capture.
pub(super) const FRAME: u64 = 1500;
/// Smallest MSS that a merged packet is assumed to consist of (RFC 9293, section 3.7.1).
const LEAST_MSS: u64 = 536;

impl Packet {
    /// Bytes of the IP packets on the link. The segments that were merged into a packet had headers of their own; they
    /// are assumed to fill Ethernet frames.
    pub(super) fn on_link(&self) -> u64 {
        let Some(segment) = self.segment.filter(|_| self.is_merged()) else { return self.bytes };
        let headers = self.bytes - segment.data;
        let mss = FRAME.saturating_sub(headers).max(LEAST_MSS);
        segment.data + headers * segment.data.div_ceil(mss)
    }

    /// Whether the kernel or the network interface merged several segments into the packet.
    pub(super) fn is_merged(&self) -> bool {
        self.bytes > FRAME
    }
}
