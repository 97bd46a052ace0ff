//! # Proportional fair with rate priority for short flows (PF-RP)
//!
//! ## Source
//! Source: CR04, slides on scheduling; described in `schedulers.md` section 4.
//!
//! ## What it does
//! Let i be the user that proportional fair selects among all users, and j the user that PF-SP selects. User i is
//! served if its rate is higher than the rate of j, otherwise user j is served. So a user with a short flow goes first
//! unless a user with a better channel would be passed over.
//!
//! ## Differences from the source
//! No difference from the source is known.
//!
//! ## Validation
//! Unit tests compare selections worked out by hand.

use ackclock_core::{Config, ConfigError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::average::Averages;
use super::pf_sp::short_first;
use super::{Average, Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service};

/// Serves users with short flows first, unless proportional fair would serve a user with a better channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PfRpConfig {
    /// Settings of the users' average rates.
    pub average: Average,
}

impl Config for PfRpConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.average.check()
    }
}

impl SchedulerConfig for PfRpConfig {
    fn build(&self, context: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(PfRp(self.average.build(context)))
    }

    fn tells_flows_apart(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct PfRp(Averages);

impl Scheduler for PfRp {
    fn choose(&mut self, slot: u64, candidates: &[Candidate]) -> Option<usize> {
        self.0.advance(slot, candidates);
        let (fair, i) = self.0.fairest(candidates.iter().enumerate())?;
        let (short, j) = short_first(&self.0, candidates)?;
        Some(if i.rate > j.rate { fair } else { short })
    }

    fn served(&mut self, service: Service) {
        self.0.serve(service);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_short;
    use super::*;

    #[test]
    fn a_short_flow_goes_first_unless_the_fair_choice_is_faster() {
        let mut pf_rp = PfRp(Average::default().build(SchedulerContext { mean_rates: &[4e5, 4e5, 8e6] }));
        let mut chosen = |users: &[Candidate]| pf_rp.choose(0, users);
        assert_eq!(chosen(&with_short(&[1e5, 3e5], &[0])), Some(1), "3e5 against 1e5");
        assert_eq!(chosen(&with_short(&[3e5, 3e5], &[1])), Some(1), "equal rates");
        // User 2 is fast, but not relative to its average: proportional fair would choose user 1, who is slower than
        // user 0.
        assert_eq!(chosen(&with_short(&[5e5, 6e5, 4e5], &[2])), Some(1));
        assert_eq!(chosen(&with_short(&[2e5, 3e5, 4e5], &[2])), Some(2), "the short one is the faster");
        assert_eq!(chosen(&with_short(&[0.0, 0.0], &[1])), None);
    }
}
