//! # Inner loop of the power control
//!
//! ## Source
//! Source: Möller, "Automatic control in TCP over wireless", KTH 2005, section 4.2: 1500 samples a second, one bit of
//! feedback, a delay of two samples. Gunnarsson and Gustafsson, "Power control in wireless communications networks",
//! IFAC 2002, describe the behaviour of this type of loop.
//!
//! ## What it does
//! At each sample the power rises or falls by a step, depending on whether the SIR was below or above the reference
//! `delay` samples earlier. Let e be the SIR minus the reference, and g the power of the channel, in dB; the loop then
//! follows
//!
//! e(i + 1) = e(i) - step sign e(i + 1 - delay) + g(i + 1) - g(i).
//!
//! On a constant channel the error e oscillates forever with a period of 4 delay - 2 samples. With u between 0 and 1, e
//! takes the values (u + k) step once per period for k = -delay and delay - 1, and twice for all k between them. Under
//! Rayleigh fading the loop follows the channel as far as step and delay allow.
//!
//! ## Differences from the source
//! The reference moves once a frame, mostly by a tenth of a step. The loop does not see these small moves: instead u
//! and the phase of the loop are drawn for each frame. The simulation of the loop starts some samples before the frame,
//! so that a frame depends only on its number. With a delay of two samples the period is 6 samples, while the source
//! says that the period is usually below 5. The power is unlimited, but the reference is limited: `highest` must leave
//! a margin for fading that the loop does not follow.
//!
//! ## Validation
//! Unit tests check the values of e on the constant channel, and compare a frame with the formula for these values.

use ackclock_core::{Config, ConfigError, Indexed, Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fading::Fading;

/// Model of the transmit power that follows the reference within a frame.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InnerLoopConfig {
    /// Number of samples per second; a frame has a whole number of samples.
    pub rate: f64,
    /// Change of the power at each sample, dB.
    pub step: f64,
    /// Delay from a measurement to the change of power, samples.
    pub delay: u32,
    /// Maximum Doppler frequency of the Rayleigh fading, Hz; 0 for a constant channel.
    pub doppler: f64,
}

impl Default for InnerLoopConfig {
    /// Returns the loop of the source, with a step of 1 dB, over a constant channel.
    fn default() -> Self {
        Self { rate: 1500.0, step: 1.0, delay: 2, doppler: 0.0 }
    }
}

/// Maximum number of samples per frame.
const MOST_SAMPLES: f64 = 10_000.0;
/// Number of samples for which the loop is simulated before a frame.
const BEFORE: u64 = 32;
/// Longest allowed delay, in samples: the loop must reach its oscillation before a frame starts.
const LONGEST: u32 = 8;

impl Config for InnerLoopConfig {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, value, allowed) in [
            ("rate", self.rate, 1.0..=1e6),
            ("step", self.step, 1e-3..=100.0),
            ("doppler", self.doppler, 0.0..=1e6),
        ] {
            if !allowed.contains(&value) {
                let message = format!("{value} is not {} to {}", allowed.start(), allowed.end());
                return Err(ConfigError::new(key, message));
            }
        }
        if !(1..=LONGEST).contains(&self.delay) {
            return Err(ConfigError::new("delay", format!("{} is not 1 to {LONGEST}", self.delay)));
        }
        Ok(())
    }
}

/// Simulates the inner loop, frame by frame.
pub(super) struct InnerLoop {
    config: InnerLoopConfig,
    /// Number of samples per frame.
    samples: u64,
    /// Two random numbers per frame: the offset of the steps from the reference, and the phase of the loop.
    draws: Indexed,
    fading: Option<Fading>,
    /// SIR minus reference in each sample of `frame`, dB.
    errors: Vec<f64>,
    /// Number of the frame to which `errors` belongs.
    frame: Option<u64>,
}

impl InnerLoop {
    /// # Errors
    /// Returns an error if a frame of this length has too many samples.
    pub(super) fn new(
        config: &InnerLoopConfig,
        frame: Span,
        mut stream: Stream,
    ) -> Result<Self, ConfigError> {
        let samples = libm::round(config.rate * frame.as_secs_f64()).max(1.0);
        if samples > MOST_SAMPLES {
            let message = format!("{} are more than {MOST_SAMPLES} samples in {frame}", config.rate);
            return Err(ConfigError::new("rate", message));
        }
        let slots = samples / frame.as_secs_f64();
        let fading = (config.doppler > 0.0).then(|| Fading::rayleigh(config.doppler, slots, &mut stream));
        let (samples, draws) = (samples as u64, stream.indexed());
        Ok(Self { config: config.clone(), samples, draws, fading, errors: Vec::new(), frame: None })
    }

