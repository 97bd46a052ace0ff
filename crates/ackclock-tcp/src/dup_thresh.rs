//! DupThresh: number of duplicate acknowledgements that indicates a loss.

use ackclock_core::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choices::Switch;
use crate::scoreboard::DUP_THRESH;
use crate::stack::Stack;

/// DupThresh: a fixed or an adaptive number of duplicate acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected 1 to 1000, \"careful\" or \"aggressive\"")]
pub enum DupThresh {
    /// Fixed number of duplicate acknowledgements.
    Fixed(u32),
    /// Adaptive number, so that reordering within about one window of packets is tolerated (RFC 4653).
    Adaptive(Extension),
}

/// Sending rate of extended limited transmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// Send one packet for every second packet that leaves the network. DupThresh is two thirds of the packets in
    /// flight.
    Careful,
    /// Send one packet for each packet that leaves the network. DupThresh is half of the packets in flight.
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
    /// The fixed DupThresh, or the smallest value of an adaptive DupThresh.
    pub fn least(self) -> u32 {
        match self {
            Self::Fixed(number) => number,
            Self::Adaptive(_) => DUP_THRESH,
        }
    }

    /// Checks `dup_thresh` against the other options of the sender.
    ///
    /// # Errors
    /// Returns an error that states the allowed values.
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
