//! The loss probability.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// Probability that a packet is lost, or is chosen for another impairment, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "f64")]
pub struct Loss(pub(crate) f64);

impl Loss {
    pub(crate) const HELP: &'static str = "0 to 1 or \"0%\" to \"100%\"";
    /// Probability zero: no packet is lost.
    pub const NONE: Self = Self(0.0);

    /// The probability given in code, such as a default.
    ///
    /// # Panics
    /// Panics if `probability` is not from 0 to 1.
    pub const fn of(probability: f64) -> Self {
        assert!(probability >= 0.0 && probability <= 1.0, "a probability is from 0 to 1");
        Self(probability)
    }

    /// Whether the probability is zero.
    pub fn is_none(&self) -> bool {
        self.0 == 0.0
    }

    /// Returns the probability, 0 to 1.
    pub const fn probability(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Loss {
    type Error = String;
    fn try_from(probability: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&probability) {
            Ok(Self(probability))
        } else {
            Err(format!("{probability} is not a probability, {}", Self::HELP))
        }
    }
}

/// Parses a probability such as `0.01` or `1%`.
impl FromStr for Loss {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let probability = number.trim().parse::<f64>().ok().map(|number| number / unit);
        let loss = probability.and_then(|probability| Self::try_from(probability).ok());
        loss.ok_or_else(|| format!("`{text}` is not a probability, {}", Self::HELP))
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a probability, {}", Loss::HELP)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Loss, E> {
                Loss::try_from(number).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Loss, E> {
                self.visit_f64(number as f64)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Loss, E> {
                self.visit_f64(number as f64)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Loss, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl From<Loss> for f64 {
    fn from(loss: Loss) -> Self {
        loss.0
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "minimum": 0, "maximum": 1, "description": "probability for each packet, 0 to 1 or \"0%\" to \"100%\"" })
    }
}
