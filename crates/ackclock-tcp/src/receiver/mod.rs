//! # Receiver
//!
//! The receiving half of a TCP connection. The receiver reassembles bytes, and decides when and what to acknowledge.
//!
//! ## Source
//! RFC 9293 (acceptance, handshake), RFC 5681 section 4.2 (when to acknowledge), RFC 2018 (SACK), RFC 2883 (D-SACK),
//! RFC 7323 (window scale, timestamps, PAWS), RFC 3168 section 6.1.3 (ECN echo), RFC 8257 and RFC 9768 (echo of all marks).
//!
//! ## What it does
//! The application reads data at once, or in the Linux stack [within a tenth of a millisecond](self::reading). In-order
//! data therefore takes no room in the buffer. The advertised window is the configured maximum, and bytes beyond a gap
//! do not reduce it. With [autotuning](self::autotune) the window grows up to the configured maximum, and bytes beyond
//! gaps use part of the window. If the application reads late, like a relay, the window is [the free
//! buffer](self::unread).
//!
//! If the handshake is on, the receiver of a download is the client and opens the connection. The receiver of an upload
//! is the server and waits for the peer's SYN.
//!
//! ## Differences from the source
//! - A delayed ACK counts segments of any size, not only full-sized segments.
//! - A segment without timestamps is accepted even if timestamps were negotiated. RFC 7323 section 3.2 would drop a
//!   segment without timestamps.
//! - PAWS has no exception for connections idle for 24 days (RFC 7323 section 5.5).
//! - The AccECN option has two of its three counters, and is missing from a SYN-ACK.
//! - The receiver repeats a SYN without limit, ignores RST, and never closes its own direction.
//!
//! ## Validation
//! Unit tests below compare the received bytes with a bitmap, byte by byte, under random overlapping segments.
//! `tests/any_path.rs` transfers files over paths that drop, repeat and reorder.

mod ack_delay;
mod acks;
mod autotune;
mod config;
mod feedback;
mod handshake;
mod merge;
mod quick;
mod reading;
mod unread;
mod window;

use ackclock_core::{Ecn, Flags, FlowId, SackBlock, Segment, Seq, Span, Time};

pub use self::config::{AckPolicy, Opening, ReceiverConfig, WindowPolicy};
use self::feedback::Feedback;
use self::merge::Merge;
use self::quick::Quick;
use self::window::Policy;
use crate::ecn::EcnMode;
use crate::reassembly::Reassembly;

/// The receiving half of one connection. The receiver is event-driven: its inputs are segments and timeouts, its
/// outputs are ACKs.
///
/// Fields that every segment accesses come first and are adjacent, as in `TcpSender`.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    /// RCV.NXT: sequence number of the next byte expected.
    next: Seq,
    /// RCV.NXT at the last ACK (Last.ACK.sent of RFC 7323).
    acknowledged: Seq,
    flow: FlowId,
    state: ReceiverState,
    /// Whether ACKs set ECE: from a congestion mark until CWR arrives, or in DCTCP until an unmarked segment arrives.
    echo_congestion: bool,
    window_field: u16,
    /// Number of segments received in order since the last ACK.
    unacknowledged: u32,
    scale: u8,
    quick: Quick,
    merge: Merge,
    /// Time at which the delayed ACK or the repeated SYN is due.
    deadline: Time,
    delivered: u64,
    delivered_headers: u64,
    ahead: Reassembly,
    /// Sequence number after the FIN; `None` until the FIN has arrived.
    end: Option<Seq>,
    /// Policy that sets the advertised window; `None` if the window is always the largest.
    policy: Option<Box<Policy>>,
    /// Configuration of the receiver, without features that the peer did not offer.
    config: ReceiverConfig,
    first_byte_at: Option<Time>,
    finished_at: Option<Time>,
    /// TS.Recent: timestamp to echo.
    echo: Option<u32>,
    /// Transmission time of the last SYN.
    syn_sent: Time,
    /// Number of SYNs sent so far.
    syns: u32,
    /// Whether to offer window scaling.
    scales: bool,
    /// Counters of congestion marks.
    feedback: Feedback,
    /// IP codepoint of the peer's latest SYN.
    syn_ecn: Ecn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiverState {
    Closed,
    Listening,
    SynReceived,
    SynSent,
    Established,
}

/// Initial sequence number of the receiver. The SYN uses the initial sequence number, and the ACKs use the next number.
const INITIAL: Seq = Seq(0);
/// Largest age of a timestamp echo that gives a round-trip time, ms.
const LONGEST_ROUND_TRIP: u64 = 60_000;

