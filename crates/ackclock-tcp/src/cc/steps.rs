//! # Whole steps
//!
//! ## Source
//! Linux 6.18, function tcp_cong_avoid_ai.
//!
//! ## What it does
//! The window grows by whole segments. Deliveries accumulate until they are worth one segment of growth.
//!
//! ## Differences from the source
//! No deviations from Linux are known.
//!
//! ## Validation
//! Unit tests below compare with hand-computed values.

/// Number of delivered segments that have not yet grown the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    credit: f64,
}

impl Steps {
    /// Congestion window in segments after `delivered` more segments. The window grows from `cwnd` by one segment per
    /// `per` delivered.
    pub(super) fn grow(&mut self, cwnd: f64, per: f64, delivered: f64) -> f64 {
        let mut grown = cwnd;
        if self.credit >= per {
            // Credit accumulated under a larger `per` gives only one segment of growth.
            self.credit = 0.0;
            grown += 1.0;
        }
        self.credit += delivered;
        let steps = (self.credit / per).floor();
        self.credit -= steps * per;
        grown + steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_ten_grows_with_the_tenth_segment() {
        let mut steps = Steps::default();
        let grown: Vec<f64> = (0..5).map(|_| steps.grow(10.0, 10.0, 2.0)).collect();
        assert_eq!(grown, [10.0, 10.0, 10.0, 10.0, 11.0]);
    }

    #[test]
    fn what_was_saved_up_gives_one_step() {
        let mut steps = Steps::default();
        steps.grow(100.0, 100.0, 90.0);
        // A credit of 90 exceeds 20, so the window grows by one segment, and 1 delivery counts towards the next 20.
        assert_eq!(steps.grow(100.0, 20.0, 1.0), 101.0);
        assert_eq!(steps.grow(101.0, 20.0, 19.0), 102.0);
    }
}