    /// SIR minus reference in each sample of a frame, dB.
    pub(super) fn errors(&mut self, frame: u64) -> &[f64] {
        if self.frame != Some(frame) {
            self.follow(frame);
            self.frame = Some(frame);
        }
        &self.errors
    }

    fn follow(&mut self, frame: u64) {
        let InnerLoopConfig { step, delay, .. } = self.config;
        let [beside, within] = [0, 1].map(|which| self.draws.unit(frame.wrapping_mul(2) + which));
        let before = BEFORE + (within * f64::from(4 * delay - 2)) as u64;
        let begins = frame.wrapping_mul(self.samples).wrapping_sub(before);
        let mut gain = self.gain(begins);
        let mut errors = [beside * step; LONGEST as usize + 1];
        self.errors.clear();
        for sample in 1..before + self.samples {
            let next = self.gain(begins.wrapping_add(sample));
            let measured = errors[delay as usize - 1];
            let error = errors[0] - if measured >= 0.0 { step } else { -step } + next - gain;
            errors.copy_within(..LONGEST as usize, 1);
            (errors[0], gain) = (error, next);
            if sample >= before {
                self.errors.push(error);
            }
        }
    }

    /// Power of the channel in a sample, dB.
    fn gain(&mut self, sample: u64) -> f64 {
        match &mut self.fading {
            Some(fading) => 10.0 * libm::log10(fading.power(sample).max(1e-30)),
            None => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Streams;

    use super::*;

    const FRAME: Span = Span::from_millis(20);

    fn inner(config: &InnerLoopConfig) -> InnerLoop {
        InnerLoop::new(config, FRAME, Streams::new(1, 0).stream("up/errors/inner-loop")).unwrap()
    }

    #[test]
    fn over_a_still_channel_the_loop_swings_as_far_as_its_delay_lets_it() {
        // Values (u + k) step; those at the ends once in 4 delay - 2 samples, those between twice.
        for (delay, rate) in [(1, 1500.0), (2, 1500.0), (3, 1500.0)] {
            let mut inner = inner(&InnerLoopConfig { rate, delay, step: 0.5, doppler: 0.0 });
            let period = 4 * delay as usize - 2;
            let errors = inner.errors(7).to_vec();
            assert_eq!(errors.len(), 30);
            let beside = inner.draws.unit(14);
            let mut steps: Vec<i32> =
                errors[..period].iter().map(|error| libm::round(error / 0.5 - beside) as i32).collect();
            for (error, step) in errors.iter().zip(&steps) {
                assert!((error / 0.5 - beside - f64::from(*step)).abs() < 1e-9);
            }
            for (sample, error) in errors.iter().enumerate() {
                assert!((error - errors[sample % period]).abs() < 1e-9, "it has that period");
            }
            steps.sort_unstable();
            let (low, high) = (-(delay as i32), delay as i32 - 1);
            let mut expected = vec![low, high];
            expected.extend((low + 1..high).flat_map(|step| [step, step]));
            expected.sort_unstable();
            assert_eq!(steps, expected, "delay {delay}");
        }
    }

    #[test]
    fn a_frame_depends_on_nothing_but_its_number() {
        let config = InnerLoopConfig { doppler: 20.0, ..InnerLoopConfig::default() };
        let all: Vec<Vec<f64>> =
            (0..50).scan(inner(&config), |inner, n| Some(inner.errors(n).to_vec())).collect();
        let mut other = inner(&config);
        for number in [40, 3, 49, 3, 0] {
            assert_eq!(other.errors(number), all[number as usize]);
        }
    }

    #[test]
    fn fading_is_followed_the_less_the_faster_it_is() {
        // Standard deviation of the error: at 2 Hz close to that of the constant channel, sqrt((1.5^2 + 2 0.5^2) / 3 +
        // 1/12) = 1.0 dB. With fading far faster than the loop it is that of the power itself, pi / sqrt(6) x 10 / ln
        // 10 = 5.6 dB, plus the oscillation.
        let deviation = |doppler| {
            let mut inner = inner(&InnerLoopConfig { doppler, ..InnerLoopConfig::default() });
            let all: Vec<f64> = (0..2000).flat_map(|number| inner.errors(number).to_vec()).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            libm::sqrt(all.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / all.len() as f64)
        };
        let (slow, middle, fast) = (deviation(2.0), deviation(30.0), deviation(700.0));
        assert!((1.0..1.4).contains(&slow), "{slow}");
        assert!(slow < middle && middle < fast, "{middle} {fast}");
        assert!(fast > 5.6, "{fast}");
    }
}
