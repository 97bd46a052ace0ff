//! # Proportional fair with strict priority for short flows (PF-SP)
//!
//! ## Source
//! Source: CR04, slides on scheduling; described in `schedulers.md` section 3.
//!
//! ## What it does
//! Serves the user with the highest rate among users whose next packet belongs to a short flow. If no user has a short
//! flow, proportional fair selects the user. Averages cover short and long flows together.
//!
//! ## Differences from the source
//! A user with rate zero is not served, so long flows are served while every user with a short flow fades.
//!
//! ## Validation
//! Unit tests compare selections worked out by hand.

use ackclock_core::{Config, ConfigError};
use ackclock_link::short_flows::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::average::Averages;
use super::{Average, Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service, fastest};

/// Serves the user with the highest rate among users with short flows; without short flows, proportional fair selects
/// the user.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PfSpConfig {
    /// Settings of the users' average rates.
    pub average: Average,
}

impl Config for PfSpConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.average.check()
    }
}

impl SchedulerConfig for PfSpConfig {
    fn build(&self, context: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(PfSp(self.average.build(context)))
    }

    fn tells_flows_apart(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct PfSp(Averages);

impl Scheduler for PfSp {
    fn choose(&mut self, slot: u64, candidates: &[Candidate]) -> Option<usize> {
        self.0.advance(slot, candidates);
        short_first(&self.0, candidates).map(|(index, _)| index)
    }

    fn served(&mut self, service: Service) {
        self.0.serve(service);
    }
}

/// Returns the selection of PF-SP; the averages must be up to date for this slot.
pub(super) fn short_first<'a>(
    averages: &Averages,
    candidates: &'a [Candidate],
) -> Option<(usize, &'a Candidate)> {
    let of = |class| candidates.iter().enumerate().filter(move |(_, user)| user.class == class);
    fastest(averages.turn(), of(Class::Short)).or_else(|| averages.fairest(of(Class::Long)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{candidates, with_short};
    use super::*;

    #[test]
    fn the_fastest_user_with_a_short_flow_goes_first() {
        let averages = Average::default().build(SchedulerContext { mean_rates: &[4e5, 4e5, 8e5] });
        let chosen = |users: &[Candidate]| short_first(&averages, users).map(|(index, _)| index);
        assert_eq!(chosen(&with_short(&[1e5, 2e5, 9e5], &[0, 1])), Some(1));
        assert_eq!(chosen(&with_short(&[0.0, 2e5, 9e5], &[0])), Some(2), "a short flow that fades");
        // Long ones by their share: 3e5 of 4e5 is more than 5e5 of 8e5.
        assert_eq!(chosen(&candidates(&[1e5, 3e5, 5e5])), Some(1));
    }
}
