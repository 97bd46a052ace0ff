//! What a link could have carried so far, over all the media that it has had.

use ackclock_core::{Span, Time};

use crate::medium::Medium;

/// What the media of a link could have carried, each from the instant at which it took its place. A medium of which nothing
/// shows what it could have carried is left out with its time.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// When the present medium took its place.
    since: Time,
    /// Nanobits of the media before, and the time in which they were.
    work: u128,
    known: Span,
}

impl Carried {
    /// The present medium gives its place to `next` at `now`.
    pub(crate) fn hand_over(&mut self, medium: &mut dyn Medium, next: &mut dyn Medium, now: Time) {
        if let Some(work) = medium.work(self.since, now) {
            self.work += work;
            self.known += now.since(self.since);
        }
        next.work(now, now);
        self.since = now;
    }

    /// Mean rate until `until` with the present medium, bit/s.
    pub(crate) fn mean_bps(&self, medium: &mut dyn Medium, until: Time) -> Option<f64> {
        let (mut work, mut known) = (self.work, self.known);
        if let Some(more) = medium.work(self.since, until) {
            work += more;
            known += until.since(self.since);
        }
        (known > Span::ZERO).then(|| work as f64 / known.as_nanos() as f64)
    }
}
