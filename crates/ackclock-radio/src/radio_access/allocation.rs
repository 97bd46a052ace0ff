//! Allocation of rates by load: the more users are active, the lower the rate of each user (L02 section 5.2.4).
//!
//! Every active user gets the highest step at which all active users together stay within the pool, and the lowest step
//! if none does. A user is active while its data waits or is in transit, and for a while afterwards. A user that becomes
//! active sends at the lowest step until the next allocation, and a user that is no longer active keeps its rate until
//! then.

use ackclock_core::{Config, ConfigError, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Allocation of the users' rates by the number of active users.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllocationConfig {
    /// Total rate of all active users, unless the lowest step for each user is more.
    pub pool: Rate,
    /// Rates that a user can get, from the lowest to the highest.
    pub steps: Vec<Rate>,
    /// Time from a change of the number of active users to the new allocation, and so the minimum time between two
    /// allocations.
    pub after: Span,
    /// Time for which a user stays active without data.
    pub idle: Span,
}

/// Maximum number of steps.
const MOST_STEPS: usize = 8;

impl Default for AllocationConfig {
    fn default() -> Self {
        Self {
            pool: Rate::from_bps(2_000_000),
            steps: [64_000, 128_000, 384_000].map(Rate::from_bps).to_vec(),
            after: Span::from_millis(500),
            idle: Span::from_secs(2),
        }
    }
}

impl Config for AllocationConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MOST_STEPS).contains(&self.steps.len()) {
            let message = format!("{} steps; an allocation has 1 to {MOST_STEPS}", self.steps.len());
            return Err(ConfigError::new("steps", message));
        }
        if !self.steps.is_sorted_by(|a, b| a < b) {
            return Err(ConfigError::new("steps", "must increase from the lowest to the highest rate"));
        }
        if self.after == Span::ZERO {
            return Err(ConfigError::new("after", "0s is not above 0"));
        }
        Ok(())
    }
}

impl AllocationConfig {
    /// Number of the step that each of `active` users gets.
    pub(super) fn step(&self, active: u64) -> usize {
        let fits = |rate: &Rate| rate.as_bps().saturating_mul(active) <= self.pool.as_bps();
        self.steps.iter().rposition(fits).unwrap_or(0)
    }
}

/// State of the allocation of all users' rates.
pub(super) struct Allocation {
    config: AllocationConfig,
    /// Time at which each user stops being active: [`Time::NEVER`] while it has data, `None` if it is not active.
    active: Vec<Option<Time>>,
    /// Step of each user.
    steps: Vec<usize>,
    /// Time of the next allocation; [`Time::NEVER`] if the rates fit the active users.
    due: Time,
}

impl Allocation {
    /// Creates the allocation of `users` users, who all have the lowest step.
    pub(super) fn new(config: &AllocationConfig, users: usize) -> Self {
        Self { config: config.clone(), active: vec![None; users], steps: vec![0; users], due: Time::NEVER }
    }

    /// Time of the next change.
    pub(super) fn next_change(&self) -> Time {
        self.active.iter().flatten().copied().min().unwrap_or(Time::NEVER).min(self.due)
    }

    /// Registers at `at` whether a user has data.
    pub(super) fn on_data(&mut self, at: Time, user: usize, has_data: bool) {
        let before = self.active[user];
        self.active[user] = match (has_data, before) {
            (true, _) => Some(Time::NEVER),
            (false, Some(Time::NEVER)) => Some(at + self.config.idle),
            (false, idle) => idle,
        };
        if before.is_none() && has_data {
            self.plan(at);
        }
    }

    /// Processes what is due at `at`. Returns the users whose step changes, with their steps.
    pub(super) fn advance(&mut self, at: Time) -> Vec<(usize, usize)> {
        let mut left = false;
        for active in &mut self.active {
            if active.is_some_and(|until| until <= at) {
                (*active, left) = (None, true);
            }
        }
        if left {
            self.plan(at);
        }
        if self.due > at {
            return Vec::new();
        }
        self.due = Time::NEVER;
        let wanted: Vec<_> = self.wanted().collect();
        let changed = |(user, step): (usize, usize)| {
            (std::mem::replace(&mut self.steps[user], step) != step).then_some((user, step))
        };
        wanted.into_iter().enumerate().filter_map(changed).collect()
    }

    /// Schedules an allocation because the number of active users has changed at `at`.
    fn plan(&mut self, at: Time) {
        let fits = self.wanted().eq(self.steps.iter().copied());
        self.due = match fits {
            true => Time::NEVER,
            false => self.due.min(at + self.config.after),
        };
    }

    /// Step that each user should have.
    fn wanted(&self) -> impl Iterator<Item = usize> + '_ {
        let step = self.config.step(self.active.iter().flatten().count() as u64);
        self.active.iter().map(move |active| if active.is_some() { step } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn allocations_are_at_least_after_apart() {
        let config = AllocationConfig { idle: Span::from_millis(10), ..AllocationConfig::default() };
        let mut allocation = Allocation::new(&config, 12);
        let mut last: Option<Time> = None;
        let mut count = 0;
        // Every 37 ms another user gets data, and the one four before has none.
        for step in 0..400 {
            let now = ms(37 * step);
            while allocation.next_change() <= now {
                let at = allocation.next_change();
                let due = allocation.due;
                if !allocation.advance(at).is_empty() || due <= at {
                    assert!(last.is_none_or(|last| at >= last + config.after), "{at:?} {last:?}");
                    (last, count) = (Some(at), count + 1);
                }
            }
            allocation.on_data(now, (step % 12) as usize, true);
            allocation.on_data(now, ((step + 8) % 12) as usize, step % 50 > 40);
        }
        assert!(count > 5, "{count}");
    }
}
