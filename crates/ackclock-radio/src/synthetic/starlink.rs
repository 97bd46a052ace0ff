//! # Synthetic Starlink recording
//!
//! ## Source
//! Michel, Trevisan, Giordano and Bonaventure, "A First Look at Starlink Performance", IMC 2022: RTT with a minimum of
//! 20 ms, a median of 50 ms and quartiles of 40 and 60 ms. arXiv 2601.08439: links are assigned for periods of 15 s;
//! delay spikes of 140 ms at the start of a period and of 75 ms at its end. Kassem et al., "A Browser-side View of
//! Starlink Connectivity", IMC 2022: up to half of the packets are lost at such times.
//!
//! ## What it does
//! Every 15 s a new RTT and a new rate are drawn. The RTT is normally distributed and at least 20 ms; the recording has
//! the part of the downlink, which is the RTT without 10 ms. During the spikes the delay is longer, and a share of
//! the packets is lost that is drawn for each spike, from none to half.
//!
//! ## Differences from the source
//! The sources state no distribution of the rate and no height of the spikes; both are ours: a log-normal rate with a
//! mean of 150 Mbit/s and a standard deviation of the logarithm of 0.25, and spikes of 50 ms.
//!
//! ## Validation
//! Unit tests check the quartiles of the RTT, the mean rate, and that packets are lost in the spikes only.

use ackclock_core::{ConfigError, Rate, Span, Streams};
use ackclock_import::{Sample, Samples};
use ackclock_link::Loss;

use crate::cell::synthetic::unprintable;

/// Parameters of a synthetic Starlink recording of the downlink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Starlink {
    /// Mean rate over all periods.
    pub mean: Rate,
    /// Standard deviation of the logarithm of the rate of a period.
    pub spread: f64,
    /// Additional delay in a spike.
    pub spike: Span,
}

impl Default for Starlink {
    fn default() -> Self {
        Self { mean: Rate::from_bps(150_000_000), spread: 0.25, spike: Span::from_millis(50) }
    }
}

/// Time for which rate and RTT stay the same.
const PERIOD: Span = Span::from_secs(15);
/// Length of the spike at the start of a period.
const FIRST_SPIKE: Span = Span::from_millis(140);
/// Length of the spike at the end of a period.
const LAST_SPIKE: Span = Span::from_millis(75);
/// Largest share of packets lost in a spike.
const MOST_LOST: f64 = 0.5;
/// Median of the RTT, ms.
const MEDIAN_RTT: f64 = 50.0;
/// Standard deviation of the RTT for quartiles of 40 and 60 ms, ms: a quartile of the normal distribution is 0.6745
/// standard deviations from the median.
const RTT_DEVIATION: f64 = 10.0 / 0.6745;
/// Minimum of the RTT, ms.
const LEAST_RTT: f64 = 20.0;
/// Part of the RTT that is the delay of the uplink and not in the recording.
const UP_DELAY: Span = Span::from_millis(10);

impl Starlink {
    /// Generates a recording of the downlink with rates, delays and losses.
    ///
    /// # Errors
    /// Fails if `length` is zero.
    pub fn record(&self, length: Span, seed: u64) -> Result<Samples, ConfigError> {
        let streams = Streams::new(seed, 0);
        let [mut rates, mut rtts, mut losses] = ["rate", "rtt", "loss"].map(|name| streams.stream(name));
        let mut rows = Vec::new();
        for period in 0..length.as_nanos().div_ceil(PERIOD.as_nanos()) {
            let begins = PERIOD * period;
            let factor = libm::exp(self.spread * rates.normal() - self.spread * self.spread / 2.0);
            let rate = Rate::from_bps_f64(self.mean.as_bps() as f64 * factor);
            let rtt = (MEDIAN_RTT + RTT_DEVIATION * rtts.normal()).max(LEAST_RTT);
            let delay = Span::from_secs_f64(rtt / 1000.0).saturating_sub(UP_DELAY);
            let plain = Sample { begins: begins + FIRST_SPIKE, rate, delay, loss: Loss::NONE };
            let mut spike = |begins: Span| -> Sample {
                let loss = Loss::try_from(MOST_LOST * losses.unit()).unwrap_or(Loss::NONE);
                Sample { begins, delay: delay + self.spike, loss, ..plain }
            };
            rows.extend([spike(begins), plain, spike((begins + PERIOD).saturating_sub(LAST_SPIKE))]);
        }
        rows.retain(|row| row.begins < length);
        Samples::new(rows, length).map_err(unprintable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_import::Recording;

    #[test]
    fn rates_and_rtts_are_as_stated_and_losses_are_in_spikes() {
        // 4000 periods: the standard error of the mean rate is 0.4 %, that of a quartile of the RTT 0.3 ms.
        let samples = Starlink::default().record(PERIOD * 4000, 1).unwrap();
        let mean = Recording::Samples(samples.clone()).mean_rate().as_bps() as f64 / 150e6;
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        let plain = samples.rows().iter().filter(|row| row.loss == Loss::NONE);
        let mut rtts: Vec<f64> = plain.map(|row| (row.delay + UP_DELAY).as_millis_f64()).collect();
        assert_eq!(rtts.len(), 4000);
        rtts.sort_by(f64::total_cmp);
        for (at, expected) in [(1000, 40.0), (2000, 50.0), (3000, 60.0)] {
            assert!((rtts[at] - expected).abs() < 1.2, "{at}: {}", rtts[at]);
        }
        assert!(rtts[0] >= LEAST_RTT);
        for row in samples.rows().iter().filter(|row| row.loss != Loss::NONE) {
            let within = Span::from_nanos(row.begins.as_nanos() % PERIOD.as_nanos());
            assert!(within == Span::ZERO || within == PERIOD.saturating_sub(LAST_SPIKE), "{within}");
            assert!(row.loss.probability() <= MOST_LOST);
        }
    }

    #[test]
    fn a_recording_ends_within_a_period() {
        let samples = Starlink::default().record(Span::from_secs(20), 1).unwrap();
        assert_eq!((samples.length(), samples.rows().len()), (Span::from_secs(20), 5));
        assert_eq!(Starlink::default().record(Span::ZERO, 1).unwrap_err().path, "duration");
    }
}
