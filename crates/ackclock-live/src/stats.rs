//! What is counted of real connections, and the rows that results show: the same as the simulator's.
//!
//! Everything is seen from the edge: a segment is sent when it comes in, sent again when its bytes had come in before, and
//! delivered when the receiver's acknowledgement of it comes in, or without TCP when it leaves the link. What only a sender knows (its time-outs, its round-trip
//! times) is not there.

use ackclock_core::results::{Distribution, FlowResult};
use ackclock_core::{Flags, Histogram, SackBlock, Segment, Seq, Span, Time};

use crate::flow::Ends;
use crate::port::Side;

/// One connection as the edge saw it.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// Its ends.
    pub ends: Ends,
    /// When its first packet came in.
    pub first: Time,
    /// When its last packet came in.
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
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Data segments that came in, repetitions included; every packet of a protocol other than TCP.
    pub segments: u64,
    /// Data segments of which every byte had come in before.
    pub retransmits: u64,
    /// Payload that came in for the first time, bytes.
    pub payload_bytes: u64,
    /// Headers of the segments that came in for the first time, bytes.
    pub header_bytes: u64,
    /// Payload that the receiver has acknowledged, bytes.
    pub delivered_bytes: u64,
    /// Where the first segment began.
    first: Option<Seq>,
    /// The byte after the last that was sent.
    highest: Option<Seq>,
    /// The byte after the last that was acknowledged.
    acknowledged: Option<Seq>,
    /// What has not come in of what lies below `highest`: it was lost on its way to the edge.
    gaps: Gaps,
}

impl FlowReport {
    pub(crate) fn new(ends: Ends, now: Time) -> Self {
        let ways = [Way::default(), Way::default()];
        Self { ends, first: now, last: now, ways, edge_rtt: None, dropped: 0, held: 0 }
    }

    /// A packet of the connection comes in at `from`.
    pub(crate) fn on_packet(&mut self, now: Time, from: Side, segment: &Segment) {
        self.last = now;
        if !segment.is_tcp() {
            let payload = self.datagram(segment);
            let way = &mut self.ways[from as usize];
            way.segments += 1;
            way.payload_bytes += payload;
            way.header_bytes += u64::from(segment.wire_bytes()) - payload;
            return;
        }
        self.ways[from as usize].on_sent(segment);
        if segment.flags.contains(Flags::ACK) {
            self.ways[from.other() as usize].on_acknowledged(segment.ack);
        }
    }

    /// A packet of the connection that had come in at `from` has left the link.
    pub(crate) fn on_left(&mut self, from: Side, segment: &Segment) {
        if !segment.is_tcp() {
            self.ways[from as usize].delivered_bytes += self.datagram(segment);
        }
    }

    /// Payload of a datagram, bytes: what is behind the headers of IP, taken to have no options, and UDP.
    fn datagram(&self, segment: &Segment) -> u64 {
        let headers = if self.ends.wired.address.is_ipv6() { 48 } else { 28 };
        u64::from(segment.wire_bytes()).saturating_sub(headers)
    }

