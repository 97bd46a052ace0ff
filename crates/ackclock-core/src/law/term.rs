//! One term of a law: its text, its moments and its inverse distribution function.

use std::fmt;

use super::{Quantity, normal};
use crate::Stream;
use crate::units::{UnitError, split_quantity};

/// Distribution of one term of a law. Parameters are stored as written in the scenario, so that they are printed
/// unchanged.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term<Q> {
    Constant(Q),
    Uniform {
        mean: Q,
        sd: Q,
    },
    Exponential {
        mean: Q,
    },
    Normal {
        mean: Q,
        sd: Q,
    },
    /// Lognormal distribution. `mu` and `sigma` are the mean and standard deviation of the value's logarithm.
    LogNormal {
        mean: Q,
        sd: Q,
        mu: f64,
        sigma: f64,
    },
    /// Poisson distribution. `count` is the mean of the Poisson distribution in units of `unit`.
    Poisson {
        count: f64,
        unit: String,
        steps: Steps,
    },
    Pareto {
        mean: Q,
        shape: f64,
    },
    Table {
        rows: Vec<(Q, f64)>,
        steps: Steps,
    },
}

/// Inverse distribution function of a discrete law.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steps {
    values: Vec<f64>,
    /// Cumulative probability of each value, ending with 1.
    cumulative: Vec<f64>,
}

/// Largest allowed mean of a Poisson law, in units. A Poisson law with the largest mean has some tens of thousands of
/// table entries.
const MAX_POISSON: f64 = 1e6;
const SQRT_3: f64 = 1.732_050_807_568_877_2;

