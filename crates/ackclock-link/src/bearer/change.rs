//! Changes of a bearer that runs.

use ackclock_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Medium;

/// What a running bearer becomes in a direction.
pub enum Change {
    /// Another medium; see [`Link::replace_medium`](crate::Link::replace_medium).
    Medium(Box<dyn Medium>),
    /// Interrupted until an instant.
    Outage(Time, OutageKind),
}

/// What the transmitter does in an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutageKind {
    /// It sends nothing; packets wait. Timers of the link layer run.
    Silent,
    /// It does not know of the outage: what it sends is lost.
    Fade,
}
