//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far nothing is lost.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use ackclock_core::{ConfigError, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyErrorProcess, ErrorConfig, ErrorContext, ErrorProcess};
use crate::{Fate, Files};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {}

impl ackclock_core::Config for Config {}

impl ErrorConfig for Config {
    fn share(&self, _: &dyn Files) -> Result<f64, ConfigError> {
        Ok(0.0)
    }

    fn build(&self, _: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        Ok(AnyErrorProcess::Other(Box::new(Process)))
    }
}

/// What is kept from one question to the next.
#[derive(Debug)]
struct Process;

impl ErrorProcess for Process {
    fn fate(&mut self, _: Time) -> Fate {
        Fate::Arrives
    }
}
