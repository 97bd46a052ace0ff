//! # COBALT
//!
//! CoDel and BLUE in alternation: the queue management of each flow in CAKE.
//!
//! ## Source
//! Høiland-Jørgensen, Täht and Morton, "Piece of CAKE" (LANMAN 2018), section III.B, with the constants of `tc-cake(8)`
//! and of Linux: probability steps of 1/256 and 1/4096.
//!
//! ## What it does
//! CoDel signals congestion while packets wait longer than the target; the time between signals is the interval over
//! `sqrt(count)`. An ECN-capable packet is marked, any other dropped. Unlike in RFC 8289, the count falls by one for
//! each signal that would be due while the delay is below the target, and the delay must also exceed the time of six
//! full packets, and of three for each bulk flow. BLUE drops packets with a probability that rises when the buffer
//! overflows and falls when the queue is empty, at most once per target. It also drops ECN-capable packets.
//!
//! ## Differences from the source
//! Square roots are exact. Linux approximates them.
//!
//! ## Validation
//! Unit tests check signals, decay and probabilities by hand. `cake.rs` compares drops and delays with ns-3's.

use ackclock_core::{Ecn, Segment, Span, Stream, Time};

use super::is_ect;

/// Step by which an overflow raises BLUE's probability.
const RISE: f64 = 1.0 / 256.0;
/// Step by which an empty queue lowers BLUE's probability.
const FALL: f64 = 1.0 / 4096.0;

/// Settings of COBALT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) target: Span,
    pub(super) interval: Span,
    /// Transmission time of one and a half full packets; zero if the rate is unknown.
    pub(super) packet: Span,
}

/// Answer for a packet that leaves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// State of COBALT for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    dropping: bool,
    drop_next: Time,
    /// Probability of BLUE, and the time of its last step.
    probability: f64,
    stepped: Time,
}

