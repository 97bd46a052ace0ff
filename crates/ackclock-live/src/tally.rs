//! Counters of a real connection.
//!
//! The edge is the point of observation. A segment counts as sent when it arrives at the edge, and as retransmitted if
//! its bytes had arrived before. A segment counts as delivered when the receiver's ACK arrives at the edge or, without
//! TCP, when the first intact copy of the packet leaves the link. Goodput divides the delivered bytes by a time that ends no earlier than the
//! departure of the last data. Values that only a sender knows (timeouts, RTTs) are missing.

use ackclock_core::{Flags, SackBlock, Segment, Seq, Time};

use crate::flow::Ends;
use crate::port::Side;
use crate::stats::{FlowReport, Way};

/// Counters of an open connection, or, in the default value, of packets of several connections together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    report: FlowReport,
    sent: [Sent; 2],
    proven: bool,
    /// First number after the newest SYN of each side since the connection was proven, and the end of this SYN's data.
    asked: [Option<(Seq, Seq)>; 2],
}

/// Kind of a copy that leaves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyKind {
    /// First intact copy of what arrived.
    First,
    /// Duplicate made by the link, or a copy with a wrong bit, which the receiver discards.
    Extra,
}

/// Sequence numbers that arrived from one side.
#[derive(Clone, Debug, Default)]
struct Sent {
    /// Sequence number at the start of the first segment.
    first: Option<Seq>,
    /// Sequence number at the end of the highest segment sent.
    highest: Option<Seq>,
    /// Highest acknowledgement number received.
    acknowledged: Option<Seq>,
    /// Bytes below `highest` that never arrived: lost before the edge.
    gaps: Gaps,
}

impl Tally {
    pub(crate) fn new(id: u32, ends: Ends) -> Self {
        Self { report: FlowReport { id, ends: Some(ends), ..FlowReport::default() }, ..Self::default() }
    }

    /// Whether results have a row for this connection.
    pub(crate) fn has_row(&self) -> bool {
        self.report.packets > 0 && self.report.ends.is_some_and(|ends| ends.have_row())
    }

    /// Whether the connection's row counts this segment. A TCP segment that cannot be read has an unknown payload: its
    /// checksum is wrong or its options are malformed.
    pub(crate) fn counts(&self, segment: &Segment) -> bool {
        self.report.ends.is_some_and(|ends| ends.have_row() && (ends.is_udp() || segment.is_tcp()))
    }

    /// Current counters of the connection.
    pub(crate) const fn report(&self) -> &FlowReport {
        &self.report
    }

    /// Whether one end has acknowledged the peer's data.
    pub(crate) const fn is_proven(&self) -> bool {
        self.proven
    }

    /// Counts a packet of the connection that arrives at `from`. Returns the payload from the other side that the packet
    /// acknowledges for the first time, bytes.
    pub(crate) fn on_packet(&mut self, now: Time, from: Side, segment: &Segment) -> u64 {
        if self.report.packets == 0 {
            self.report.first = now;
        }
        self.report.packets += 1;
        self.report.last = self.report.last.max(now);
        let (here, there) = (from as usize, from.other() as usize);
        if let Some(payload) = self.datagram(segment) {
            let way = &mut self.report.ways[here];
            way.segments += 1;
            way.payload_bytes += payload;
            way.header_bytes += u64::from(segment.wire_bytes()) - payload;
            return 0;
        }
        if self.proven && segment.flags.intersects(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            self.asked[here] = Some((segment.seq + 1, segment.end()));
            return 0;
        }
        self.sent[here].on_segment(&mut self.report.ways[here], segment);
        if !segment.flags.contains(Flags::ACK) {
            return 0;
        }
        // An ACK of a SYN, or a RST, proves nothing, because hosts also answer forged packets with an ACK of a SYN or a
        // RST.
        let of_itself = segment.flags.intersects(Flags::SYN | Flags::RST);
        self.proven |= !of_itself && self.sent[there].covers(segment.ack);
        self.sent[there].on_acknowledged(&mut self.report.ways[there], segment.ack)
    }

