//! Over-use detector with an adaptive threshold (draft-ietf-rmcat-gcc-02 section 5.4).

use super::{Gradient, Signal};

/// del_var_th(0): first threshold, ms (Table 1).
const FIRST_THRESHOLD: f64 = 12.5;
/// Limits of the threshold, ms (section 5.4).
const THRESHOLDS: [f64; 2] = [6.0, 600.0];
/// overuse_time_th: time above the threshold before over-use is signalled, ms (Table 1).
const OVER_USE_TIME: f64 = 10.0;
/// K_u: speed of the threshold upwards, per ms (Table 1).
const UPWARDS: f64 = 0.01;
/// K_d: speed of the threshold downwards, per ms (Table 1).
const DOWNWARDS: f64 = 0.00018;
/// An estimate further above the threshold does not move it, ms (section 5.4).
const TOO_FAR: f64 = 15.0;
/// Largest number of groups by which an estimate is multiplied; see [`super`].
const MOST_GROUPS: u32 = 60;
/// Longest time for which the threshold moves between two groups, ms; see [`super`].
const LONGEST_STEP: f64 = 100.0;

/// Compares the estimate of the delay gradient with an adaptive threshold.
#[derive(Debug)]
pub(crate) struct OverUseDetector {
    threshold: f64,
    last: f64,
    /// Time for which the estimate has been above the threshold, ms.
    above: f64,
}

impl Default for OverUseDetector {
    fn default() -> Self {
        Self { threshold: FIRST_THRESHOLD, last: 0.0, above: 0.0 }
    }
}

impl OverUseDetector {
    /// Classifies the use of the path after a group of packets.
    pub(crate) fn on_group(&mut self, gradient: Gradient) -> Signal {
        let estimate = gradient.ms * f64::from(gradient.groups.min(MOST_GROUPS));
        let signal = self.classify(estimate, gradient.sent_apart_ms);
        self.adapt(estimate.abs(), gradient.arrived_apart_ms);
        self.last = estimate;
        signal
    }

    fn classify(&mut self, estimate: f64, sent_apart_ms: f64) -> Signal {
        if estimate <= self.threshold {
            self.above = 0.0;
            return if estimate < -self.threshold { Signal::UnderUse } else { Signal::Normal };
        }
        self.above += sent_apart_ms;
        // A falling estimate is not over-use.
        if self.above >= OVER_USE_TIME && estimate >= self.last { Signal::OverUse } else { Signal::Normal }
    }

    /// Moves the threshold towards the magnitude of the estimate.
    fn adapt(&mut self, magnitude: f64, arrived_apart_ms: f64) {
        let distance = magnitude - self.threshold;
        if distance > TOO_FAR {
            return;
        }
        let speed = if distance < 0.0 { DOWNWARDS } else { UPWARDS };
        let moved = self.threshold + arrived_apart_ms.clamp(0.0, LONGEST_STEP) * speed * distance;
        self.threshold = moved.clamp(THRESHOLDS[0], THRESHOLDS[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(ms: f64) -> Gradient {
        Gradient { ms, groups: 100, sent_apart_ms: 8.0, arrived_apart_ms: 8.0 }
    }

    #[test]
    fn over_use_is_signalled_after_ten_milliseconds_above_the_threshold() {
        let mut detector = OverUseDetector::default();
        // 0.3 ms x 60 groups = 18 ms, above the threshold of 12.5 ms.
        assert_eq!(detector.on_group(gradient(0.3)), Signal::Normal);
        assert_eq!(detector.on_group(gradient(0.3)), Signal::OverUse);
        assert_eq!(detector.on_group(gradient(0.29)), Signal::Normal, "it falls");
        assert_eq!(detector.on_group(gradient(0.0)), Signal::Normal);
        assert_eq!(detector.on_group(gradient(-0.3)), Signal::UnderUse);
    }

    #[test]
    fn the_threshold_rises_fast_and_falls_slowly() {
        let mut detector = OverUseDetector::default();
        detector.on_group(gradient(0.25));
        // 15 ms: 12.5 + 8 x 0.01 x 2.5 = 12.7.
        assert!((detector.threshold - 12.7).abs() < 1e-9, "{}", detector.threshold);
        detector.on_group(gradient(0.0));
        // 12.7 - 8 x 0.00018 x 12.7 = 12.681712.
        assert!((detector.threshold - 12.681_712).abs() < 1e-9, "{}", detector.threshold);
        // 60 ms are too far away.
        detector.on_group(gradient(1.0));
        assert!((detector.threshold - 12.681_712).abs() < 1e-9, "{}", detector.threshold);
        for _ in 0..10_000 {
            detector.on_group(gradient(0.0));
        }
        assert_eq!(detector.threshold, 6.0);
    }
}
