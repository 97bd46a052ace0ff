//! A box's record of one flow. The record consists of cumulative sums, so that a later record makes up for a lost one.

use ackclock_core::{Flags, FlowId, Segment, Seq, Span, Time};

/// Uncertainty of a packet's time with which a loop can still be measured: twice the interval of a kernel's records.
const CLOSE: Span = Span::from_millis(2);

/// Traffic of one flow from its start up to an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time up to which the record counts the flow's traffic.
    pub at: Time,
    /// Identifier of the flow.
    pub flow: FlowId,
    /// Last SYN of the mobile, with its time.
    pub asked: Option<(Time, Segment)>,
    /// Last SYN-ACK of the server, with its time.
    pub answered: Option<(Time, Segment)>,
    /// Data of the flow that was sent to the mobile.
    pub passed: Passed,
    /// ACKs of the flow that arrived from the mobile.
    pub acked: Acked,
    /// Furthest right edge advertised to the sender.
    pub advertised: Option<Advertised>,
    /// Bytes sent to the same user outside the flows with records; these bytes use the same link.
    pub others: u64,
}

/// Data of a flow that passed the box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Time at which the newest packet passed; the record may be made later.
    pub at: Time,
    /// Time at which the packet before the newest one passed.
    pub previous: Time,
    /// End of the data that passed.
    pub highest: Option<Seq>,
    /// Number of packets so far, including FINs and retransmissions.
    pub packets: u64,
    /// Number of payload bytes so far, including retransmissions.
    pub bytes: u64,
    /// The newest packet with its timestamps; offload may have merged several packets into it.
    pub newest: Option<Segment>,
    /// Payload of a full packet before any merging, bytes.
    pub full: u16,
    /// Number of packets with data that passed before.
    pub repeated: u64,
}

/// ACKs of a flow that arrived from the mobile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Time at which the newest ACK arrived.
    pub at: Time,
    /// Time at which the ACK before the newest one arrived.
    pub previous: Time,
    /// Number of ACKs so far.
    pub packets: u64,
    /// The newest ACK, as the mobile sent it.
    pub newest: Option<Segment>,
}

/// A right edge advertised to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Time at which the right edge was advertised.
    pub at: Time,
    /// Sequence number of the right edge.
    pub edge: Seq,
    /// Right edge advertised before this one.
    pub before: Option<Seq>,
    /// Number of right edges advertised so far, each beyond the previous one.
    pub edges: u64,
    /// TSval of the ACK that advertised the right edge.
    pub stamp: Option<u32>,
}

impl Record {
    /// Creates the record of a flow without any traffic.
    pub fn new(flow: FlowId) -> Self {
        Self {
            at: Time::ZERO,
            flow,
            asked: None,
            answered: None,
            passed: Passed::default(),
            acked: Acked::default(),
            advertised: None,
            others: 0,
        }
    }

    /// Adds a TCP segment that passes to the mobile. Returns whether the record has new information.
    pub fn on_down(&mut self, at: Time, segment: &Segment) -> bool {
        self.at = at;
        if segment.flags.intersects(Flags::SYN) {
            self.answered = Some((at, *segment));
        } else if segment.has_data() {
            (self.passed.previous, self.passed.at) = (self.passed.at, at);
            self.passed.packets += 1;
            self.passed.bytes += u64::from(segment.payload);
            self.passed.newest = Some(*segment);
            let end = segment.end();
            self.passed.highest = Some(self.passed.highest.map_or(end, |highest| highest.max(end)));
            self.passed.full = self.passed.full.max(segment.payload);
        } else {
            return false;
        }
        true
    }

    /// Adds a TCP segment that comes from the mobile. Returns whether the record has new information.
    pub fn on_up(&mut self, at: Time, segment: &Segment) -> bool {
        self.at = at;
        if segment.flags.intersects(Flags::SYN) {
            self.asked = Some((at, *segment));
        } else if segment.flags.contains(Flags::ACK) {
            (self.acked.previous, self.acked.at) = (self.acked.at, at);
            self.acked.packets += 1;
            self.acked.newest = Some(*segment);
        } else {
            return false;
        }
        true
    }

