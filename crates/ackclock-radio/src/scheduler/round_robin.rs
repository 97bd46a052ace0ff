//! # Round robin
//!
//! ## Source
//! Source: the scheduler without channel knowledge with which CR02 and its references compare. CR04, slide of figure
//! 11, asks how much short flows gain without channel knowledge.
//!
//! ## What it does
//! Serves users with data and a rate in turn, one slot each, or as many slots in a row as the weight of the class of
//! service that the user sends. With `priority = "short-flows"`, only users whose next
//! packet belongs to a short flow are served, as long as there are any such users.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! Unit tests check equal turns and the priority of short flows. `tests/cell.rs` checks the total throughput of users
//! without fading.

use ackclock_core::Config;
use ackclock_link::short_flows::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service, Turn};

/// Serves one user after the other, one slot each.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobinConfig {
    /// Users that are served first.
    pub priority: Priority,
}

/// Users that are served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// No priority: all users are served in turn.
    #[default]
    None,
    /// Users whose next packet belongs to a short flow are served before all other users.
    ShortFlows,
}

impl Config for RoundRobinConfig {}

impl SchedulerConfig for RoundRobinConfig {
    fn build(&self, _: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(RoundRobin { priority: self.priority, ..RoundRobin::default() })
    }

    fn tells_flows_apart(&self) -> bool {
        self.priority == Priority::ShortFlows
    }
}

#[derive(Debug, Default)]
struct RoundRobin {
    priority: Priority,
    turn: Turn,
    /// User that was served last, and the number of services in its current turn.
    last: (u32, u16),
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
        let (user, before) = self.last;
        let services = if user == service.user { before + 1 } else { 1 };
        if services < service.weight {
            self.last = (service.user, services);
            self.turn = Turn { next: service.user };
        } else {
            self.last = (service.user, 0);
            self.turn.served(service.user);
        }
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
    fn a_user_has_as_many_slots_in_a_row_as_its_weight() {
        let of = |slot| {
            let weights = [1, 3, 2].map(|weight| if slot < 8 { weight } else { 1 });
            let with = |(candidate, weight)| Candidate { weight, ..candidate };
            candidates(&[1e5, 1e5, 1e5]).into_iter().zip(weights).map(with).collect()
        };
        let served = play(&mut RoundRobin::default(), 12, of);
        assert_eq!(served, [0, 1, 1, 1, 2, 2, 0, 1, 1, 2, 0, 1]);
    }

    #[test]
    fn users_with_short_flows_are_served_in_turn_before_the_others() {
        let mut scheduler = RoundRobin { priority: Priority::ShortFlows, ..RoundRobin::default() };
        // Users 1 and 3 have short flows until slot 4; user 3, though slower, has its turns all the same.
        let served = play(&mut scheduler, 7, |slot| {
            with_short(&[1e6, 1e6, 1e6, 1e5], if slot < 4 { &[1, 3] } else { &[] })
        });
        assert_eq!(served, [1, 3, 1, 3, 0, 1, 2]);
        // A short flow at rate zero delays nobody.
        assert_eq!(scheduler.choose(7, &with_short(&[1e5, 0.0], &[1])), Some(0));
    }
}
