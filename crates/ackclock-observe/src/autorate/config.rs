//! Configuration of the autorate bearer.

use ackclock_core::{Config, ConfigError, Rate, Span};
use ackclock_link::{AnyBearer, BearerConfig, BearerContext, BearerLinks, Direction, Files, Nominal, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Autorate;
use super::controller::Controller;

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
}

impl Default for AutorateConfig {
    fn default() -> Self {
        Self {
            side: Side::Network,
            min: Rate::from_bps(5_000_000),
            base: Rate::from_bps(20_000_000),
            max: Rate::from_bps(80_000_000),
            late: Span::from_millis(30),
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
        let bearer = Autorate::new(self.side, Controller::new(self), &context);
        Ok(AnyBearer::Other(Box::new(bearer)))
    }
}
