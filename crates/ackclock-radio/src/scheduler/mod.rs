//! Schedulers of a cell: they select the user to serve in each slot. Each scheduler is in a separate file.

mod average;
mod max_rate;
mod pf;
mod pf_rp;
mod pf_sp;
mod registry;
mod round_robin;

use ackclock_link::short_flows::Class;

pub use average::{Average, Counts, IdleUsers};
pub use max_rate::MaxRateConfig;
pub use pf::PfConfig;
pub use pf_rp::PfRpConfig;
pub use pf_sp::PfSpConfig;
pub use registry::SCHEDULERS;
pub use round_robin::{Priority, RoundRobinConfig};

/// A user with data to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Number of the candidate user.
    pub user: u32,
    /// Weight of the class of the packet that the user would send next, at least 1.
    pub weight: u16,
    /// Rate at which the user can be served in this slot, bit/s; a user with rate zero cannot be served.
    pub rate: f64,
    /// Class of the packet that the user would send next.
    pub class: Class,
}

/// Service that a user received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// Number of the user that was served.
    pub user: u32,
    /// Weight of the user when it was selected.
    pub weight: u16,
    /// First slot of the service.
    pub slot: u64,
    /// Number of slots of the service.
    pub slots: u64,
    /// Rate that the channel offered to the user, bit/s.
    pub rate: f64,
    /// Rate of the data sent, bit/s; less than the channel's rate if the queue ran empty.
    pub served: f64,
}

/// Selects the user to serve. Slot numbers increase from call to call; slots in which no user has data are skipped.
pub trait Scheduler: Send {
    /// Returns the index of the candidate to serve; `None` if all rates are zero. Candidates are ordered by user
    /// number.
    fn choose(&mut self, slot: u64, candidates: &[Candidate]) -> Option<usize>;

    /// Reports the service of the user that was just selected.
    fn served(&mut self, service: Service);

    /// Whether the scheduler ignores the classes of packets, so that they need not be determined.
    fn ignores_class(&self) -> bool {
        false
    }
}

/// Everything a scheduler needs to be built from its table.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerContext<'a> {
    /// Mean rate of each user's channel, bit/s.
    pub mean_rates: &'a [f64],
}

/// Configuration of a scheduler: its table in a scenario file.
pub trait SchedulerConfig: std::fmt::Debug + Send + Sync {
    /// Builds the scheduler from its table.
    fn build(&self, context: SchedulerContext<'_>) -> Box<dyn Scheduler>;

    /// Whether it serves short flows and long ones differently.
    fn tells_flows_apart(&self) -> bool {
        false
    }
}

/// Round-robin order: users by number, starting after the user that was served last.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    next: u32,
}

impl Turn {
    /// Position of a user in the round-robin order.
    fn of(self, user: u32) -> u32 {
        user.wrapping_sub(self.next)
    }

    fn served(&mut self, user: u32) {
        self.next = user + 1;
    }
}

/// Returns the candidate with the highest rate. Ties go to the next user in round-robin order.
fn fastest<'a>(
    turn: Turn,
    candidates: impl Iterator<Item = (usize, &'a Candidate)>,
) -> Option<(usize, &'a Candidate)> {
    candidates
        .filter(|(_, candidate)| candidate.rate > 0.0)
        .min_by(|(_, a), (_, b)| b.rate.total_cmp(&a.rate).then(turn.of(a.user).cmp(&turn.of(b.user))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Candidates 0, 1 and so on with these rates and long flows.
    pub(super) fn candidates(rates: &[f64]) -> Vec<Candidate> {
        with_short(rates, &[])
    }

    /// Candidates with these rates; the given users have short flows.
    pub(super) fn with_short(rates: &[f64], short: &[u32]) -> Vec<Candidate> {
        let class = |user| if short.contains(&user) { Class::Short } else { Class::Long };
        (0..)
            .zip(rates)
            .map(|(user, &rate)| Candidate { user, weight: 1, rate, class: class(user) })
            .collect()
    }

    fn rates() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(prop_oneof![Just(0.0), Just(1e5), 1e4..3e6], 1..6)
    }

    proptest! {
        /// Serves a user with a rate whenever there is one, never one without; a repeated slot has the same result.
        #[test]
        fn every_scheduler_serves_somebody_who_has_a_rate(slots in prop::collection::vec((rates(), 0u32..6, 1u64..3000), 1..60)) {
            for entry in SCHEDULERS.entries {
                let config = (entry.parse)((entry.defaults)()).unwrap();
                let mut scheduler = config.build(SchedulerContext { mean_rates: &[4e5; 6] });
                let mut slot = 0;
                for (rates, short, gap) in &slots {
                    slot += gap;
                    let candidates = with_short(rates, &[*short]);
                    let chosen = scheduler.choose(slot, &candidates);
                    prop_assert_eq!(chosen, scheduler.choose(slot, &candidates), "{}", entry.name);
                    prop_assert_eq!(chosen.is_some(), rates.iter().any(|&rate| rate > 0.0), "{}", entry.name);
                    let Some(Candidate { user, rate, .. }) = chosen.map(|index| candidates[index]) else { continue };
                    prop_assert!(rate > 0.0, "{}", entry.name);
                    scheduler.served(Service { user, weight: 1, slot, slots: 1, rate, served: rate / 2.0 });
                }
            }
        }
    }

    /// Users served in the first slots.
    pub(super) fn play(
        scheduler: &mut dyn Scheduler,
        slots: u64,
        candidates: impl Fn(u64) -> Vec<Candidate>,
    ) -> Vec<u32> {
        let serve = |slot| {
            let candidates = candidates(slot);
            let Candidate { user, weight, rate, .. } =
                candidates[scheduler.choose(slot, &candidates).unwrap()];
            scheduler.served(Service { user, weight, slot, slots: 1, rate, served: rate });
            user
        };
        (0..slots).map(serve).collect()
    }
}
