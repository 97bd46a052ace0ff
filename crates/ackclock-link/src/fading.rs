//! # Rayleigh fading by sums of sinusoids
//!
//! ## Source
//! Source: Clarke's model of many reflected waves. Zheng and Xiao, "Simulation models with correct statistical
//! properties for Rayleigh fading channels", IEEE Transactions on Communications 51(6), 2003; Jakes, "Microwave Mobile
//! Communications", 1974; both as restated in `links.md` section 4.1.
//!
//! ## What it does
//! The complex gain g is a sum of 16 oscillators, each with separate weights in the real and the imaginary part:
//! - *Rayleigh* (Zheng and Xiao): frequencies fD cos((2 pi n - pi + theta) / 4M), weights sqrt(2/M) cos psi and
//!   sqrt(2/M) sin psi, with theta and all phases drawn from the channel's random stream.
//! - *Jakes*: 15 oscillators at fD cos(2 pi n / N), N = 62, and one oscillator at fD. The pattern is deterministic;
//!   channels differ only in their start within the pattern, which is drawn at random.
//!
//! The power of the channel is |g|^2 and has mean 1. From slot to slot the oscillators advance by cos((k+1) d) = 2 cos
//! d cos(k d) - cos((k-1) d). Each block of 128 slots starts from newly calculated cosines, so the power of a slot
//! depends only on the slot's number: idle times are skipped, and the order of calls does not change a single bit.
//!
//! ## Differences from the source
//! `links.md` divides Jakes' sum by sqrt(N), which gives a mean power of 1/2; this implementation divides by sqrt(N/2),
//! which gives 1.
//!
//! ## Validation
//! Unit tests check the mean power, the exponential distribution, the autocorrelation J0(2 pi fD tau) and the level
//! crossing rate sqrt(2 pi) fD rho exp(-rho^2).

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2, TAU};

use ackclock_core::Stream;

/// Number of oscillators of a channel.
const OSCILLATORS: usize = 16;
/// Number of slots after which the oscillators are recalculated from cosines.
const BLOCK: u64 = 128;
/// Number of partial sums, which a processor adds in parallel.
const LANES: usize = 4;
/// Length of the part of Jakes' pattern from which the start of a channel is drawn, seconds.
const PATTERN: f64 = 1e4;

type Bank = [f64; OSCILLATORS];

/// Power of one fading channel in each slot.
#[derive(Clone, Debug)]
pub struct Fading {
    /// Weight of each oscillator in the real part.
    re: Bank,
    /// Weight of each oscillator in the imaginary part.
    im: Bank,
    /// Phase advance of each oscillator per slot, turns.
    turns: Bank,
    /// Initial phase of each oscillator, turns.
    phase: Bank,
    /// Twice the cosine of each oscillator's phase advance per slot.
    step: Bank,
    /// Values of the oscillators at the current slot.
    now: Bank,
    /// Values of the oscillators at the previous slot.
    before: Bank,
    slot: u64,
    /// Doppler frequency of each oscillator for a maximum Doppler frequency of 1 Hz, turns per slot.
    shape: Bank,
}

impl Fading {
    /// Creates Rayleigh fading after Zheng and Xiao: `doppler` is the maximum Doppler frequency in Hz, `slots` the
    /// number of slots per second.
    pub fn rayleigh(doppler: f64, slots: f64, stream: &mut Stream) -> Self {
        let count = OSCILLATORS as f64;
        let theta = PI * (2.0 * stream.unit() - 1.0);
        let amplitude = libm::sqrt(2.0 / count);
        let mut this = Self::still();
        for n in 0..OSCILLATORS {
            let alpha = (TAU * (n + 1) as f64 - PI + theta) / (4.0 * count);
            let psi = TAU * stream.unit();
            this.phase[n] = stream.unit();
            this.turns[n] = doppler / slots * libm::cos(alpha);
            this.shape[n] = libm::cos(alpha) / slots;
            this.re[n] = amplitude * libm::cos(psi);
            this.im[n] = amplitude * libm::sin(psi);
        }
        this.begun()
    }

    /// Creates Jakes' fading, which starts at a random point of its pattern.
    pub fn jakes(doppler: f64, slots: f64, stream: &mut Stream) -> Self {
        let waves = OSCILLATORS - 1;
        let count = (4 * waves + 2) as f64;
        let scale = 1.0 / libm::sqrt(count / 2.0);
        let begins = PATTERN * stream.unit();
        let mut this = Self::still();
        for n in 0..OSCILLATORS {
            let (cosine, (re, im)) = if n < waves {
                let beta = PI * (n + 1) as f64 / waves as f64;
                let cosine = libm::cos(TAU * (n + 1) as f64 / count);
                (cosine, (2.0 * libm::cos(beta), 2.0 * libm::sin(beta)))
            } else {
                (1.0, (SQRT_2 * FRAC_1_SQRT_2, SQRT_2 * FRAC_1_SQRT_2))
            };
            let frequency = doppler * cosine;
            this.phase[n] = fraction(frequency * begins);
            this.turns[n] = frequency / slots;
            this.shape[n] = cosine / slots;
            (this.re[n], this.im[n]) = (scale * re, scale * im);
        }
        this.begun()
    }

