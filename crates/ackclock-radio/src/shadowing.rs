//! # Log-normal shadowing
//!
//! ## Source
//! Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics Letters 27(23), 1991: behind
//! buildings and hills the mean power of a channel in decibels is normally distributed, and its correlation decays
//! exponentially with the distance travelled.
//!
//! ## What it does
//! Shadowing is a first-order autoregression by slots: x(k+1) = a x(k) + sqrt(1 - a^2) n(k), with n standard normal and
//! a = exp(-slot / T). The gain is sd x decibels, with median 1. At constant speed v and decorrelation distance d, T =
//! d / v.
//!
//! ## Differences from the source
//! The model uses time instead of distance: the mobile moves at constant speed.
//!
//! ## Validation
//! Unit tests check mean, standard deviation and autocorrelation of the gain in decibels.

use ackclock_core::{Span, Stream};

/// Slow variation of a channel's power gain by shadowing, slot by slot.
#[derive(Clone, Debug)]
pub struct Shadowing {
    /// Standard deviation of the power gain, nepers.
    nepers: f64,
    /// Correlation coefficient between the gains of consecutive slots.
    kept: f64,
    /// Weight of the new random value in each slot.
    added: f64,
    now: f64,
    stream: Stream,
}

impl Shadowing {
    /// Creates shadowing with a standard deviation of `decibels`, whose correlation decays to 1/e in time
    /// `correlation`, for `slots` slots per second.
    pub fn new(decibels: f64, correlation: Span, slots: f64, mut stream: Stream) -> Self {
        let kept = libm::exp(-1.0 / (slots * correlation.as_secs_f64()));
        let now = stream.normal();
        let nepers = decibels * std::f64::consts::LN_10 / 10.0;
        Self { nepers, kept, added: libm::sqrt(1.0 - kept * kept), now, stream }
    }

    /// Power gain in the next slot, as a ratio of powers.
    pub fn step(&mut self) -> f64 {
        let gain = libm::exp(self.nepers * self.now);
        self.now = self.kept * self.now + self.added * self.stream.normal();
        gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Streams;

    #[test]
    fn the_decibels_are_normal_and_forget_exponentially() {
        // 100 slots per second for 20 000 s with T = 1 s contain some 10 000 independent values. The standard errors
        // are 0.06 dB for the mean of a 6 dB deviation, 0.05 dB for the deviation and 0.01 for a correlation; the test
        // allows three or more standard errors.
        let mut shadowing =
            Shadowing::new(6.0, Span::from_secs(1), 100.0, Streams::new(1, 0).stream("shadowing"));
        let decibels: Vec<f64> = (0..2_000_000).map(|_| 10.0 * libm::log10(shadowing.step())).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
            sum / count
        };
        let centre = mean(&mut decibels.iter().copied());
        let variance = mean(&mut decibels.iter().map(|value| value * value));
        assert!(centre.abs() < 0.2, "{centre}");
        assert!((libm::sqrt(variance) - 6.0).abs() < 0.15, "{variance}");
        for (lag, expected) in [(1, 0.99005), (50, 0.60653), (100, 0.36788), (300, 0.04979)] {
            let products = mean(&mut decibels.iter().zip(&decibels[lag..]).map(|(a, b)| a * b));
            assert!((products / variance - expected).abs() < 0.04, "lag {lag}: {}", products / variance);
        }
    }
}
