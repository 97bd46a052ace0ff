//! The usual rate of a link: what it serves in the mean of the last hundred seconds or so in which it had something to serve.

use super::link_state::GRAIN;

/// The usual rate is that of so many seconds of service of late: of longer than a rate fades for.
const USUALLY: f64 = 100.0;

/// What the link serves in the mean while there is something to serve.
#[derive(Debug, Default)]
pub(super) struct Usual {
    /// Bytes, and the seconds that they took, each less the longer ago.
    served: f64,
    busy: f64,
    rate: f64,
}

impl Usual {
    pub(super) fn note(&mut self, served: f64, busy: f64) {
        let busy = busy.max(0.0);
        let keep = USUALLY / (USUALLY + busy);
        self.served = self.served * keep + served;
        self.busy = self.busy * keep + busy;
        // The first packets show little.
        self.rate = self.served / (self.busy + GRAIN.as_secs_f64());
    }

    /// Bytes a second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }
}