impl Cobalt {
    /// Handles an overflow of the buffer, for the queue that loses a packet.
    pub(super) fn on_overflow(&mut self, settings: &Settings, now: Time) {
        if now.since(self.stepped) > settings.target {
            self.probability = (self.probability + RISE).min(1.0);
            self.stepped = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Handles a queue that ran empty.
    pub(super) fn on_empty(&mut self, settings: &Settings, now: Time) {
        if self.probability > 0.0 && now.since(self.stepped) > settings.target {
            self.probability = (self.probability - FALL).max(0.0);
            self.stepped = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.after(self.drop_next, settings);
        }
    }

    /// Decides on a packet that leaves after `delay` in its queue, while `bulk` flows fill their queues.
    pub(super) fn judge(
        &mut self,
        settings: &Settings,
        now: Time,
        delay: Span,
        bulk: u32,
        segment: &Segment,
        stream: &mut Stream,
    ) -> Verdict {
        let least = settings.packet * u64::from(bulk.saturating_mul(2).max(4));
        let above = delay > settings.target && delay > least;
        if above && !self.dropping {
            self.count = self.count.max(1);
            self.drop_next = self.after(now, settings);
        }
        self.dropping = above;
        let mut verdict = Verdict::Pass;
        if self.count > 0 && now >= self.drop_next && self.dropping {
            verdict = if is_ect(segment) { Verdict::Mark } else { Verdict::Drop };
            self.count = self.count.saturating_add(1);
            self.drop_next = self.after(self.drop_next, settings);
        } else {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.drop_next = self.after(self.drop_next, settings);
            }
        }
        if self.probability > 0.0 && verdict != Verdict::Drop && stream.chance(self.probability) {
            verdict = Verdict::Drop;
        }
        if self.count == 0 {
            self.drop_next = now + settings.interval;
        } else if now > self.drop_next && verdict != Verdict::Drop {
            self.drop_next = now;
        }
        verdict
    }

    /// Time of the next signal after `t`: the interval over the square root of the count.
    fn after(&self, t: Time, settings: &Settings) -> Time {
        let root = libm::sqrt(f64::from(self.count.max(1)));
        t + Span::from_nanos(libm::round(settings.interval.as_nanos() as f64 / root) as u64)
    }
}

/// Marks a packet.
pub(super) fn mark(segment: &mut Segment) {
    segment.ecn = Ecn::Ce;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{FlowId, Seq, Streams};

    const SETTINGS: Settings =
        Settings { target: Span::from_millis(5), interval: Span::from_millis(100), packet: Span::ZERO };

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Judges a packet each millisecond from 1 ms that waited `delay`; returns the times of signals, ms.
    fn signals(cobalt: &mut Cobalt, from: u64, until: u64, delay: Span, settings: &Settings) -> Vec<u64> {
        let packet = Segment::data(FlowId(0), Seq(0), 1460, 40);
        let mut stream = Streams::new(1, 0).stream("cobalt");
        let mut judge = |now| cobalt.judge(settings, at(now), delay, 1, &packet, &mut stream);
        (from..until).filter(|&now| judge(now) == Verdict::Drop).collect()
    }

    /// The delay is above the target from 1 ms. The first signal follows after an interval, at 101 ms, with count 1. The
    /// next ones follow after 100/√2 = 70.7, 100/√3 = 57.7 and 50 ms: at 171.7, 229.4 and 279.4 ms.
    #[test]
    fn signals_follow_the_control_law() {
        let mut cobalt = Cobalt::default();
        assert_eq!(signals(&mut cobalt, 1, 300, Span::from_millis(20), &SETTINGS), [101, 172, 230, 280]);
        assert_eq!(cobalt.count, 5);
    }

    /// If a packet and a half take 6 ms, the delay must exceed the 24 ms of six packets.
    #[test]
    fn a_slow_link_may_hold_six_packets() {
        let slow = Settings { packet: Span::from_millis(6), ..SETTINGS };
        assert_eq!(signals(&mut Cobalt::default(), 1, 300, Span::from_millis(24), &slow), [0u64; 0]);
        assert_eq!(signals(&mut Cobalt::default(), 1, 110, Span::from_millis(25), &slow), [101]);
    }

    /// After four signals the next would be due 44.7 ms after 279.4 ms. Below the target the count falls from 5 to 4 at
    /// 325 ms and by one after each of 50, 57.7, 70.7 and 100 ms.
    #[test]
    fn the_count_decays_signal_by_signal() {
        let mut cobalt = Cobalt::default();
        signals(&mut cobalt, 1, 300, Span::from_millis(20), &SETTINGS);
        let mut counts = Vec::new();
        for (from, until) in [(300, 326), (326, 376), (376, 433), (433, 504), (504, 604)] {
            assert_eq!(signals(&mut cobalt, from, until, Span::ZERO, &SETTINGS), [0u64; 0]);
            counts.push(cobalt.count);
        }
        assert_eq!(counts, [4, 3, 2, 1, 0]);
    }

    #[test]
    fn an_ecn_capable_packet_is_marked() {
        let mut packet = Segment::data(FlowId(0), Seq(0), 1460, 40);
        packet.ecn = Ecn::Ect0;
        let mut stream = Streams::new(1, 0).stream("cobalt");
        let mut cobalt = Cobalt::default();
        let delay = Span::from_millis(20);
        let verdicts: Vec<Verdict> =
            [1, 101].map(|now| cobalt.judge(&SETTINGS, at(now), delay, 1, &packet, &mut stream)).to_vec();
        assert_eq!(verdicts, [Verdict::Pass, Verdict::Mark]);
    }

    /// Overflows at 10, 12 and 20 ms are two steps, as 12 ms is within the target of the first. The queue is empty at
    /// 30 ms: 2/256 - 1/4096.
    #[test]
    fn blue_rises_with_overflows_and_falls_when_empty() {
        let mut cobalt = Cobalt::default();
        [10, 12, 20].into_iter().for_each(|now| cobalt.on_overflow(&SETTINGS, at(now)));
        cobalt.on_empty(&SETTINGS, at(30));
        assert_eq!(cobalt.probability, 2.0 / 256.0 - 1.0 / 4096.0);
    }
}
