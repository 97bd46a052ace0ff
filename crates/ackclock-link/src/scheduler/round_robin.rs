//! # Round robin
//!
//! ## Source
//! The scheduler without knowledge of the channel against which CR02 and its references measure.
//!
//! ## What it does
//! Users who have something to send and a rate are served in turn, a slot each.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! Equal turns (unit test); totals of users without fading (`tests/cell.rs`).

use ackclock_core::Config;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service, Turn};

/// One user after the other, a slot each.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobinConfig {}

impl Config for RoundRobinConfig {}

impl SchedulerConfig for RoundRobinConfig {
    fn build(&self, _: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(RoundRobin::default())
    }
}

#[derive(Debug, Default)]
struct RoundRobin {
    turn: Turn,
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, _: u64, candidates: &[Candidate]) -> Option<usize> {
        let able = candidates.iter().enumerate().filter(|(_, candidate)| candidate.rate > 0.0);
        able.min_by_key(|(_, candidate)| self.turn.of(candidate.user)).map(|(index, _)| index)
    }

    fn served(&mut self, service: Service) {
        self.turn.served(service.user);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{candidates, play};
    use super::*;

    #[test]
    fn users_with_a_rate_are_served_in_turn() {
        let mut scheduler = RoundRobin::default();
        let served =
            play(&mut scheduler, 6, |slot| candidates(&[1e5, if slot < 3 { 0.0 } else { 1e6 }, 2e5]));
        assert_eq!(served, [0, 2, 0, 1, 2, 0]);
    }
}
