//! The usual rate of a link: mean service over the last hundred seconds or so with something to serve.

use ackclock_link::estimate::GRAIN;

/// Averaging time of the usual rate, seconds of service: longer than a fade.
const USUALLY: f64 = 100.0;

/// Mean rate of the link while there is something to serve.
#[derive(Debug, Default)]
pub(super) struct UsualRate {
    /// Bytes served, exponentially weighted.
    served: f64,
    /// Seconds of service, exponentially weighted.
    busy: f64,
    rate: f64,
}

impl UsualRate {
    pub(super) fn note(&mut self, served: f64, busy: f64) {
        let busy = busy.max(0.0);
        let keep = USUALLY / (USUALLY + busy);
        self.served = self.served * keep + served;
        self.busy = self.busy * keep + busy;
        // The first packets show little.
        self.rate = self.served / (self.busy + GRAIN.as_secs_f64());
    }

    /// Bytes per second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }
}