    /// |g|^2 in `slot`, with mean 1.
    #[inline]
    pub fn power(&mut self, slot: u64) -> f64 {
        if slot < self.slot || slot / BLOCK != self.slot / BLOCK {
            self.anchor(slot / BLOCK * BLOCK);
        }
        while self.slot < slot {
            for n in 0..OSCILLATORS {
                let next = self.step[n] * self.now[n] - self.before[n];
                self.before[n] = self.now[n];
                self.now[n] = next;
            }
            self.slot += 1;
        }
        let (re, im) = (dot(&self.re, &self.now), dot(&self.im, &self.now));
        re * re + im * im
    }

    /// Changes the maximum Doppler frequency to `doppler` Hz from the slot `first` on. The oscillators continue without
    /// a jump.
    pub fn set_doppler(&mut self, doppler: f64, first: u64) {
        for n in 0..OSCILLATORS {
            let turns = doppler * self.shape[n];
            self.phase[n] = fraction((self.turns[n] - turns) * first as f64 + self.phase[n]);
            self.turns[n] = turns;
            self.step[n] = 2.0 * libm::cos(TAU * turns);
        }
        self.anchor(first / BLOCK * BLOCK);
    }

    /// Creates a channel whose oscillators all stand still.
    const fn still() -> Self {
        let zero = [0.0; OSCILLATORS];
        Self {
            re: zero,
            im: zero,
            turns: zero,
            phase: zero,
            step: zero,
            now: zero,
            before: zero,
            slot: 0,
            shape: zero,
        }
    }

    fn begun(mut self) -> Self {
        for n in 0..OSCILLATORS {
            self.step[n] = 2.0 * libm::cos(TAU * self.turns[n]);
        }
        self.anchor(0);
        self
    }

    /// Calculates the oscillators at a slot directly from cosines.
    fn anchor(&mut self, slot: u64) {
        for n in 0..OSCILLATORS {
            let turn = self.turns[n] * slot as f64 + self.phase[n];
            self.now[n] = libm::cos(TAU * fraction(turn));
            self.before[n] = libm::cos(TAU * fraction(turn - self.turns[n]));
        }
        self.slot = slot;
    }
}

/// Fractional part of a number, so that cosines are calculated for small angles only.
fn fraction(value: f64) -> f64 {
    value - libm::floor(value)
}

