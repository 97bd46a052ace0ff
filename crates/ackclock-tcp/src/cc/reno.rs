//! # Reno congestion control
//!
//! Reno: slow start, congestion avoidance and halving. The congestion window is a real number of segments.
//!
//! ## Source
//! RFC 5681 sections 3.1 and 3.2. The growth rule and `halves = "window"` follow ns-2's one-way agents until 2006;
//! `halves = "exact-window"` follows the later agents.
//!
//! ## What it does
//! An acknowledgement of new data grows the window. Below the threshold the window grows by the data acknowledged, at
//! most one segment; above the threshold, by 1/cwnd of a segment. A loss halves the window in use or the bytes in
//! flight, as set by `halves`; the threshold is at least two segments. A timeout also sets the window to the loss
//! window, by default one segment. An ECN echo halves the window like a loss.
//!
//! ## Differences from the source
//! - The congestion window also grows while the peer's window is the limit. A loss halves the smaller of the congestion
//!   window and the peer's window.
//!
//! ## Validation
//! `tests/table_one.rs` reproduces item 1 of CR02 Table 1.

use ackclock_core::Time;

use super::steps::Steps;
use crate::choices::{Growth, Halves};
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Phase,
};
use crate::stack::Stack;

/// State of Reno congestion control; all windows are in segments.
#[derive(Clone, Debug)]
pub struct Reno {
    cwnd: f64,
    ssthresh: f64,
    /// Value of `cwnd` in bytes, cached because it is read far more often than it changes.
    window: u32,
    mss: u32,
    halves: Halves,
    growth: Growth,
    stack: Stack,
    steps: Steps,
    /// Loss window (LW of RFC 5681), segments.
    loss_window: f64,
    /// Congestion window and threshold before the last reduction.
    before: (f64, f64),
}

/// Smallest threshold, segments (RFC 5681 equation (4) and the ns-2 agents).
const LEAST_THRESHOLD: f64 = 2.0;

impl Reno {
    /// Creates the controller of a new connection.
    pub fn new(context: &CcContext, halves: Halves, growth: Growth) -> Self {
        let mss = f64::from(context.mss);
        let cwnd = (f64::from(context.initial_window) / mss).max(1.0);
        let ssthresh = f64::from(context.initial_ssthresh) / mss;
        let before = (cwnd, ssthresh);
        let mut reno = Self {
            cwnd: 0.0,
            ssthresh,
            window: 0,
            mss: context.mss,
            halves,
            growth,
            stack: context.stack,
            steps: Steps::default(),
            loss_window: f64::from(context.loss_window) / mss,
            before,
        };
        reno.set(cwnd);
        reno
    }

    fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.window = self.bytes(cwnd);
    }

    fn bytes(&self, segments: f64) -> u32 {
        // Rounds down to whole segments without rounding error; the `as` conversion saturates.
        let whole = segments as u32;
        let part = (segments - f64::from(whole)) * f64::from(self.mss);
        whole.saturating_mul(self.mss).saturating_add(part as u32)
    }

    /// Grows the window by the bytes delivered, while the window limits the sender. Slow start grows the window up to
    /// the threshold; congestion avoidance uses the remaining bytes.
    // `delivered` is passed by value, so that unused fields of the sample need not be computed.
    #[inline(never)]
    fn grow_by_bytes(&mut self, delivered: u32) {
        let delivered = match self.stack {
            Stack::Rfc => f64::from(delivered) / f64::from(self.mss),
            Stack::Linux => f64::from(delivered.div_ceil(self.mss)),
        };
        let doubling = delivered.min((self.ssthresh - self.cwnd).max(0.0));
        let cwnd = self.cwnd + doubling;
        if self.stack == Stack::Rfc {
            self.set(cwnd + (delivered - doubling) / cwnd);
            return;
        }
        // The window grows by whole segments as in Linux, which counts a partial segment as whole.
        let mut grown = self.cwnd.floor();
        if doubling > 0.0 {
            grown = self.steps.grow(grown, 1.0, doubling);
        }
        if delivered > doubling {
            grown = self.steps.grow(grown, grown, delivered - doubling);
        }
        self.set(grown);
    }

    /// Half of the window or of the bytes in flight, as set by `halves`.
    fn half(&self, event: &CongestionEvent) -> f64 {
        let half = match self.halves {
            Halves::Window => f64::from(event.window / self.mss / 2),
            Halves::ExactWindow => f64::from(event.window) / f64::from(self.mss) / 2.0,
            Halves::Flight | Halves::Cwnd => f64::from(event.flight) / f64::from(self.mss) / 2.0,
        };
        let half = if self.stack == Stack::Linux { half.floor() } else { half };
        half.max(LEAST_THRESHOLD)
    }
}

impl CongestionControl for Reno {
    #[inline(always)]
    fn on_ack(&mut self, sample: &AckSample) {
        if sample.acked == 0 || sample.phase == Phase::FastRecovery {
            return;
        }
        if self.growth == Growth::Bytes {
            if sample.window_limited {
                self.grow_by_bytes(sample.delivered);
            }
            return;
        }
        // Growth by RFC 5681 equations (2) and (3).
        let slow = self.cwnd < self.ssthresh;
        let step = match slow {
            true if sample.acked < self.mss => f64::from(sample.acked) / f64::from(self.mss),
            true => 1.0,
            false => 1.0 / self.cwnd,
        };
        self.set(self.cwnd + step);
    }

