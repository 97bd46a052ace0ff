//! # Proportional fair
//!
//! ## Source
//! Source: CR02 section 6.4, after Jalali, Padovani and Pankaj, "Data throughput of CDMA-HDR", VTC 2000; described in
//! `schedulers.md` section 2.
//!
//! ## What it does
//! Serves the user with the highest ratio of current rate to average rate: argmax R/A. The averages of all users then
//! move by 1/tc towards the rate received. Ties go to the lowest average, then to the next user in round-robin order.
//! With classes of service, the ratio is multiplied by the weight of the class that the user would send next.
//!
//! ## Differences from the source
//! The source does not define the treatment of users without backlog, the initial averages, and the rate counted in a
//! slot in which the queue ran empty. [`Average`] has an option for each of these choices.
//!
//! ## Validation
//! `tests/cell.rs` compares the total throughput of 1, 4 and 8 users with unlimited data with `schedulers.md` section
//! 11.

use ackclock_core::{Config, ConfigError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::average::Averages;
use super::{Average, Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service};

/// Proportional fair: serves the user with the highest ratio of current rate to average rate.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PfConfig {
    /// Settings of the users' average rates.
    pub average: Average,
}

impl Config for PfConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.average.check()
    }
}

impl SchedulerConfig for PfConfig {
    fn build(&self, context: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(Pf(self.average.build(context)))
    }
}

#[derive(Debug)]
struct Pf(Averages);

impl Scheduler for Pf {
    fn choose(&mut self, slot: u64, candidates: &[Candidate]) -> Option<usize> {
        self.0.advance(slot, candidates);
        self.0.fairest(candidates.iter().enumerate()).map(|(index, _)| index)
    }

    fn served(&mut self, service: Service) {
        self.0.serve(service);
    }

    fn ignores_class(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{candidates, play};
    use super::*;

    fn pf() -> Pf {
        Pf(Average::default().build(SchedulerContext { mean_rates: &[4e5, 4e5, 4e5] }))
    }

    #[test]
    fn whoever_is_better_than_usual_is_served() {
        // Equal averages: the highest rate first.
        assert_eq!(pf().choose(0, &candidates(&[1e5, 3e5, 2e5])), Some(1));
        // Without fading users get equal time at any rates: after 3000 slots about 1000 each.
        let served = play(&mut pf(), 30_000, |_| candidates(&[1e5, 3e5, 9e5]));
        for user in 0..3 {
            let got = served[20_000..].iter().filter(|&&other| other == user).count();
            assert!(got.abs_diff(3333) < 40, "user {user}: {got}");
        }
    }

    #[test]
    fn users_get_time_by_their_weights() {
        let weighted = |weights: [u16; 2]| {
            move |_| {
                let with = |(candidate, weight)| Candidate { weight, ..candidate };
                candidates(&[1e5, 1e5]).into_iter().zip(weights).map(with).collect()
            }
        };
        let served = play(&mut pf(), 30_000, weighted([1, 3]));
        let second = served[10_000..].iter().filter(|&&user| user == 1).count();
        assert!(second.abs_diff(15_000) < 200, "{second} of 20000");
    }

    #[test]
    fn equal_users_are_served_in_turn() {
        let mut pf = pf();
        let served = play(&mut pf, 6, |_| candidates(&[1e5, 1e5, 1e5]));
        assert_eq!(served, [0, 1, 2, 0, 1, 2]);
        assert_eq!(pf.choose(6, &candidates(&[0.0])), None);
    }
}
