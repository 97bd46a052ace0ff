//! Mean and confidence interval over runs.

/// The mean of some runs and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Mean.
    pub(crate) mean: f64,
    /// Half the width of the 95 % confidence interval by Student's law; `None` for a single value.
    pub(crate) half_interval: Option<f64>,
}

impl Estimate {
    /// The estimate from one value a run; `None` where there is no value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        // About the first value, so that equal values have no interval at all.
        let first = values.first()?;
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / count;
        match values.len() {
            1 => Some(Self { mean, half_interval: None }),
            n => {
                let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
                let standard_error = libm::sqrt(squares / (count - 1.0) / count);
                Some(Self { mean, half_interval: Some(student_t_975(n - 1) * standard_error) })
            }
        }
    }
}

/// The 97.5 % quantile of Student's law with `freedom` >= 1 degrees of freedom.
///
/// With theta = atan(t / sqrt(freedom)) the probability of |T| < t is a finite trigonometric sum for whole degrees of
/// freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4), which bisection inverts.
fn student_t_975(freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::tan(low) * libm::sqrt(freedom as f64)
}

/// The probability of |T| < t in terms of theta.
fn two_sided(theta: f64, freedom: usize) -> f64 {
    let (sine, cosine) = (libm::sin(theta), libm::cos(theta));
    let odd = freedom % 2 == 1;
    // Odd: cos + 2/3 cos^3 + 2*4/(3*5) cos^5 ...; even: 1 + 1/2 cos^2 + 1*3/(2*4) cos^4 ...; both to cos^(freedom - 2).
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
        // Abramowitz and Stegun, table 26.10 (two-sided 0.95).
        for (freedom, t) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)]
        {
            assert!((student_t_975(freedom) - t).abs() < 6e-4, "{freedom}: {}", student_t_975(freedom));
        }
    }

    #[test]
    fn the_interval_of_three_runs_is_the_one_by_hand() {
        // Mean 2, variance 1, standard error 1 / sqrt 3; t(2) = 4.303.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(estimate.mean, 2.0);
        assert!((estimate.half_interval.unwrap() - 4.3027 / 3f64.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn equal_runs_have_an_interval_of_nothing() {
        // The sum of three of these is not three times one of them in floating point.
        let value = 398.458_88;
        let estimate = Estimate::of(&[value; 3]).unwrap();
        assert_eq!((estimate.mean, estimate.half_interval), (value, Some(0.0)));
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_mean() {
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half_interval: None }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
