//! The source of a flow, as the edge sees it: how far away it is, whether the window rules it, and when its timer runs out.
//!
//! The round trip on the wire is from an edge told to the first new data that needed it, and from the mobile's SYN to its
//! answer. A source that leaves the window unused is ruled by its congestion window or its pace. Its timer is that of RFC
//! 6298 as Linux keeps it, fed with what the source measures: the age of the data that an ACK acknowledges, and the wire.

use std::collections::VecDeque;

use ackclock_core::{Seq, Span, Time};

/// The wire before it was measured.
const UNKNOWN: Span = Span::from_millis(100);
/// The least of so much time counts, and of as much before.
const MEMORY: Span = Span::from_secs(10);
/// What RTO is above the smoothed round-trip time at least (Linux: `TCP_RTO_MIN`), and a probe timeout at least (RFC 8985
/// section 7.2, with one ACK delayed).
const LEAST_TIMEOUT: f64 = 0.2;

/// A source that leaves so many times unused what it uses waits for no edge.
const SPARES: f64 = 4.0;
/// Bytes that count as none: what only ever falls by a share would become a subnormal number, and those are slow to reckon with.
const NOTHING: f64 = 1e-6;
/// Data that an edge called forth comes at most this much, and an eighth of the wire, later than the least round trip.
const JITTER: Span = Span::from_millis(2);

/// What data is that comes from a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// It came before.
    Again,
    /// It is new.
    New,
    /// It is new, and came as soon as an edge allowed it: the source had waited for that.
    Called,
}

/// How far the newest data fills what its source may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    /// It left no room in the window for another packet.
    pub(super) window: bool,
    /// Packets that were outstanding when it was sent, where that is known.
    pub(super) outstanding: Option<f64>,
}

/// The least of the times that were measured in the last 10 to 20 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    /// Since an instant, and in the time before.
    since: [(Time, Span); 2],
}

impl Default for Least {
    fn default() -> Self {
        Self { since: [(Time::ZERO, Span::MAX); 2] }
    }
}

impl Least {
    pub(super) fn note(&mut self, now: Time, sample: Span) {
        let [(began, least), _] = &mut self.since;
        if now.since(*began) > MEMORY {
            self.since = [(now, sample), self.since[0]];
        } else {
            *least = sample.min(*least);
        }
    }

    /// `None` before anything was measured.
    pub(super) fn span(&self) -> Option<Span> {
        let [(_, now), (_, before)] = self.since;
        Some(now.min(before)).filter(|least| *least < Span::MAX)
    }
}

/// What is known of the source of one flow.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Least round trip on the wire.
    wired: Least,
    /// The mobile's SYN, while it is not answered.
    syn: Option<Time>,
    /// An edge that the source waits for has moved: where it was, and when the new one was told.
    awaited: Option<(Seq, Time)>,
    /// The end of the data that came.
    highest: Option<Seq>,
    /// Edges told, when, and the end of what had left the queue: the source of data that comes now had heard of the first.
    edges: VecDeque<(Time, Seq, Option<Seq>)>,
    /// Bytes beyond what had left the queue that the source sent, of late; `None` before anything showed it.
    used: Option<f64>,
    /// Bytes that the source might have sent and did not, smoothed; `None` before anything showed it.
    unused: Option<f64>,
    /// Bytes that the newest data left of it.
    spare: Option<u32>,
    /// ACKs on their way to the source and when they went, and the last that it has heard of.
    acks: VecDeque<(Time, Seq)>,
    heard: Option<Seq>,
    /// The source paces: what it does not send at once says nothing of the wire.
    keeps: bool,
    /// Data that is not acknowledged to the source: its end, and when it came.
    arrivals: VecDeque<(Seq, Time)>,
    /// Smoothed round-trip time and its variation, seconds.
    srtt: f64,
    rttvar: f64,
}

impl Source {
    /// A source that answers the SYN that `before` was told of.
    pub(super) fn answering(now: Time, before: &Self) -> Self {
        let mut source = Self { wired: before.wired, ..Self::default() };
        if let Some(asked) = before.syn {
            source.wired.note(now, now.since(asked));
        }
        source
    }

    /// Round trip on the wire: edge, source, edge.
    pub(super) fn wired(&self) -> Span {
        self.wired.span().unwrap_or(UNKNOWN)
    }

    /// Whether the source sends what its window lets it: it leaves `few` bytes of that unused, or a quarter of the window that
    /// it had heard of.
    pub(super) fn is_ruled(&self, few: f64) -> bool {
        let window = |unused: f64| unused + self.used.unwrap_or_default();
        self.unused.is_some_and(|unused| unused <= few.max(window(unused) / 4.0))
    }

    /// Bytes that it had in the queue and on the wire, the most of late, where that has shown.
    pub(super) fn used(&self) -> Option<f64> {
        self.used
    }

    /// How far the newest data fills what may be sent, in packets of so many bytes.
    pub(super) fn filling(&self, payload: u32) -> Filling {
        let outstanding = self.highest.zip(self.heard).map(|(highest, heard)| highest.since(heard));
        Filling {
            window: self.spare.is_some_and(|spare| spare < payload),
            outstanding: outstanding.map(|bytes| f64::from(bytes) / f64::from(payload)),
        }
    }

