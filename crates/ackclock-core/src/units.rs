//! Rates, sizes and times as written in scenario files: a string with a number and a unit.
//!
//! Examples of quantities: `"200kbit/s"`, tc's `"12mbit"`, `"300ms"`, `"10p"`, `"30kB"`, `"2bdp"`. Prefixes are decimal
//! (k = 1000) except `KiB` and `MiB`. Rates are in bits per second, and sizes are in bytes.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Span;

/// Rate in bits per second; zero means an outage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(u64);

impl Rate {
    /// Rate of a link during an outage.
    pub const ZERO: Self = Self(0);

    /// Creates a rate from bits per second.
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// Creates a rate from bits per second, rounded to the nearest whole number. Negative values and NaN give a rate of
    /// zero.
    pub fn from_bps_f64(bits_per_second: f64) -> Self {
        // The conversion `as` saturates and maps NaN to zero.
        Self(libm::round(bits_per_second) as u64)
    }

    /// Returns the rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Transmission time of `bytes` at this rate, rounded to the nearest nanosecond; [`Span::MAX`] at rate zero.
    pub const fn time_for(self, bytes: u64) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        const NANO_BITS_PER_BYTE: u64 = 8_000_000_000;
        let nanos = match bytes.checked_mul(NANO_BITS_PER_BYTE) {
            Some(product) => match product.checked_add(self.0 / 2) {
                Some(rounded) => rounded / self.0,
                None => product / self.0,
            },
            None => {
                let wide = (bytes as u128 * NANO_BITS_PER_BYTE as u128 + self.0 as u128 / 2) / self.0 as u128;
                if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
            }
        };
        Span::from_nanos(nanos)
    }

    /// Number of whole bytes transmitted in `span` at this rate.
    pub const fn bytes_in(self, span: Span) -> u64 {
        let bytes = self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

/// Rate of a link whose packets mostly have equal size. The transmission time of the last packet size is cached, to
/// avoid a division per packet.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: Rate,
    bytes: u32,
    time: Span,
}

impl Pace {
    /// Creates a pace of the given rate with an empty cache.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, bytes: 0, time: rate.time_for(0) }
    }

    /// Returns the rate of this pace.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Transmission time of `bytes` at this rate, like [`Rate::time_for`].
    #[inline]
    pub const fn time_for(&mut self, bytes: u32) -> Span {
        if bytes != self.bytes {
            self.bytes = bytes;
            self.time = self.rate.time_for(bytes as u64);
        }
        self.time
    }
}

/// Size of a buffer, window or packet, in the unit in which it was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// Number of packets, written `"10p"`.
    Packets(u32),
    /// Number of bytes, written `"30kB"`.
    Bytes(u64),
    /// Number of bytes sent in this time at the link's mean rate, written `"500ms"`.
    Time(Span),
    /// Multiples of the bandwidth-delay product, written `"2bdp"`.
    Bdp(f64),
}

/// Error of a quantity's text: what is wrong, and which texts are allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(pub String);

/// Splits a quantity such as `"200 kbit/s"` into its number and its unit.
///
/// # Errors
/// Fails if the text contains no number, or the number is not finite.
pub fn split_quantity(text: &str) -> Result<(f64, &str), UnitError> {
    let text = text.trim();
    let is_part_of_number =
        |index: usize, c: char| c.is_ascii_digit() || c == '.' || ((c == '-' || c == '+') && index == 0);
    let end = text.char_indices().find(|&(i, c)| !is_part_of_number(i, c)).map_or(text.len(), |(i, _)| i);
    let (number, unit) = text.split_at(end);
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value, unit.trim())),
        _ => Err(UnitError(format!("`{text}` does not begin with a number"))),
    }
}

const RATE_HELP: &str =
    "a rate is written like \"200kbit/s\", \"1.5Mbit/s\" or \"12mbit\" (bits a second, decimal prefixes)";
const TIME_HELP: &str = "a time is written like \"300ms\", \"1.5s\", \"10us\", \"250ns\", \"5min\" or \"1h\"";
const SIZE_HELP: &str =
    "a size is written like \"10p\" (packets), \"30kB\", \"64KiB\", \"1500B\", \"500ms\" or \"2bdp\"";

fn not_negative(value: f64, text: &str, help: &str) -> Result<f64, UnitError> {
    if value < 0.0 { Err(UnitError(format!("`{text}` is negative; {help}"))) } else { Ok(value) }
}

/// Number of bits per second in one `unit`; `None` if `unit` is not a unit of rate.
pub fn rate_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "bit/s" | "bit" | "bps" => 1.0,
        "kbit/s" | "kbit" | "Kbit/s" | "kbps" | "Kbps" | "Kb/s" | "kb/s" => 1e3,
        "Mbit/s" | "mbit" | "Mbit" | "mbit/s" | "Mbps" | "mbps" | "Mb/s" => 1e6,
        "Gbit/s" | "gbit" | "Gbit" | "gbit/s" | "Gbps" | "gbps" | "Gb/s" => 1e9,
        _ => return None,
    })
}

