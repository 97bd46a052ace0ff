//! Loss-based rate control (draft-ietf-rmcat-gcc-02 section 6).

/// Share of lost packets below which the bitrate grows.
const LOW: f64 = 0.02;
/// Share of lost packets above which the bitrate falls.
const HIGH: f64 = 0.1;
/// Growth per report with little loss.
const GROWTH: f64 = 1.05;

/// Bitrate that the loss allows.
#[derive(Debug)]
pub(crate) struct LossControl {
    bps: f64,
    most: f64,
}

impl LossControl {
    /// Creates a loss control without a reported loss, up to `most` bit/s.
    pub(crate) fn new(most: f64) -> Self {
        Self { bps: most, most }
    }

    /// Current bitrate, bit/s.
    pub(crate) fn bps(&self) -> f64 {
        self.bps
    }

    /// Updates the bitrate after a report that a share `lost` of the packets, sent at `sent_bps` bit/s, was lost.
    pub(crate) fn on_report(&mut self, lost: f64, sent_bps: f64) {
        if lost > HIGH {
            self.bps = sent_bps.min(self.bps) * (1.0 - 0.5 * lost);
        } else if lost < LOW {
            self.bps = (GROWTH * self.bps).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_above_a_tenth_decreases_and_below_a_fiftieth_increases() {
        let mut control = LossControl::new(2e6);
        control.on_report(0.2, 1e6);
        assert_eq!(control.bps(), 0.9e6);
        control.on_report(0.05, 0.9e6);
        assert_eq!(control.bps(), 0.9e6);
        control.on_report(0.01, 0.9e6);
        assert_eq!(control.bps(), 0.945e6);
        (0..100).for_each(|_| control.on_report(0.0, 2e6));
        assert_eq!(control.bps(), 2e6);
    }
}
