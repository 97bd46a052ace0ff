//! DupThresh: number of duplicates that indicate a loss.

use ackclock_core::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choices::Switch;
use crate::scoreboard::DUP_THRESH;
use crate::stack::Stack;

/// DupThresh: a fixed number, or adaptive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected 1 to 1000, \"careful\" or \"aggressive\"")]
pub enum DupThresh {
    /// Fixed number of duplicates.
    Fixed(u32),
    /// Adaptive: about a window of packets (RFC 4653).
    Adaptive(Extension),
}

/// Rate of extended limited transmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// One packet for every second one that leaves the network; DupThresh is two thirds of the packets in flight.
    Careful,
    /// One packet for each that leaves the network; DupThresh is half of the packets in flight.
    Aggressive,
}

/// Largest fixed DupThresh.
const MOST_DUPLICATES: u32 = 1000;

impl Default for DupThresh {
    fn default() -> Self {
        Self::Fixed(DUP_THRESH)
    }
}

impl DupThresh {
    /// The fixed number; if adaptive, the smallest value.
    pub fn least(self) -> u32 {
        match self {
            Self::Fixed(number) => number,
            Self::Adaptive(_) => DUP_THRESH,
        }
    }

    /// Checks it against the other options of its sender.
    ///
    /// # Errors
    /// Says which values are allowed.
    pub fn check(self, stack: Stack, limited_transmit: Switch) -> Result<(), ConfigError> {
        let refuse = |message: String| Err(ConfigError::new("", message));
        match self {
            _ if stack == Stack::Linux && self != Self::default() => {
                refuse("stack = \"linux\" adapts its own threshold".to_owned())
            }
            Self::Fixed(number) if !(1..=MOST_DUPLICATES).contains(&number) => {
                refuse(format!("{number} is not 1 to {MOST_DUPLICATES}"))
            }
            Self::Adaptive(_) if limited_transmit == Switch::On => refuse(
                "adaptive thresholds include limited transmit: leave limited_transmit \"off\"".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}
