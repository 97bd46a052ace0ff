//! # Whole steps
//!
//! ## Source
//! Linux 6.18, tcp_cong_avoid_ai.
//!
//! ## What it does
//! The window moves by whole segments: what is delivered is saved up until it is worth one.
//!
//! ## Differences from the source
//! None known.
//!
//! ## Validation
//! By hand (tests below).

/// Segments delivered that have not yet moved the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    credit: f64,
}

impl Steps {
    /// The window of `cwnd` segments after `delivered` more, of which each `per` move it by one.
    pub(super) fn grow(&mut self, cwnd: f64, per: f64, delivered: f64) -> f64 {
        let mut grown = cwnd;
        if self.credit >= per {
            // It was saved up while more were asked for: one step, gently.
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
        // 90 are more than 20: one step, and 1 of the next 20.
        assert_eq!(steps.grow(100.0, 20.0, 1.0), 101.0);
        assert_eq!(steps.grow(101.0, 20.0, 19.0), 102.0);
    }
}