impl Receiver {
    /// Creates the receiver of `flow`.
    pub fn new(config: ReceiverConfig, flow: FlowId) -> Self {
        let (state, next) = match config.opening {
            Opening::Handshake => (ReceiverState::Closed, Seq(0)),
            Opening::Awaited => (ReceiverState::Listening, Seq(0)),
            Opening::Established(first) => (ReceiverState::Established, first),
        };
        let (policy, window_field) = Policy::of(&config, next);
        Self {
            next,
            acknowledged: next,
            state,
            echo_congestion: false,
            scale: config.scale(),
            window_field,
            unacknowledged: 0,
            quick: match config.acks {
                AckPolicy::Delayed { quick, timeout, .. } => Quick::new(quick, timeout),
                AckPolicy::Every => Quick::new(0, Span::ZERO),
            },
            merge: Merge::default(),
            echo: None,
            deadline: Time::NEVER,
            delivered: 0,
            delivered_headers: 0,
            first_byte_at: None,
            finished_at: None,
            end: None,
            ahead: Reassembly::default(),
            policy,
            syn_sent: Time::ZERO,
            syns: 0,
            scales: true,
            feedback: Feedback::default(),
            syn_ecn: Ecn::NotEct,
            flow,
            config: ReceiverConfig { dsack: config.dsack && config.sack, ..config },
        }
    }

    /// Opens the connection by sending a SYN; does nothing unless a handshake is configured.
    pub fn start(&mut self, now: Time, out: &mut impl FnMut(&Segment)) {
        if self.state == ReceiverState::Closed {
            self.state = ReceiverState::SynSent;
            self.send_syn(now, out);
        }
    }

    /// Processes a segment of the peer, and sends an ACK if one is due at once.
    pub fn on_segment(&mut self, now: Time, seg: &Segment, out: &mut impl FnMut(&Segment)) {
        if seg.flags.intersects(Flags::SYN) {
            self.on_syn(now, seg, out);
            return;
        }
        if (self.state != ReceiverState::Established && !self.on_answer(seg)) || !seg.has_data() {
            return;
        }
        if self.quick.is_used() {
            self.note_for_quick(now, seg);
        }
        if !self.accept(seg) {
            self.acknowledge(now, None, out);
            return;
        }
        let prompt = self.config.ecn.counts_marks() && self.count_mark(now, seg, out);
        let in_order = seg.seq == self.next;
        let is_next = in_order && self.ahead.is_empty() && self.end.is_none();
        if is_next && !seg.end().after(self.limit()) {
            self.advance(now, seg.end(), u32::from(seg.header) * u32::from(seg.payload > 0), end_of(seg));
            self.tune(now, seg, true);
            self.acknowledge_in_order(now, seg.flags, prompt, out);
        } else {
            let arrival = SackBlock { left: seg.seq, right: seg.end() };
            let waiting =
                self.merge.ends_before(arrival, &self.ahead).then(|| self.ack_with_options(now, None));
            let duplicate = self.place(now, seg);
            self.tune(now, seg, in_order || self.config.sack && duplicate.is_none());
            self.acknowledge_out_of_order(now, duplicate, waiting, out);
        }
    }

    /// Updates the state that decides whether acknowledgements are immediate.
    fn note_for_quick(&mut self, now: Time, seg: &Segment) {
        if seg.end().at_or_before(self.next) {
            self.quick.on_repeated();
        } else if seg.seq.at_or_before(self.next) {
            self.quick.on_data(now);
        }
    }