    #[inline]
    fn asks_for_limit(&self) -> bool {
        self.growth == Growth::Bytes
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.steps = Steps::default();
        if !event.repeated_timeout {
            self.before = (self.cwnd, self.ssthresh);
        }
        // The threshold stays when the same segment times out again (RFC 5681 section 3.1).
        let in_use = matches!(self.halves, Halves::Window | Halves::ExactWindow);
        let held = event.repeated_timeout && !in_use;
        let half = if held { self.ssthresh } else { self.half(event) };
        self.ssthresh = if self.halves == Halves::ExactWindow { half.floor() } else { half };
        self.set(match event.cause {
            Congestion::Timeout => self.loss_window,
            Congestion::FastRetransmit => half,
            Congestion::Ecn if self.stack == Stack::Linux => half,
            Congestion::Ecn => self.cwnd.min(half),
        });
    }

    fn on_spurious(&mut self, _: Time, _: Congestion) {
        let (cwnd, ssthresh) = self.before;
        self.ssthresh = self.ssthresh.max(ssthresh);
        self.set(self.cwnd.max(cwnd));
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        self.set((f64::from(window) / f64::from(self.mss)).max(1.0));
        self.ssthresh = f64::from(ssthresh) / f64::from(self.mss);
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn ssthresh(&self) -> u32 {
        self.bytes(self.ssthresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reno(halves: Halves) -> Reno {
        Reno::new(
            &CcContext {
                mss: 1000,
                initial_window: 1000,
                initial_ssthresh: 8000,
                loss_window: 1000,
                stack: Stack::Rfc,
            },
            halves,
            Growth::Acks,
        )
    }

    fn ack(phase: Phase) -> AckSample {
        AckSample { phase, ..AckSample::of(1000) }
    }

    fn event(cause: Congestion, window: u32, flight: u32) -> CongestionEvent {
        CongestionEvent { now: Time::ZERO, cause, flight, window, repeated_timeout: false, lost_in_all: 0 }
    }

    #[test]
    fn in_the_stack_of_linux_avoidance_grows_by_one_segment_a_window() {
        let context = CcContext {
            mss: 1000,
            initial_window: 10_000,
            initial_ssthresh: 10_000,
            loss_window: 1000,
            stack: Stack::Linux,
        };
        let mut reno = Reno::new(&context, Halves::Cwnd, Growth::Bytes);
        let mut windows = Vec::new();
        for _ in 0..21 {
            reno.on_ack(&ack(Phase::Open));
            windows.push(reno.window() / 1000);
        }
        // The tenth segment grows the window from 10 to 11 segments, and eleven more segments grow it to 12.
        assert_eq!((windows[8], windows[9], windows[19], windows[20]), (10, 11, 11, 12));
    }

    #[test]
    fn the_window_doubles_a_round_below_the_threshold_and_then_gains_one() {
        let mut reno = reno(Halves::Window);
        (0..7).for_each(|_| reno.on_ack(&ack(Phase::Open)));
        assert_eq!(reno.window(), 8000);
        // 8 ACKs add 1/cwnd each while cwnd grows from 8 to 9: between 8/9 and 1 in total.
        (0..8).for_each(|_| reno.on_ack(&ack(Phase::Open)));
        assert!((8890..9000).contains(&reno.window()), "{}", reno.window());
        reno.on_ack(&ack(Phase::FastRecovery));
        assert!(reno.window() < 9000);
    }

    #[test]
    fn a_loss_halves_whole_segments_and_a_timeout_starts_from_one() {
        let mut reno = reno(Halves::Window);
        reno.on_congestion(&event(Congestion::FastRetransmit, 23_900, 23_000));
        assert_eq!((reno.window(), reno.ssthresh()), (11_000, 11_000));
        reno.on_congestion(&event(Congestion::Timeout, 3_000, 3_000));
        assert_eq!((reno.window(), reno.ssthresh()), (1_000, 2_000));
    }

    #[test]
    fn half_of_the_exact_window_keeps_its_fraction_and_the_threshold_is_whole() {
        let mut reno = reno(Halves::ExactWindow);
        reno.on_congestion(&event(Congestion::FastRetransmit, 23_500, 23_000));
        assert_eq!((reno.window(), reno.ssthresh()), (11_750, 11_000));
        reno.on_congestion(&event(Congestion::Timeout, 11_750, 11_000));
        assert_eq!((reno.window(), reno.ssthresh()), (1_000, 5_000));
    }

    #[test]
    fn a_repeated_timeout_holds_the_threshold_where_the_flight_is_halved() {
        let mut reno = reno(Halves::Flight);
        reno.on_congestion(&event(Congestion::Timeout, 20_000, 20_000));
        reno.on_congestion(&CongestionEvent {
            repeated_timeout: true,
            lost_in_all: 0,
            ..event(Congestion::Timeout, 1000, 1000)
        });
        assert_eq!(reno.ssthresh(), 10_000);
    }

    #[test]
    fn a_spurious_reduction_is_given_back() {
        let mut reno = reno(Halves::Window);
        reno.on_congestion(&event(Congestion::Timeout, 8_000, 8_000));
        reno.on_spurious(Time::ZERO, Congestion::Timeout);
        assert_eq!((reno.window(), reno.ssthresh()), (1_000, 8_000));
    }
}
