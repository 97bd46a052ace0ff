//! # DCTCP congestion control
//!
//! ## Source
//! RFC 8257 (Bensley, Thaler, Balasubramanian, Eggert and Judd 2017), sections 3.2 to 3.5.
//!
//! ## What it does
//! The receiver reports for each ACK whether its segments were marked (`ecn = "dctcp"`). A moving average α follows the
//! marked fraction of each window with the gain 1/16. A mark reduces the congestion window by the factor `1 - α/2`; no
//! other mark does while data of before the reduction is in flight. Growth and the reaction to losses are Reno's.
//!
//! ## Differences from the source
//! - Bytes count when they are delivered, also by SACK. The source counts the cumulative ACK only, so a hole in the
//!   data makes its rounds longer.
//! - Marks leave at least two segments, as in Linux.
//! - SYN, SYN-ACK and RST are not ECN-capable; section 3.6 recommends that they are.
//! - With `ecn = "accurate"` the marked fraction comes from the counters of AccECN.
//!
//! ## Validation
//! Sections 3.2 to 3.6 were compared with the code. Unit tests check reductions by hand. In `crates/ackclock-scenario/tests/l4s.rs` a flow gets the same goodput with both
//! kinds of feedback.

use ackclock_core::{Span, Time};

use super::BuildControl;
use super::marked_fraction::{MarkedFraction, Round};
use super::reno::Reno;
use crate::choices::{Growth, Halves};
use crate::config::SenderConfig;
use crate::congestion_control::{AckSample, CcContext, Congestion, CongestionControl, CongestionEvent};

/// State of DCTCP congestion control.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: Reno,
    fraction: MarkedFraction,
    /// Window of data after a reduction, within which marks reduce nothing.
    spared: Option<Round>,
    mss: u32,
}

/// Smallest window that marks leave, segments.
const LEAST_WINDOW: u32 = 2;

impl Dctcp {
    /// Creates the controller of a new connection.
    pub fn new(context: &CcContext, halves: Halves, growth: Growth) -> Self {
        Self {
            reno: Reno::new(context, halves, growth),
            // α starts at 1 (section 3.3).
            fraction: MarkedFraction::new(1.0),
            spared: None,
            mss: context.mss,
        }
    }
}

impl BuildControl for Dctcp {
    fn build(config: &SenderConfig, context: &CcContext, halves: Halves) -> Self {
        Self::new(context, halves, config.growth)
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, sample: &AckSample) {
        self.fraction.on_ack(sample, Span::ZERO);
        if self.spared.as_mut().is_some_and(|window| window.is_over(sample, Span::ZERO)) {
            self.spared = None;
        }
        if sample.marked == 0 || self.spared.is_some() {
            self.reno.on_ack(sample);
            return;
        }
        self.spared = Some(Round::start(sample.now, sample.in_flight));
        let factor = 1.0 - self.fraction.average() / 2.0;
        let window = (f64::from(self.reno.window()) * factor) as u32;
        let window = window.max(LEAST_WINDOW.saturating_mul(self.mss)).min(self.reno.window().max(self.mss));
        self.reno.adopt(window, window);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.spared = Some(Round::start(event.now, event.flight));
        self.reno.on_congestion(event);
    }

    fn on_spurious(&mut self, now: Time, cause: Congestion) {
        self.reno.on_spurious(now, cause);
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        self.reno.adopt(window, ssthresh);
    }

    fn window(&self) -> u32 {
        self.reno.window()
    }

    fn ssthresh(&self) -> u32 {
        self.reno.ssthresh()
    }

    fn counts_marks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;

    const MSS: u32 = 1000;

    fn dctcp(segments: u32) -> Dctcp {
        let context = CcContext {
            mss: MSS,
            initial_window: segments * MSS,
            initial_ssthresh: segments * MSS,
            loss_window: MSS,
            stack: Stack::Rfc,
        };
        Dctcp::new(&context, Halves::Flight, Growth::Acks)
    }

    fn ack(marked: u32, in_flight: u32) -> AckSample {
        AckSample { marked, in_flight, ..AckSample::of(MSS) }
    }

    #[test]
    fn the_first_mark_halves_and_a_second_in_the_same_window_changes_nothing() {
        let mut dctcp = dctcp(40);
        dctcp.on_ack(&ack(0, 40 * MSS));
        // α has decayed once, to 15/16: 40·(1 - 15/32) = 21.25 segments, from the 40.025 after the first ACK.
        dctcp.on_ack(&ack(MSS, 39 * MSS));
        assert_eq!(dctcp.window() / MSS, 21);
        let after = dctcp.window();
        dctcp.on_ack(&ack(MSS, 38 * MSS));
        assert!(dctcp.window() >= after);
    }

    #[test]
    fn a_small_fraction_reduces_little() {
        let mut dctcp = dctcp(100);
        dctcp.fraction.set(0.1);
        dctcp.fraction.on_ack(&ack(0, 1000 * MSS), Span::ZERO);
        // α is 0.1·15/16 = 0.094: 100·(1 - 0.047) = 95.3 segments.
        dctcp.on_ack(&ack(MSS, 100 * MSS));
        assert_eq!(dctcp.window() / MSS, 95);
    }
}