    /// Counts a packet of this many bytes that arrived at `from` and has left the link. Returns the payload that this
    /// delivers, bytes: none for TCP, whose payload is delivered when it is acknowledged.
    pub(crate) fn on_left(
        &mut self,
        at: Time,
        from: Side,
        segment: &Segment,
        bytes: u64,
        copy: CopyKind,
    ) -> u64 {
        let datagram = self.datagram(segment);
        let way = &mut self.report.ways[from as usize];
        way.left_bytes += bytes;
        if copy == CopyKind::Extra {
            return 0;
        }
        way.left_payload_bytes += datagram.unwrap_or(segment.payload.into());
        way.delivered_bytes += datagram.unwrap_or(0);
        if datagram.is_some() || segment.payload > 0 {
            self.report.last = self.report.last.max(at);
        }
        datagram.unwrap_or(0)
    }

    /// Adds the counters of another connection.
    pub(crate) fn absorb(&mut self, other: &FlowReport) {
        let report = &mut self.report;
        report.first = if report.packets == 0 { other.first } else { report.first.min(other.first) };
        report.last = report.last.max(other.last);
        report.packets += other.packets;
        report.ways.iter_mut().zip(&other.ways).for_each(|(way, more)| *way += more);
    }

    /// Payload in bytes of a packet other than TCP: the bytes after UDP and IP headers, assumed to have no options. In
    /// the common counters of several connections, the payload is the entire packet.
    fn datagram(&self, segment: &Segment) -> Option<u64> {
        let headers = match self.report.ends {
            Some(_) if segment.is_tcp() => return None,
            Some(ends) if ends.wired.address.is_ipv6() => 48,
            Some(_) => 28,
            None => 0,
        };
        Some(u64::from(segment.wire_bytes()).saturating_sub(headers))
    }

    /// Whether a segment starts a new connection between the same ends: a SYN that differs from the connection's first
    /// SYN. Anybody can send a SYN, so a proven connection is over with when the other end answers such a SYN.
    pub(crate) fn is_over_with(&self, from: Side, segment: &Segment) -> bool {
        if !segment.flags.intersects(Flags::SYN) {
            return false;
        }
        if segment.flags.contains(Flags::ACK) {
            let answers = |(begin, end): (Seq, Seq)| !segment.ack.before(begin) && !segment.ack.after(end);
            return self.asked[from.other() as usize].is_some_and(answers);
        }
        !self.proven && self.sent[from as usize].first.is_some_and(|first| first != segment.seq)
    }
}

impl Sent {
    fn on_segment(&mut self, way: &mut Way, segment: &Segment) {
        // A RST is ignored, because it may have any sequence number.
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
        way.segments += 1;
        if new == 0 {
            way.retransmits += 1;
        } else {
            way.payload_bytes += u64::from(new.min(segment.payload.into()));
            way.header_bytes += u64::from(segment.header);
        }
    }

    /// Whether `ack` acknowledges bytes that arrived at the edge.
    fn covers(&self, ack: Seq) -> bool {
        let sent = self.first.zip(self.highest);
        sent.is_some_and(|(first, highest)| ack.after(first) && !ack.after(highest))
    }

    /// Counts newly acknowledged bytes of the connection, and returns their number. SYN and FIN use one sequence number
    /// each, which does not count as a byte.
    fn on_acknowledged(&mut self, way: &mut Way, ack: Seq) -> u64 {
        let (Some(before), Some(highest)) = (self.acknowledged, self.highest) else { return 0 };
        let ack = ack.min(highest);
        self.acknowledged = Some(before.max(ack));
        let most = way.payload_bytes.min(way.left_payload_bytes);
        let delivered = (way.delivered_bytes + u64::from(ack.since(before))).min(most);
        delivered - std::mem::replace(&mut way.delivered_bytes, delivered)
    }
}

/// Ranges of sequence numbers that have not arrived, oldest first.
#[derive(Clone, Debug, Default)]
struct Gaps(Vec<SackBlock>);

impl Gaps {
    /// Maximum number of ranges, more than a path loses per window; a further range replaces the oldest range.
    const MOST: usize = 256;

