//! Statistics of real connections, and their result rows, which have the same format as the simulator's.

use ackclock_core::results::{Distribution, FlowResult, RealFlow, Towards};
use ackclock_core::{Histogram, Span, Time};

use crate::flow::Ends;
use crate::port::Side;

/// Report of a connection as observed at the edge.
#[derive(Clone, Debug, Default)]
pub struct FlowReport {
    /// Number of the connection; connections with rows count from 0 in order of appearance.
    pub id: u32,
    /// Ends of the connection; `None` for packets of several connections together.
    pub ends: Option<Ends>,
    /// Number of packets that arrived, from the two sides together.
    pub packets: u64,
    /// Arrival time of the connection's first packet.
    pub first: Time,
    /// Arrival time of the connection's last packet, or departure time of its last data from the link.
    pub last: Time,
    /// Counters per sending side, by [`Side`].
    pub ways: [Way; 2],
    /// Mean round-trip time between edge and mobile. For QUIC, mean round-trip time between the wired end of the link
    /// and the mobile.
    pub edge_rtt: Option<Span>,
    /// Number of packets lost in the data queue or on the radio.
    pub dropped: u64,
    /// Number of ACKs that the connection's regulator holds.
    pub held: usize,
    /// Round-trip time between the ends of a QUIC connection, by its spin bit; empty if the ends do not use the spin
    /// bit. `None` if the flow is not QUIC.
    pub quic: Option<Box<Distribution>>,
}

/// Counters of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Number of data segments that arrived, including retransmissions; for protocols other than TCP, number of all
    /// packets.
    pub segments: u64,
    /// Number of data segments whose bytes had all arrived before.
    pub retransmits: u64,
    /// Payload that arrived for the first time, bytes.
    pub payload_bytes: u64,
    /// Headers of segments that arrived for the first time, bytes.
    pub header_bytes: u64,
    /// Payload that left the link, bytes; for TCP only acknowledged bytes, each counted once.
    pub delivered_bytes: u64,
    /// Payload that left the link, including retransmissions, bytes.
    pub left_payload_bytes: u64,
    /// Bytes that left the link, including headers and retransmissions.
    pub left_bytes: u64,
}

impl std::ops::AddAssign<&Self> for Way {
    fn add_assign(&mut self, other: &Self) {
        self.segments += other.segments;
        self.retransmits += other.retransmits;
        self.payload_bytes += other.payload_bytes;
        self.header_bytes += other.header_bytes;
        self.delivered_bytes += other.delivered_bytes;
        self.left_payload_bytes += other.left_payload_bytes;
        self.left_bytes += other.left_bytes;
    }
}

impl FlowReport {
    /// Side that sent more payload; the wired side if the two sides sent equally much.
    pub fn sender(&self) -> Side {
        let [wired, radio] = &self.ways;
        if radio.payload_bytes > wired.payload_bytes { Side::Radio } else { Side::Wired }
    }

    /// Number of retransmitted data segments; `None` without readable sequence numbers.
    pub fn retransmits(&self) -> Option<u64> {
        let is_tcp = self.ends.is_some_and(|ends| !ends.is_udp());
        is_tcp.then(|| self.ways[self.sender() as usize].retransmits)
    }

    /// Result row for the direction with most payload.
    pub fn result(&self, sender: &str, regulator: &str) -> FlowResult {
        let from = self.sender();
        let towards = if from == Side::Radio { Towards::Server } else { Towards::Mobile };
        let way = &self.ways[from as usize];
        let duration = self.last.since(self.first).as_secs_f64();
        // A single packet has no rate.
        let rate = |bytes: f64| (duration > 0.0 && way.segments != 1).then(|| bytes * 8.0 / duration);
        let headers = way.header_bytes as f64 / way.payload_bytes.max(1) as f64;
        FlowResult {
            id: self.id,
            user: 0,
            towards,
            sender: sender.to_owned(),
            goodput_bps: rate(way.delivered_bytes as f64),
            wire_goodput_bps: rate(way.delivered_bytes as f64 * (1.0 + headers)),
            delivered_bytes: way.delivered_bytes,
            segments_sent: way.segments,
            retransmits: self.retransmits(),
            fast_retransmits: None,
            timeouts: None,
            spurious_timeouts: None,
            rtt_ms: self.quic.as_deref().cloned().unwrap_or_default(),
            timed_rtt_ms: None,
            edge_rtt_ms: self.edge_rtt.map(Span::as_millis_f64),
            completion_s: None,
            regulator: Some(regulator.to_owned()),
            rto_ms_mean: None,
            loss_cycles: None,
            transit_ms: None,
            spurious: None,
            link: None,
            ack_gap_ms: None,
            relay: None,
            media: None,
            real: Some(self.real()),
        }
    }

    /// Values that exist only for real packets, for the direction with most payload.
    pub fn real(&self) -> RealFlow {
        let from = self.sender();
        RealFlow {
            protocol: match (self.ends, &self.quic) {
                (_, Some(_)) => "quic".to_owned(),
                (Some(ends), None) => ends.protocol_name(),
                (None, None) => "other".to_owned(),
            },
            from: self.ends.map(|ends| ends.of_side(from).to_string()),
            to: self.ends.map(|ends| ends.of_side(from.other()).to_string()),
            start_s: self.first.as_secs_f64(),
            end_s: self.last.as_secs_f64(),
            down_bytes: self.ways[Side::Wired as usize].left_bytes,
            up_bytes: self.ways[Side::Radio as usize].left_bytes,
        }
    }
}

/// Statistics of how late packets depart.
#[derive(Clone, Debug, Default)]
pub struct Punctuality {
    /// Lateness of packet departures, measured just before each packet was written.
    pub error: Histogram,
}
