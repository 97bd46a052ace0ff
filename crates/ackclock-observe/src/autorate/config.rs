//! Configuration of the autorate bearer.

use std::sync::Arc;

use ackclock_core::{Config, ConfigError, Rate, Span};
use ackclock_link::queue::{CakeConfig, FqCodelConfig, QueueConfig};
use ackclock_link::{
    AnyBearer, BearerConfig, BearerContext, BearerLinks, Direction, Files, Framing, Nominal, Side,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Autorate;

/// Queue discipline before the shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapedQueue {
    /// FQ-CoDel.
    #[default]
    FqCodel,
    /// CAKE, set for the rate `base`.
    Cake,
}

impl ShapedQueue {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A shaper that adapts its rate to the round-trip time and the load, as documented for cake-autorate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AutorateConfig {
    /// Position of the box relative to the radio's queue: a "network" box is before the queue, a "mobile" box behind
    /// it.
    pub side: Side,
    /// Minimum rate of the shaper.
    pub min: Rate,
    /// Initial rate of the shaper, to which it returns under low load.
    pub base: Rate,
    /// Maximum rate of the shaper.
    pub max: Rate,
    /// Threshold for a late round trip, in addition to the transmission time of a full packet. A round trip is late if
    /// half of it exceeds half of the usual round trip by more than the sum of these two times.
    pub late: Span,
    /// Queue discipline before the shaper: "fq-codel", or "cake", whose targets are those for the rate `base`.
    #[serde(skip_serializing_if = "ShapedQueue::is_default")]
    pub queue: ShapedQueue,
    /// Bytes that frames of the shaped link add to each packet, as in the key of a link.
    #[serde(skip_serializing_if = "Framing::is_none")]
    pub overhead: Framing,
}

impl Default for AutorateConfig {
    fn default() -> Self {
        Self {
            side: Side::Network,
            min: Rate::from_bps(5_000_000),
            base: Rate::from_bps(20_000_000),
            max: Rate::from_bps(80_000_000),
            late: Span::from_millis(30),
            queue: ShapedQueue::default(),
            overhead: Framing::NONE,
        }
    }
}

impl Config for AutorateConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if self.min == Rate::ZERO {
            return Err(ConfigError::new("min", "a shaper at rate 0 delivers nothing; use at least 1bit/s"));
        }
        if self.base < self.min || self.base > self.max {
            let message = format!("{} is not from `min`, {}, to `max`, {}", self.base, self.min, self.max);
            return Err(ConfigError::new("base", message));
        }
        if self.late == Span::ZERO {
            return Err(ConfigError::new("late", "0s: every round trip would be late"));
        }
        Ok(())
    }
}

impl AutorateConfig {
    /// Table of the queue before the shaper.
    pub(super) fn queue(&self) -> Arc<dyn QueueConfig> {
        match self.queue {
            ShapedQueue::FqCodel => Arc::new(FqCodelConfig::default()),
            ShapedQueue::Cake => Arc::new(CakeConfig { rate: Some(self.base), ..CakeConfig::default() }),
        }
    }
}

impl BearerConfig for AutorateConfig {
    fn uses_links(&self) -> bool {
        false
    }

    fn observes(&self) -> Option<Side> {
        Some(self.side)
    }

    fn regulates(&self) -> bool {
        true
    }

    /// Returns the initial rate of the shaper.
    fn nominal(&self, _: Direction, _: &BearerLinks, _: &dyn Files) -> Result<Nominal, ConfigError> {
        Ok(Nominal { rate: self.base, delay: Span::ZERO })
    }

    fn gauges(&self) -> Vec<&'static str> {
        vec!["shaper_rate_bps", "achieved_rate_bps", "usual_round_trip_ms", "late_ms"]
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let bearer = Autorate::new(self, &context);
        Ok(AnyBearer::Other(Box::new(bearer)))
    }
}