    /// Time at which [`Self::on_timeout`] is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        Some(self.deadline).filter(|&time| time != Time::NEVER)
    }

    /// Sends the segment due at `now`: a delayed ACK, or a repeated SYN.
    pub fn on_timeout(&mut self, now: Time, out: &mut impl FnMut(&Segment)) {
        if now < self.deadline {
            return;
        }
        match self.state {
            ReceiverState::SynSent | ReceiverState::SynReceived => self.send_syn(now, out),
            ReceiverState::Established => self.acknowledge(now, None, out),
            ReceiverState::Closed | ReceiverState::Listening => {}
        }
    }

    /// Total of payload delivered in order, bytes.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// Bytes delivered in order including the headers of their segments. A segment that arrives repeatedly counts once.
    pub fn delivered_wire_bytes(&self) -> u64 {
        self.delivered + self.delivered_headers
    }

    /// Time at which the first byte of payload was delivered.
    pub fn first_byte_at(&self) -> Option<Time> {
        self.first_byte_at
    }

    /// Time at which everything up to the FIN was delivered.
    pub fn finished_at(&self) -> Option<Time> {
        self.finished_at
    }

    /// Whether data can be received, because the handshake is complete or not configured.
    pub fn is_established(&self) -> bool {
        self.state == ReceiverState::Established
    }

    /// Sequence number of the next byte expected.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// Processes the timestamps and ECN marks of a data segment. Returns whether PAWS accepts the segment (RFC 7323
    /// section 5.3).
    #[inline]
    fn accept(&mut self, seg: &Segment) -> bool {
        let stamp = seg.timestamps().filter(|_| self.config.timestamps);
        if let (Some(stamp), Some(recent)) = (stamp, self.echo)
            && Seq(stamp.value).before(Seq(recent))
        {
            return false;
        }
        // A segment entirely below the window sets neither the timestamp echo (RFC 7323 section 5.3 R2) nor the ECN
        // echo (RFC 3168 6.1.5).
        if seg.end().at_or_before(self.next) {
            return true;
        }
        // Only the segment that covers the left edge last acknowledged sets the timestamp echo (RFC 7323 section 4.3
        // (2)).
        if let Some(stamp) = stamp
            && seg.seq.at_or_before(self.acknowledged)
        {
            self.echo = Some(stamp.value);
        }
        if self.config.ecn == EcnMode::On {
            self.take_mark(seg);
        }
        true
    }

    /// Starts the ECN echo at a congestion mark, and ends it when the peer reports its reaction.
    fn take_mark(&mut self, seg: &Segment) {
        self.echo_congestion &= !seg.flags.intersects(Flags::CWR);
        let begins = seg.ecn == Ecn::Ce && !self.echo_congestion;
        self.echo_congestion |= begins;
        // A data segment that is not ECN-capable is a retransmission (RFC 3168 section 6.1.5).
        if begins || seg.ecn == Ecn::NotEct {
            self.quick.on_congestion();
        }
    }

    /// Stores a segment that overlaps received data or lies beyond a gap. Returns the part of the segment that had
    /// arrived before.
    fn place(&mut self, now: Time, seg: &Segment) -> Option<SackBlock> {
        let limit = self.end.unwrap_or_else(|| self.limit());
        let right = seg.end().min(limit);
        let left = seg.seq.max(self.next);
        let below = SackBlock { left: seg.seq, right: seg.end().min(self.next) };
        let duplicate = Some(below).filter(|below| below.left.before(below.right));
        if !left.before(right) {
            return duplicate;
        }
        if right == seg.end() {
            self.end = self.end.or(end_of(seg));
        }
        let fin = u32::from(end_of(seg) == Some(right));
        let repeated = self.ahead.insert(SackBlock { left, right }, fin, seg.header.into());
        if let Some(delivered) = self.ahead.take_front(self.next) {
            self.advance(now, delivered.right, delivered.headers, None);
        }
        duplicate.or(repeated)
    }

    /// Advances the left edge of the receive window to `next`.
    #[inline(always)]
    fn advance(&mut self, now: Time, next: Seq, headers: u32, end: Option<Seq>) {
        self.delivered += u64::from(next.since(self.next));
        self.delivered_headers += u64::from(headers);
        self.next = next;
        self.end = self.end.or(end);
        if self.end == Some(next) && self.finished_at.is_none() {
            // The FIN has a sequence number but is not payload.
            self.delivered -= 1;
            self.finished_at = Some(now);
        }
        if self.first_byte_at.is_none() && self.delivered > 0 {
            self.first_byte_at = Some(now);
        }
    }
}

/// Sequence number after the FIN; `None` if the segment has no FIN.
fn end_of(seg: &Segment) -> Option<Seq> {
    if seg.flags.intersects(Flags::FIN) { Some(seg.end()) } else { None }
}

