//! Errors of a channel as written in a scenario: a probability, or an error process.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ackclock_core::{Component, ConfigError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{AnyErrorProcess, ERRORS, ErrorConfig, ErrorContext, IndependentConfig};
use crate::{Files, Loss};

/// Errors as written in a scenario. A probability, `0.01` or `"1%"`, applies to each packet or block independently; an
/// error process is a name or a table with `kind`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Errors {
    /// Loss probability, applied to each packet or block independently.
    Share(Loss),
    /// An error process, as written in the scenario.
    Process(Component<dyn ErrorConfig>),
}

impl Errors {
    /// Errors of a channel that loses nothing.
    pub const NONE: Self = Self::Share(Loss::NONE);

    /// Whether the channel loses nothing, so that no query is needed.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Checks the errors as written in the scenario.
    ///
    /// # Errors
    /// Returns an error that names the invalid key of the process, its value and the allowed values.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.config().map(drop)
    }

    /// Fills in the defaults of the error process.
    ///
    /// # Errors
    /// Returns the same errors as [`check`](Self::check).
    pub fn complete(self) -> Result<Self, ConfigError> {
        match self {
            Self::Share(share) => Ok(Self::Share(share)),
            Self::Process(table) => table.complete(&ERRORS).map(Self::Process),
        }
    }

    /// Long-run loss probability.
    ///
    /// # Errors
    /// Returns the same errors as [`check`](Self::check), and an error for an unreadable or malformed file.
    pub fn share(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        self.config()?.share(files)
    }

    /// Builds the error process.
    ///
    /// # Errors
    /// Returns the same errors as [`share`](Self::share).
    pub fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        self.config()?.build(context)
    }

    fn config(&self) -> Result<Arc<dyn ErrorConfig>, ConfigError> {
        match self {
            &Self::Share(share) => Ok(Arc::new(IndependentConfig { share })),
            Self::Process(table) => table.config(&ERRORS).cloned(),
        }
    }
}

impl From<Loss> for Errors {
    fn from(share: Loss) -> Self {
        Self::Share(share)
    }
}

impl<'de> Deserialize<'de> for Errors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Errors;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a probability, {}, or a table with `kind`, an error process", Loss::HELP)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Errors, E> {
                Loss::try_from(number).map(Errors::Share).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Errors, E> {
                self.visit_f64(number as f64)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Errors, E> {
                self.visit_f64(number as f64)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Errors, E> {
                match text.parse() {
                    Ok(share) => Ok(Errors::Share(share)),
                    Err(_) if ERRORS.entry(text).is_ok() => Ok(Errors::Process(text.into())),
                    Err(message) => {
                        let names: Vec<_> = ERRORS.entries.iter().map(|entry| entry.name).collect();
                        Err(E::custom(format!("{message}; nor an error process, {}", names.join(", "))))
                    }
                }
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Errors, A::Error> {
                Component::deserialize(MapAccessDeserializer::new(map)).map(Errors::Process)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Errors {
    fn schema_name() -> Cow<'static, str> {
        "Errors".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string", "object"], "minimum": 0, "maximum": 1,
            "description": "loss probability, independent for each packet or block, 0 to 1 or \"0%\" to \"100%\"; or an error process, a name \
                            or a table with `kind`"
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::NoFiles;

    fn read(value: serde_json::Value) -> Result<Errors, String> {
        let errors: Errors = serde_json::from_value(value).map_err(|error| error.to_string())?;
        errors.check().map_err(|error| error.to_string())?;
        Ok(errors)
    }

    #[test]
    fn a_share_is_written_as_ever_and_a_process_as_a_component() {
        for (value, share) in [
            (json!(0.01), 0.01),
            (json!("1%"), 0.01),
            (json!(1), 1.0),
            (json!({"kind": "independent", "share": 0.25}), 0.25),
            (json!("rayleigh"), 0.1),
            // 0.02 / (0.02 + 0.06) of the intervals are bad; half of the data sent in them is lost.
            (json!({"kind": "gilbert-elliott", "p": "2%", "r": "6%", "bad": 0.5}), 0.125),
        ] {
            let errors = read(value.clone()).unwrap();
            assert!((errors.share(&NoFiles).unwrap() - share).abs() < 1e-15, "{value}");
        }
        assert_eq!(serde_json::to_value(read(json!("1%")).unwrap()).unwrap(), json!(0.01));
        let whole = read(json!("rayleigh")).unwrap().complete().unwrap();
        assert_eq!(
            serde_json::to_value(whole).unwrap(),
            json!({"kind": "rayleigh", "fer": 0.1, "doppler": 0.01})
        );
    }

    #[test]
    fn what_is_neither_says_what_is_allowed() {
        let error = |value| read(value).unwrap_err();
        assert_eq!(error(json!(1.5)), "1.5 is not a probability, 0 to 1 or \"0%\" to \"100%\"");
        let names = ERRORS.entries.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        let neither = format!(
            "`fade` is not a probability, 0 to 1 or \"0%\" to \"100%\"; nor an error process, {names}"
        );
        assert_eq!(error(json!("fade")), neither);
        assert_eq!(
            error(json!({"kind": "fade"})),
            format!("unknown error process `fade`; known are {names}")
        );
        assert!(error(json!({"fer": 0.1})).contains("no `kind`"));
        assert!(error(json!([0.1])).contains("or a table with `kind`, an error process"));
        let key = error(json!({"kind": "rayleigh", "doppler": 0}));
        assert!(key.starts_with("doppler: 0 is not from 0.000001"), "{key}");
    }
}