    /// Whether a segment begins another connection between the same ends: a SYN that is no repetition of the first.
    pub(crate) fn is_over_with(&self, from: Side, segment: &Segment) -> bool {
        let opens = segment.flags.intersects(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        opens && self.ways[from as usize].first.is_some_and(|first| first != segment.seq)
    }

    /// The side from which most of its payload came; the wired one, where neither sent more.
    pub fn sender(&self) -> Side {
        let [wired, radio] = &self.ways;
        if radio.payload_bytes > wired.payload_bytes { Side::Radio } else { Side::Wired }
    }

    /// The row of the results for the direction in which most was sent.
    pub fn result(&self, id: u32, sender: &str, regulator: &str) -> FlowResult {
        let way = &self.ways[self.sender() as usize];
        let duration = self.last.since(self.first).as_secs_f64();
        let rate = |bytes: f64| (duration > 0.0).then(|| bytes * 8.0 / duration);
        let headers = way.header_bytes as f64 / way.payload_bytes.max(1) as f64;
        FlowResult {
            id,
            user: 0,
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
            regulator: regulator.to_owned(),
            rto_ms_mean: None,
            loss_cycles: None,
        }
    }
}

impl Way {
    fn on_sent(&mut self, segment: &Segment) {
        // A reset may carry any number.
        if !segment.has_data() || segment.flags.intersects(Flags::RST) {
            return;
        }
        let end = segment.end();
        self.first.get_or_insert(segment.seq);
        let highest = *self.highest.get_or_insert(segment.seq);
        self.acknowledged.get_or_insert(segment.seq);
        if segment.seq.after(highest) {
            self.gaps.open(highest, segment.seq);
        }
        let new = end.since(highest.max(segment.seq)) + self.gaps.fill(segment.seq, end);
        self.highest = Some(highest.max(end));
        if segment.payload == 0 {
            return;
        }
        self.segments += 1;
        if new == 0 {
            self.retransmits += 1;
        } else {
            self.payload_bytes += u64::from(new.min(segment.payload.into()));
            self.header_bytes += u64::from(segment.header);
        }
    }

    /// Counts what is acknowledged for the first time. SYN and FIN take a number each, which are not bytes.
    fn on_acknowledged(&mut self, ack: Seq) {
        let (Some(before), Some(highest)) = (self.acknowledged, self.highest) else { return };
        let ack = ack.min(highest);
        self.acknowledged = Some(before.max(ack));
        self.delivered_bytes = (self.delivered_bytes + u64::from(ack.since(before))).min(self.payload_bytes);
    }
}

/// Runs of sequence numbers that have not come in, the oldest first.
#[derive(Clone, Debug, Default)]
struct Gaps(Vec<SackBlock>);

impl Gaps {
    /// More of them than a path loses in a window; the oldest is given up for another.
    const MOST: usize = 256;

    fn open(&mut self, left: Seq, right: Seq) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(SackBlock { left, right });
    }

    /// What lies between `left` and `right` has come in; how many bytes of it had not.
    fn fill(&mut self, left: Seq, right: Seq) -> u32 {
        let mut filled = 0;
        let mut rest = Vec::new();
        self.0.retain(|gap| {
            let (from, to) = (gap.left.max(left), gap.right.min(right));
            if !from.before(to) {
                return true;
            }
            filled += to.since(from);
            let around = [(gap.left, from), (to, gap.right)].map(|(left, right)| SackBlock { left, right });
            rest.extend(around.into_iter().filter(|part| part.left.before(part.right)));
            false
        });
        self.0.append(&mut rest);
        filled
    }
}

/// How well departures keep to their schedule, and what that costs.
#[derive(Clone, Debug, Default)]
pub struct Punctuality {
    /// How much later than due packets departed, taken just before each was written.
    pub error: Histogram,
    /// Packets written.
    pub written: u64,
    /// Packets that a device did not take.
    pub lost_at_device: u64,
    /// Packets that could not be taken in: the pool was full, or a super-packet could not be split.
    pub lost_at_entry: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::End;
    use ackclock_core::FlowId;

