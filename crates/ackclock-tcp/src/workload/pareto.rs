//! # Bounded Pareto distribution
//!
//! ## Source
//! CR04 Table I: sizes of web objects, by mean, shape and maximum.
//!
//! ## What it does
//! The distribution function is (1 - (k/x)^a) / (1 - (k/H)^a) between the minimum k and the maximum H. Publications
//! state the mean, from which the minimum is computed. With r = k/H the mean is H a/(a-1) (r - r^a)/(1 - r^a), and H r
//! ln(1/r)/(1-r) if a = 1. The mean grows with r for every a.
//!
//! ## Differences from the source
//! No deviations from CR04 are known.
//!
//! ## Validation
//! Unit tests check the minimum for mean 12, shape 1.2, maximum 200, and the mean and distribution function of samples.

use ackclock_core::Stream;

/// Power-law distribution between a minimum and a maximum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoundedPareto {
    shape: f64,
    min: f64,
    max: f64,
}

/// Number of bisection steps, enough to use all digits of a double.
const HALVINGS: u32 = 100;

impl BoundedPareto {
    /// Creates the distribution with the given mean, shape and maximum, where `0 < mean <= max` and `shape > 0`.
    pub fn by_mean(mean: f64, shape: f64, max: f64) -> Self {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if mean_over_max(middle, shape) < mean / max {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self { shape, min: high * max, max }
    }

    /// Smallest value of the distribution.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// Draws a random value, which uses one number of `stream`.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        let power = |base: f64| libm::pow(base, -self.shape);
        let (least, most) = (power(self.min), power(self.max));
        let x = libm::pow(least - stream.unit() * (least - most), -1.0 / self.shape);
        x.clamp(self.min, self.max)
    }
}

/// Mean as a fraction of the maximum. `r` is the minimum as a fraction of the maximum.
fn mean_over_max(r: f64, shape: f64) -> f64 {
    // At shape 1 the quotient is 0/0. For shapes this close to 1, the limit is exact to more digits than the quotient.
    if (shape - 1.0).abs() < 1e-6 {
        return r * -libm::log(r) / (1.0 - r);
    }
    let power = libm::pow(r, shape);
    shape / (shape - 1.0) * (r - power) / (1.0 - power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Streams;

    #[test]
    fn the_minimum_follows_from_the_mean() {
        // Distribution of Table I of CR04. The sanity value printed for the solution is 3.591.
        let sizes = BoundedPareto::by_mean(12.0, 1.2, 200.0);
        assert!((sizes.min() - 3.591).abs() < 5e-4, "{}", sizes.min());
        // Hand computation at shape 1, r = 0.1: 0.1 ln(10) / 0.9 = 0.25584.
        let even = BoundedPareto::by_mean(25.584_278_811, 1.0, 100.0);
        assert!((even.min() - 10.0).abs() < 1e-6, "{}", even.min());
        // If mean and maximum are equal, there is only one value.
        assert!((BoundedPareto::by_mean(7.0, 2.0, 7.0).min() - 7.0).abs() < 1e-6);
    }

    #[test]
    fn samples_have_the_mean_and_the_distribution_of_the_law() {
        let sizes = BoundedPareto::by_mean(12.0, 1.2, 200.0);
        let mut stream = Streams::new(1, 0).stream("sizes");
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| sizes.draw(&mut stream)).collect();
        assert!(values.iter().all(|&x| (sizes.min()..=200.0).contains(&x)));
        let mean = values.iter().sum::<f64>() / f64::from(n);
        // The second moment is a k^a/(1 - (k/H)^a) (H^0.8 - k^0.8)/0.8 = 463, the deviation 18: 5 x 18/sqrt(2e5) = 0.2.
        assert!((mean - 12.0).abs() < 0.2, "{mean}");
        // (1 - (3.591/15)^1.2) / (1 - (3.591/200)^1.2) = 0.827; five deviations are 5 sqrt(0.827 x 0.173/2e5) = 0.0042.
        let small = values.iter().filter(|&&x| x <= 15.0).count() as f64 / f64::from(n);
        assert!((small - 0.827).abs() < 0.0047, "{small}");
    }
}
