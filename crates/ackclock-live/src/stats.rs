//! What is known of real connections, and the rows that results show: the same as the simulator's.

use ackclock_core::results::{Distribution, FlowResult, RealFlow, Towards};
use ackclock_core::{Histogram, Span, Time};

use crate::flow::Ends;
use crate::port::Side;

/// One connection as the edge saw it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowReport {
    /// Its number: connections that have a row count from 0 as they come.
    pub id: u32,
    /// Its ends; `None` for packets of several connections together.
    pub ends: Option<Ends>,
    /// Packets that came in, from both sides.
    pub packets: u64,
    /// When its first packet came in.
    pub first: Time,
    /// When its last packet came in, or its last data left the link.
    pub last: Time,
    /// What was sent from each side, by [`Side`].
    pub ways: [Way; 2],
    /// Mean round-trip time between edge and mobile.
    pub edge_rtt: Option<Span>,
    /// Packets of the flow that were lost in the data queue or on the radio.
    pub dropped: u64,
    /// Acknowledgements that its regulator holds.
    pub held: usize,
}

/// What was sent one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Data segments that came in, repetitions included; every packet of a protocol other than TCP.
    pub segments: u64,
    /// Data segments of which every byte had come in before.
    pub retransmits: u64,
    /// Payload that came in for the first time, bytes.
    pub payload_bytes: u64,
    /// Headers of the segments that came in for the first time, bytes.
    pub header_bytes: u64,
    /// Payload that left the link, bytes; of TCP only what the receiver has acknowledged, each byte once.
    pub delivered_bytes: u64,
    /// Payload that left the link, repetitions included, bytes.
    pub left_payload_bytes: u64,
    /// Bytes that left the link, headers and repetitions included.
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
    /// The side from which most of its payload came; the wired one, where neither sent more.
    pub fn sender(&self) -> Side {
        let [wired, radio] = &self.ways;
        if radio.payload_bytes > wired.payload_bytes { Side::Radio } else { Side::Wired }
    }

    /// The row of the results for the direction in which most was sent.
    pub fn result(&self, sender: &str, regulator: &str) -> FlowResult {
        let from = self.sender();
        let towards = if from == Side::Radio { Towards::Server } else { Towards::Mobile };
        let way = &self.ways[from as usize];
        let duration = self.last.since(self.first).as_secs_f64();
        // One packet shows no rate.
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
            retransmits: way.retransmits,
            fast_retransmits: None,
            timeouts: None,
            spurious_timeouts: None,
            rtt_ms: Distribution::default(),
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
            real: Some(self.real()),
        }
    }

    /// What only real packets have, for the direction in which most was sent.
    pub fn real(&self) -> RealFlow {
        let from = self.sender();
        RealFlow {
            protocol: self.ends.map_or_else(|| "other".to_owned(), |ends| ends.protocol_name()),
            from: self.ends.map(|ends| ends.of_side(from).to_string()),
            to: self.ends.map(|ends| ends.of_side(from.other()).to_string()),
            start_s: self.first.as_secs_f64(),
            end_s: self.last.as_secs_f64(),
            down_bytes: self.ways[Side::Wired as usize].left_bytes,
            up_bytes: self.ways[Side::Radio as usize].left_bytes,
        }
    }
}

/// How well departures keep to their schedule.
#[derive(Clone, Debug, Default)]
pub struct Punctuality {
    /// How much later than due packets departed, taken just before each was written.
    pub error: Histogram,
}