/// Number of seconds in one `unit`; `None` if `unit` is not a unit of time.
pub fn time_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

fn byte_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (value, unit) = split_quantity(text)?;
        let scale =
            rate_unit(unit).ok_or_else(|| UnitError(format!("`{text}` has no unit of rate; {RATE_HELP}")))?;
        let bps = not_negative(value, text, RATE_HELP)? * scale;
        if bps > 1e15 {
            return Err(UnitError(format!("`{text}` is more than 1e15 bit/s; {RATE_HELP}")));
        }
        Ok(Self::from_bps_f64(bps))
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (value, unit) = split_quantity(text)?;
        let scale =
            time_unit(unit).ok_or_else(|| UnitError(format!("`{text}` has no unit of time; {TIME_HELP}")))?;
        let seconds = not_negative(value, text, TIME_HELP)? * scale;
        if seconds > 1e9 {
            return Err(UnitError(format!("`{text}` is more than 1e9 seconds; {TIME_HELP}")));
        }
        Ok(Self::from_secs_f64(seconds))
    }
}

impl FromStr for Size {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (value, unit) = split_quantity(text)?;
        let value = not_negative(value, text, SIZE_HELP)?;
        let whole = value.fract() == 0.0;
        match unit {
            "p" if whole && value <= 1e9 => return Ok(Self::Packets(value as u32)),
            "p" if whole => return Err(UnitError(format!("`{text}` is more than 1e9 packets; {SIZE_HELP}"))),
            "p" => return Err(UnitError(format!("`{text}` is not a whole number of packets; {SIZE_HELP}"))),
            "bdp" => return Ok(Self::Bdp(value)),
            _ => {}
        }
        if let Some(scale) = byte_unit(unit) {
            return Ok(Self::Bytes(libm::round(value * scale) as u64));
        }
        if time_unit(unit).is_some() {
            return text.parse().map(Self::Time);
        }
        Err(UnitError(format!("`{text}` has no unit of size; {SIZE_HELP}")))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bps if bps >= 1_000_000_000 && bps % 1_000_000 == 0 => write!(f, "{}Gbit/s", bps as f64 / 1e9),
            bps if bps >= 1_000_000 && bps % 1_000 == 0 => write!(f, "{}Mbit/s", bps as f64 / 1e6),
            bps if bps >= 1_000 => write!(f, "{}kbit/s", bps as f64 / 1e3),
            bps => write!(f, "{bps}bit/s"),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_nanos() {
            nanos if nanos >= 1_000_000_000 => write!(f, "{}s", nanos as f64 / 1e9),
            nanos if nanos >= 1_000_000 || nanos == 0 => write!(f, "{}ms", nanos as f64 / 1e6),
            nanos if nanos >= 1_000 => write!(f, "{}us", nanos as f64 / 1e3),
            nanos => write!(f, "{nanos}ns"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => write!(f, "{count}p"),
            Self::Bytes(bytes) => write!(f, "{bytes}B"),
            Self::Time(span) => write!(f, "{span}"),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
}

/// Serialises a quantity as the string from which it is parsed, and gives the quantity a JSON schema.
macro_rules! as_string {
    ($type:ty, $name:literal, $help:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a string: ")?;
                        f.write_str($help)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $help })
            }
        }
    };
}
as_string!(Rate, "Rate", RATE_HELP);
as_string!(Span, "Time", TIME_HELP);
as_string!(Size, "Size", SIZE_HELP);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal_and_take_the_spelling_of_tc() {
        assert_eq!("200kbit/s".parse(), Ok(Rate::from_bps(200_000)));
        assert_eq!("12mbit".parse(), Ok(Rate::from_bps(12_000_000)));
        assert_eq!("1.5 Mbit/s".parse(), Ok(Rate::from_bps(1_500_000)));
    }

    #[test]
    fn bad_quantities_say_what_is_allowed() {
        for (text, part) in
            [("fast", "number"), ("200", "unit of rate"), ("-1kbit/s", "negative"), ("3ms", "unit of rate")]
        {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!("1e3ms".parse::<Span>().is_err());
        assert!("2.5p".parse::<Size>().unwrap_err().to_string().contains("whole number"));
    }

    #[test]
    fn a_thousand_bytes_take_forty_milliseconds_at_200_kbit() {
        // The transmission time is 8000 bit / 200 000 bit/s = 40 ms.
        assert_eq!(Rate::from_bps(200_000).time_for(1000), Span::from_millis(40));
        assert_eq!(Rate::from_bps(200_000).bytes_in(Span::from_millis(40)), 1000);
        assert_eq!(Rate::ZERO.time_for(1), Span::MAX);
        assert_eq!(Rate::from_bps(1).time_for(u64::MAX), Span::MAX);
    }

    #[test]
    fn what_is_printed_is_what_is_parsed() {
        for text in ["200kbit/s", "64kbit/s", "100Mbit/s", "1.5Mbit/s", "2Gbit/s", "900bit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["300ms", "1.5s", "10us", "250ns", "0ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["10p", "2bdp", "500ms", "30000B"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
    }
}
