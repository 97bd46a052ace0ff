//! # Laws: how a rate or a time is distributed
//!
//! ## Source
//! CR02 section 6 names the distributions `u` (uniform) and `e` (exponential). Other reproduced papers use the
//! remaining distributions for rates and delays.
//!
//! ## What it does
//! A scenario file contains a [`Law`] as a sum of terms. Values are drawn by inverting the distribution, with exactly
//! one random number per random term, so the number of random numbers never depends on the drawn values.
//!
//! | written | distribution |
//! | --- | --- |
//! | `200kbit/s` | always this value |
//! | `u(200kbit/s, 50kbit/s)` | uniform by mean and standard deviation: mean ± sd·√3 |
//! | `e(100ms)` | exponential by mean |
//! | `n(100ms, 10ms)` | normal by mean and standard deviation |
//! | `ln(100ms, 50ms)` | lognormal by mean and standard deviation of the variable itself |
//! | `p(100ms)` | Poisson: a whole number of the unit written, here milliseconds |
//! | `pareto(100ms, 2.5)` | Pareto by mean and shape (above 1) |
//! | `table(38.4kbit/s: 0.033, 76.8kbit/s: 0.015)` | these values with these weights; the default weight is 1 |
//! | `300ms + e(50ms)` | the sum of independent terms |
//!
//! Drawn values are rounded to the nearest nanosecond or bit/s. A time below zero is clipped to zero. Normal,
//! exponential, lognormal and Poisson terms come arbitrarily close to zero. Rates drawn from these terms are raised to
//! at least 1 % of the law's mean, because a packet at rate zero would never end. A rate of zero in a table stays zero
//! and means an outage. A uniform law that reaches below zero is refused.
//!
//! ## Differences from the source
//! In places, CR02 calls the second argument of `u` "variance". The second argument of `u` is the standard deviation,
//! as CR02's Table 1 says.
//!
//! ## Validation
//! Unit tests check that means and deviations of samples are within stated standard errors, and check the printed
//! capacities of CR02.

pub(crate) mod normal;
mod term;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::{UnitError, rate_unit, time_unit};
use crate::{Rate, Span, Stream};
use term::Term;

/// Quantity that a law can describe: a rate or a time.
pub trait Quantity:
    Copy + PartialEq + fmt::Debug + fmt::Display + FromStr<Err = UnitError> + Send + Sync + 'static
{
    /// Name of this law's type in a JSON schema.
    const NAME: &'static str;
    /// Example of a law for this quantity, shown in error messages.
    const EXAMPLE: &'static str;
    /// Share of the law's mean to which drawn values close to zero are raised.
    const FLOOR: f64;

    /// Number of nanoseconds or bits per second in one `unit`; `None` if `unit` is not a unit of this quantity.
    fn base_units(unit: &str) -> Option<f64>;

    /// Converts `value` in nanoseconds or bits per second to the nearest quantity. Negative values and NaN give a
    /// quantity of zero.
    fn from_base(value: f64) -> Self;

    /// Returns the quantity in nanoseconds or bits per second.
    fn base(self) -> f64;
}

impl Quantity for Rate {
    const NAME: &'static str = "RateLaw";
    const EXAMPLE: &'static str = "\"200kbit/s\" or \"u(200kbit/s, 50kbit/s)\"";
    const FLOOR: f64 = 0.01;

    fn base_units(unit: &str) -> Option<f64> {
        rate_unit(unit)
    }

    fn from_base(value: f64) -> Self {
        Self::from_bps(nearest(value))
    }

    fn base(self) -> f64 {
        self.as_bps() as f64
    }
}

impl Quantity for Span {
    const NAME: &'static str = "TimeLaw";
    const EXAMPLE: &'static str = "\"100ms\" or \"300ms + e(50ms)\"";
    const FLOOR: f64 = 0.0;

    fn base_units(unit: &str) -> Option<f64> {
        time_unit(unit).map(|seconds| seconds * 1e9)
    }

