//! # Hybrid slow start
//!
//! Hybrid slow start, as in Linux. Slow start ends when a train of ACKs or the round-trip time shows that the pipe is
//! full.
//!
//! ## Source
//! Ha and Rhee, "Taming the elephants: new TCP slow start" (Computer Networks 55, 2011), with Linux's constants.
//!
//! ## What it does
//! The detector works in every round of slow start with a window of at least 16 segments. Slow start ends when ACKs at
//! most 2 ms apart continue for half the smallest round-trip time. Slow start also ends when the round-trip time of a
//! round's first samples exceeds the overall smallest by an eighth (4 to 16 ms). Rounds and round-trip times are
//! tracked even while the application limits the sender. Once the detector has ended slow start, it rests until a
//! timeout.
//!
//! ## Differences from the source
//! - A round ends by a count of delivered bytes, as for [HyStart++](super::hystart).
//! - Linux ignores RTT samples in the first second after a loss.
//!
//! ## Validation
//! Unit tests below compare with hand-computed values.

use ackclock_core::{Span, Time};

use crate::congestion_control::AckSample;

/// Largest gap between two ACKs of a train.
const GAP: Span = Span::from_millis(2);
/// Extra length of the ACK train, which allows for the sender's own bursts.
const BURST: Span = Span::from_millis(1);
/// Bounds for the rise of the round-trip time that ends slow start. The rise is an eighth of the smallest round-trip
/// time, limited to 4 to 16 ms.
const LEAST_RISE: Span = Span::from_millis(4);
const MOST_RISE: Span = Span::from_millis(16);
/// Number of RTT samples in a round before the round-trip time is evaluated.
const SAMPLES: u32 = 8;
/// Smallest congestion window at which slow start may end, segments.
pub(crate) const LEAST_WINDOW: f64 = 16.0;

/// Detects the end of slow start.
#[derive(Clone, Debug)]
pub(crate) struct HybridStart {
    delivered: u64,
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    /// Smallest round-trip time of the current round, and of the whole connection.
    current: Option<Span>,
    least: Option<Span>,
    samples: u32,
    /// Whether the end of slow start was found; the detector then rests until the next timeout.
    found: bool,
}

impl HybridStart {
    /// Creates the detector at the start of a slow start.
    pub(crate) fn new() -> Self {
        Self {
            delivered: 0,
            round_end: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            current: None,
            least: None,
            samples: 0,
            found: false,
        }
    }

    /// Processes an ACK before the window grows. `slow` is the window in segments; `None` outside slow start. Returns
    /// whether slow start ends.
    pub(crate) fn on_ack(&mut self, sample: &AckSample, slow: Option<f64>) -> bool {
        self.delivered += u64::from(sample.delivered);
        let Some(rtt) = sample.rtt else { return false };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        let Some(cwnd) = slow.filter(|_| !self.found) else { return false };
        if self.delivered > self.round_end {
            self.round_end = self.delivered + u64::from(sample.in_flight);
            (self.round_start, self.last_ack) = (sample.now, sample.now);
            (self.current, self.samples) = (None, 0);
        }
        self.found =
            cwnd >= LEAST_WINDOW && (self.ends_by_train(sample.now, least) | self.ends_by_delay(rtt, least));
        self.found
    }

    fn ends_by_train(&mut self, now: Time, least: Span) -> bool {
        if now.since(self.last_ack) > GAP {
            return false;
        }
        self.last_ack = now;
        now.since(self.round_start) > (least + BURST) / 2
    }

    fn ends_by_delay(&mut self, rtt: Span, least: Span) -> bool {
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        self.samples += 1;
        self.samples > SAMPLES && current > least + (least / 8).clamp(LEAST_RISE, MOST_RISE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now: Time, rtt_ms: u64) -> AckSample {
        let rtt = Some(Span::from_millis(rtt_ms));
        AckSample { now, in_flight: 20_000, rtt, srtt: rtt, min_rtt: rtt, ..AckSample::of(1000) }
    }

    /// Number of the ACK at which slow start ends, in the round after a first round with an RTT of 80 ms.
    fn ends(gap_ms: u64, rtt_ms: u64, cwnd: f64) -> Option<u64> {
        let mut start = HybridStart::new();
        start.on_ack(&AckSample { in_flight: 0, ..ack(Time::ZERO, 80) }, Some(cwnd));
        let begin = Span::from_millis(100);
        (0..20).find(|&n| {
            start.on_ack(&ack(Time::ZERO + begin + Span::from_millis(n * gap_ms), rtt_ms), Some(cwnd))
        })
    }

    #[test]
    fn the_ninth_sample_tells_a_rise_of_more_than_an_eighth() {
        // 80 / 8 = 10 ms. ACKs are counted from 0.
        assert_eq!((ends(5, 90, 20.0), ends(5, 91, 20.0)), (None, Some(8)));
    }

    #[test]
    fn a_train_ends_it_after_half_the_round_trip_and_a_gap_ends_the_train() {
        let mut start = HybridStart::new();
        // ACKs 2 ms apart: after 42 ms the train exceeds (80 + 1) / 2 = 40.5 ms.
        let found =
            (0..40).find(|&n| start.on_ack(&ack(Time::ZERO + Span::from_millis(2 * n), 80), Some(20.0)));
        assert_eq!(found, None, "a round of 21 segments ends before");
        let long = |gap| {
            let mut start = HybridStart::new();
            (0..40u64).find(|&n| {
                let now = Time::ZERO + Span::from_millis(gap * n);
                start.on_ack(&AckSample { in_flight: 100_000, ..ack(now, 80) }, Some(20.0))
            })
        };
        assert_eq!((long(2), long(3)), (Some(21), None));
    }

    #[test]
    fn what_the_window_does_not_limit_and_avoidance_count_for_the_rounds_and_the_end_is_found_once() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut start = HybridStart::new();
        start.on_ack(&AckSample { in_flight: 5000, ..ack(at(0), 80) }, Some(20.0));
        // Six more segments in congestion avoidance end the round that the first segment and its five in flight
        // started.
        (1..=6).for_each(|n| assert!(!start.on_ack(&ack(at(n), 80), None)));
        let found: Vec<u64> =
            (0..30).filter(|&n| start.on_ack(&ack(at(100 + 5 * n), 91), Some(20.0))).collect();
        assert_eq!(found, [8], "the ninth sample of the round");
    }

    #[test]
    fn a_small_window_is_left_alone() {
        assert_eq!(ends(5, 200, 15.0), None);
    }
}
