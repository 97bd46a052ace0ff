//! Streams of random numbers, selected by name.
//!
//! Each random process has a separate stream, selected by name (`"down/rate"`). Adding a node or a random draw does not
//! change the random numbers of existing nodes. The generator is Xoshiro256++ (Blackman and Vigna 2021), which gives
//! identical numbers on every machine.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::law::normal;

/// All random streams of one run.
#[derive(Clone, Debug)]
pub struct Streams {
    seed: u64,
    run: u64,
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// Random numbers selected by index, in any order. The generator is SplitMix64, whose state is a counter.
#[derive(Clone, Copy, Debug)]
pub struct Indexed(u64);

impl Streams {
    /// Creates the streams of run number `run` under `seed`.
    pub const fn new(seed: u64, run: u64) -> Self {
        Self { seed, run }
    }

    /// Returns the stream called `name`. Equal seed, run number and name give equal random numbers.
    pub fn stream(&self, name: &str) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(self.state(name)))
    }

    /// Returns separate streams for one part of the run. Stream names may be reused in different parts.
    #[must_use]
    pub fn within(&self, part: &str) -> Self {
        Self { seed: self.state(part), run: self.run }
    }

    fn state(&self, name: &str) -> u64 {
        name.bytes().fold(mix(self.seed ^ mix(self.run)), |state, byte| mix(state ^ u64::from(byte)))
    }
}

impl Stream {
    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number uniformly from (0, 1), never 0 and never 1, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// Creates random numbers selected by index, with a seed drawn from this stream.
    pub fn indexed(&mut self) -> Indexed {
        Indexed(self.bits())
    }

    /// Draws a number from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        normal::quantile(self.unit())
    }

    /// Draws a random boolean that is true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

impl Indexed {
    /// Returns the random number with this index, uniform in (0, 1), never 0 and never 1.
    pub const fn unit(self, index: u64) -> f64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        unit(mix(self.0.wrapping_add(index.wrapping_mul(GOLDEN))))
    }
}

const fn unit(bits: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    ((bits >> 11) as f64 + 0.5) * STEP
}

/// Mixes a value with the finaliser of SplitMix64 (Steele, Lea and Flood 2014) and its increment. The mixing function
/// is a bijection, and a change of one input bit changes about half of the output bits.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_repeat_and_different_names_do_not() {
        let draw = |seed, run, name| Streams::new(seed, run).stream(name).bits();
        let within = |part| Streams::new(1, 0).within(part).stream("down/rate").bits();
        assert_eq!(draw(1, 0, "down/rate"), draw(1, 0, "down/rate"));
        assert_eq!(within("flow 1"), within("flow 1"));
        let all = [
            draw(1, 0, "down/rate"),
            draw(1, 0, "down/delay"),
            draw(1, 1, "down/rate"),
            draw(2, 0, "down/rate"),
            within("flow 1"),
            within("flow 2"),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[i + 1..].contains(a));
        }
    }

    #[test]
    fn the_numbers_are_the_same_on_every_machine() {
        let mut stream = Streams::new(1, 0).stream("down/rate");
        let first = [stream.bits(), stream.bits()];
        assert_eq!(first, FROZEN, "a change here changes every result ever published");
    }

    /// First random numbers of the present generator, to detect changes of the generator.
    const FROZEN: [u64; 2] = [8400619912123483989, 4523168854380717518];

    #[test]
    fn indexed_numbers_are_uniform_and_independent_of_their_neighbours() {
        let numbers = Streams::new(3, 0).stream("x").indexed();
        let n = 100_000;
        let (mut mean, mut product) = (0.0, 0.0);
        for index in 0..n {
            mean += numbers.unit(index) / n as f64;
            product += numbers.unit(index) * numbers.unit(index + 1) / n as f64;
        }
        // The bounds are five standard errors: 0.289 / sqrt(1e5) = 0.0009 for the mean, and sqrt(1/9 - 1/16 + 1/24) /
        // sqrt(1e5) = 0.00095 for the product.
        assert!((mean - 0.5).abs() < 0.0046 && (product - 0.25).abs() < 0.0048, "{mean} {product}");
    }

    #[test]
    fn unit_is_uniform_with_mean_one_half() {
        let mut stream = Streams::new(3, 0).stream("x");
        let n = 100_000;
        let mean = (0..n).map(|_| stream.unit()).sum::<f64>() / f64::from(n);
        // The bound is five standard errors of 0.289 / sqrt(1e5) = 0.0009.
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
    }
}