/// Scalar product of two banks, summed in a fixed order.
#[inline]
fn dot(a: &Bank, b: &Bank) -> f64 {
    let mut sums = [0.0; LANES];
    for group in 0..OSCILLATORS / LANES {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let n = group * LANES + lane;
            *sum += a[n] * b[n];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Streams;

    const SLOTS: f64 = 600.0;
    type Build = fn(f64, f64, &mut Stream) -> Fading;
    const MODELS: [(&str, Build); 2] = [("rayleigh", Fading::rayleigh), ("jakes", Fading::jakes)];

    /// Channels of 30 Hz, with different seeds.
    fn channels(build: Build, count: u64) -> impl Iterator<Item = Fading> {
        (0..count).map(move |run| build(30.0, SLOTS, &mut Streams::new(1, run).stream("fading")))
    }

    /// Complex gain, for correlations.
    fn gain(fading: &mut Fading, slot: u64) -> (f64, f64) {
        fading.power(slot);
        (dot(&fading.re, &fading.now), dot(&fading.im, &fading.now))
    }

    #[test]
    fn the_power_has_mean_one_and_is_exponential() {
        for (name, build) in MODELS {
            // 200 channels of 6000 slots, which are some 300 fades each: the error of a share is below 0.5/sqrt(6e4) = 0.2 %;
            // a sum of 16 sinusoids falls short of the exponential by about 1/16 in its fourth moment.
            let mut powers = Vec::new();
            for mut fading in channels(build, 200) {
                powers.extend((0..6000).map(|slot| fading.power(slot)));
            }
            let count = powers.len() as f64;
            let mean = powers.iter().sum::<f64>() / count;
            assert!((mean - 1.0).abs() < 0.01, "{name}: {mean}");
            for level in [0.01, 0.1, 0.5, 1.0, 2.0, 3.0] {
                let share = powers.iter().filter(|&&power| power < level).count() as f64 / count;
                let expected = 1.0 - libm::exp(-level);
                assert!((share - expected).abs() < 0.012, "{name}: P(power < {level}) = {share}");
            }
        }
    }

    #[test]
    fn the_autocorrelation_is_a_bessel_function() {
        for (name, build) in MODELS {
            // Re E[g(t) g*(t + tau)] = J0(2 pi fD tau); for Jakes only the sum of real and imaginary part has this
            // autocorrelation. At 30 Hz and 600 slots per second 2 pi fD tau is 0.314 per slot: zeros near 7.7 and
            // 17.6 slots.
            for lag in [0u64, 2, 4, 8, 12, 18, 25] {
                let (mut sum, mut count) = (0.0, 0.0);
                for mut fading in channels(build, 400) {
                    for start in (0..4000).step_by(40) {
                        let (re, im) = gain(&mut fading, start);
                        let (later_re, later_im) = gain(&mut fading, start + lag);
                        sum += re * later_re + im * later_im;
                        count += 1.0;
                    }
                }
                let expected = libm::j0(TAU * 30.0 * lag as f64 / SLOTS);
                // sd of a product is about 0.7, of 400 channels with some 30 fades each 0.7/sqrt(400·30) = 0.006; four of them
                assert!((sum / count - expected).abs() < 0.025, "{name} lag {lag}: {}", sum / count);
            }
        }
    }

    #[test]
    fn levels_are_crossed_as_often_as_rice_says() {
        for (name, build) in MODELS {
            for rho in [0.3f64, 0.7, 1.0] {
                let (mut crossings, slots) = (0u32, 6000u64);
                // At 30 Hz 600 slots a second miss few crossings; 3 Hz would miss none and give few to count.
                for mut fading in
                    (0..150u64).map(|run| build(10.0, SLOTS, &mut Streams::new(2, run).stream("fading")))
                {
                    let mut above = fading.power(0) >= rho * rho;
                    for slot in 1..slots {
                        let now = fading.power(slot) >= rho * rho;
                        crossings += u32::from(now && !above);
                        above = now;
                    }
                }
                let per_second = f64::from(crossings) / (150.0 * slots as f64 / SLOTS);
                let expected = libm::sqrt(TAU) * 10.0 * rho * libm::exp(-rho * rho);
                // 10 000 crossings and more: 1 %; slots of 1/60 of a turn miss short fades, 2 % at the low level.
                assert!(
                    (per_second / expected - 1.0).abs() < 0.05,
                    "{name} at {rho}: {per_second} of {expected}"
                );
            }
        }
    }

    #[test]
    fn the_power_of_a_slot_depends_on_its_number_alone() {
        for (name, build) in MODELS {
            let fresh = || build(30.0, SLOTS, &mut Streams::new(1, 0).stream("fading"));
            let mut every = fresh();
            let all: Vec<f64> = (0..1000).map(|slot| every.power(slot)).collect();
            let mut some = fresh();
            for slot in [3u64, 3, 127, 128, 129, 500, 999, 4] {
                assert_eq!(some.power(slot), all[slot as usize], "{name} {slot}");
            }
        }
    }

    #[test]
    fn another_doppler_frequency_continues_without_a_jump_and_is_that_frequency() {
        for (name, build) in MODELS {
            for first in [1u64, 128, 1000, 1_000_000] {
                let (mut changed, mut before) =
                    (channels(build, 1).next().unwrap(), channels(build, 1).next().unwrap());
                changed.set_doppler(90.0, first);
                let [here, there] = [changed.power(first), before.power(first)];
                assert!((here - there).abs() < 1e-6, "{name} at {first}: {here} and {there}");
                // Three times the frequency passes through the same powers in a third of the time.
                let [here, there] = [changed.power(first + 10), before.power(first + 30)];
                assert!((here - there).abs() < 1e-6, "{name} after {first}: {here} and {there}");
            }
        }
    }

    #[test]
    fn blocks_join_without_a_seam() {
        for (name, build) in MODELS {
            let mut fading = build(30.0, SLOTS, &mut Streams::new(1, 0).stream("fading"));
            fading.power(BLOCK - 1);
            let stepped: Bank = std::array::from_fn(|n| fading.step[n] * fading.now[n] - fading.before[n]);
            fading.power(BLOCK);
            for (a, b) in stepped.iter().zip(fading.now) {
                // Rounding of 128 steps grows with the square of their number: 1e-16 x 128^2 = 1.6e-12.
                assert!((a - b).abs() < 1e-11, "{name}: {a} against {b}");
            }
        }
    }
}
