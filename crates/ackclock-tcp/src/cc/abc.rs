//! # ABC congestion control
//!
//! Accel-Brake Control: the queue `abc-router` tells for each packet whether its ACK grows or shrinks the window.
//!
//! ## Source
//! Goyal, Agarwal, Netravali, Alizadeh and Balakrishnan, "ABC: A Simple Explicit Congestion Controller for Wireless
//! Networks", NSDI 2020.
//!
//! ## What it does
//! Each segment acknowledged without a mark (*accelerate*) adds a segment to the window, and each segment acknowledged
//! with a mark (*brake*) takes one away. Each segment acknowledged also adds `1/w` of a segment, so that flows that
//! share a queue become equal. A second window follows CUBIC and responds to losses, for bottlenecks without the queue
//! of ABC. The smaller window applies, and neither exceeds twice the bytes in flight and five segments. Segments are
//! paced at twice the window per round trip.
//!
//! ## Differences from the source
//! - The rules are those of the authors' programs `tcp_abc.c` and `tcp_abccubic.c` (commit b1693cbb), which were read;
//!   of the paper only abstract and introduction were at hand.
//! - A brake is a CE mark, as in the authors' programs. A mark of another queue is therefore read as a brake.
//! - The additive increase counts delivered bytes; the programs count ACKs.
//!
//! ## Validation
//! Unit tests check the windows by hand. `crates/ackclock-scenario/tests/abc.rs` checks the share of a link, the queue
//! and the equality of flows.

use ackclock_core::{Rate, Span, Time};

use super::cubic::{Cubic, CubicConfig};
use crate::choices::Growth;
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Departure,
};

/// State of ABC congestion control.
#[derive(Clone, Debug)]
pub struct Abc {
    /// Window that accelerates and brakes change, bytes.
    explicit: f64,
    /// Window for bottlenecks without ABC.
    cubic: Cubic,
    mss: f64,
    srtt: Option<Span>,
}

/// Smallest window that brakes leave, and the part of the limit of a window beyond twice the flight, segments.
const LEAST_WINDOW: f64 = 5.0;
/// Pacing rate in windows per round trip.
const PACING_GAIN: f64 = 2.0;

impl Abc {
    /// Creates the controller of a new connection. `config` and `growth` are options of the CUBIC window.
    pub fn new(config: &CubicConfig, growth: Growth, context: CcContext) -> Self {
        let mss = f64::from(context.mss.max(1));
        let explicit = f64::from(context.initial_window).max(mss);
        Self { explicit, cubic: Cubic::new(config, growth, context), mss, srtt: None }
    }

    /// Changes the window by the marked and unmarked bytes of an ACK.
    fn obey(&mut self, sample: &AckSample) {
        let (delivered, braked) =
            (f64::from(sample.delivered), f64::from(sample.marked.min(sample.delivered)));
        self.explicit += self.mss * delivered / self.explicit;
        let change = delivered - 2.0 * braked;
        let least = (LEAST_WINDOW * self.mss).min(self.explicit);
        self.explicit = (self.explicit + change).max(least);
    }

    /// Limits both windows by the bytes in flight before an ACK, so that the window that does not apply stays near the other one.
    fn limit(&mut self, in_flight: u32) {
        let most = 2.0 * f64::from(in_flight) + LEAST_WINDOW * self.mss;
        self.explicit = self.explicit.min(most);
        if f64::from(self.cubic.window()) > most {
            // The `as` conversion saturates.
            self.cubic.adopt(most as u32, self.cubic.ssthresh());
        }
    }
}

impl CongestionControl for Abc {
    fn on_ack(&mut self, sample: &AckSample) {
        self.srtt = sample.srtt.or(self.srtt);
        self.cubic.on_ack(sample);
        self.obey(sample);
        self.limit(sample.in_flight.saturating_add(sample.delivered));
    }

    fn on_established(&mut self, _: Time, round_trip: Span) {
        self.srtt = Some(round_trip);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.cubic.on_congestion(event);
    }

    fn on_spurious(&mut self, now: Time, cause: Congestion) {
        self.cubic.on_spurious(now, cause);
    }

    fn on_sent(&mut self, sent: &Departure) {
        self.cubic.on_sent(sent);
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        self.cubic.adopt(window, ssthresh);
        self.explicit = self.explicit.max(f64::from(window));
    }

    fn window(&self) -> u32 {
        // The `as` conversion saturates.
        self.cubic.window().min(self.explicit.max(self.mss) as u32)
    }

    fn ssthresh(&self) -> u32 {
        self.cubic.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let srtt = self.srtt.filter(|&srtt| srtt > Span::ZERO)?;
        let bps = 8.0 * PACING_GAIN * f64::from(self.window()) / srtt.as_secs_f64();
        // A pacing rate of zero would stop sending for ever.
        Some(Rate::from_bps_f64(bps).max(Rate::from_bps(1)))
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

    fn abc(segments: u32) -> Abc {
        let context = CcContext {
            mss: MSS,
            initial_window: segments * MSS,
            initial_ssthresh: u32::MAX,
            loss_window: MSS,
            stack: Stack::Rfc,
        };
        Abc::new(&CubicConfig::default(), Growth::Acks, context)
    }

    fn ack(marked: u32, in_flight: u32) -> AckSample {
        AckSample { marked, in_flight: in_flight * MSS, ..AckSample::of(MSS) }
    }

    #[test]
    fn an_accelerate_adds_a_segment_and_a_brake_takes_one_and_both_add_a_part() {
        let mut abc = abc(50);
        abc.on_ack(&ack(0, 49));
        // 50 + 1 + 1/50 segments
        assert!((abc.explicit - 51_020.0).abs() < 1e-9, "{}", abc.explicit);
        abc.on_ack(&ack(MSS, 49));
        // 51.02 - 1 + 1/51.02 segments
        assert!((abc.explicit - 50_039.600_156_8).abs() < 1e-6, "{}", abc.explicit);
        assert_eq!(abc.window(), 50_039);
    }

    #[test]
    fn a_round_of_accelerates_doubles_the_window_and_brakes_leave_five_segments() {
        let mut abc = abc(40);
        (0..40).for_each(|_| abc.on_ack(&ack(0, 100)));
        // 40 segments, 40 accelerates, and less than one segment of additive increase
        assert!((80_000..81_000).contains(&abc.window()), "{}", abc.window());
        (0..200).for_each(|_| abc.on_ack(&ack(MSS, 100)));
        assert_eq!(abc.window(), 5 * MSS);
    }

    #[test]
    fn a_loss_reduces_the_window_of_cubic_and_the_smaller_one_applies() {
        let mut abc = abc(50);
        let event = CongestionEvent {
            now: Time::ZERO,
            cause: Congestion::FastRetransmit,
            flight: 50 * MSS,
            window: 50 * MSS,
            repeated_timeout: false,
            lost_in_all: 1,
        };
        abc.on_congestion(&event);
        assert_eq!(abc.window(), 35 * MSS, "0.7 of the flight");
        // Neither window is above twice the 11 segments that were in flight and five more.
        abc.on_ack(&ack(0, 10));
        assert_eq!(abc.window(), 27 * MSS);
    }

    #[test]
    fn segments_leave_at_two_windows_per_round_trip() {
        let mut abc = abc(50);
        assert_eq!(abc.pacing_rate(), None);
        abc.on_established(Time::ZERO, Span::from_millis(100));
        // 2 · 400 000 bits in 0.1 s
        assert_eq!(abc.pacing_rate(), Some(Rate::from_bps(8_000_000)));
    }
}
