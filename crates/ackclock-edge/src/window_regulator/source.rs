//! Model of a flow's sender as seen from the edge: RTT of the wired path, whether the advertised window limits the
//! sender, and the sender's retransmission timer.
//!
//! The wired RTT is measured from an advertised right edge to the first new data beyond the previous edge, and from the
//! mobile's SYN to the SYN-ACK. A sender that leaves the advertised window unused is limited by its congestion window
//! or by pacing. The modelled timer follows RFC 6298 as in Linux. The timer's RTT samples equal the sender's own
//! samples: the age of the data that an ACK acknowledges, plus the wired RTT.

use std::collections::VecDeque;

use ackclock_core::{Seq, Span, Time};
use ackclock_observe::estimate::WindowedMin;

/// Wired RTT that is assumed before the first measurement.
pub(super) const UNKNOWN: Span = Span::from_millis(100);
/// Minimum of the difference between RTO and smoothed RTT (Linux: `TCP_RTO_MIN`), and of the probe timeout (RFC 8985
/// section 7.2, with one delayed ACK), seconds.
const LEAST_TIMEOUT: f64 = 0.2;

/// A sender whose unused window exceeds its used window by this factor does not wait for a right edge.
const SPARES: f64 = 4.0;
/// Number of bytes below which a decaying average is set to zero, because calculations with subnormal numbers would be
/// slow.
const NOTHING: f64 = 1e-6;
/// Tolerance for the arrival of data triggered by a right edge, in addition to an eighth of the wired RTT.
const JITTER: Span = Span::from_millis(2);

/// Classification of data that arrives from a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// Old data, which is retransmitted or reordered.
    Old,
    /// New data that was not triggered by a right edge.
    New,
    /// New data that a right edge triggered: the sender had waited for the larger window.
    Triggered,
}

/// Fill levels of the sender's windows when it sent its newest data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    /// Set if the advertised window had no room for another packet.
    pub(super) window: bool,
    /// Packets in flight when the sender sent its newest data; `None` if unknown.
    pub(super) outstanding: Option<f64>,
}

/// State of the sender of one flow, inferred at the edge.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Minimum RTT of the wired path to the sender.
    wired: WindowedMin,
    /// Time when the mobile's SYN passed; `None` after the SYN-ACK.
    syn: Option<Time>,
    /// Previous right edge, beyond which the regulator expects new data, and the time when the new right edge was
    /// advertised.
    awaited: Option<(Seq, Time)>,
    /// Sequence number after the highest data that arrived.
    highest: Option<Seq>,
    /// Advertised right edges: each with its time, its sequence number, and the end of the data that had left the queue
    /// at that time. When the sender sent the data that arrives now, it knew the first edge in this list.
    edges: VecDeque<(Time, Seq, Option<Seq>)>,
    /// Recent maximum of the sender's data that has not left the queue yet, bytes; `None` before the first sample.
    used: Option<f64>,
    /// Smoothed unused part of the advertised window, bytes; `None` before the first sample.
    unused: Option<f64>,
    /// Unused part of the advertised window when the newest data was sent, bytes.
    spare: Option<u32>,
    /// ACKs in transit to the sender, each with its departure time.
    acks: VecDeque<(Time, Seq)>,
    /// Acknowledgement number of the last ACK that the sender has received.
    heard: Option<Seq>,
    /// End and arrival time of data whose ACK has not passed yet.
    arrivals: VecDeque<(Seq, Time)>,
    /// Smoothed round-trip time of the sender, seconds.
    srtt: f64,
    /// Round-trip time variation of the sender (RTTVAR), seconds.
    rttvar: f64,
}

impl Source {
    /// Creates the state of a sender whose SYN-ACK arrives now; `before` is the state that saw the SYN.
    pub(super) fn answering(now: Time, before: &Self) -> Self {
        let mut source = Self { wired: before.wired, ..Self::default() };
        if let Some(asked) = before.syn {
            source.wired.add(now, now.since(asked));
        }
        source
    }

    /// Minimum RTT of the wired path from the edge to the sender and back.
    pub(super) fn wired(&self) -> Span {
        self.wired.get().unwrap_or(UNKNOWN)
    }

