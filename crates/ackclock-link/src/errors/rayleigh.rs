//! # Rayleigh errors
//!
//! ## Source
//! Source: Zorzi, Rao and Milstein, "ARQ error control for fading mobile radio channels", IEEE Transactions on
//! Vehicular Technology 46(2), 1997, and its use for TCP by Chockalingam and Zorzi, both as restated in `links.md`
//! section 8.
//!
//! ## What it does
//! A block is lost if the power of the Rayleigh channel is below a threshold of 1/F of the mean power. The sequence of
//! losses is then close to a Markov chain. The correlation of the channel from block to block is rho = |J0(2 pi fD T)|,
//! and the chain has these parameters:
//! - F = -1 / ln(1 - e), where e is the share of blocks lost;
//! - P(bad after good) q = Q(th, rho th) - Q(rho th, th), where th = sqrt(2 / (F (1 - rho^2))) and Q is the Marcum
//!   function of order 1;
//! - P(good after bad) r = q (1 - e) / e.
//!
//! The difference of the two Q is numerically unstable for rho near 1. With Simon's integrals for both Q (IEEE
//! Communications Letters 2(2), 1998) the difference becomes one integral of a positive function over a half turn: q =
//! 1/pi int (1 - exp(-(1 - rho^2) / (F |1 - rho e^iu|^2))) du. The substitution u = 2 atan(kappa tan(w/2)), with a
//! kappa that spreads the function evenly over w, gives full double precision with a sum over 64 points.
//!
//! ## Differences from the source
//! If J0 is negative, its absolute value is used, as in `links.md`. The Markov chain is the one given in `links.md`,
//! not a fit to a simulated channel.
//!
//! ## Validation
//! Unit tests compare the chain with the table of `links.md` section 8, with the Marcum function as a sum over a
//! Poisson number of chi-square terms, and with a threshold on Clarke's fading channel.

use std::f64::consts::{PI, TAU};

use ackclock_core::{Config, ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bursts::{BurstState, Bursts, Chain};
use super::{AnyErrorProcess, ErrorConfig, ErrorContext, ErrorProcess, check_interval};
use crate::{Fate, Files, Loss};

/// Bursts of losses on a Rayleigh fading channel: a block is lost while the power is below a threshold. The losses form
/// a Markov chain, given by the frame error rate and the normalised Doppler frequency.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RayleighConfig {
    /// Frame error rate: share of blocks that are lost.
    pub fer: Loss,
    /// Normalised Doppler frequency: the maximum Doppler frequency times `interval`. Lower values give longer bursts
    /// and gaps.
    pub doppler: f64,
    /// Duration of a block, which is lost or arrives as a whole; default: the TTI of `umts-rlc`, the slot of a cell,
    /// 10ms for any other link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

impl Default for RayleighConfig {
    /// Returns the channel of AC06, on which a burst lasts 13.7 blocks on average.
    fn default() -> Self {
        Self { fer: Loss(0.1), doppler: 0.01, interval: None }
    }
}

impl Config for RayleighConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if !(1e-6..=1e3).contains(&self.doppler) {
            return Err(ConfigError::new(
                "doppler",
                format!(
                    "{} is not from 0.000001 to 1000, the largest Doppler frequency times `interval`",
                    self.doppler
                ),
            ));
        }
        check_interval(self.interval)
    }
}

impl ErrorConfig for RayleighConfig {
    fn share(&self, _: &dyn Files) -> Result<f64, ConfigError> {
        Ok(self.fer.probability())
    }

    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        let interval = self.interval.unwrap_or(context.block);
        let stream = context.streams.stream(context.name);
        let chain = chain(self.fer.probability(), self.doppler);
        Ok(AnyErrorProcess::Other(Box::new(Rayleigh(Bursts::new(chain, interval, stream)))))
    }
}

/// Error process that loses everything sent in a bad interval.
struct Rayleigh(Bursts);

impl ErrorProcess for Rayleigh {
    fn fate(&mut self, at: Time) -> Fate {
        match self.0.state(at) {
            BurstState::Good => Fate::Arrives,
            BurstState::Bad => Fate::Lost,
        }
    }
}

/// Returns the chain of a channel that loses the share `fer` of its blocks.
fn chain(fer: f64, doppler: f64) -> Chain {
    if fer == 0.0 || fer == 1.0 {
        return Chain { to_bad: fer, to_good: 1.0 - fer };
    }
    let rho = libm::fabs(libm::j0(TAU * doppler));
    let to_bad = to_bad(-libm::log1p(-fer), rho);
    Chain { to_bad, to_good: to_bad * (1.0 - fer) / fer }
}

/// Number of points of the numerical integration.
const POINTS: u32 = 64;

/// P(bad after good) for a threshold of `level` = 1/F of the mean power and a correlation `rho` between successive
/// blocks.
fn to_bad(level: f64, rho: f64) -> f64 {
    let gap = 1.0 - rho;
    let spread = gap * (1.0 + rho) * level;
    let kappa = libm::sqrt((gap * gap + spread) / (4.0 * rho)).min(1.0);
    let at = |point: u32| {
        let tan = libm::tan(PI * (f64::from(point) + 0.5) / f64::from(2 * POINTS));
        let bent = (kappa * tan) * (kappa * tan);
        // |1 - rho e^iu|^2 = (1 - rho)^2 + 4 rho sin^2(u/2)
        let distance = gap * gap + 4.0 * rho * bent / (1.0 + bent);
        -libm::expm1(-spread / distance) * kappa * (1.0 + tan * tan) / (1.0 + bent)
    };
    (0..POINTS).map(at).sum::<f64>() / f64::from(POINTS)
}

