//! Configuration of the observing box.

use ackclock_core::{Config, ConfigError, Rate, Span};
use ackclock_link::{
    AnyBearer, BearerConfig, BearerContext, BearerLinks, Capacity, Direction, Files, Nominal, Side,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Observed, Observer};

/// An observing box: it has no queue and estimates the queue of the radio from passing traffic.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObservedConfig {
    /// Position of the box relative to the radio's queue: a "network" box is before the queue, a "mobile" box behind
    /// it.
    pub side: Side,
    /// Time without an RTT sample near the minimum after which windows are closed until the queue is empty. Default: 30
    /// s on the network side, 10 s on the mobile side; 0s: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Span>,
    /// Minimum time between two records of a flow, from which all estimates are calculated. A program in the kernel
    /// makes one record per millisecond. 0s: one record per packet.
    pub record_interval: Span,
    /// Share of the records that are lost on the way to the estimator.
    pub record_loss: f64,
}

/// Default of `probe` on the network side and on the mobile side.
const PROBE_AFTER: [Span; 2] = [Span::from_secs(30), Span::from_secs(10)];

impl Config for ObservedConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if !(0.0..1.0).contains(&self.record_loss) {
            let message = format!("{} is no share of at least 0 and below 1", self.record_loss);
            return Err(ConfigError::new("record_loss", message));
        }
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

    /// Returns zero for rate and delay, because nothing is known of the radio.
    fn nominal(&self, _: Direction, _: &BearerLinks, _: &dyn Files) -> Result<Nominal, ConfigError> {
        Ok(Nominal { rate: Rate::ZERO, delay: Span::ZERO })
    }

    fn gauges(&self) -> Vec<&'static str> {
        vec!["estimated_rate_bps", "estimated_wait_bytes", "least_loop_ms", "probes"]
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        Ok(AnyBearer::Other(Box::new(Observed::new(self, context.down.capacity(), context.follows))))
    }
}

impl ObservedConfig {
    /// Builds the observer that estimates the queue from records; `capacity` is the buffer for the flows of each user.
    pub fn observer(&self, capacity: Capacity) -> Observer {
        let after = self.probe.unwrap_or(PROBE_AFTER[self.side as usize]);
        Observer::new(self.side, Some(after).filter(|after| *after > Span::ZERO), capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_lost_records_is_below_one() {
        for record_loss in [1.0, -0.1, f64::NAN] {
            let config = ObservedConfig { record_loss, ..ObservedConfig::default() };
            assert_eq!(config.check().unwrap_err().path, "record_loss");
        }
        assert!(ObservedConfig { record_loss: 0.5, ..ObservedConfig::default() }.check().is_ok());
    }
}