/// Timestamp clock in milliseconds, which wraps (RFC 7323 section 5.4 allows 1 ms to 1 s).
fn clock(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use ackclock_core::{SynOptions, Timestamps, scaled_window};

    use super::*;
    use crate::config::HeaderSize;
    use proptest::prelude::*;

    const FLOW: FlowId = FlowId(3);
    const FIRST: Seq = Seq(1);

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A receiver, with the segments that it sent.
    struct Bench {
        receiver: Receiver,
        sent: Vec<Segment>,
    }

    impl Bench {
        fn new(config: ReceiverConfig) -> Self {
            Self { receiver: Receiver::new(config, FLOW), sent: Vec::new() }
        }

        /// Lets segment number `index` (from 0) of 1000 bytes arrive. Returns the ACKs that the segment triggered.
        fn data(&mut self, now: Time, index: u32) -> Vec<Segment> {
            self.arrives(now, segment(FIRST + index * 1000, 1000))
        }

        fn arrives(&mut self, now: Time, seg: Segment) -> Vec<Segment> {
            self.receiver.on_segment(now, &seg, &mut |ack| self.sent.push(*ack));
            std::mem::take(&mut self.sent)
        }

        fn timeout(&mut self, now: Time) -> Vec<Segment> {
            self.receiver.on_timeout(now, &mut |ack| self.sent.push(*ack));
            std::mem::take(&mut self.sent)
        }
    }

    fn segment(seq: Seq, payload: u16) -> Segment {
        Segment::data(FLOW, seq, payload, 40)
    }

    fn stamped(mut seg: Segment, value: u32) -> Segment {
        seg.set_timestamps(Timestamps { value, echo: 0 });
        seg
    }

    fn thousands(left: u32, right: u32) -> SackBlock {
        SackBlock { left: FIRST + left * 1000, right: FIRST + right * 1000 }
    }

    fn delayed() -> ReceiverConfig {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(200), quick: 0 };
        ReceiverConfig { acks, ..ReceiverConfig::default() }
    }

    #[test]
    fn every_segment_in_order_is_acknowledged_by_one_ack() {
        let mut bench = Bench::new(ReceiverConfig::default());
        for index in 0..5 {
            let acks = bench.data(ms(1), index);
            assert_eq!(acks.len(), 1);
            assert_eq!((acks[0].ack, acks[0].header), (FIRST + (index + 1) * 1000, 40));
            assert!(acks[0].is_pure_ack() && acks[0].sack().is_empty());
        }
        assert_eq!(bench.receiver.delivered_bytes(), 5000);
        assert_eq!(bench.receiver.delivered_wire_bytes(), 5200);
        assert_eq!(bench.receiver.first_byte_at(), Some(ms(1)));
    }

    #[test]
    fn a_delayed_ack_waits_for_the_second_segment_or_200_ms() {
        let mut bench = Bench::new(delayed());
        assert!(bench.data(ms(0), 0).is_empty());
        assert_eq!(bench.data(ms(10), 1).len(), 1);
        assert_eq!(bench.receiver.poll_timeout(), None);
        assert!(bench.data(ms(20), 2).is_empty());
        assert_eq!(bench.receiver.poll_timeout(), Some(ms(220)));
        assert!(bench.timeout(ms(219)).is_empty());
        assert_eq!(bench.timeout(ms(220))[0].ack, FIRST + 3000);
        assert!(bench.timeout(ms(221)).is_empty());
    }

    #[test]
    fn the_first_segments_may_be_acknowledged_one_by_one() {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(200), quick: 3 };
        let mut bench = Bench::new(ReceiverConfig { acks, ..ReceiverConfig::default() });
        let acks: Vec<_> = (0..7).map(|index| bench.data(ms(0), index).len()).collect();
        assert_eq!(acks, [1, 1, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_slow_link_is_acknowledged_by_twos_in_linux() {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 1 };
        let mut bench = Bench::new(ReceiverConfig { acks, ..ReceiverConfig::default() });
        assert_eq!(bench.data(ms(0), 0).len(), 1, "the first at once");
        // Segments arrive every 60 ms. The second ACK's timer expires, and later ACKs wait twice as long plus the
        // interval.
        assert!(bench.data(ms(60), 1).is_empty());
        assert_eq!(bench.receiver.poll_timeout(), Some(ms(104)));
        assert_eq!(bench.timeout(ms(104)).len(), 1);
        assert!(bench.data(ms(120), 2).is_empty());
        assert_eq!(bench.receiver.poll_timeout(), Some(ms(120 + 104)));
        let acks: Vec<_> = (3..7).map(|index| bench.data(ms(u64::from(index) * 60), index).len()).collect();
        assert_eq!(acks, [1, 0, 1, 0]);
    }

    #[test]
    fn what_comes_out_of_order_ends_no_silence() {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 2 };
        let mut bench = Bench::new(ReceiverConfig { acks, sack: true, ..ReceiverConfig::default() });
        (0..4).for_each(|index| drop(bench.data(ms(0), index)));
        bench.data(ms(500), 5);
        // 1400 ms after the last in-order segment, the segment that fills the gap and the next segment are acknowledged
        // at once.
        assert_eq!(bench.data(ms(1400), 4).len(), 1);
        let acks: Vec<_> = (6..8).map(|index| bench.data(ms(1401), index).len()).collect();
        assert_eq!(acks, [1, 0]);
    }

    #[test]
    fn what_is_pushed_is_acknowledged_at_once_where_segments_are_acknowledged_one_by_one_at_the_beginning() {
        for (quick, expected) in [(1, 1), (0, 0)] {
            let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick };
            let mut bench = Bench::new(ReceiverConfig { acks, ..delayed() });
            bench.data(ms(0), 0);
            bench.data(ms(1), 1);
            bench.data(ms(2), 2);
            let mut pushed = segment(FIRST + 3000, 1000);
            pushed.flags |= Flags::PSH;
            let (before, after) = (bench.receiver.unacknowledged, bench.arrives(ms(3), pushed));
            assert_eq!(after.len(), if before == 0 { expected } else { 1 });
        }
    }

    #[test]
    fn of_what_arrives_out_of_order_the_fourth_and_later_ones_are_told_together_after_a_millisecond() {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 1 };
        let mut bench = Bench::new(ReceiverConfig { acks, sack: true, ..delayed() });
        bench.data(ms(0), 0);
        let told: Vec<usize> = (2..9).map(|index| bench.data(ms(1), index).len()).collect();
        assert_eq!(told, [1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(bench.receiver.poll_timeout(), Some(ms(2)));
        let ack = bench.timeout(ms(2));
        assert_eq!(ack[0].sack(), [thousands(2, 9)]);
        assert_eq!(bench.data(ms(3), 1).len(), 1, "what fills the gap is told at once");
    }

    #[test]
    fn a_mark_and_a_retransmission_between_marked_segments_are_acknowledged_at_once() {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 16 };
        let mut bench = Bench::new(ReceiverConfig { acks, ecn: EcnMode::On, ..delayed() });
        let mut marked = |now, index: u32, ecn, flags| {
            let mut seg = segment(FIRST + index * 1000, 1000);
            (seg.ecn, seg.flags) = (ecn, seg.flags | flags);
            bench.arrives(ms(now), seg).len()
        };
        let acks: usize = (0..16).map(|n| marked(u64::from(n), n, Ecn::Ect0, Flags(0))).sum();
        assert_eq!(acks, 16);
        assert_eq!(marked(16, 16, Ecn::Ect0, Flags(0)), 0);
        assert_eq!(marked(17, 17, Ecn::Ce, Flags(0)), 1);
        assert_eq!(marked(18, 18, Ecn::Ect0, Flags(0)), 1, "the second of two");
        assert_eq!(marked(19, 19, Ecn::Ect0, Flags(0)), 0);
        assert_eq!(marked(20, 20, Ecn::Ect0, Flags::CWR), 1);
        assert_eq!(marked(21, 21, Ecn::Ect0, Flags::CWR), 1, "alone");
        assert_eq!(marked(22, 22, Ecn::NotEct, Flags(0)), 1);
    }

    #[test]
    fn what_comes_out_of_order_lets_the_window_grow_where_sack_tells_of_it() {
        let windows = [true, false].map(|sack| {
            let window = WindowPolicy::Tuned;
            let mut bench = Bench::new(ReceiverConfig {
                sack,
                window,
                max_window: 131_000,
                mss: 1000,
                ..ReceiverConfig::default()
            });
            let before = bench.data(ms(0), 0)[0].window;
            let grown = [2, 3, 3, 1].map(|index| bench.data(ms(1), index)[0].window - before);
            grown.map(|more| u32::from(more) << bench.receiver.scale)
        });
        // Each ACK covers two segments, except for one segment that had arrived before.
        assert_eq!(windows, [[2000, 4000, 4000, 6000], [0, 0, 0, 2000]]);
    }

    /// A receiver with Linux's ACK rules, whose first segments arrived one by one, a millisecond apart, and filled its
    /// window.
    fn settled() -> (Bench, u32) {
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 2 };
        let window = WindowPolicy::Tuned;
        let config = ReceiverConfig { sack: true, acks, window, mss: 1000, ..ReceiverConfig::default() };
        let mut bench = Bench::new(ReceiverConfig { max_window: 1_000_000, ..config });
        (0..40).for_each(|index| drop(bench.data(ms(u64::from(index)), index)));
        (bench, 40)
    }

    #[test]
    fn what_arrives_together_is_acknowledged_together_once_it_is_read() {
        let (mut bench, next) = settled();
        let acks: usize = (next..next + 5).map(|index| bench.data(ms(100), index).len()).sum();
        assert_eq!(acks, 0, "the program has not read yet");
        let read = ms(100) + Span::from_micros(100);
        assert_eq!(bench.receiver.poll_timeout(), Some(read));
        assert_eq!(bench.timeout(read)[0].ack, FIRST + (next + 5) * 1000);
        assert_eq!(bench.data(ms(101), next + 5).len() + bench.data(ms(102), next + 6).len(), 1, "two apart");
    }

    #[test]
    fn a_merged_sack_leaves_before_a_third_block_would_hide_one() {
        let (mut bench, next) = settled();
        let mut acks = |index: u32| bench.data(ms(100), next + index);
        // The first segment beyond the gap opens the window. Three more segments are acknowledged at once; the next ACK
        // is merged.
        assert_eq!([1, 2, 3, 4].map(|index| acks(index).len()), [1, 1, 1, 1]);
        assert_eq!([5, 7].map(|index| acks(index).len()), [0, 0], "a second block hides nothing");
        let blocks = |ack: &Segment| {
            ack.sack().iter().map(|block| block.left.since(FIRST) / 1000 - next).collect::<Vec<_>>()
        };
        let early = acks(9);
        assert_eq!(early.iter().map(blocks).collect::<Vec<_>>(), [[7, 1]]);
    }

    #[test]
    fn a_gap_is_acknowledged_at_once_until_it_is_filled() {
        let mut bench = Bench::new(delayed());
        bench.data(ms(0), 0);
        // Each segment is acknowledged at once: two out of order, then three that fill parts of the gaps.
        for (index, ack) in [(2, 1), (5, 1), (1, 3), (4, 3), (3, 6)] {
            let acks = bench.data(ms(1), index);
            assert_eq!(acks.len(), 1, "segment {index}");
            assert_eq!(acks[0].ack, FIRST + ack * 1000);
        }
        assert!(bench.data(ms(2), 6).is_empty(), "in order again");
    }

    #[test]
    fn the_first_sack_block_holds_the_latest_arrival() {
        let mut bench = Bench::new(ReceiverConfig::default());
        bench.data(ms(0), 5);
        bench.data(ms(0), 1);
        assert_eq!(bench.data(ms(0), 3)[0].sack(), [thousands(3, 4), thousands(1, 2), thousands(5, 6)]);
        assert_eq!(bench.data(ms(0), 6)[0].sack(), [thousands(5, 7), thousands(3, 4), thousands(1, 2)]);
        assert_eq!(bench.data(ms(0), 0)[0].sack(), [thousands(5, 7), thousands(3, 4)]);
    }

    #[test]
    fn a_duplicate_is_reported_first_and_then_the_block_around_it() {
        let mut bench = Bench::new(ReceiverConfig { dsack: true, ..ReceiverConfig::default() });
        bench.data(ms(0), 0);
        assert_eq!(
            bench.data(ms(0), 0)[0].sack(),
            [thousands(0, 1)],
            "below the left edge (RFC 2883 section 4.1)"
        );
        for index in [2, 3, 5] {
            bench.data(ms(0), index);
        }
        // RFC 2883 section 4 rule 4 applies.
        assert_eq!(bench.data(ms(0), 2)[0].sack(), [thousands(2, 3), thousands(2, 4), thousands(5, 6)]);
    }

    #[test]
    fn without_sack_nothing_is_reported() {
        let mut bench = Bench::new(ReceiverConfig { sack: false, dsack: true, ..ReceiverConfig::default() });
        bench.data(ms(0), 2);
        assert!(bench.data(ms(0), 2)[0].sack().is_empty());
    }

    #[test]
    fn an_ack_of_real_size_counts_its_options() {
        let config =
            ReceiverConfig { ack_size: HeaderSize::Real, timestamps: true, ..ReceiverConfig::default() };
        let mut bench = Bench::new(config);
        // The header has 20 bytes of IP, 20 of TCP and 12 of timestamps.
        // One SACK block takes 4 + 8 bytes, two blocks take 4 + 16.
        assert_eq!(bench.data(ms(0), 0)[0].header, 52);
        assert_eq!(bench.data(ms(0), 2)[0].header, 64);
        assert_eq!(bench.data(ms(0), 4)[0].header, 72);
    }

    #[test]
    fn a_window_that_grows_is_told_with_the_shift_for_twice_as_much_memory() {
        // The kernel's SYN has a scale of 8 for a tcp_rmem of 12 582 912 bytes: log2 of this size is 23 in whole
        // numbers, minus 15 gives 8.
        let scales = [1, 65_535, 6_291_456, u32::MAX].map(|max_window| {
            ReceiverConfig { window: WindowPolicy::Tuned, max_window, ..ReceiverConfig::default() }.scale()
        });
        assert_eq!(scales, [0, 1, 8, 14]);
    }

    #[test]
    fn the_window_takes_the_smallest_scale_that_fits() {
        assert_eq!(scaled_window(65_535), (0, 65_535));
        assert_eq!(scaled_window(65_536), (1, 32_768));
        // 500 segments of 1000 bytes are delivered: 500 000 / 8 = 62 500.
        assert_eq!(scaled_window(500_000), (3, 62_500));
        assert_eq!(scaled_window(u32::MAX), (14, 65_535));
        let mut bench = Bench::new(ReceiverConfig { max_window: 500_000, ..ReceiverConfig::default() });
        assert_eq!(bench.data(ms(0), 0)[0].window_bytes(), Some(500_000));
    }

    #[test]
    fn what_lies_beyond_the_window_is_not_taken() {
        let mut bench = Bench::new(ReceiverConfig { max_window: 2500, ..ReceiverConfig::default() });
        let acks = bench.data(ms(0), 2);
        assert_eq!(acks[0].sack(), [SackBlock { left: FIRST + 2000, right: FIRST + 2500 }]);
        assert!(bench.data(ms(0), 9)[0].sack().len() == 1);
    }

    #[test]
    fn the_echoed_timestamp_is_that_of_the_earliest_unacknowledged_segment() {
        let mut bench = Bench::new(ReceiverConfig { timestamps: true, ..delayed() });
        let at = |index: u32| segment(FIRST + index * 1000, 1000);
        let echo = |acks: &[Segment]| acks[0].timestamps().unwrap().echo;
        bench.arrives(ms(0), stamped(at(0), 100));
        // A delayed ACK echoes the timestamp of the first segment that it covers (RFC 7323 section 4.3).
        assert_eq!(echo(&bench.arrives(ms(1), stamped(at(1), 101))), 100);
        // A segment beyond a gap leaves the timestamp echo unchanged.
        assert_eq!(echo(&bench.arrives(ms(2), stamped(at(3), 103))), 100);
        // A segment that fills the gap sets the echo to its own timestamp.
        assert_eq!(echo(&bench.arrives(ms(3), stamped(at(2), 104))), 104);
    }

    #[test]
    fn an_old_timestamp_is_refused_and_acknowledged() {
        let mut bench = Bench::new(ReceiverConfig { timestamps: true, ..ReceiverConfig::default() });
        bench.arrives(ms(0), stamped(segment(FIRST, 1000), 3_000_000_000));
        let acks = bench.arrives(ms(1), stamped(segment(FIRST + 1000, 1000), 2_999_999_999));
        assert_eq!((acks.len(), acks[0].ack), (1, FIRST + 1000));
        assert_eq!(bench.receiver.delivered_bytes(), 1000);
    }

    #[test]
    fn congestion_is_echoed_until_the_sender_says_that_it_reacted() {
        let mut bench = Bench::new(ReceiverConfig { ecn: EcnMode::On, ..ReceiverConfig::default() });
        let mut send = |index: u32, ecn: Ecn, cwr: Flags| {
            let mut seg = segment(FIRST + index * 1000, 1000);
            seg.ecn = ecn;
            seg.flags |= cwr;
            bench.arrives(ms(0), seg)[0].flags.intersects(Flags::ECE)
        };
        assert!(!send(0, Ecn::Ect0, Flags(0)));
        assert!(send(1, Ecn::Ce, Flags(0)));
        assert!(send(2, Ecn::Ect0, Flags(0)));
        assert!(!send(3, Ecn::Ect0, Flags::CWR));
        assert!(send(4, Ecn::Ce, Flags::CWR));
        assert!(send(4, Ecn::Ect0, Flags::CWR), "a repeated segment says nothing");
    }

    #[test]
    fn the_fin_takes_a_number_is_acknowledged_at_once_and_ends_the_flow() {
        let mut bench = Bench::new(delayed());
        let mut fin = segment(FIRST + 1000, 500);
        fin.flags |= Flags::FIN;
        assert_eq!(bench.arrives(ms(1), fin).len(), 1);
        assert_eq!(bench.receiver.finished_at(), None);
        assert_eq!(bench.data(ms(7), 0)[0].ack, FIRST + 1501);
        assert_eq!(bench.receiver.finished_at(), Some(ms(7)));
        assert_eq!(bench.receiver.delivered_bytes(), 1500);
        assert_eq!(bench.receiver.delivered_wire_bytes(), 1580);
        assert_eq!(bench.arrives(ms(9), fin)[0].ack, FIRST + 1501);
        assert_eq!(bench.receiver.finished_at(), Some(ms(7)));
    }

    fn syn_ack(options: SynOptions) -> Segment {
        let mut seg = segment(Seq(u32::MAX), 0);
        seg.flags = Flags::SYN | Flags::ACK;
        seg.ack = INITIAL + 1;
        seg.set_syn_options(options);
        seg
    }

    #[test]
    fn the_syn_is_repeated_with_doubling_waits_until_it_is_answered() {
        let mut bench =
            Bench::new(ReceiverConfig { opening: Opening::Handshake, ..ReceiverConfig::default() });
        let mut sent = Vec::new();
        bench.receiver.start(ms(0), &mut |syn| sent.push(*syn));
        bench.receiver.start(ms(0), &mut |syn| sent.push(*syn));
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].flags, Flags::SYN);
        assert_eq!(bench.timeout(ms(999)), []);
        assert_eq!(bench.timeout(ms(1000)).len(), 1);
        assert_eq!(bench.receiver.poll_timeout(), Some(ms(3000)));
        let offer = SynOptions { mss: Some(1000), window_scale: Some(0), sack_permitted: true };
        let acks = bench.arrives(ms(1500), syn_ack(offer));
        assert_eq!((acks[0].ack, acks[0].seq, acks[0].flags), (Seq(0), INITIAL + 1, Flags::ACK));
        assert_eq!(bench.receiver.poll_timeout(), None);
        // Our acknowledgement was lost, so the SYN-ACK is repeated.
        assert_eq!(bench.arrives(ms(3000), syn_ack(offer))[0].ack, Seq(0));
        bench.arrives(ms(3001), segment(Seq(0), 1000));
        assert_eq!(bench.receiver.delivered_bytes(), 1000);
    }

    #[test]
    fn what_the_peer_does_not_offer_is_not_used() {
        let config = ReceiverConfig {
            opening: Opening::Handshake,
            ack_size: HeaderSize::Real,
            max_window: 1_000_000,
            timestamps: true,
            ecn: EcnMode::On,
            ..ReceiverConfig::default()
        };
        let mut bench = Bench::new(config);
        let mut sent = Vec::new();
        bench.receiver.start(ms(0), &mut |syn| sent.push(*syn));
        // Options: MSS 4 bytes, SACK-permitted 2 and timestamps 10, window scale 3 and padding 1.
        assert_eq!(sent[0].header, 60);
        assert_eq!(sent[0].flags, Flags::SYN | Flags::ECE | Flags::CWR);
        assert_eq!(sent[0].window_bytes(), Some(65_535));
        bench.arrives(ms(1), syn_ack(SynOptions::default()));
        let mut marked = segment(Seq(1000), 1000);
        marked.ecn = Ecn::Ce;
        let ack = bench.arrives(ms(2), marked)[0];
        assert_eq!((ack.sack().len(), ack.timestamps(), ack.flags), (0, None, Flags::ACK));
        assert_eq!(ack.window_bytes(), Some(65_535));
    }

    /// Reference receiver by definition: a bit for every byte of the stream and for the FIN.
    struct Bitmap {
        arrived: Vec<bool>,
        payload: usize,
        window: usize,
    }

    impl Bitmap {
        fn next(&self) -> usize {
            self.arrived.iter().position(|arrived| !arrived).unwrap_or(self.arrived.len())
        }

        fn take(&mut self, from: usize, to: usize) {
            let limit = self.next() + self.window;
            (from..to.min(limit)).for_each(|at| self.arrived[at] = true);
        }

        /// Maximal runs of received bytes beyond the next expected byte.
        fn runs(&self) -> Vec<(usize, usize)> {
            let mut runs: Vec<(usize, usize)> = Vec::new();
            for at in (self.next()..self.arrived.len()).filter(|&at| self.arrived[at]) {
                match runs.last_mut() {
                    Some(run) if run.1 == at => run.1 = at + 1,
                    _ => runs.push((at, at + 1)),
                }
            }
            runs
        }
    }

    fn check_against(
        bitmap: &Bitmap,
        receiver: &Receiver,
        first: Seq,
        ack: &Segment,
        latest: (usize, usize),
    ) {
        assert_eq!(ack.ack, first + bitmap.next() as u32);
        assert_eq!(receiver.delivered_bytes(), bitmap.next().min(bitmap.payload) as u64);
        assert_eq!(receiver.finished_at().is_some(), bitmap.next() > bitmap.payload);
        let runs = bitmap.runs();
        let blocks: Vec<_> = ack
            .sack()
            .iter()
            .map(|b| (b.left.since(first) as usize, b.right.since(first) as usize))
            .collect();
        assert_eq!(blocks.len(), runs.len().min(3));
        assert!(blocks.iter().all(|block| runs.contains(block)), "{blocks:?} of {runs:?}");
        assert!(blocks.iter().enumerate().all(|(i, block)| !blocks[..i].contains(block)));
        if let Some(run) = runs.iter().find(|run| run.0 < latest.1 && latest.0 < run.1) {
            assert_eq!(blocks[0], *run, "the first block holds the latest arrival");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_bitmap_byte_by_byte(
            base in any::<u32>(),
            payload in 1usize..600,
            window in 100usize..700,
            arrivals in prop::collection::vec((0usize..600, 0usize..90), 1..120),
        ) {
            let config = ReceiverConfig {
                opening: Opening::Established(Seq(base)),
                max_window: window as u32,
                ..ReceiverConfig::default()
            };
            let mut bench = Bench::new(config);
            let mut bitmap = Bitmap { arrived: vec![false; payload + 1], payload, window };
            for (from, length) in arrivals {
                let (from, to) = (from.min(payload), (from + length).min(payload));
                let mut seg = segment(Seq(base) + from as u32, (to - from) as u16);
                let end = to + usize::from(to == payload);
                if to == payload {
                    seg.flags |= Flags::FIN;
                }
                let latest = (from, end.min(bitmap.next() + window));
                bitmap.take(from, end);
                let acks = bench.arrives(ms(0), seg);
                prop_assert_eq!(acks.len(), usize::from(end > from));
                if let Some(ack) = acks.first() {
                    check_against(&bitmap, &bench.receiver, Seq(base), ack, latest);
                }
            }
        }

        #[test]
        fn any_order_and_repetition_delivers_each_header_once(order in prop::collection::vec(0u32..20, 1..200)) {
            let mut bench = Bench::new(ReceiverConfig::default());
            for &index in order.iter().chain(&(0..20).collect::<Vec<_>>()) {
                bench.data(ms(0), index);
            }
            prop_assert_eq!(bench.receiver.delivered_wire_bytes(), 20 * 1040);
        }

        #[test]
        fn garbage_does_no_harm(segments in prop::collection::vec((any::<u32>(), any::<u16>(), any::<u8>(), any::<u32>()), 0..200)) {
            let config = ReceiverConfig { timestamps: true, ecn: EcnMode::On, dsack: true, max_window: 1 << 30, ..delayed() };
            let mut bench = Bench::new(config);
            for (seq, payload, flags, value) in segments {
                let mut seg = stamped(segment(Seq(seq), payload), value);
                seg.flags = Flags(flags);
                seg.ecn = Ecn::Ce;
                prop_assert!(bench.arrives(ms(0), seg).len() <= 1);
            }
        }
    }
}