#[cfg(test)]
mod tests {
    use ackclock_core::Streams;

    use super::*;
    use crate::fading::Fading;

    #[test]
    fn the_chain_is_that_of_the_table() {
        // links.md section 8: FER, fD T, rho, P(bad after bad), mean burst, mean gap.
        for (fer, doppler, rho, stays_bad, burst, gap) in [
            (0.1, 0.01, 0.999013, 0.9269, 13.67, 123.0),
            (0.1, 0.02, 0.996056, 0.8542, 6.86, 61.7),
            (0.1, 0.08, 0.937825, 0.4632, 1.86, 16.8),
            (0.1, 0.1, 0.903713, 0.3702, 1.59, 14.3),
            (0.01, 0.01, 0.999013, 0.7543, 4.07, 403.0),
        ] {
            let chain = chain(fer, doppler);
            assert!((libm::j0(TAU * doppler) - rho).abs() < 6e-7);
            assert!((1.0 - chain.to_good - stays_bad).abs() < 6e-5, "{fer} {doppler}: {chain:?}");
            assert!((1.0 / chain.to_good - burst).abs() < 0.006, "{fer} {doppler}: {chain:?}");
            assert!((1.0 / chain.to_bad / gap - 1.0).abs() < 0.004, "{fer} {doppler}: {chain:?}");
            assert!((chain.share_bad() - fer).abs() < 1e-12);
        }
    }

    /// Q(a, b): the probability that a chi-square number with 2 + 2 N degrees of freedom, N Poisson of mean a^2/2, is above b^2.
    fn marcum(a: f64, b: f64) -> f64 {
        let (half_a, half_b) = (a * a / 2.0, b * b / 2.0);
        let (mut poisson, mut term) = (libm::exp(-half_a), libm::exp(-half_b));
        let (mut above, mut sum) = (term, poisson * term);
        for n in 1..2000 {
            poisson *= half_a / f64::from(n);
            term *= half_b / f64::from(n);
            above += term;
            sum += poisson * above;
        }
        sum
    }

    #[test]
    fn the_integral_is_the_difference_of_the_marcum_functions() {
        // Q(0, b) = exp(-b^2/2), and a value that SciPy's ncx2.sf gives: Q(1, 2) = 0.26901206.
        assert!((marcum(0.0, 1.5) - libm::exp(-1.125)).abs() < 1e-15);
        assert!((marcum(1.0, 2.0) - 0.269_012_060_035_91).abs() < 1e-12, "{}", marcum(1.0, 2.0));
        for fer in [0.001, 0.01, 0.1, 0.3, 0.6] {
            for doppler in [0.02, 0.05, 0.1, 0.3, 0.38, 0.6] {
                let (level, rho) = (-libm::log1p(-fer), libm::j0(TAU * doppler).abs());
                let th = (2.0 * level / (1.0 - rho * rho)).sqrt();
                let difference = marcum(th, rho * th) - marcum(rho * th, th);
                let got = to_bad(level, rho);
                assert!((got / difference - 1.0).abs() < 1e-9, "{fer} {doppler}: {got} of {difference}");
            }
        }
    }

    #[test]
    fn far_blocks_are_independent_and_near_ones_alike() {
        // The first zero of J0 is at 2.404826.
        let far = chain(0.1, 2.404_825_557_695_773 / TAU);
        assert!((far.to_bad - 0.1).abs() < 1e-9 && (far.to_good - 0.9).abs() < 1e-9, "{far:?}");
        // The power crosses the threshold upwards at a rate of sqrt(2 pi / F) fD exp(-1/F): one burst per block if
        // that is slow.
        let level = -libm::log1p(-0.1);
        let slow = chain(0.1, 1e-5);
        let crossings = (TAU * level).sqrt() * 1e-5 * libm::exp(-level);
        assert!((slow.to_bad * 0.9 / crossings - 1.0).abs() < 1e-3, "{slow:?} {crossings}");
    }

    #[test]
    fn nothing_and_everything_can_be_lost() {
        for (fer, lost) in [(0.0, 0), (1.0, 1000)] {
            let fer = Loss::try_from(fer).unwrap();
            let config = RayleighConfig { fer, ..RayleighConfig::default() };
            let streams = Streams::new(1, 0);
            let context = ErrorContext {
                streams: &streams,
                name: "x",
                files: &crate::NoFiles,
                block: Span::from_millis(1),
            };
            let mut process = config.build(context).unwrap();
            let fates = (0..1000).map(|n| process.fate(Time::ZERO + Span::from_millis(n)));
            assert_eq!(fates.filter(|&fate| fate == Fate::Lost).count(), lost);
        }
    }

    #[test]
    fn a_threshold_on_clarkes_channel_has_bursts_of_the_same_length() {
        // Mean burst and gap at FER 0.1 and fD T = 0.02, over 200 channels of 20 000 blocks: 7 % of them, some 58 000
        // bursts. Bursts of one channel are correlated over about 1/fD; 5 % includes the bias of 16 oscillators.
        let level = -libm::log1p(-0.1);
        let (mut bad, mut bursts, blocks) = (0u32, 0u32, 20_000u64);
        for number in 0..200 {
            let mut fading = Fading::rayleigh(0.02, 1.0, &mut Streams::new(5, number).stream("fading"));
            let mut before = false;
            for block in 0..blocks {
                let below = fading.power(block) < level;
                bad += u32::from(below);
                bursts += u32::from(below && !before);
                before = below;
            }
        }
        let burst = f64::from(bad) / f64::from(bursts);
        let expected = 1.0 / chain(0.1, 0.02).to_good;
        assert!((burst / expected - 1.0).abs() < 0.05, "{burst} of {expected}");
    }
}
