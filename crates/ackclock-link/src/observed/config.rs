//! Configuration of the UMTS bearer.

use ackclock_core::{Config, ConfigError, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Observed, Observer};
use crate::{AnyBearer, BearerConfig, BearerContext, BearerLinks, Capacity, Direction, Files, Nominal};

/// An observing box: it has no queue and estimates the queue of the radio from passing traffic.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObservedConfig {
    /// Side of the radio's queue on which the box is: "network", before it, or "mobile", behind it.
    pub side: Side,
    /// After this long without an RTT sample near the minimum, windows are closed until the queue is empty; default:
    /// 30 s on the network side, 10 s on the mobile side; 0s: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Span>,
}

/// Side of a radio on which an observing box is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Between the servers and the queue.
    #[default]
    Network,
    /// Between the queue and the mobiles.
    Mobile,
}

/// Default of `probe`, by side.
const PROBE_AFTER: [Span; 2] = [Span::from_secs(30), Span::from_secs(10)];

impl Config for ObservedConfig {
    fn check(&self) -> Result<(), ConfigError> {
        match self.probe {
            Some(probe) if probe > Span::ZERO && probe < Span::from_secs(1) => {
                Err(ConfigError::new("probe", format!("{probe:?} is neither 0s nor at least 1s")))
            }
            _ => Ok(()),
        }
    }
}

impl BearerConfig for ObservedConfig {
    fn uses_links(&self) -> bool {
        false
    }

    fn observes(&self) -> Option<Side> {
        Some(self.side)
    }

    /// Nothing is known of the radio.
    fn nominal(&self, _: Direction, _: &BearerLinks, _: &dyn Files) -> Result<Nominal, ConfigError> {
        Ok(Nominal { rate: Rate::ZERO, delay: Span::ZERO })
    }

    fn gauges(&self) -> &'static [&'static str] {
        &["estimated_rate_bps", "estimated_wait_bytes", "least_loop_ms", "probes"]
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        Ok(AnyBearer::Other(Box::new(Observed::new(self.observer(context.down.capacity())))))
    }
}

impl ObservedConfig {
    /// Builds what learns from records, with a buffer of that capacity for the flows of each user.
    pub fn observer(&self, capacity: Capacity) -> Observer {
        let after = self.probe.unwrap_or(PROBE_AFTER[self.side as usize]);
        Observer::new(self.side, Some(after).filter(|after| *after > Span::ZERO), capacity)
    }
}
