//! Steerings for the connections of a relay, in one file each.

use ackclock_core::{Config, Span, Steering, SteeringConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No steering: each connection uses its own congestion control.
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
