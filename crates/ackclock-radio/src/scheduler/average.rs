//! Average rates of users, by which proportional fair schedulers divide (`schedulers.md` section 2).
//!
//! The average rate of a user decays in every slot. The decay over several slots is applied as a power when the user is
//! next considered, so idle slots need no calculation.

use ackclock_core::{ConfigError, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, SchedulerContext, Service, Turn};

/// Settings of the users' average rates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Average {
    /// Averaging time t_c, in slots.
    pub tc: u32,
    /// Treatment of the averages of users with no data to send.
    pub idle: IdleUsers,
    /// Rate that a service adds to the average.
    pub counts: Counts,
    /// Initial average of every user; default: the mean rate of the user's channel divided by the number of users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Rate>,
}

/// Treatment of the average of a user with no data to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleUsers {
    /// The average decays, as for a user with data that is not served.
    #[default]
    Decay,
    /// The average does not change while the user has no data.
    Freeze,
}

/// Rate that a service adds to the average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Adds the rate of the bits sent: less than the channel's rate if the queue ran empty.
    #[default]
    Served,
    /// Adds the rate that the channel offers to the user.
    Rate,
}

impl Default for Average {
    fn default() -> Self {
        Self { tc: 1000, idle: IdleUsers::Decay, counts: Counts::Served, initial: None }
    }
}

impl Average {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.tc == 0 {
            return Err(ConfigError::new("average.tc", "0 slots are not above 0"));
        }
        if self.initial == Some(Rate::ZERO) {
            return Err(ConfigError::new("average.initial", "must be above 0: rates are divided by it"));
        }
        Ok(())
    }

    pub(super) fn build(&self, context: SchedulerContext<'_>) -> Averages {
        let users = context.mean_rates.len() as f64;
        let initial = |&mean: &f64| self.initial.map_or(mean / users, |rate| rate.as_bps() as f64);
        Averages {
            gain: 1.0 / f64::from(self.tc),
            decay: Decay::new(1.0 - 1.0 / f64::from(self.tc)),
            idle: self.idle,
            counts: self.counts,
            values: context.mean_rates.iter().map(initial).map(|value| value.max(LEAST)).collect(),
            upto: vec![0; context.mean_rates.len()],
            turn: Turn::default(),
        }
    }
}

/// Lower limit of an average, bit/s, so that the ratio of rate to average stays finite.
const LEAST: f64 = 1.0;

/// Average rates of all users.
#[derive(Debug)]
pub(super) struct Averages {
    gain: f64,
    decay: Decay,
    idle: IdleUsers,
    counts: Counts,
    values: Vec<f64>,
    /// Number of the slot up to which each user's average is calculated.
    upto: Vec<u64>,
    turn: Turn,
}

impl Averages {
    /// Updates the averages of the candidates to the start of `slot`.
    pub(super) fn advance(&mut self, slot: u64, candidates: &[Candidate]) {
        for candidate in candidates {
            let user = candidate.user as usize;
            let missed = slot.saturating_sub(self.upto[user]);
            let slots = match self.idle {
                IdleUsers::Decay => missed,
                // The average decays for one slot only, however many slots have passed since the user was last a
                // candidate.
                IdleUsers::Freeze => missed.min(1),
            };
            self.values[user] = (self.values[user] * self.decay.over(slots)).max(LEAST);
            self.upto[user] = slot;
        }
    }

    /// Returns the candidate with the highest ratio of rate to average, times its weight. Ties go to the lowest average,
    /// then to the next user in round-robin order. The averages must be up to date for this slot.
    pub(super) fn fairest<'a>(
        &self,
        candidates: impl Iterator<Item = (usize, &'a Candidate)>,
    ) -> Option<(usize, &'a Candidate)> {
        let mut best: Option<(f64, f64, usize, &Candidate)> = None;
        for (index, candidate) in candidates.filter(|(_, candidate)| candidate.rate > 0.0) {
            let average = self.values[candidate.user as usize];
            let share = f64::from(candidate.weight) * candidate.rate / average;
            let better = best.is_none_or(|(most, least, _, other)| {
                let order = share.total_cmp(&most).then(least.total_cmp(&average));
                order.then(self.turn.of(other.user).cmp(&self.turn.of(candidate.user))).is_gt()
            });
            if better {
                best = Some((share, average, index, candidate));
            }
        }
        best.map(|(_, _, index, candidate)| (index, candidate))
    }