    /// Adds an ACK sent to the sender with its advertised window. Returns whether the right edge advanced.
    pub fn on_told(&mut self, at: Time, ack: &Segment) -> bool {
        let tells = ack.flags.contains(Flags::ACK) && !ack.flags.intersects(Flags::SYN | Flags::RST);
        let Some(window) = ack.window_bytes().filter(|_| tells) else { return false };
        let edge = ack.ack + window;
        if self.advertised.is_some_and(|told| !edge.after(told.edge)) {
            return false;
        }
        self.at = at;
        let edges = self.advertised.map_or(0, |told| told.edges) + 1;
        let before = self.advertised.map(|told| told.edge);
        let stamp = ack.timestamps().map(|timestamps| timestamps.value);
        self.advertised = Some(Advertised { at, edge, before, edges, stamp });
        true
    }

    /// Whether the mobile has sent a SYN since the record `before`.
    pub fn asks_since(&self, before: Option<&Self>) -> bool {
        self.asked != before.and_then(|before| before.asked)
    }

    /// Whether the server has sent a SYN-ACK since the record `before`.
    pub fn answers_since(&self, before: Option<&Self>) -> bool {
        self.answered != before.and_then(|before| before.answered)
    }

    /// The newest ACK, if an ACK has arrived since the record `before`.
    pub fn acks_since(&self, before: Option<&Self>) -> Option<Segment> {
        self.acked.newest.filter(|_| self.news(before, |record| record.acked.packets) > 0)
    }

    /// Right edges that were advertised since the record `before`. Those that have no record of their own may have been
    /// advertised as early as the last one that has, so that no loop is measured too short.
    pub(super) fn told_since(&self, before: Option<&Self>) -> impl Iterator<Item = Advertised> + use<> {
        let last = before.and_then(|before| before.advertised);
        let missed = self.advertised.zip(last).filter(|(told, last)| told.edges > last.edges + 1);
        let missed = missed.and_then(|(told, last)| Some(Advertised { edge: told.before?, ..last }));
        missed.into_iter().chain(self.advertised)
    }

    /// Packets that passed since the record `before`: first the packets derived from the sums, then the newest packet;
    /// none is larger than a full packet. Without an earlier record, only the newest packet is returned.
    pub fn passed_since(&self, before: Option<&Self>) -> impl Iterator<Item = Segment> + use<> {
        let newest = self.passed.newest.filter(|_| self.news(before, |record| record.passed.packets) > 0);
        let (full, header) = (self.passed.full.max(1), newest.map_or(0, |newest| newest.header));
        let (mut seq, mut missed) = newest.map_or((Seq(0), 0), |newest| self.missed(before, &newest));
        let mut newest = newest;
        std::iter::from_fn(move || {
            let last = newest?;
            let mut packet = last;
            if missed > 0 {
                packet = Segment::data(
                    last.flow,
                    seq,
                    u16::try_from(missed).unwrap_or(u16::MAX).min(full),
                    header,
                );
                if let Some(timestamps) = last.timestamps() {
                    packet.set_timestamps(timestamps);
                }
                missed -= u32::from(packet.payload);
                seq = packet.end();
            } else if last.payload > full {
                packet.payload = full;
                packet.flags = Flags::ACK;
                let mut rest = last;
                (rest.seq, rest.payload) = (packet.end(), last.payload - full);
                newest = Some(rest);
            } else {
                newest = None;
            }
            Some(packet)
        })
    }

    /// First byte and length of the new data since the record `before`, except for the newest packet; limited to the bytes
    /// that passed.
    fn missed(&self, before: Option<&Self>, newest: &Segment) -> (Seq, u32) {
        let until = self.passed.highest.filter(|highest| highest.after(newest.end())).unwrap_or(newest.seq);
        let Some(end) = before.and_then(|before| before.passed.highest) else { return (until, 0) };
        let bytes = self.news(before, |record| record.passed.bytes).saturating_sub(newest.payload.into());
        let missed = until.since(end).min(u32::try_from(bytes).unwrap_or(u32::MAX));
        (Seq(until.0.wrapping_sub(missed)), missed)
    }

