//! Capacity of a link so far, over all media that it has had.

use ackclock_core::{Span, Time};

use crate::medium::Medium;

/// Work that each medium of a link could have done while installed. A medium of unknown capacity is left out, with its
/// time.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// When the present medium was installed.
    since: Time,
    /// Nanobits of the earlier media, and the time that they were installed.
    work: u128,
    known: Span,
}

impl Carried {
    /// Replaces the present medium by `next` at `now`.
    pub(crate) fn hand_over(&mut self, medium: &mut dyn Medium, next: &mut dyn Medium, now: Time) {
        if let Some(work) = medium.work(self.since, now) {
            self.work += work;
            self.known += now.since(self.since);
        }
        next.work(now, now);
        self.since = now;
    }

    /// Mean capacity until `until`, including the present medium, bit/s.
    pub(crate) fn mean_bps(&self, medium: &mut dyn Medium, until: Time) -> Option<f64> {
        let (mut work, mut known) = (self.work, self.known);
        if let Some(more) = medium.work(self.since, until) {
            work += more;
            known += until.since(self.since);
        }
        (known > Span::ZERO).then(|| work as f64 / known.as_nanos() as f64)
    }
}
