//! Capacity of a link so far, over all media that it has had.

use ackclock_core::Time;

use crate::medium::Medium;

/// Work that each medium of a link could have done while installed. A medium of unknown capacity adds none, so that the
/// capacity between two instants is a difference of sums.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// When the present medium was installed.
    since: Time,
    /// Nanobits of the earlier media; `None` if that of none is known.
    work: Option<u128>,
}

impl Carried {
    /// Replaces the present medium by `next` at `now`.
    pub(crate) fn hand_over(&mut self, medium: &mut dyn Medium, next: &mut dyn Medium, now: Time) {
        self.work = self.until(medium, now);
        next.work(now, now);
        self.since = now;
    }

    /// Mean capacity until `until`, including the present medium, bit/s.
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