    fn from_base(value: f64) -> Self {
        Self::from_nanos(nearest(value))
    }

    fn base(self) -> f64 {
        self.as_nanos() as f64
    }
}

/// Rounds to the nearest whole number, with halves rounded up. The conversion `as` saturates and maps negative values
/// and NaN to zero.
fn nearest(value: f64) -> u64 {
    (value + 0.5) as u64
}

/// Distribution of a rate or a time: a sum of independent terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Law<Q> {
    terms: Vec<Term<Q>>,
    /// Lower bound of drawn values, ns or bit/s.
    floor: f64,
}

impl<Q: Quantity> Law<Q> {
    fn new(terms: Vec<Term<Q>>) -> Result<Self, UnitError> {
        let least: f64 = terms.iter().map(Term::least).sum();
        if least.is_finite() && least < 0.0 {
            return Err(UnitError(
                "the law reaches below zero: a uniform law reaches down to mean - 1.732 sd".into(),
            ));
        }
        let mean: f64 = terms.iter().map(Term::mean).sum();
        let floor = if terms.iter().any(Term::nears_zero) { Q::FLOOR * mean } else { 0.0 };
        Ok(Self { terms, floor })
    }

    /// Draws the next value, using one random number of `stream` per random term.
    pub fn draw(&self, stream: &mut Stream) -> Q {
        let sum: f64 = self.terms.iter().map(|term| term.draw(stream)).sum();
        Q::from_base(sum.max(self.floor))
    }

    /// Mean of the drawn values. The mean is exact unless normal terms often fall below the floor (a mean of less than
    /// five standard deviations). If normal terms often fall below the floor, the mean is computed numerically,
    /// accurate to about 1e-4.
    pub fn mean(&self) -> Q {
        let written: f64 = self.terms.iter().map(Term::mean).sum();
        let deviation: f64 = self.terms.iter().map(Term::normal_sd).sum();
        let is_cut = deviation > 0.0 && written - 5.0 * deviation < self.floor;
        Q::from_base(if is_cut { self.mean_over_grid(|value| value) } else { written })
    }

    /// Mean of a function of the drawn values over a grid of the unit cube. The grid of the unit cube is evenly spaced
    /// in the first random term, and uses multiples of square roots of primes in the remaining terms (a Kronecker
    /// sequence).
    fn mean_over_grid(&self, function: impl Fn(f64) -> f64) -> f64 {
        const POINTS: u32 = 1 << 14;
        const PRIMES: [f64; 6] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0];
        let at = |point: u32| {
            let along = f64::from(point) + 0.5;
            let mut dimension = 0;
            let value = |term: &Term<Q>| {
                dimension += usize::from(!term.is_constant());
                term.at(match dimension {
                    0 | 1 => along / f64::from(POINTS),
                    further => (along * libm::sqrt(PRIMES[(further - 2) % PRIMES.len()])).fract(),
                })
            };
            function(self.terms.iter().map(value).sum::<f64>().max(self.floor))
        };
        (0..POINTS).map(at).sum::<f64>() / f64::from(POINTS)
    }

    /// Lower bound of the drawn values.
    pub fn least(&self) -> Q {
        let least: f64 = self.terms.iter().map(Term::least).sum();
        Q::from_base(least.max(self.floor))
    }

    /// Value of a constant law; `None` if the law is random.
    pub fn constant(&self) -> Option<Q> {
        self.terms.iter().all(Term::is_constant).then(|| self.mean())
    }
}

impl Law<Rate> {
    /// Harmonic mean of the law, 1 / E\[1/R\]: the throughput of equal packets if a rate is drawn for each packet
    /// (`links.md` section 3). The harmonic mean is exact for constants, uniform laws, Pareto laws and tables, and
    /// otherwise numeric to about 1e-4. The harmonic mean is zero if the rate can be zero.
    pub fn harmonic_mean(&self) -> Rate {
        let closed = match self.terms.as_slice() {
            [term] => term.harmonic_mean(),
            _ => None,
        };
        Rate::from_base(closed.unwrap_or_else(|| 1.0 / self.mean_over_grid(|rate| 1.0 / rate)))
    }
}

