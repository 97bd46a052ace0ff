//! # Gilbert-Elliott errors
//!
//! ## Source
//! Source: Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39, 1960; Elliott, "Estimates of
//! error rates for codes on burst-noise channels", Bell System Technical Journal 42, 1963.
//!
//! ## What it does
//! A channel is good or bad in each interval, as a Markov chain: a good interval is followed by a bad one with
//! probability p, a bad interval by a good one with probability r. Packets or blocks are lost with one probability in
//! good intervals and with another probability in bad intervals.
//!
//! ## Differences from the source
//! The state changes with time, not with each packet, so the channel also changes while nothing is sent.
//!
//! ## Validation
//! `tests/errors.rs` checks the share of losses, the mean burst length 1/r and the mean gap 1/p.

use ackclock_core::{Config, ConfigError, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bursts::{BurstState, Bursts, Chain};
use super::{AnyErrorProcess, ErrorConfig, ErrorContext, ErrorProcess, check_interval};
use crate::{Fate, Files, Loss};

/// Bursts of losses: a channel is good or bad as a Markov chain, with a loss probability for each state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GilbertElliottConfig {
    /// Probability that a bad interval follows a good one. Good runs last 1/p intervals on average.
    pub p: Loss,
    /// Probability that a good interval follows a bad one. Bad runs last 1/r intervals on average.
    pub r: Loss,
    /// Loss probability in good intervals.
    pub good: Loss,
    /// Loss probability in bad intervals.
    pub bad: Loss,
    /// Duration of an interval; default: the TTI of `umts-rlc`, the slot of a cell, 10ms for any other link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

impl Default for GilbertElliottConfig {
    /// Returns Gilbert's channel with bursts of 10 intervals about every second.
    fn default() -> Self {
        Self { p: Loss(0.01), r: Loss(0.1), good: Loss(0.0), bad: Loss(1.0), interval: None }
    }
}

impl GilbertElliottConfig {
    const fn chain(&self) -> Chain {
        Chain { to_bad: self.p.probability(), to_good: self.r.probability() }
    }
}

impl Config for GilbertElliottConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let Chain { to_bad: p, to_good: r } = self.chain();
        if p + r == 0.0 {
            return Err(ConfigError::new("p", "p and r are both 0: the channel would never change"));
        }
        if p + r > 1.0 {
            let message = format!("p + r = {} is above 1: losses would not come in bursts", p + r);
            return Err(ConfigError::new("p", message));
        }
        check_interval(self.interval)
    }
}

impl ErrorConfig for GilbertElliottConfig {
    fn share(&self, _: &dyn Files) -> Result<f64, ConfigError> {
        let bad = self.chain().share_bad();
        Ok(bad * self.bad.probability() + (1.0 - bad) * self.good.probability())
    }

    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        let interval = self.interval.unwrap_or(context.block);
        let states = Bursts::new(self.chain(), interval, context.streams.stream(context.name));
        let chance = context.streams.stream(&format!("{}/within", context.name));
        Ok(AnyErrorProcess::Other(Box::new(GilbertElliott { states, lost: [self.good, self.bad], chance })))
    }
}

/// A Gilbert-Elliott channel, with the loss probability of each state.
struct GilbertElliott {
    states: Bursts,
    lost: [Loss; 2],
    chance: Stream,
}

impl ErrorProcess for GilbertElliott {
    fn fate(&mut self, at: Time) -> Fate {
        let share = self.lost[self.states.state(at) as usize];
        // A random number is drawn for every packet, so that later random numbers do not depend on the state.
        if self.chance.chance(share.probability()) { Fate::Lost } else { Fate::Arrives }
    }
}

const _: () = assert!(BurstState::Good as usize == 0 && BurstState::Bad as usize == 1);

#[cfg(test)]
mod tests {
    use ackclock_core::registry::read_table;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_channel_that_cannot_be_is_refused() {
        let refused = |table| read_table::<GilbertElliottConfig>(table).unwrap_err();
        assert_eq!(refused(json!({"p": 0, "r": 0})).path, "p");
        assert_eq!(
            refused(json!({"p": 0.6, "r": 0.5})).message,
            "p + r = 1.1 is above 1: losses would not come in bursts"
        );
        assert_eq!(refused(json!({"interval": "1us"})).path, "interval");
        assert_eq!(refused(json!({"bad": 1.5})).path, "bad");
    }
}
