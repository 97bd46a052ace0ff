//! Estimator of the smoothed round-trip time.

use crate::Span;

/// Smoothed round-trip time and its variation (RFC 6298 section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Smoothed round-trip time, SRTT.
    pub mean: Span,
    /// Variation of the round-trip time, RTTVAR.
    pub deviation: Span,
}

impl RoundTrip {
    /// Returns the estimate after the first RTT sample.
    pub fn first(rtt: Span) -> Self {
        Self { mean: rtt, deviation: rtt / 2 }
    }

    /// Returns the estimate after one more RTT sample.
    #[must_use]
    pub fn after(self, rtt: Span) -> Self {
        // As in RFC 6298 (2.3), the variation is updated first, with the mean before this sample.
        Self {
            deviation: (self.deviation * 3 + self.mean.abs_diff(rtt)) / 4,
            mean: (self.mean * 7 + rtt) / 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_moves_the_mean_by_an_eighth_and_the_variation_by_a_quarter() {
        let ms = Span::from_millis;
        let first = RoundTrip::first(ms(80));
        assert_eq!(first, RoundTrip { mean: ms(80), deviation: ms(40) });
        assert_eq!(first.after(ms(160)), RoundTrip { mean: ms(90), deviation: ms(50) });
    }
}
