//! Times at which a variable link draws its rate and delay, as written in scenarios.

use std::fmt;
use std::str::FromStr;

use ackclock_core::Span;
use ackclock_core::units::UnitError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Times at which a variable link draws its rate and delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Redraw {
    /// Rate and delay are drawn for every packet.
    #[default]
    Packet,
    /// Rate and delay are drawn at every multiple of this time.
    Interval(Span),
}

impl Redraw {
    /// One draw per slot of 1xEV-DO, 1/600 s to the nearest nanosecond.
    pub const SLOT: Self = Self::Interval(Span::from_nanos(1_666_667));

    /// Whether a new value is drawn for every packet.
    pub fn is_packet(&self) -> bool {
        *self == Self::Packet
    }

    const SHORTEST: Span = Span::from_micros(10);
    const HELP: &'static str =
        "write \"packet\", \"slot\" (1/600 s), \"slot(1.667ms)\" or \"interval(100ms)\"";
}

impl FromStr for Redraw {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let explain = |what: &str| UnitError(format!("`{text}` {what}; {}", Self::HELP));
        match text.trim() {
            "packet" => return Ok(Self::Packet),
            "slot" => return Ok(Self::SLOT),
            _ => {}
        }
        let length = ["interval", "slot"].iter().find_map(|name| {
            text.trim().strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')')
        });
        let length: Span = length.ok_or_else(|| explain("says no such thing"))?.parse()?;
        if length < Self::SHORTEST {
            return Err(explain("is shorter than 10us"));
        }
        Ok(Self::Interval(length))
    }
}

ackclock_core::text_value!(Redraw);

impl fmt::Display for Redraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packet => f.write_str("packet"),
            Self::SLOT => f.write_str("slot"),
            Self::Interval(length) => write!(f, "interval({length})"),
        }
    }
}

impl JsonSchema for Redraw {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Redraw".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": Self::HELP })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redraws_are_printed_as_they_are_parsed() {
        for text in ["packet", "slot", "interval(100ms)"] {
            assert_eq!(text.parse::<Redraw>().unwrap().to_string(), text);
        }
        assert_eq!("slot(5ms)".parse(), Ok(Redraw::Interval(Span::from_millis(5))));
        for text in ["never", "interval", "interval()", "interval(1us)", "slot(2p)"] {
            assert!(text.parse::<Redraw>().is_err(), "{text}");
        }
    }
}