    /// Updates the averages for a service: A <- (1 - 1/tc) A + (1/tc) R for the served user, in each slot of the
    /// service.
    pub(super) fn serve(&mut self, service: Service) {
        let got = match self.counts {
            Counts::Served => service.served,
            Counts::Rate => service.rate,
        };
        let user = service.user as usize;
        for _ in 0..service.slots {
            self.values[user] = self.values[user] * self.decay.over(1) + self.gain * got;
        }
        self.upto[user] = match self.idle {
            IdleUsers::Decay => service.slot + service.slots,
            // The next update applies no decay, because the service has already applied the decay of its slots.
            IdleUsers::Freeze => u64::MAX,
        };
        self.turn.served(service.user);
    }

    pub(super) fn turn(&self) -> Turn {
        self.turn
    }
}

/// Powers of the decay factor per slot.
#[derive(Debug)]
struct Decay {
    /// Decay factor over 2^n slots, for each n.
    powers: [f64; 64],
}

impl Decay {
    fn new(base: f64) -> Self {
        let mut powers = [base; 64];
        for n in 1..powers.len() {
            powers[n] = powers[n - 1] * powers[n - 1];
        }
        Self { powers }
    }

    #[inline]
    fn over(&self, mut slots: u64) -> f64 {
        if slots == 1 {
            return self.powers[0];
        }
        let mut product = 1.0;
        while slots != 0 {
            product *= self.powers[slots.trailing_zeros() as usize];
            slots &= slots - 1;
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::candidates;
    use super::*;

    fn averages(config: &Average) -> Averages {
        config.build(SchedulerContext { mean_rates: &[4e5, 4e5] })
    }

    fn service(slot: u64, slots: u64) -> Service {
        Service { user: 0, weight: 1, slot, slots, rate: 6e5, served: 3e5 }
    }

    #[test]
    fn an_average_moves_by_a_part_in_tc() {
        let mut averages = averages(&Average { tc: 100, ..Average::default() });
        assert_eq!(averages.values, [2e5, 2e5], "the mean rate over the number of users");
        averages.advance(0, &candidates(&[1.0, 1.0]));
        averages.serve(service(0, 1));
        averages.advance(1, &candidates(&[1.0, 1.0]));
        // 0.99 x 200000 + 0.01 x 300000, and 0.99 x 200000
        assert_eq!(averages.values, [201_000.0, 198_000.0]);
        averages.advance(3, &candidates(&[1.0]));
        assert!((averages.values[0] - 201_000.0 * 0.99 * 0.99).abs() < 1e-6);
        let rate =
            Average { tc: 100, counts: Counts::Rate, initial: Some(Rate::from_bps(1)), ..Average::default() };
        let mut averages = rate.build(SchedulerContext { mean_rates: &[4e5] });
        averages.serve(service(0, 1));
        assert!((averages.values[0] - 6000.99).abs() < 1e-9);
    }

    #[test]
    fn averages_of_idle_users_decay_or_stay() {
        let mut decays = averages(&Average::default());
        decays.advance(1_000_000, &candidates(&[1.0]));
        assert_eq!(decays.values, [LEAST, 2e5], "only candidates are updated");
        let mut stays = averages(&Average { idle: IdleUsers::Freeze, tc: 100, ..Average::default() });
        stays.advance(0, &candidates(&[1.0, 1.0]));
        stays.serve(service(0, 1));
        stays.advance(1000, &candidates(&[1.0, 1.0]));
        // The other was a candidate in slot 0 and not served: one decay.
        assert_eq!(stays.values, [201_000.0, 198_000.0]);
    }

    #[test]
    fn a_span_decays_as_its_slots_do() {
        let decay = Decay::new(0.999);
        let mut product = 1.0;
        for slots in 0..1000 {
            assert!((decay.over(slots) / product - 1.0).abs() < 1e-12, "{slots}");
            product *= 0.999;
        }
    }
}