    /// Time of the data that passed between the record `before` and the newest packet, if all of it passed within
    /// [`CLOSE`]. It is the earliest possible time, so that no loop is measured too short.
    pub(super) fn time_of_missed(&self, before: Option<&Self>) -> Option<Time> {
        let last = before?.passed.at;
        (self.passed.previous.since(last) <= CLOSE).then_some(last)
    }

    /// Whether data that passed before has passed again since the record `before`.
    pub(super) fn repeats_since(&self, before: Option<&Self>) -> bool {
        self.news(before, |record| record.passed.repeated) > 0
    }

    /// Increase of a cumulative sum since the record `before`.
    fn news(&self, before: Option<&Self>, sum: impl Fn(&Self) -> u64) -> u64 {
        sum(self).saturating_sub(before.map_or(0, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn data(seq: u32, payload: u16) -> Segment {
        Segment::data(FlowId(0), Seq(seq), payload, 40)
    }

    /// First byte and payload of what passed between two records.
    fn passed(record: &Record, before: Option<&Record>) -> Vec<(u32, u16)> {
        record.passed_since(before).map(|segment| (segment.seq.0, segment.payload)).collect()
    }

    #[test]
    fn packets_between_two_records_follow_from_the_sums() {
        let mut record = Record::new(FlowId(0));
        record.on_down(at(1), &data(0, 1000));
        assert_eq!(passed(&record, None), [(0, 1000)]);
        let before = record;
        (1..4).for_each(|number| assert!(record.on_down(at(2), &data(1000 * number, 1000))));
        assert_eq!(passed(&record, Some(&before)), [(1000, 1000), (2000, 1000), (3000, 1000)]);
        // A retransmission leaves no gap, and of a gap no more passed than was counted.
        let before = record;
        record.on_down(at(3), &data(0, 1000));
        record.on_down(at(3), &data(9000, 500));
        assert_eq!(passed(&record, Some(&before)), [(8000, 1000), (9000, 500)]);
        assert_eq!(passed(&record, Some(&record)), []);
    }

    /// The last packet of a window has no record of its own, and is retransmitted later.
    #[test]
    fn a_retransmission_hides_no_new_data() {
        let mut record = Record::new(FlowId(0));
        record.on_down(at(1), &data(0, 1000));
        let before = record;
        record.on_down(at(1), &data(1000, 1000));
        record.on_down(at(2), &data(0, 1000));
        assert_eq!(passed(&record, Some(&before)), [(1000, 1000), (0, 1000)]);
        let before = record;
        record.on_down(at(3), &data(1000, 1000));
        assert_eq!(passed(&record, Some(&before)), [(1000, 1000)]);
    }

    #[test]
    fn a_packet_that_a_device_joined_is_cut_into_full_ones() {
        let mut record = Record::new(FlowId(0));
        record.passed =
            Passed { packets: 1, bytes: 2500, newest: Some(data(0, 2500)), full: 1000, ..record.passed };
        assert_eq!(passed(&record, None), [(0, 1000), (1000, 1000), (2000, 500)]);
    }

    #[test]
    fn an_edge_after_others_that_are_not_known_may_have_been_told_as_early_as_they() {
        let ack = |number: u32| {
            let mut ack = Segment::pure_ack(FlowId(0), Seq(number), 40);
            ack.set_scale(Some(0));
            ack.window = 5000;
            ack
        };
        let mut record = Record::new(FlowId(0));
        assert!(record.on_told(at(1), &ack(0)));
        let first = record;
        assert!(record.on_told(at(4), &ack(1000)) && !record.on_told(at(5), &ack(1000)));
        let told = |record: &Record, before| -> Vec<_> {
            record.told_since(before).map(|told| (told.at, told.edge.0)).collect()
        };
        assert_eq!(told(&record, Some(&first)), [(at(4), 6000)]);
        assert!(record.on_told(at(7), &ack(2000)));
        assert_eq!(told(&record, Some(&first)), [(at(1), 6000), (at(7), 7000)]);
    }
}