    fn open(&mut self, left: Seq, right: Seq) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(SackBlock { left, right });
    }

    /// Removes the range from `left` to `right`, which arrived, from the gaps; returns the number of bytes of the range
    /// that were missing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::End;
    use ackclock_core::{FlowId, Span};

    fn tally() -> Tally {
        of_protocol(6)
    }

    fn of_protocol(protocol: u8) -> Tally {
        let end = |port| End { address: std::net::IpAddr::from([127, 0, 0, 1]), port };
        Tally::new(0, Ends { wired: end(1), radio: end(2), protocol })
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A segment that crosses the link without delay.
    fn crosses(tally: &mut Tally, ms: u64, from: Side, segment: &Segment) {
        tally.on_packet(at(ms), from, segment);
        tally.on_left(at(ms), from, segment, segment.wire_bytes().into(), CopyKind::First);
    }

    fn data(seq: u32, payload: u16) -> Segment {
        Segment::data(FlowId(1), Seq(seq), payload, 40)
    }

    #[test]
    fn goodput_is_what_was_acknowledged_and_repetitions_count_once() {
        let mut tally = tally();
        // The sequence numbers of this test wrap.
        let start = 0xffff_ff00u32;
        for (ms, offset) in [(0, 0), (1, 1000), (2, 2000), (3, 1000)] {
            crosses(&mut tally, ms, Side::Wired, &data(start.wrapping_add(offset), 1000));
        }
        tally.on_packet(
            at(10),
            Side::Radio,
            &Segment::pure_ack(FlowId(1), Seq(start.wrapping_add(2000)), 40),
        );
        tally.on_packet(
            at(10),
            Side::Radio,
            &Segment::pure_ack(FlowId(1), Seq(start.wrapping_add(1000)), 40),
        );
        let row = tally.report().result("kernel", "none");
        assert_eq!((row.segments_sent, row.retransmits, row.delivered_bytes), (4, Some(1), 2000));
        // 2000 B in 10 ms are 1.6 Mbit/s; 2080 B with headers are 1.664 Mbit/s.
        assert_eq!((row.goodput_bps, row.wire_goodput_bps), (Some(1.6e6), Some(1.664e6)));
    }

    #[test]
    fn what_was_lost_before_the_edge_comes_in_for_the_first_time_when_it_is_sent_again() {
        let mut tally = tally();
        // Bytes 1000 to 3000 arrive last, their middle first, and the segment at 2000 twice.
        let starts = [0, 1000, 4000, 2500, 2000, 3000, 1000, 2000];
        for (ms, (seq, payload)) in
            (0..).zip(starts.into_iter().zip([1000, 500, 1000, 500, 500, 1000, 1000, 1000]))
        {
            crosses(&mut tally, ms, Side::Wired, &data(seq, payload));
        }
        tally.on_packet(at(10), Side::Radio, &Segment::pure_ack(FlowId(1), Seq(5000), 40));
        let row = tally.report().result("kernel", "none");
        assert_eq!((row.segments_sent, row.retransmits, row.delivered_bytes), (8, Some(1), 5000));
        assert!(tally.sent[0].gaps.0.is_empty());
    }

    #[test]
    fn a_datagram_is_delivered_when_it_leaves_the_link() {
        let mut tally = of_protocol(17);
        let datagram = Segment::opaque(FlowId(1), 1028);
        tally.on_packet(at(0), Side::Radio, &datagram);
        tally.on_packet(at(10), Side::Radio, &datagram);
        tally.on_left(at(20), Side::Radio, &datagram, 1028, CopyKind::First);
        // Neither a duplicate nor a corrupt copy delivers anything.
        assert_eq!(tally.on_left(at(30), Side::Radio, &datagram, 1028, CopyKind::Extra), 0);
        let row = tally.report().result("kernel", "none");
        assert_eq!((row.segments_sent, row.delivered_bytes, row.retransmits), (2, 1000, None));
        assert_eq!(tally.report().ways[Side::Radio as usize].left_bytes, 2 * 1028);
        // 1000 B arrive within 20 ms; headers add 28 B.
        assert_eq!((row.goodput_bps, row.wire_goodput_bps), (Some(4e5), Some(4.112e5)));
    }

    #[test]
    fn syn_and_fin_are_no_payload() {
        let mut tally = tally();
        let flagged = |seq, flags| {
            let mut segment = data(seq, 0);
            segment.flags = flags;
            segment
        };
        tally.on_packet(at(0), Side::Radio, &flagged(99, Flags::SYN));
        crosses(&mut tally, 1, Side::Radio, &data(100, 50));
        tally.on_packet(at(2), Side::Radio, &flagged(150, Flags::FIN | Flags::ACK));
        tally.on_packet(at(3), Side::Wired, &Segment::pure_ack(FlowId(1), Seq(151), 40));
        let row = tally.report().result("kernel", "none");
        assert_eq!((tally.report().sender(), row.segments_sent, row.delivered_bytes), (Side::Radio, 1, 50));
    }

    #[test]
    fn another_syn_between_the_same_ends_is_another_connection_and_a_repeated_one_is_not() {
        let mut tally = tally();
        let syn = |seq| {
            let mut segment = data(seq, 0);
            segment.flags = Flags::SYN;
            segment
        };
        assert!(!tally.is_over_with(Side::Radio, &syn(99)));
        tally.on_packet(at(0), Side::Radio, &syn(99));
        assert!(!tally.is_over_with(Side::Radio, &syn(99)));
        assert!(tally.is_over_with(Side::Radio, &syn(7_000)));
        crosses(&mut tally, 1, Side::Radio, &data(100, 50));
        assert!(!tally.is_over_with(Side::Radio, &data(7_000, 1)));
        // Anybody can send a SYN; the other end does not answer one that it does not believe.
        tally.on_packet(at(2), Side::Wired, &Segment::pure_ack(FlowId(1), Seq(150), 40));
        assert!(tally.is_proven());
        let answer = |ack| flagged(Flags::SYN | Flags::ACK, 3, ack);
        assert!(
            !tally.is_over_with(Side::Radio, &syn(7_000)) && !tally.is_over_with(Side::Wired, &answer(7_001))
        );
        tally.on_packet(at(3), Side::Radio, &syn(7_000));
        assert!(
            !tally.is_over_with(Side::Wired, &answer(8_000))
                && tally.is_over_with(Side::Wired, &answer(7_001))
        );
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_delivers_nothing() {
        let mut tally = tally();
        crosses(&mut tally, 0, Side::Wired, &data(0, 100));
        tally.on_packet(at(1), Side::Radio, &Segment::pure_ack(FlowId(1), Seq(1_000_000), 40));
        assert_eq!(tally.report().ways[0].delivered_bytes, 100);
    }

    /// A segment with these flags and these sequence and acknowledgement numbers.
    fn flagged(flags: Flags, seq: u32, ack: u32) -> Segment {
        let mut segment = data(seq, 0);
        (segment.flags, segment.ack) = (flags, Seq(ack));
        segment
    }

    #[test]
    fn a_connection_is_proven_by_the_third_segment_of_its_handshake() {
        let mut tally = tally();
        tally.on_packet(at(0), Side::Radio, &flagged(Flags::SYN, 99, 0));
        tally.on_packet(at(1), Side::Wired, &flagged(Flags::SYN | Flags::ACK, 499, 100));
        assert!(!tally.is_proven(), "whoever made the SYN up did not see the answer");
        tally.on_packet(at(2), Side::Radio, &flagged(Flags::ACK, 100, 501));
        assert!(!tally.is_proven(), "a guess");
        tally.on_packet(at(2), Side::Radio, &flagged(Flags::ACK, 100, 500));
        assert!(tally.is_proven());
    }

    #[test]
    fn one_met_in_mid_stream_is_proven_by_an_acknowledgement_and_not_by_a_reset() {
        let mut tally = tally();
        crosses(&mut tally, 0, Side::Wired, &data(1000, 100));
        tally.on_packet(at(1), Side::Radio, &flagged(Flags::RST | Flags::ACK, 0, 1100));
        assert!(!tally.is_proven());
        tally.on_packet(at(2), Side::Radio, &flagged(Flags::ACK, 7, 1000));
        assert!(!tally.is_proven(), "of nothing that was seen");
        tally.on_packet(at(2), Side::Radio, &flagged(Flags::ACK, 7, 1100));
        assert!(tally.is_proven());
    }
}