impl<Q: Quantity> From<Q> for Law<Q> {
    fn from(value: Q) -> Self {
        Self { terms: vec![Term::Constant(value)], floor: 0.0 }
    }
}

impl<Q: Quantity> FromStr for Law<Q> {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let explain = |error: UnitError| UnitError(format!("`{text}`: {error}; {}", help::<Q>()));
        let terms: Result<Vec<_>, _> =
            term::split(text, '+').map_err(explain)?.into_iter().map(Term::parse).collect();
        Self::new(terms.map_err(explain)?).map_err(explain)
    }
}

impl<Q: Quantity> fmt::Display for Law<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            write!(f, "{}{term}", if index == 0 { "" } else { " + " })?;
        }
        Ok(())
    }
}

fn help<Q: Quantity>() -> String {
    format!(
        "write {}: a value, u(mean, sd), e(mean), n(mean, sd), ln(mean, sd), p(mean), pareto(mean, shape), \
         table(value: weight, ...) or a sum of such terms; p counts whole numbers of the unit written",
        Q::EXAMPLE
    )
}

impl<Q: Quantity> Serialize for Law<Q> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, Q: Quantity> Deserialize<'de> for Law<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<Q>(std::marker::PhantomData<Q>);
        impl<Q: Quantity> de::Visitor<'_> for Visitor<Q> {
            type Value = Law<Q>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a string: {}", help::<Q>())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Law<Q>, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor(std::marker::PhantomData))
    }
}