    /// From now on only shorter round trips count, or all again.
    pub(super) const fn keep_wire(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// The end of the data that came.
    pub(super) fn highest(&self) -> Option<Seq> {
        self.highest
    }

    /// Whether it had heard that all before `end` was acknowledged when it sent what comes now: an ACK that goes with another may
    /// be too late by a little.
    pub(super) fn had_heard(&mut self, now: Time, end: Seq) -> bool {
        let late = self.wired() / 8 + JITTER;
        self.hear(now - late);
        self.heard.is_some_and(|heard| end.at_or_before(heard))
    }

    /// The mobile asks for a connection. One that it asks for again is not timed.
    pub(super) fn on_syn(&mut self, now: Time) {
        self.syn = if self.syn.is_some() { None } else { Some(now) };
    }

    /// Data comes.
    pub(super) fn on_data(&mut self, now: Time, end: Seq) -> Arrival {
        if self.highest.is_some_and(|highest| end.at_or_before(highest)) {
            return Arrival::Again;
        }
        self.highest = Some(end);
        self.arrivals.push_back((end, now));
        self.hear(now);
        self.notice_unused(now, end);
        let Some((_, told)) = self.awaited.filter(|(edge, _)| end.after(*edge)) else { return Arrival::New };
        self.awaited = None;
        let after = now.since(told);
        if after < self.wired() || !(self.keeps || self.spares_most()) {
            self.wired.note(now, after);
        }
        if after <= self.at_once() { Arrival::Called } else { Arrival::New }
    }

    /// What comes so soon after an ACK went had waited for it.
    pub(super) fn at_once(&self) -> Span {
        let wired = self.wired();
        wired + wired / 8 + JITTER
    }

    /// A further edge is told, when what is before `left` has left the queue, where that is known.
    pub(super) fn on_told(&mut self, now: Time, before: Seq, edge: Seq, left: Option<Seq>) {
        self.edges.push_back((now, edge, left));
        if self.awaited.is_none() {
            self.awaited = Some((before, now));
        }
    }

    /// An ACK goes to the source: a sample of its round-trip time.
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

    /// Seconds after an ACK until the source's timer runs out: the probe timeout of RACK-TLP or RTO, whichever comes first.
    /// `None` before the first sample.
    pub(super) fn timeout(&self) -> Option<f64> {
        let rto = self.srtt + (4.0 * self.rttvar).max(LEAST_TIMEOUT);
        let probe = (2.0 * self.srtt).max(LEAST_TIMEOUT);
        (self.srtt > 0.0).then(|| rto.min(probe))
    }

    /// The ACKs of a round trip ago and more have come to it.
    fn hear(&mut self, now: Time) {
        let wired = self.wired();
        while let Some((_, ack)) = self.acks.pop_front_if(|(went, _)| now.since(*went) >= wired) {
            self.heard = Some(ack);
        }
    }

    /// Whether it leaves most of its window unused: when it reaches an edge says nothing of the wire then.
    fn spares_most(&self) -> bool {
        self.unused.zip(self.used).is_some_and(|(unused, used)| unused > SPARES * used)
    }

    /// How much more might have been sent by what its source had heard: what was told a round trip ago, and an eighth of it.
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
        assert!(leaves(30_000.0).is_ruled(4000.0));
        // However large the window is that is told by now.
        assert!(!leaves(30_001.0).is_ruled(4000.0));
        assert!(leaves(50_000.0).is_ruled(50_000.0));
        assert!(!Source::default().is_ruled(4000.0), "nothing has shown it");
    }

    #[test]
    fn a_source_that_fills_its_window_leaves_nothing_unused() {
        let mut source = Source::default();
        source.wired.note(at(0), Span::from_millis(30));
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
        // Up to 5000 it had been told before; 6000 is the answer to what was told at 40.
        source.on_data(at(55), Seq(5000));
        source.on_data(at(62), Seq(6000));
        assert_eq!(source.wired(), Span::from_millis(22));
        // The route becomes longer: the least of the last 10 to 20 s counts.
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
        // 8 ms and an eighth after 10: it had heard of 9000. An eighth of 7000.
        source.on_data(at(20), Seq(2000));
        assert_eq!(source.unused, Some(875.0));
        // It uses all.
        source.on_data(at(20), Seq(9000));
        assert_eq!(source.unused, Some(875.0 - 875.0 / 8.0));
    }

    #[test]
    fn a_source_that_sends_little_says_nothing_of_the_wire() {
        let mut source = Source::default();
        source.on_told(at(0), Seq(0), Seq(1000), Some(Seq(0)));
        source.on_data(at(20), Seq(100));
        // Each edge is far ahead, and reached two seconds after it was told.
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
        assert_eq!(source.filling(1000).outstanding, None, "no ACK has come to the source yet");
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
        assert_eq!(source.acks.len(), 100, "those of the last 100 ms");
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
        // 300 ms and the wire of 100: RTO is 0.4 + 4 * 0.2, the probe comes after twice 0.4.
        assert_eq!(source.timeout(), Some(0.8));
        // What is older than all samples of 100 ms settles at 0.1 + 0.2 and twice 0.1, but 0.2 at least.
        for number in 2..400 {
            source.on_data(at(1000 + number), Seq(1000 * number as u32));
            source.on_passed(at(1000 + number), Seq(1000 * number as u32));
        }
        let timeout = source.timeout().unwrap();
        assert!((timeout - 0.2).abs() < 1e-3, "{timeout}");
    }
}
