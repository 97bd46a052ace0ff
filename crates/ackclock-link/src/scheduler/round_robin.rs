//! # Round robin
//!
//! ## Source
//! The scheduler without knowledge of the channel against which CR02 and its references measure. CR04, slide of figure 11,
//! asks what short flows gain without that knowledge.
//!
//! ## What it does
//! Users who have something to send and a rate are served in turn, a slot each; with `priority = "short-flows"` only those
//! whose next packet belongs to a short flow, as long as there are such users.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! Equal turns and priority (unit tests); totals of users without fading (`tests/cell.rs`).

use ackclock_core::Config;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, Class, Scheduler, SchedulerConfig, SchedulerContext, Service, Turn};

/// One user after the other, a slot each.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobinConfig {
    /// Among whom turns go round first.
    pub priority: Priority,
}

/// Among whom turns go round first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// All users alike.
    #[default]
    None,
    /// Users whose next packet belongs to a short flow, then the others.
    ShortFlows,
}

impl Config for RoundRobinConfig {}

impl SchedulerConfig for RoundRobinConfig {
    fn build(&self, _: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(RoundRobin { priority: self.priority, turn: Turn::default() })
    }
}

#[derive(Debug, Default)]
struct RoundRobin {
    priority: Priority,
    turn: Turn,
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, _: u64, candidates: &[Candidate]) -> Option<usize> {
        let able = candidates.iter().enumerate().filter(|(_, candidate)| candidate.rate > 0.0);
        let waits = |candidate: &Candidate| {
            let second = self.priority == Priority::ShortFlows && candidate.class == Class::Long;
            (second, self.turn.of(candidate.user))
        };
        able.min_by_key(|(_, candidate)| waits(candidate)).map(|(index, _)| index)
    }

    fn served(&mut self, service: Service) {
        self.turn.served(service.user);
    }

    fn ignores_class(&self) -> bool {
        self.priority == Priority::None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{candidates, play, with_short};
    use super::*;

    #[test]
    fn users_with_a_rate_are_served_in_turn() {
        let mut scheduler = RoundRobin::default();
        let served =
            play(&mut scheduler, 6, |slot| candidates(&[1e5, if slot < 3 { 0.0 } else { 1e6 }, 2e5]));
        assert_eq!(served, [0, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn users_with_short_flows_are_served_in_turn_before_the_others() {
        let mut scheduler = RoundRobin { priority: Priority::ShortFlows, ..RoundRobin::default() };
        // Users 1 and 3 have short flows until slot 4; user 3, which is the slower, has its turns all the same.
        let served = play(&mut scheduler, 7, |slot| {
            with_short(&[1e6, 1e6, 1e6, 1e5], if slot < 4 { &[1, 3] } else { &[] })
        });
        assert_eq!(served, [1, 3, 1, 3, 0, 1, 2]);
        // A short flow without a rate keeps nobody waiting.
        assert_eq!(scheduler.choose(7, &with_short(&[1e5, 0.0], &[1])), Some(0));
    }
}