    fn report() -> FlowReport {
        let end = |port| End { address: std::net::IpAddr::from([127, 0, 0, 1]), port };
        FlowReport::new(Ends { wired: end(1), radio: end(2), protocol: 6 }, Time::ZERO)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn data(seq: u32, payload: u16) -> Segment {
        Segment::data(FlowId(1), Seq(seq), payload, 40)
    }

    #[test]
    fn goodput_is_what_was_acknowledged_and_repetitions_count_once() {
        let mut report = report();
        // Around the wrap of sequence numbers.
        let start = 0xffff_ff00u32;
        for (ms, offset) in [(0, 0), (1, 1000), (2, 2000), (3, 1000)] {
            report.on_packet(at(ms), Side::Wired, &data(start.wrapping_add(offset), 1000));
        }
        report.on_packet(
            at(10),
            Side::Radio,
            &Segment::pure_ack(FlowId(1), Seq(start.wrapping_add(2000)), 40),
        );
        report.on_packet(
            at(10),
            Side::Radio,
            &Segment::pure_ack(FlowId(1), Seq(start.wrapping_add(1000)), 40),
        );
        let row = report.result(0, "kernel", "none");
        assert_eq!((row.segments_sent, row.retransmits, row.delivered_bytes), (4, 1, 2000));
        // 2000 B in 10 ms are 1.6 Mbit/s, 2080 B with headers 1.664
        assert_eq!((row.goodput_bps, row.wire_goodput_bps), (Some(1.6e6), Some(1.664e6)));
    }

    #[test]
    fn what_was_lost_before_the_edge_comes_in_for_the_first_time_when_it_is_sent_again() {
        let mut report = report();
        // 1000 to 3000 come last, in the middle of them first, and 2000 twice.
        let starts = [0, 1000, 4000, 2500, 2000, 3000, 1000, 2000];
        for (ms, (seq, payload)) in
            (0..).zip(starts.into_iter().zip([1000, 500, 1000, 500, 500, 1000, 1000, 1000]))
        {
            report.on_packet(at(ms), Side::Wired, &data(seq, payload));
        }
        report.on_packet(at(10), Side::Radio, &Segment::pure_ack(FlowId(1), Seq(5000), 40));
        let row = report.result(0, "kernel", "none");
        assert_eq!((row.segments_sent, row.retransmits, row.delivered_bytes), (8, 1, 5000));
        assert!(report.ways[0].gaps.0.is_empty());
    }

    #[test]
    fn a_datagram_is_delivered_when_it_leaves_the_link() {
        let mut report = report();
        let datagram = Segment::opaque(FlowId(1), 1028);
        report.on_packet(at(0), Side::Radio, &datagram);
        report.on_packet(at(10), Side::Radio, &datagram);
        report.on_left(Side::Radio, &datagram);
        let row = report.result(0, "kernel", "none");
        assert_eq!((row.segments_sent, row.delivered_bytes), (2, 1000));
        // 1000 B in 10 ms, and 28 more with headers
        assert_eq!((row.goodput_bps, row.wire_goodput_bps), (Some(8e5), Some(8.224e5)));
    }

    #[test]
    fn syn_and_fin_are_no_payload() {
        let mut report = report();
        let flagged = |seq, flags| {
            let mut segment = data(seq, 0);
            segment.flags = flags;
            segment
        };
        report.on_packet(at(0), Side::Radio, &flagged(99, Flags::SYN));
        report.on_packet(at(1), Side::Radio, &data(100, 50));
        report.on_packet(at(2), Side::Radio, &flagged(150, Flags::FIN | Flags::ACK));
        report.on_packet(at(3), Side::Wired, &Segment::pure_ack(FlowId(1), Seq(151), 40));
        let row = report.result(0, "kernel", "none");
        assert_eq!((report.sender(), row.segments_sent, row.delivered_bytes), (Side::Radio, 1, 50));
    }

    #[test]
    fn another_syn_between_the_same_ends_is_another_connection_and_a_repeated_one_is_not() {
        let mut report = report();
        let syn = |seq| {
            let mut segment = data(seq, 0);
            segment.flags = Flags::SYN;
            segment
        };
        assert!(!report.is_over_with(Side::Radio, &syn(99)));
        report.on_packet(at(0), Side::Radio, &syn(99));
        assert!(!report.is_over_with(Side::Radio, &syn(99)));
        report.on_packet(at(1), Side::Radio, &data(100, 50));
        assert!(report.is_over_with(Side::Radio, &syn(7_000)));
        assert!(!report.is_over_with(Side::Radio, &data(7_000, 1)));
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_delivers_nothing() {
        let mut report = report();
        report.on_packet(at(0), Side::Wired, &data(0, 100));
        report.on_packet(at(1), Side::Radio, &Segment::pure_ack(FlowId(1), Seq(1_000_000), 40));
        assert_eq!(report.ways[0].delivered_bytes, 100);
    }
}