    /// Whether the advertised window limits the sender: the sender leaves at most `few` bytes or a quarter of the
    /// window unused.
    pub(super) fn is_window_limited(&self, few: f64) -> bool {
        let window = |unused: f64| unused + self.used.unwrap_or_default();
        self.unused.is_some_and(|unused| unused <= few.max(window(unused) / 4.0))
    }

    /// Recent maximum of the sender's bytes in the queue and on the wired path; `None` before the first sample.
    pub(super) fn used(&self) -> Option<f64> {
        self.used
    }

    /// Fill levels of the advertised window and of the path when the sender sent its newest data, in packets of
    /// `payload` bytes.
    pub(super) fn filling(&self, payload: u32) -> Filling {
        let outstanding = self.highest.zip(self.heard).map(|(highest, heard)| highest.since(heard));
        Filling {
            window: self.spare.is_some_and(|spare| spare < payload),
            outstanding: outstanding.map(|bytes| f64::from(bytes) / f64::from(payload)),
        }
    }

    /// Sequence number after the highest data that arrived.
    pub(super) fn highest(&self) -> Option<Seq> {
        self.highest
    }

    /// Whether the sender had received an ACK of everything before `end` when it sent the data that arrives now. The
    /// check tolerates an ACK that is slightly late.
    pub(super) fn had_heard(&mut self, now: Time, end: Seq) -> bool {
        let late = self.wired() / 8 + JITTER;
        self.hear(now - late);
        self.heard.is_some_and(|heard| end.at_or_before(heard))
    }

    /// Handles a SYN of the mobile. A retransmitted SYN is not timed.
    pub(super) fn on_syn(&mut self, now: Time) {
        self.syn = if self.syn.is_some() { None } else { Some(now) };
    }

    /// Processes data from the sender that ends at `end`.
    pub(super) fn on_data(&mut self, now: Time, end: Seq) -> Arrival {
        if self.highest.is_some_and(|highest| end.at_or_before(highest)) {
            return Arrival::Old;
        }
        self.highest = Some(end);
        self.arrivals.push_back((end, now));
        self.hear(now);
        self.notice_unused(now, end);
        let Some((_, told)) = self.awaited.filter(|(edge, _)| end.after(*edge)) else { return Arrival::New };
        self.awaited = None;
        let after = now.since(told);
        if after < self.wired() || !self.spares_most() {
            self.wired.add(now, after);
        }
        if after <= self.at_once() { Arrival::Triggered } else { Arrival::New }
    }

    /// Longest time between an ACK and the arrival of data that the ACK triggered.
    pub(super) fn at_once(&self) -> Span {
        let wired = self.wired();
        wired + wired / 8 + JITTER
    }

    /// Handles the advertisement of a higher right edge. Data up to `left` has left the queue; `left` is `None` if the
    /// end of this data is unknown.
    pub(super) fn on_told(&mut self, now: Time, before: Seq, edge: Seq, left: Option<Seq>) {
        self.edges.push_back((now, edge, left));
        if self.awaited.is_none() {
            self.awaited = Some((before, now));
        }
    }

    /// Handles an ACK that passes to the sender, and takes a sample of the sender's round-trip time.
    pub(super) fn on_passed(&mut self, now: Time, ack: Seq) {
        self.hear(now);
        self.acks.push_back((now, ack));
        let mut sample = None;
        while let Some((_, came)) = self.arrivals.front().filter(|(end, _)| end.at_or_before(ack)) {
            sample = sample.or(Some(*came));
            self.arrivals.pop_front();
        }
        let Some(came) = sample else { return };
        let rtt = (now.since(came) + self.wired()).as_secs_f64();
        if self.srtt == 0.0 {
            (self.srtt, self.rttvar) = (rtt, rtt / 2.0);
        } else {
            self.rttvar += ((rtt - self.srtt).abs() - self.rttvar) / 4.0;
            self.srtt += (rtt - self.srtt) / 8.0;
        }
    }

    /// Seconds from an ACK to the sender's next timeout: the earlier of the RACK-TLP probe timeout and the RTO. The
    /// value is `None` before the first RTT sample.
    pub(super) fn timeout(&self) -> Option<f64> {
        let rto = self.srtt + (4.0 * self.rttvar).max(LEAST_TIMEOUT);
        let probe = (2.0 * self.srtt).max(LEAST_TIMEOUT);
        (self.srtt > 0.0).then(|| rto.min(probe))
    }

