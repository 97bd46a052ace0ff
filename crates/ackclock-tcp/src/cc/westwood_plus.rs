//! # TCP Westwood+ congestion control
//!
//! Westwood+: [Westwood](super::westwood) with a bandwidth filter that tolerates bursts of ACKs.
//!
//! ## Source
//! Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion control",
//! ACM Computer Communication Review 34(2), 2004: section 2.
//!
//! ## What it does
//! The filter takes one sample b per round-trip time: the bytes acknowledged since the last sample, divided by the
//! elapsed time. The estimate is `B = 0.9 B + 0.1 b`. ACKs are counted and the window is set as in Westwood.
//!
//! ## Differences from the source
//! The first sample becomes the estimate, as in Linux; the paper averages the first sample with zero. A sample ends
//! with the first ACK at least one smoothed round-trip time after the start of the sample.
//!
//! ## Validation
//! Unit tests compare with hand-computed estimates. `tests/cc_paths.rs` tests Westwood+ on a lossy path.

use ackclock_core::{Span, Time};

use super::westwood::{BandwidthFilter, Westwood, WestwoodConfig};

/// State of Westwood+ congestion control.
pub type WestwoodPlus = Westwood<PerRoundTrip>;

/// Bandwidth filter of Westwood+: one sample per round-trip time.
#[derive(Clone, Debug)]
pub struct PerRoundTrip {
    /// Start time of the current bandwidth sample.
    began: Option<Time>,
    /// Bytes acknowledged since the start of the current sample.
    bytes: f64,
    /// Bandwidth estimate, bytes per second.
    bandwidth: Option<f64>,
}

/// Weight of the old estimate when a new sample is added.
const KEEP: f64 = 0.9;

impl BandwidthFilter for PerRoundTrip {
    fn new(_: &WestwoodConfig) -> Self {
        Self { began: None, bytes: 0.0, bandwidth: None }
    }

    fn on_acked(&mut self, now: Time, bytes: f64, rtt: Option<Span>) {
        let Some(began) = self.began else {
            self.began = Some(now);
            return;
        };
        self.bytes += bytes;
        let duration = now.since(began);
        if duration == Span::ZERO || rtt.is_none_or(|rtt| duration < rtt) {
            return;
        }
        let sample = self.bytes / duration.as_secs_f64();
        self.bandwidth = Some(self.bandwidth.map_or(sample, |before| KEEP * before + (1.0 - KEEP) * sample));
        (self.began, self.bytes) = (Some(now), 0.0);
    }

    fn estimate(&mut self, _: Time) -> Option<f64> {
        self.bandwidth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn estimates(acks: &[(u64, f64)]) -> Vec<f64> {
        let mut filter = PerRoundTrip::new(&WestwoodConfig::default());
        let rtt = Some(Span::from_millis(100));
        acks.iter()
            .filter_map(|&(at, bytes)| {
                filter.on_acked(ms(at), bytes, rtt);
                filter.estimate(ms(at))
            })
            .collect()
    }

    #[test]
    fn each_round_trip_gives_one_sample_and_the_estimate_moves_by_a_tenth() {
        // From 0 to 100 ms, 2000 B give 20 000 B/s. From 100 to 220 ms, 6000 B in 120 ms give 50 000 B/s, so the
        // estimate is 18 000 + 5000.
        let seen = estimates(&[(0, 1000.0), (50, 1000.0), (100, 1000.0), (150, 3000.0), (220, 3000.0)]);
        assert_eq!(seen.len(), 3);
        assert!((seen[0] - 20_000.0).abs() < 1e-6 && (seen[2] - 23_000.0).abs() < 1e-6, "{seen:?}");
    }

    #[test]
    fn acks_in_a_bunch_count_as_they_would_spread() {
        let spread = estimates(&[(0, 1000.0), (25, 1000.0), (50, 1000.0), (75, 1000.0), (100, 1000.0)]);
        let bunch = estimates(&[(0, 1000.0), (97, 1000.0), (98, 1000.0), (99, 1000.0), (100, 1000.0)]);
        assert_eq!(spread, bunch);
    }
}
