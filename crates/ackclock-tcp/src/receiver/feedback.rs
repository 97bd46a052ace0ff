//! Feedback of all congestion marks: AccECN (RFC 9768 section 3.2) and DCTCP (RFC 8257 section 3.2).
//!
//! An AccECN ACK contains the number of marked packets modulo 8, and in its option the marked bytes. A DCTCP ACK has ECE
//! if the segments that it acknowledges were marked; a change of the mark is acknowledged at once, after the segments
//! before the change.

use ackclock_core::{AccEcn, Ecn, EctField, Segment, Time};

use super::Receiver;
use crate::ecn::{EcnMode, INITIAL_CE_PACKETS};

/// CE marks since the last ACK that trigger an ACK (increment-triggered ACKs, RFC 9768 section 3.2.2.5.1).
const MARKS_PER_ACK: u8 = 2;

/// Counters of the marks that arrived, and their changes since the last ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    /// Number of CE-marked packets (r.cep).
    ce_packets: u8,
    /// Payload bytes with CE, with ECT(0) and with ECT(1) (r.ceb, r.e0b, r.e1b).
    ce_bytes: u32,
    ect0_bytes: u32,
    ect1_bytes: u32,
    /// ECN codepoint counted by the first field of the option: the last one that arrived.
    field: EctField,
    /// Whether the last packet was marked.
    marked: bool,
    /// CE marks since the last ACK.
    since_ack: u8,
}

impl Default for Feedback {
    fn default() -> Self {
        Self {
            ce_packets: INITIAL_CE_PACKETS,
            ce_bytes: 0,
            ect0_bytes: 1,
            ect1_bytes: 1,
            field: EctField::Ect0,
            marked: false,
            since_ack: 0,
        }
    }
}

impl Feedback {
    /// Counts an arriving packet (RFC 9768 section 3.2). Returns whether it must be acknowledged at once.
    fn count(&mut self, ecn: Ecn, payload: u32) -> bool {
        let changes = ecn == Ecn::Ce && !self.marked;
        self.marked = ecn == Ecn::Ce;
        match ecn {
            Ecn::Ce => {
                self.ce_packets = self.ce_packets.wrapping_add(1);
                self.ce_bytes = self.ce_bytes.wrapping_add(payload);
                self.since_ack = self.since_ack.saturating_add(1);
            }
            Ecn::Ect0 => {
                (self.ect0_bytes, self.field) = (self.ect0_bytes.wrapping_add(payload), EctField::Ect0)
            }
            Ecn::Ect1 => {
                (self.ect1_bytes, self.field) = (self.ect1_bytes.wrapping_add(payload), EctField::Ect1)
            }
            _ => {}
        }
        changes || self.since_ack >= MARKS_PER_ACK
    }

    /// Counts the mark of a SYN-ACK, which has no payload.
    pub(super) fn on_syn_ack(&mut self, ecn: Ecn) {
        self.ce_packets = INITIAL_CE_PACKETS + u8::from(ecn == Ecn::Ce);
    }

    /// Starts counting the marks of the next ACK.
    #[inline]
    pub(super) fn on_ack(&mut self) {
        self.since_ack = 0;
    }

    /// Writes the counters into an ACK. The option is omitted if SACK blocks leave no room.
    pub(super) fn report(&self, ack: &mut Segment) {
        ack.set_ace(self.ce_packets);
        let ect_bytes = match self.field {
            EctField::Ect0 => self.ect0_bytes,
            EctField::Ect1 => self.ect1_bytes,
        };
        ack.set_acc_ecn(AccEcn { field: self.field, ect_bytes, ce_bytes: self.ce_bytes });
    }
}

impl Receiver {
    /// Processes the mark of an acceptable data segment, if all marks are reported. Returns whether the segment must be
    /// acknowledged at once.
    #[inline(never)]
    pub(super) fn count_mark(&mut self, now: Time, seg: &Segment, out: &mut impl FnMut(&Segment)) -> bool {
        if seg.end().at_or_before(self.next) {
            return false;
        }
        if seg.ecn == Ecn::Ce || seg.ecn == Ecn::NotEct {
            self.quick.on_congestion();
        }
        if self.config.ecn == EcnMode::Accurate {
            return self.feedback.count(seg.ecn, seg.payload.into());
        }
        let marked = seg.ecn == Ecn::Ce;
        let changes = marked != self.echo_congestion;
        if changes && self.unacknowledged > 0 {
            self.acknowledge(now, None, out);
        }
        self.echo_congestion = marked;
        changes
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{Flags, FlowId, Seq, Span};

    use super::*;
    use crate::receiver::{AckPolicy, ReceiverConfig};

    /// A receiver that acknowledges every fourth segment, and its ACKs.
    struct Bench(Receiver);

    impl Bench {
        fn new(ecn: EcnMode) -> Self {
            let acks = AckPolicy::Delayed { count: 4, timeout: Span::from_millis(200), quick: 0 };
            Self(Receiver::new(ReceiverConfig { acks, ecn, ..ReceiverConfig::default() }, FlowId(0)))
        }

        /// ACKs after segment `index` of 1000 bytes with the codepoint `ecn`.
        fn data(&mut self, index: u32, ecn: Ecn) -> Vec<Segment> {
            let mut segment = Segment::data(FlowId(0), Seq(1) + index * 1000, 1000, 40);
            segment.ecn = ecn;
            let mut acks = Vec::new();
            self.0.on_segment(Time::ZERO, &segment, &mut |ack| acks.push(*ack));
            acks
        }
    }

    #[test]
    fn accecn_acknowledges_a_first_mark_and_every_second_one_at_once() {
        let mut bench = Bench::new(EcnMode::Accurate);
        assert!(bench.data(0, Ecn::Ect1).is_empty());
        // Change-triggered: the first mark after an unmarked segment. 5 + 1 packets, 1000 bytes.
        let acks = bench.data(1, Ecn::Ce);
        let option = AccEcn { field: EctField::Ect1, ect_bytes: 1001, ce_bytes: 1000 };
        assert_eq!((acks.len(), acks[0].ace(), acks[0].acc_ecn()), (1, 6, Some(option)));
        assert!(bench.data(2, Ecn::Ce).is_empty());
        // Increment-triggered: two marks since the last ACK. 5 + 3 packets modulo 8.
        let acks = bench.data(3, Ecn::Ce);
        assert_eq!(
            (acks.len(), acks[0].ace(), acks[0].acc_ecn().map(|option| option.ce_bytes)),
            (1, 0, Some(3000))
        );
        // A segment below the window is not counted.
        assert_eq!(bench.data(3, Ecn::Ce)[0].ace(), 0);
    }

    #[test]
    fn dctcp_acknowledges_what_came_before_a_change_of_the_mark_separately() {
        let mut bench = Bench::new(EcnMode::Dctcp);
        assert!(bench.data(0, Ecn::Ect0).is_empty());
        let seen = |acks: Vec<Segment>| -> Vec<(u32, bool)> {
            acks.iter().map(|ack| (ack.ack.0, ack.flags.intersects(Flags::ECE))).collect()
        };
        assert_eq!(seen(bench.data(1, Ecn::Ce)), [(1001, false), (2001, true)]);
        assert!(bench.data(2, Ecn::Ce).is_empty());
        assert_eq!(seen(bench.data(3, Ecn::Ect0)), [(3001, true), (4001, false)]);
        // Nothing waits: one ACK.
        assert_eq!(seen(bench.data(4, Ecn::Ce)), [(5001, true)]);
    }
}
