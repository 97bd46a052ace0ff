//! Mean and confidence interval of a number over repeated runs.

use std::fmt;
use std::str::FromStr;

/// Confidence level: probability that an interval contains the true mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Confidence(f64);

impl Default for Confidence {
    fn default() -> Self {
        Self(0.95)
    }
}

impl FromStr for Confidence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => text.parse(),
        };
        match number {
            Ok(level) if (0.01..=0.9999).contains(&level) => Ok(Self(level)),
            _ => Err("is not between 0.01 and 0.9999, as 0.9 or 90%".to_owned()),
        }
    }
}

impl fmt::Display for Confidence {
    /// Writes the confidence level in percent, such as `95`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A confidence level has at most four decimals.
        write!(f, "{}", (self.0 * 1e4).round() / 1e2)
    }
}

impl Confidence {
    /// Returns the confidence level as a number between 0 and 1.
    pub(crate) const fn level(self) -> f64 {
        self.0
    }
}

/// Returns the mean of the values, or `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    // The sum is relative to the first value, so that the mean of equal values is exactly that value.
    let first = values.first()?;
    Some(first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64)
}

/// Mean of a number over some runs, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Mean of the number over the runs.
    pub(crate) mean: f64,
    /// Half the width of the confidence interval (Student's t); `None` for a single run and for equal values, whose
    /// variance is unknown: an interval of width zero would be wrong.
    pub(crate) half_interval: Option<f64>,
}

impl Estimate {
    /// Computes the estimate from one value per run. Returns `None` if there are no values.
    pub(crate) fn of(values: &[f64], confidence: Confidence) -> Option<Self> {
        let count = values.len() as f64;
        let mean = mean(values)?;
        match values.len() {
            1 => Some(Self { mean, half_interval: None }),
            n => {
                let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
                let half = student_t(n - 1, confidence) * libm::sqrt(squares / (count - 1.0) / count);
                Some(Self { mean, half_interval: Some(half).filter(|half| *half > 0.0) })
            }
        }
    }
}

impl Estimate {
    /// Widens the interval of several runs by the resolution of their values, a fraction of the mean.
    pub(crate) fn resolved_to(self, resolution: f64) -> Self {
        Self { half_interval: Some(self.half_interval.unwrap_or(0.0) + resolution * self.mean.abs()), ..self }
    }
}

/// Returns the value t for which |T| < t has the probability `confidence`. T follows Student's t distribution with
/// `freedom` >= 1 degrees of freedom.
///
/// With theta = atan(t / sqrt(freedom)), the probability of |T| < t is a finite trigonometric sum for whole degrees of
/// freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4). The function inverts the trigonometric sum by bisection.
fn student_t(freedom: usize, confidence: Confidence) -> f64 {
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) < confidence.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::tan(low) * libm::sqrt(freedom as f64)
}

/// Probability of |T| < t as a function of theta, for Student's t distribution.
fn two_sided(theta: f64, freedom: usize) -> f64 {
    let (sine, cosine) = (libm::sin(theta), libm::cos(theta));
    let odd = freedom % 2 == 1;
    // Odd `freedom`: cos + 2/3 cos^3 + 2*4/(3*5) cos^5 ...; even `freedom`: 1 + 1/2 cos^2 + 1*3/(2*4) cos^4 ...; both
    // sums end at cos^(freedom - 2).
    let (mut term, mut sum, mut power) = (if odd { cosine } else { 1.0 }, 0.0, usize::from(odd));
    while power + 2 <= freedom {
        sum += term;
        power += 2;
        term *= (power - 1) as f64 / power as f64 * cosine * cosine;
    }
    if odd { std::f64::consts::FRAC_2_PI * (theta + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        // Quantiles for 0.95 and 0.9, two-sided, from Abramowitz and Stegun, table 26.10.
        for (freedom, at_95, at_90) in [
            (1, 12.706, 6.314),
            (2, 4.303, 2.920),
            (3, 3.182, 2.353),
            (4, 2.776, 2.132),
            (9, 2.262, 1.833),
            (19, 2.093, 1.729),
            (30, 2.042, 1.697),
            (120, 1.980, 1.658),
        ] {
            for (level, printed) in [("0.95", at_95), ("90%", at_90)] {
                let t = student_t(freedom, level.parse().unwrap());
                assert!((t - printed).abs() < 6e-4, "{freedom} {level}: {t}");
            }
        }
    }

    #[test]
    fn a_confidence_is_a_share_or_percent() {
        let shown = |text: &str| text.parse::<Confidence>().map(|level| level.to_string());
        assert_eq!(shown("0.9"), Ok("90".to_owned()));
        assert_eq!(shown("99.5%"), Ok("99.5".to_owned()));
        for wrong in ["0", "1", "95", "-0.9", "nan", "high", "100%", ""] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_interval_of_three_runs_is_the_one_by_hand() {
        // The mean is 2, the variance is 1, the standard error is 1 / sqrt 3, and t(2) is 4.303.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0], Confidence::default()).unwrap();
        assert_eq!(estimate.mean, 2.0);
        assert!((estimate.half_interval.unwrap() - 4.3027 / 3f64.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn equal_values_have_no_interval_but_that_of_their_resolution() {
        // In floating point, the sum of three such values differs from three times the value.
        let value = 398.458_88;
        let estimate = Estimate::of(&[value; 3], Confidence::default()).unwrap();
        assert_eq!((estimate.mean, estimate.half_interval), (value, None));
        assert_eq!(estimate.resolved_to(0.5).half_interval, Some(value / 2.0));
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_mean() {
        assert_eq!(
            Estimate::of(&[7.0], Confidence::default()),
            Some(Estimate { mean: 7.0, half_interval: None })
        );
        assert_eq!(Estimate::of(&[], Confidence::default()), None);
    }
}