impl<Q: Quantity> JsonSchema for Law<Q> {
    fn schema_name() -> Cow<'static, str> {
        Q::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": help::<Q>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    fn rate(text: &str) -> Law<Rate> {
        text.parse().unwrap()
    }

    fn time(text: &str) -> Law<Span> {
        text.parse().unwrap()
    }

    /// Mean and standard deviation of `n` draws, in base units.
    fn moments<Q: Quantity>(law: &Law<Q>, n: u32) -> (f64, f64) {
        let mut stream = Streams::new(7, 0).stream("law");
        let draws: Vec<f64> = (0..n).map(|_| law.draw(&mut stream).base()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        (mean, variance.sqrt())
    }

    #[test]
    fn what_is_printed_is_what_is_parsed() {
        for text in [
            "200kbit/s",
            "u(200kbit/s, 50kbit/s)",
            "e(1Mbit/s)",
            "n(200kbit/s, 20kbit/s)",
            "ln(200kbit/s, 100kbit/s)",
            "p(3kbit/s)",
            "pareto(200kbit/s, 2.5)",
            "table(38.4kbit/s: 0.033, 76.8kbit/s: 0.015)",
            "100kbit/s + e(50kbit/s)",
        ] {
            assert_eq!(rate(text).to_string(), text);
        }
        assert_eq!(time("  300ms+e( 50ms )").to_string(), "300ms + e(50ms)");
        // A Poisson law counts in the written unit, so `p(2000ms)` and `p(2s)` are different laws.
        assert_eq!(time("p(2000ms)").to_string(), "p(2000ms)");
        let law: Law<Rate> = serde_json::from_str("\"u(200kbit/s, 50kbit/s)\"").unwrap();
        assert_eq!(serde_json::to_string(&law).unwrap(), "\"u(200kbit/s, 50kbit/s)\"");
    }

    #[test]
    fn bad_laws_say_what_is_wrong_and_what_is_allowed() {
        for (text, part) in [
            ("", "number"),
            ("e(100kbit/s", "parenthesis"),
            ("e(100kbit/s))", "parenthesis"),
            ("u(200kbit/s)", "2 arguments"),
            ("u(200kbit/s, 200kbit/s)", "below zero"),
            ("gauss(1kbit/s)", "unknown law `gauss`"),
            ("e(100ms)", "unit of rate"),
            ("pareto(1kbit/s, 1)", "above 1"),
            ("table(1kbit/s: -1)", "weight"),
            ("table(1kbit/s: 0)", "weight"),
            ("ln(0kbit/s, 1kbit/s)", "above 0"),
            ("p(2000000bit/s)", "at most"),
            ("1kbit/s + ", "number"),
            ("e(-1kbit/s)", "negative"),
        ] {
            let error = text.parse::<Law<Rate>>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("pareto(mean, shape)"), "{text}: {error}");
        }
    }

    #[test]
    fn the_mean_counts_what_is_raised_to_the_floor() {
        let law = rate("n(200kbit/s, 200kbit/s)");
        let (sampled, sd) = moments(&law, 100_000);
        assert!(
            (law.mean().base() - sampled).abs() < 5.0 * sd / 100_000f64.sqrt(),
            "{} {sampled}",
            law.mean()
        );
        assert!(law.mean().base() > 215e3);
        assert_eq!(rate("n(200kbit/s, 20kbit/s)").mean(), Rate::from_bps(200_000));
    }

    #[test]
    fn samples_have_the_mean_and_deviation_of_their_law() {
        // The mean is checked within five standard errors, sd/sqrt(n). The deviation is checked within 5
        // sd·sqrt((kurtosis - 1)/4n). The kurtosis is at most that of the exponential (9) or of the lognormal with cv
        // 0.5 (8.04), so the bound is 2.2 % at n = 1e5.
        let n = 100_000;
        for (text, mean, sd) in [
            ("100ms", 100.0, 0.0),
            ("u(75ms, 30ms)", 75.0, 30.0),
            ("e(100ms)", 100.0, 100.0),
            ("n(100ms, 10ms)", 100.0, 10.0),
            ("ln(100ms, 50ms)", 100.0, 50.0),
            ("p(100ms)", 100.0, 10.0),
            ("p(0.5ms)", 0.5, 0.5f64.sqrt()),
            // The standard deviation of a Pareto law is mean / sqrt(shape (shape - 2)).
            ("pareto(100ms, 6)", 100.0, 100.0 / 24.0f64.sqrt()),
            // The variance of the table is 0.25·0.75·40^2 = 300.
            ("table(10ms: 3, 50ms: 1)", 20.0, 300.0f64.sqrt()),
            ("300ms + e(50ms) + u(20ms, 10ms)", 370.0, 2600.0f64.sqrt()),
        ] {
            let law = time(text);
            let (got_mean, got_sd) = moments(&law, n);
            let error = 5.0 * sd / f64::from(n).sqrt();
            assert!((got_mean / 1e6 - mean).abs() <= error + 1e-6, "{text}: mean {got_mean}");
            assert!((got_sd / 1e6 - sd).abs() <= 0.025 * sd + 1e-6, "{text}: deviation {got_sd}");
            assert!((law.mean().as_millis_f64() - mean).abs() < 1e-5, "{text}: {}", law.mean());
        }
    }

    #[test]
    fn a_uniform_law_stays_within_its_support() {
        // The law u(75 ms, 30 ms) is uniform on [23.0, 127.0] ms (links.md section 2).
        let (law, mut stream) = (time("u(75ms, 30ms)"), Streams::new(1, 0).stream("law"));
        let draws: Vec<f64> = (0..10_000).map(|_| law.draw(&mut stream).as_millis_f64()).collect();
        let (least, most) = draws.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
        assert!((23.03..23.1).contains(&least) && (126.9..126.97).contains(&most), "{least} {most}");
    }

    #[test]
    fn harmonic_means_are_the_capacities_of_the_source() {
        // The harmonic means 198.0, 186.8 and 167.7 kbit/s follow from (b-a)/(ln b - ln a) (links.md section 3).
        for (sd, kbps) in [(20, 198.0), (50, 186.8), (75, 167.7)] {
            let got = rate(&format!("u(200kbit/s, {sd}kbit/s)")).harmonic_mean().as_bps() as f64 / 1e3;
            assert!((got - kbps).abs() < 0.05, "{sd}: {got}");
        }
        assert_eq!(rate("200kbit/s").harmonic_mean(), Rate::from_bps(200_000));
        assert_eq!(rate("u(200kbit/s, 0kbit/s)").harmonic_mean(), Rate::from_bps(200_000));
        // The harmonic mean is 2 / (1/100 + 1/300) = 150 kbit/s.
        assert_eq!(rate("table(100kbit/s, 300kbit/s)").harmonic_mean(), Rate::from_bps(150_000));
        assert_eq!(rate("table(0kbit/s, 300kbit/s)").harmonic_mean(), Rate::ZERO);
        // A Pareto law has E[1/X] = shape / ((shape + 1) least), with least = mean (shape - 1)/shape: 200·(1/2)·(3/2) =
        // 150.
        assert_eq!(rate("pareto(200kbit/s, 2)").harmonic_mean(), Rate::from_bps(150_000));
    }

    #[test]
    fn numeric_harmonic_means_agree_with_theory() {
        let close = |text: &str, bps: f64, tolerance: f64| {
            let got = rate(text).harmonic_mean().as_bps() as f64;
            assert!((got / bps - 1.0).abs() < tolerance, "{text}: {got} against {bps}");
        };
        // The harmonic mean of a lognormal law is mean / (1 + cv^2). The clipped tail below 1 % of the mean weighs less
        // than 1e-6.
        close("ln(200kbit/s, 100kbit/s)", 160_000.0, 1e-4);
        // For an exponential law clipped at c = 1 % of the mean, E[1/R] = ((1 - e^-c)/c + E1(c))/mean, with E1(0.01) =
        // 4.037930.
        close("e(200kbit/s)", 200_000.0 / (0.995_017 + 4.037_930), 1e-4);
        // A constant plus a uniform law is also a uniform law, here u(200, 50).
        let whole = rate("u(200kbit/s, 50kbit/s)").harmonic_mean().as_bps() as f64;
        close("100kbit/s + u(100kbit/s, 50kbit/s)", whole, 1e-5);
        // The sum of two uniform laws on [1, 3] is triangular on [2, 6]; E[1/X] is the second difference of x ln x over
        // the squared width: (6 ln 6 - 2·4 ln 4 + 2 ln 2)/4 = (6 ln 3 - 8 ln 2)/4.
        let inverse = (6.0 * libm::log(3.0) - 8.0 * libm::log(2.0)) / 4.0;
        let sd = 1000.0 / 3.0f64.sqrt();
        close(&format!("u(2kbit/s, {sd}bit/s) + u(2kbit/s, {sd}bit/s)"), 1000.0 / inverse, 2e-4);
    }

    #[test]
    fn clipping_keeps_times_at_zero_and_rates_above_it() {
        let mut stream = Streams::new(1, 0).stream("law");
        let (delay, speed) = (time("n(1ms, 10ms)"), rate("n(100kbit/s, 100kbit/s)"));
        let times: Vec<Span> = (0..1000).map(|_| delay.draw(&mut stream)).collect();
        let rates: Vec<Rate> = (0..1000).map(|_| speed.draw(&mut stream)).collect();
        assert_eq!(times.iter().min(), Some(&Span::ZERO));
        assert_eq!(rates.iter().min(), Some(&Rate::from_bps(1000)), "1 % of the mean");
        assert_eq!((delay.least(), speed.least()), (Span::ZERO, Rate::from_bps(1000)));
    }

    #[test]
    fn every_random_term_takes_one_number_and_constants_none() {
        for (text, numbers) in
            [("5ms", 0), ("p(3ms)", 1), ("n(9ms, 1ms)", 1), ("1ms + e(1ms) + u(9ms, 1ms)", 2)]
        {
            let mut stream = Streams::new(1, 0).stream("law");
            let mut other = stream.clone();
            time(text).draw(&mut stream);
            for _ in 0..numbers {
                other.bits();
            }
            assert_eq!(stream.bits(), other.bits(), "{text}");
        }
    }
}