impl<Q: Quantity> Term<Q> {
    pub(super) fn parse(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return text.parse().map(Self::Constant);
        };
        let inside =
            rest.strip_suffix(')').ok_or_else(|| UnitError(format!("`{text}` does not end with `)`")))?;
        let arguments = split(inside, ',')?;
        match (name.trim(), arguments.as_slice()) {
            ("u", [mean, sd]) => Ok(Self::Uniform { mean: mean.trim().parse()?, sd: sd.trim().parse()? }),
            ("e", [mean]) => Ok(Self::Exponential { mean: mean.trim().parse()? }),
            ("n", [mean, sd]) => Ok(Self::Normal { mean: mean.trim().parse()?, sd: sd.trim().parse()? }),
            ("ln", [mean, sd]) => Self::log_normal(mean.trim().parse()?, sd.trim().parse()?),
            ("p", [mean]) => Self::poisson(mean),
            ("pareto", [mean, shape]) => Self::pareto(mean.trim().parse()?, shape.trim()),
            ("table", rows) => Self::table(rows),
            ("u" | "n" | "ln" | "pareto", _) => Err(UnitError(format!("`{text}` needs 2 arguments"))),
            ("e" | "p", _) => Err(UnitError(format!("`{text}` needs 1 argument"))),
            (name, _) => Err(UnitError(format!("unknown law `{name}`"))),
        }
    }

    fn log_normal(mean: Q, sd: Q) -> Result<Self, UnitError> {
        if mean.base() <= 0.0 {
            return Err(UnitError("the mean of a lognormal law is above 0".into()));
        }
        // Moments of the lognormal distribution: E = exp(mu + sigma^2/2), Var = E^2 (exp(sigma^2) - 1)
        let cv = sd.base() / mean.base();
        let variance = libm::log1p(cv * cv);
        let mu = libm::log(mean.base()) - variance / 2.0;
        Ok(Self::LogNormal { mean, sd, mu, sigma: libm::sqrt(variance) })
    }

    fn poisson(mean: &str) -> Result<Self, UnitError> {
        let base = mean.trim().parse::<Q>()?.base();
        let (count, unit) = split_quantity(mean)?;
        if count > MAX_POISSON {
            return Err(UnitError(format!(
                "the mean of a Poisson law is at most {MAX_POISSON} of its units"
            )));
        }
        let scale = if count > 0.0 { base / count } else { 0.0 };
        Ok(Self::Poisson { count, unit: unit.to_owned(), steps: Steps::poisson(count, scale) })
    }

    fn pareto(mean: Q, shape: &str) -> Result<Self, UnitError> {
        match shape.parse::<f64>() {
            Ok(shape) if shape > 1.0 && shape.is_finite() => Ok(Self::Pareto { mean, shape }),
            _ => Err(UnitError(format!(
                "`{shape}`: the shape of a Pareto law is a number above 1, or its mean is infinite"
            ))),
        }
    }

    fn table(rows: &[&str]) -> Result<Self, UnitError> {
        let row = |text: &&str| {
            let (value, weight) = text.split_once(':').unwrap_or((text, "1"));
            let weight = weight.trim();
            match weight.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => Ok((value.trim().parse()?, number)),
                _ => Err(UnitError(format!("`{weight}`: a weight is a number of at least 0"))),
            }
        };
        let rows: Vec<(Q, f64)> = rows.iter().map(row).collect::<Result<_, _>>()?;
        let total: f64 = rows.iter().map(|(_, weight)| weight).sum();
        if total <= 0.0 || !total.is_finite() {
            return Err(UnitError("a table needs a weight above 0".into()));
        }
        let steps = Steps::new(rows.iter().map(|(value, weight)| (value.base(), weight / total)));
        Ok(Self::Table { rows, steps })
    }

    /// Draws the next value of the term, in base units.
    pub(super) fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant(value) => value.base(),
            _ => self.at(stream.unit()),
        }
    }

    /// Quantile of the term for the probability `u` in (0, 1), in base units.
    pub(super) fn at(&self, u: f64) -> f64 {
        match self {
            Self::Constant(value) => value.base(),
            Self::Uniform { mean, sd } => mean.base() + sd.base() * SQRT_3 * (2.0 * u - 1.0),
            // The variables 1 - u and u have the same distribution; using u saves a subtraction.
            Self::Exponential { mean } => -mean.base() * libm::log(u),
            Self::Normal { mean, sd } => mean.base() + sd.base() * normal::quantile(u),
            Self::LogNormal { mu, sigma, .. } => libm::exp(mu + sigma * normal::quantile(u)),
            Self::Poisson { steps, .. } | Self::Table { steps, .. } => steps.at(u),
            Self::Pareto { mean, shape } => {
                least_of_pareto(mean.base(), *shape) * libm::exp(-libm::log(u) / shape)
            }
        }
    }

    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Constant(mean)
            | Self::Uniform { mean, .. }
            | Self::Exponential { mean }
            | Self::Normal { mean, .. }
            | Self::LogNormal { mean, .. }
            | Self::Pareto { mean, .. } => mean.base(),
            Self::Poisson { count, unit, .. } => count * Q::base_units(unit).unwrap_or(0.0),
            Self::Table { rows, .. } => {
                let total: f64 = rows.iter().map(|(_, weight)| weight).sum();
                rows.iter().map(|(value, weight)| value.base() * weight).sum::<f64>() / total
            }
        }
    }

    /// Standard deviation of a normal term, and zero for all other terms. Only normal terms can fall below zero.
    pub(super) fn normal_sd(&self) -> f64 {
        if let Self::Normal { sd, .. } = self { sd.base() } else { 0.0 }
    }

    /// Harmonic mean 1 / E[1/X] of the term, if it has a closed form.
    pub(super) fn harmonic_mean(&self) -> Option<f64> {
        match self {
            Self::Constant(value) => Some(value.base()),
            Self::Uniform { mean, sd } => {
                let (low, high) = (mean.base() - sd.base() * SQRT_3, mean.base() + sd.base() * SQRT_3);
                // Harmonic mean of a uniform law: (b - a)/(ln b - ln a), links.md section 3, or its limit if a = b
                Some(if high > low { (high - low) / libm::log(high / low) } else { mean.base() })
            }
            Self::Table { rows, .. } => {
                let possible = || rows.iter().filter(|(_, weight)| *weight > 0.0);
                let total: f64 = possible().map(|(_, weight)| weight).sum();
                Some(total / possible().map(|(value, weight)| weight / value.base()).sum::<f64>())
            }
            Self::Pareto { mean, shape } => {
                Some(least_of_pareto(mean.base(), *shape) * (shape + 1.0) / shape)
            }
            _ => None,
        }
    }

    /// Lower end of the term's support, in base units.
    pub(super) fn least(&self) -> f64 {
        match self {
            Self::Constant(value) => value.base(),
            Self::Uniform { mean, sd } => mean.base() - sd.base() * SQRT_3,
            Self::Normal { .. } => f64::NEG_INFINITY,
            Self::Exponential { .. } | Self::LogNormal { .. } | Self::Poisson { .. } => 0.0,
            Self::Pareto { mean, shape } => least_of_pareto(mean.base(), *shape),
            Self::Table { steps, .. } => steps.values.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }

    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Returns whether drawn values come arbitrarily close to zero. A zero in a table does not count as coming close to
    /// zero.
    pub(super) fn nears_zero(&self) -> bool {
        matches!(
            self,
            Self::Normal { .. } | Self::Exponential { .. } | Self::LogNormal { .. } | Self::Poisson { .. }
        )
    }
}

