//! # No regulator
//!
//! ## Source
//! Every source measures the unregulated case for comparison.
//!
//! ## What it does
//! The regulator `none` passes ACKs unchanged and without delay. Without a regulator, nothing limits the queue.
//!
//! ## Differences from the source
//! The regulator `none` does not differ from the sources.
//!
//! ## Validation
//! An edge without a regulator behaves exactly like its bearer (law tests).

use ackclock_core::ConfigError;
use ackclock_link::{Departures, Left, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Regulator, RegulatorConfig};

/// Passes ACKs unchanged and without delay.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct None {}

impl ackclock_core::Config for None {
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl RegulatorConfig for None {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Option::None
    }

    fn reads_headers(&self) -> bool {
        false
    }

    fn departures(&self) -> Departures {
        Departures::Unwatched
    }

    fn observes(&self, _: Side) -> Result<Left, &'static str> {
        Ok(Left::Estimated)
    }
}
