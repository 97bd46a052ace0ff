//! # Maximum rate
//!
//! ## Source
//! Source: CR02 section 6.4, which compares this scheduler with proportional fair; it maximises throughput without
//! fairness.
//!
//! ## What it does
//! Serves the user with the highest rate. Ties go to the next user in round-robin order.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! `tests/cell.rs` compares the total throughput with the mean of the highest of all rates, which has a closed form.

use ackclock_core::Config;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service, Turn, fastest};

/// Serves the user with the highest rate.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxRateConfig {}

impl Config for MaxRateConfig {}

impl SchedulerConfig for MaxRateConfig {
    fn build(&self, _: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(MaxRate::default())
    }
}

#[derive(Debug, Default)]
struct MaxRate {
    turn: Turn,
}

impl Scheduler for MaxRate {
    fn choose(&mut self, _: u64, candidates: &[Candidate]) -> Option<usize> {
        fastest(self.turn, candidates.iter().enumerate()).map(|(index, _)| index)
    }

    fn served(&mut self, service: Service) {
        self.turn.served(service.user);
    }

    fn ignores_class(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{candidates, play};
    use super::*;

    #[test]
    fn the_fastest_is_served_and_equals_in_turn() {
        let mut scheduler = MaxRate::default();
        let served =
            play(&mut scheduler, 4, |slot| candidates(&[1e5, 2e5, if slot == 0 { 3e5 } else { 2e5 }]));
        assert_eq!(served, [2, 1, 2, 1]);
        assert_eq!(scheduler.choose(9, &candidates(&[0.0, 0.0])), None);
    }
}