/// Smallest value of a Pareto law: mean = least · shape / (shape - 1).
fn least_of_pareto(mean: f64, shape: f64) -> f64 {
    mean * (shape - 1.0) / shape
}

impl Steps {
    /// Builds the inverse distribution function from values and their probabilities, which must sum to about 1.
    fn new(rows: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut sum = 0.0;
        let (values, mut cumulative): (Vec<f64>, Vec<f64>) = rows
            .filter(|(_, probability)| *probability > 0.0)
            .map(|(value, probability)| {
                sum += probability;
                (value, sum)
            })
            .unzip();
        if let Some(last) = cumulative.last_mut() {
            *last = 1.0;
        }
        Self { values, cumulative }
    }

    /// Builds the distribution of Poisson counts with mean `mean`, multiplied by `scale`. The table of probabilities
    /// covers slightly more than ten standard deviations.
    fn poisson(mean: f64, scale: f64) -> Self {
        if mean <= 0.0 {
            return Self { values: vec![0.0], cumulative: vec![1.0] };
        }
        let width = 10.0 * libm::sqrt(mean) + 20.0;
        let (low, high) = ((mean - width).max(0.0) as u32, (mean + width) as u32);
        let log_mean = libm::log(mean);
        Self::new((low..=high).map(|count| {
            let k = f64::from(count);
            (k * scale, libm::exp(k * log_mean - mean - libm::lgamma(k + 1.0)))
        }))
    }

    fn at(&self, u: f64) -> f64 {
        self.values[self.cumulative.partition_point(|&up_to| up_to <= u)]
    }
}

/// Splits `text` at the separators outside parentheses.
pub(super) fn split(text: &str, separator: char) -> Result<Vec<&str>, UnitError> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if c == separator && depth == 0 => {
                parts.push(&text[start..index]);
                start = index + c.len_utf8();
            }
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if depth != 0 {
        return Err(UnitError(format!("`{text}` has a parenthesis without its partner")));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

impl<Q: Quantity> fmt::Display for Term<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Uniform { mean, sd } => write!(f, "u({mean}, {sd})"),
            Self::Exponential { mean } => write!(f, "e({mean})"),
            Self::Normal { mean, sd } => write!(f, "n({mean}, {sd})"),
            Self::LogNormal { mean, sd, .. } => write!(f, "ln({mean}, {sd})"),
            Self::Poisson { count, unit, .. } => write!(f, "p({count}{unit})"),
            Self::Pareto { mean, shape } => write!(f, "pareto({mean}, {shape})"),
            Self::Table { rows, .. } => {
                f.write_str("table(")?;
                for (index, (value, weight)) in rows.iter().enumerate() {
                    write!(f, "{}{value}: {weight}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}
