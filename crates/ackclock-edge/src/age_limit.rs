//! Age limit of a queue in a scenario file.

use std::fmt;
use std::str::FromStr;

use ackclock_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time after which a packet leaves a queue without being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum AgeLimit {
    /// Packets stay until they are sent.
    None,
    /// Packets leave after this time.
    After(Span),
}

impl AgeLimit {
    /// Returns the limit as a time; `None` for no limit.
    pub const fn span(self) -> Option<Span> {
        match self {
            Self::None => None,
            Self::After(limit) => Some(limit),
        }
    }
}

/// Name of [`AgeLimit::None`].
const NONE: &str = "none";

impl FromStr for AgeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self::None);
        }
        match Span::from_str(text) {
            Ok(Span::ZERO) => {
                Err(format!("{text}: every packet would leave unsent; use a time above 0, or \"{NONE}\""))
            }
            Ok(limit) => Ok(Self::After(limit)),
            Err(error) => Err(format!("{error}; or \"{NONE}\"")),
        }
    }
}

ackclock_core::text_value!(AgeLimit);

impl fmt::Display for AgeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NONE),
            Self::After(limit) => limit.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_time_or_none() {
        for text in ["none", "150ms", "1.5s"] {
            assert_eq!(text.parse::<AgeLimit>().unwrap().to_string(), text);
        }
        for (text, said) in [("0s", "every packet would leave unsent"), ("20p", "or \"none\"")] {
            let error = text.parse::<AgeLimit>().unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
