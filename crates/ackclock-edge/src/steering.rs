//! Who steers the connections of a relay: one file a steering; the registry [`STEERINGS`] names them.

use ackclock_core::{Config, Span, Steering, SteeringConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

ackclock_core::registry! {
    /// Every steering.
    pub static STEERINGS: dyn SteeringConfig = "steering" {
        "none" => Unsteered,
        "rnf" => crate::rnf::Config,
    }
}

/// The connections rule themselves.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Unsteered {}

impl Config for Unsteered {}

impl SteeringConfig for Unsteered {
    fn build(&self) -> Option<Box<dyn Steering>> {
        None
    }

    fn patience(&self) -> Option<Span> {
        None
    }
}