    /// Marks ACKs sent at least one wired RTT ago as received by the sender.
    fn hear(&mut self, now: Time) {
        let wired = self.wired();
        while let Some((_, ack)) = self.acks.pop_front_if(|(went, _)| now.since(*went) >= wired) {
            self.heard = Some(ack);
        }
    }

    /// Whether the sender leaves most of its window unused, so that its data is no sample of the wired RTT.
    fn spares_most(&self) -> bool {
        self.unused.zip(self.used).is_some_and(|(unused, used)| unused > SPARES * used)
    }

    /// Updates the unused part of the window, based on the right edge that was sent 9/8 of a wired RTT ago.
    fn notice_unused(&mut self, now: Time, end: Seq) {
        let wired = self.wired();
        let heard = wired + wired / 8;
        while self.edges.get(1).is_some_and(|(told, ..)| now.since(*told) >= heard) {
            self.edges.pop_front();
        }
        if let Some((_, edge, left)) = self.edges.front().filter(|(told, ..)| now.since(*told) >= heard) {
            self.spare = Some(edge.since(end));
            let unused = self.unused.get_or_insert_default();
            *unused += (f64::from(edge.since(end)) - *unused) / 8.0;
            if *unused < NOTHING {
                *unused = 0.0;
            }
            if let Some(left) = left {
                let used = f64::from(end.since(*left));
                let before = self.used.unwrap_or(used);
                self.used = Some(used.max(before + (used - before) / 8.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_source_is_ruled_that_leaves_a_quarter_of_the_window_it_had_heard_of_or_a_few_packets() {
        let leaves = |unused: f64| Source { used: Some(90_000.0), unused: Some(unused), ..Source::default() };
        assert!(leaves(30_000.0).is_window_limited(4000.0));
        // The size of the window advertised by now does not matter.
        assert!(!leaves(30_001.0).is_window_limited(4000.0));
        assert!(leaves(50_000.0).is_window_limited(50_000.0));
        assert!(!Source::default().is_window_limited(4000.0), "nothing has shown it");
    }

    #[test]
    fn a_source_that_fills_its_window_leaves_nothing_unused() {
        let mut source = Source::default();
        source.wired.add(at(0), Span::from_millis(30));
        for packet in 1..200 {
            let told = Seq(1000 * packet);
            source.on_told(at(100 * u64::from(packet)), told - 1000, told, None);
            // The first leaves half of it, the others fill it.
            let end = if packet == 1 { told - 500 } else { told };
            source.on_data(at(100 * u64::from(packet) + 50), end);
            assert!(
                source.unused.is_some_and(|unused| unused == 0.0 || unused > 1e-7),
                "{:?}",
                source.unused
            );
        }
        assert_eq!(source.unused, Some(0.0));
    }

    #[test]
    fn the_wire_is_from_an_edge_to_the_data_that_needed_it() {
        let mut source = Source::default();
        assert_eq!(source.wired(), UNKNOWN);
        source.on_told(at(0), Seq(0), Seq(5000), None);
        source.on_data(at(30), Seq(1000));
        assert_eq!(source.wired(), Span::from_millis(30));
        source.on_told(at(40), Seq(5000), Seq(6000), None);
        source.on_told(at(50), Seq(6000), Seq(7000), None);
        // The sender was allowed 5000 before; 6000 responds to the right edge advertised at 40.
        source.on_data(at(55), Seq(5000));
        source.on_data(at(62), Seq(6000));
        assert_eq!(source.wired(), Span::from_millis(22));
        // The route becomes longer: the minimum of the last 10 to 20 s counts.
        for second in [1, 11, 21, 31] {
            source.on_told(at(1000 * second), Seq(7000), Seq(8000), None);
            source.on_data(at(1000 * second + 50), Seq(7000 + second as u32));
        }
        assert_eq!(source.wired(), Span::from_millis(50));
    }

    #[test]
    fn a_syn_that_was_sent_again_is_not_timed() {
        let mut asked = Source::default();
        asked.on_syn(at(5));
        assert_eq!(Source::answering(at(25), &asked).wired(), Span::from_millis(20));
        asked.on_syn(at(20));
        assert_eq!(Source::answering(at(25), &asked).wired(), UNKNOWN);
    }

    #[test]
    fn unused_is_what_was_told_a_round_trip_ago_and_not_sent() {
        let mut source = Source::default();
        source.on_told(at(0), Seq(0), Seq(1000), None);
        source.on_data(at(8), Seq(1000));
        source.on_told(at(10), Seq(1000), Seq(9000), None);
        source.on_told(at(20), Seq(9000), Seq(20_000), None);
        // 8 ms and an eighth after 10: the sender had received 9000. An eighth of 7000.
        source.on_data(at(20), Seq(2000));
        assert_eq!(source.unused, Some(875.0));
        // It uses everything.
        source.on_data(at(20), Seq(9000));
        assert_eq!(source.unused, Some(875.0 - 875.0 / 8.0));
    }

    #[test]
    fn a_source_that_sends_little_says_nothing_of_the_wire() {
        let mut source = Source::default();
        source.on_told(at(0), Seq(0), Seq(1000), Some(Seq(0)));
        source.on_data(at(20), Seq(100));
        // Each right edge is far ahead, and is reached two seconds after it was advertised.
        for number in 1..400u32 {
            let (now, sent) = (200 * u64::from(number), 100 * number);
            source.on_told(at(now), Seq(sent + 4900), Seq(sent + 5000), Some(Seq(sent)));
            source.on_data(at(now + 20), Seq(sent + 100));
        }
        assert_eq!(source.wired(), Span::from_millis(20));
    }

    #[test]
    fn outstanding_is_what_came_beyond_the_ack_of_a_round_trip_ago() {
        let mut source = Source::default();
        source.on_told(at(0), Seq(0), Seq(1000), None);
        source.on_data(at(8), Seq(4000));
        assert_eq!(source.filling(1000).outstanding, None);
        source.on_passed(at(10), Seq(1000));
        source.on_passed(at(13), Seq(3000));
        source.on_data(at(17), Seq(5000));
        assert_eq!(source.filling(1000).outstanding, None, "no ACK has reached the sender yet");
        source.on_data(at(18), Seq(6000));
        assert_eq!(source.filling(1000).outstanding, Some(5.0));
        source.on_data(at(21), Seq(8000));
        assert_eq!(source.filling(2000).outstanding, Some(2.5));
    }

    #[test]
    fn acks_for_nothing_are_forgotten_after_a_round_trip() {
        let mut source = Source::default();
        source.on_data(at(0), Seq(1000));
        for number in 1..10_000 {
            source.on_passed(at(number), Seq(number as u32));
        }
        assert_eq!(source.acks.len(), 100, "ACKs of the last 100 ms");
    }

    #[test]
    fn used_is_what_came_beyond_what_had_left_and_falls_slowly() {
        let mut source = Source::default();
        source.on_told(at(0), Seq(0), Seq(1000), Some(Seq(0)));
        source.on_data(at(8), Seq(1000));
        assert_eq!(source.used(), None);
        source.on_told(at(10), Seq(1000), Seq(9000), Some(Seq(500)));
        source.on_data(at(20), Seq(8500));
        assert_eq!(source.used(), Some(8000.0));
        source.on_told(at(30), Seq(9000), Seq(20_000), Some(Seq(8500)));
        source.on_data(at(40), Seq(9000));
        // 500 bytes beyond 8500: an eighth of the way.
        assert_eq!(source.used(), Some(8000.0 - 7500.0 / 8.0));
    }

    #[test]
    fn the_timer_is_that_of_rfc_6298_or_the_probe() {
        let mut source = Source::default();
        assert_eq!(source.timeout(), None);
        source.on_syn(at(0));
        let mut source = Source::answering(at(100), &source);
        source.on_data(at(100), Seq(1000));
        source.on_passed(at(400), Seq(1000));
        // 300 ms plus 100 wired: RTO is 0.4 + 4 * 0.2, the probe timeout twice 0.4.
        assert_eq!(source.timeout(), Some(0.8));
        // With samples of 100 ms RTO converges to 0.1 + 0.2, the probe timeout to twice 0.1, but at least 0.2.
        for number in 2..400 {
            source.on_data(at(1000 + number), Seq(1000 * number as u32));
            source.on_passed(at(1000 + number), Seq(1000 * number as u32));
        }
        let timeout = source.timeout().unwrap();
        assert!((timeout - 0.2).abs() < 1e-3, "{timeout}");
    }
}
