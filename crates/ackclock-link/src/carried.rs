//! Capacity of a link since the start of the run, over all media that the link has had.

use ackclock_core::Time;

use crate::medium::Medium;

/// Sum of the bits that each medium of a link could have sent while it was installed. A medium of unknown capacity adds
/// nothing, so that the capacity between two instants is a difference of two sums.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Time at which the present medium was installed.
    since: Time,
    /// Capacity of the earlier media, nanobits; `None` if no earlier medium has a known capacity.
    work: Option<u128>,
}

impl Carried {
    /// Replaces the present medium by `next` at `now`.
    pub(crate) fn hand_over(&mut self, medium: &mut dyn Medium, next: &mut dyn Medium, now: Time) {
        self.work = self.until(medium, now);
        next.work(now, now);
        self.since = now;
    }

    /// If the capacity of the present medium is unknown at `now`, its capacity before `now` counts as nothing.
    pub(crate) fn restart(&mut self, medium: &mut dyn Medium, now: Time) {
        if medium.work(self.since, now).is_none() {
            medium.restart_work(now);
            medium.work(now, now);
            self.since = now;
        }
    }

    /// Mean capacity until `until` in bit/s, including the present medium.
    pub(crate) fn mean_bps(&self, medium: &mut dyn Medium, until: Time) -> Option<f64> {
        let work = self.until(medium, until).filter(|_| until > Time::ZERO)?;
        Some(work as f64 / until.since(Time::ZERO).as_nanos() as f64)
    }

    fn until(&self, medium: &mut dyn Medium, until: Time) -> Option<u128> {
        match (self.work, medium.work(self.since, until)) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0) + now.unwrap_or(0)),
        }
    }
}
