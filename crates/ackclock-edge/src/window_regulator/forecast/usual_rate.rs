//! Usual rate of a link: mean rate of service over about the last hundred seconds in which the link had data to serve.

use ackclock_observe::estimate::GRAIN;

/// Averaging time of the usual rate, in seconds of service; the averaging time is longer than a fade.
const USUALLY: f64 = 100.0;

/// Mean rate of the link while it has data to serve.
#[derive(Debug, Default)]
pub(super) struct UsualRate {
    /// Bytes served by the link, exponentially weighted.
    served: f64,
    /// Seconds in which the link served data, exponentially weighted.
    busy: f64,
    rate: f64,
}

impl UsualRate {
    pub(super) fn note(&mut self, served: f64, busy: f64) {
        let busy = busy.max(0.0);
        let keep = USUALLY / (USUALLY + busy);
        self.served = self.served * keep + served;
        self.busy = self.busy * keep + busy;
        // The extra `GRAIN` in the divisor damps the rate of the first packets, which show little of the link's usual
        // rate.
        self.rate = self.served / (self.busy + GRAIN.as_secs_f64());
    }

    /// Usual rate of the link, bytes per second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }
}
