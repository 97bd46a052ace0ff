//! # Independent errors
//!
//! ## Source
//! Source: CR04, section on loss and latency: packets are lost on the radio hop, independently of each other.
//!
//! ## What it does
//! Each packet or block is lost with a fixed probability, drawn in order of transmission.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! `tests/errors.rs` and `tests/theory.rs` check that the number of lost packets is binomially distributed.

use ackclock_core::{Config, ConfigError, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyErrorProcess, ErrorConfig, ErrorContext, ErrorProcess};
use crate::{Fate, Files, Loss};

/// Each packet or block is lost independently with a fixed probability; `loss = 0.01` is short for this process.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IndependentConfig {
    /// Loss probability.
    pub share: Loss,
}

impl Config for IndependentConfig {}

impl ErrorConfig for IndependentConfig {
    fn share(&self, _: &dyn Files) -> Result<f64, ConfigError> {
        Ok(self.share.probability())
    }

    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        let stream = context.streams.stream(context.name);
        Ok(AnyErrorProcess::Independent(Independent::new(self.share, stream)))
    }
}

/// Error process that loses each packet or block independently.
#[derive(Clone, Debug)]
pub struct Independent {
    share: Loss,
    stream: Stream,
}

impl Independent {
    /// Creates a process that loses with probability `share`, drawn from `stream`.
    pub const fn new(share: Loss, stream: Stream) -> Self {
        Self { share, stream }
    }

    /// Whether nothing is lost.
    pub(super) const fn is_lossless(&self) -> bool {
        self.share.probability() == 0.0
    }
}

impl ErrorProcess for Independent {
    // A random number is drawn for every packet, so that the fate of one packet does not affect the random numbers of
    // later packets.
    #[inline]
    fn fate(&mut self, _: Time) -> Fate {
        if !self.is_lossless() && self.stream.chance(self.share.probability()) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    }
}
