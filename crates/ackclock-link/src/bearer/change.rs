//! Changes of a bearer while it runs.

use ackclock_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Medium;

/// A change of one direction of a running bearer.
pub enum Change {
    /// Replaces the medium; see [`Link::replace_medium`](crate::Link::replace_medium).
    Medium(Box<dyn Medium>),
    /// Interrupts transmission in one direction until the given time.
    Outage(Time, OutageKind),
}

/// Behaviour of the transmitter during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutageKind {
    /// The transmitter sends nothing and packets stay queued; timers of the link layer run on.
    Silent,
    /// The transmitter does not notice the outage: all packets that it sends are lost.
    Fade,
}
