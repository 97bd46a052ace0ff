//! The table of the bearer.

use ackclock_core::{Config, ConfigError, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Observed, Observer};
use crate::{AnyBearer, BearerConfig, BearerContext, BearerLinks, Capacity, Direction, Files, Nominal};

/// A box that has no queue of its own and estimates the one that stands elsewhere, from what passes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObservedConfig {
    /// Where the box stands: "network", before the queue, or "mobile", behind it.
    pub side: Side,
    /// After so long without a loop of about the least length the windows are closed until the queue has run empty; left out, 30 s on the
    /// side of the network and 10 s on that of the mobiles. 0s: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Span>,
}

/// Where a box stands that only observes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Between the servers and the queue.
    #[default]
    Network,
    /// Between the queue and the mobiles.
    Mobile,
}

/// After so long a probe begins, by side.
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

    /// Nothing is known of it.
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
