//! # CUBIC
//!
//! The congestion window follows a cubic function of the time since the last loss. Growth is fast well below the window
//! at the loss, slow near this window, and fast again above it.
//!
//! ## Source
//! RFC 9438 for CUBIC. Slow start follows RFC 5681 section 3.1, or RFC 9406 with [HyStart++](super::hystart).
//!
//! ## What it does
//! All windows are real numbers of segments, as in RFC 9438. A *stage* is one epoch of congestion avoidance. The clock
//! of a stage runs only while the window limits the sender (section 5.8). In the Linux stack, the window grows by whole
//! segments along [Linux's curve](super::bictcp).
//!
//! ## Differences from the source
//! - An ACK for n segments moves the window n times as far towards the target; RFC 9438 section 4.4 moves the window
//!   once per ACK. Delayed ACKs therefore do not halve the growth. The target remains the upper bound of the window.
//! - An ACK never shrinks the window: in the Reno-friendly region the window becomes the larger of its value and W_est.
//! - If a stage starts with a window of W_max or more, K is 0 and W_max is set to that window, as after a timeout.
//!
//! ## Validation
//! Unit tests below check the formulas of sections 4.2 to 4.8. `tests/cc_paths.rs` checks CUBIC's share of a link with
//! and without a buffer, and compares CUBIC with Reno on a large pipe.

use ackclock_core::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bictcp::Bictcp;
use super::hystart::{HyStart, Pace};
use super::hystart_classic::HybridStart;
use crate::choices::{Growth, Switch};
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Departure, Phase,
};
use crate::stack::Stack;

/// Constant C of section 4.1, segments per second cubed.
const C: f64 = 0.4;
/// Multiplicative decrease factor beta_cubic of section 4.6.
const BETA: f64 = 0.7;
/// alpha_cubic of section 4.3: with this factor the average growth equals Reno's, although beta is not one half.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Smallest slow-start threshold, segments (section 4.6).
const LEAST_SSTHRESH: f64 = 2.0;
/// Constants L and CSS_GROWTH_DIVISOR of RFC 9406 section 4.3.
const HYSTART_LIMIT: f64 = 8.0;
const HYSTART_DIVISOR: f64 = 4.0;

/// Options of CUBIC (RFC 9438).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CubicConfig {
    /// Release bandwidth to new flows faster: after a loss below the previous W_max, set W_max to less than the window
    /// (section 4.7).
    pub fast_convergence: Switch,
    /// Leave slow start when the round-trip time grows.
    pub hystart: SlowStartEnd,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self { fast_convergence: Switch::On, hystart: SlowStartEnd::Off }
    }
}

/// Method that ends slow start before a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartEnd {
    /// HyStart++ (RFC 9406), in the first slow start only.
    On,
    /// Hybrid slow start as in Linux, in every slow start.
    Classic,
    /// Slow start ends only by a loss.
    #[default]
    Off,
}

/// CUBIC congestion control.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// Segment size, bytes.
    mss: f64,
    fast_convergence: Switch,
    /// HyStart++ detector; `None` once the first slow start has ended.
    hystart: Option<HyStart>,
    hybrid: Option<HybridStart>,
    growth: Growth,
    /// Growth curve of the Linux stack, which replaces the stage.
    linux: Option<Bictcp>,
    /// Loss window (LW of RFC 5681), segments.
    loss_window: f64,
    state: CubicState,
    /// State before the last reduction, kept for an undo.
    before: Option<CubicState>,
}

/// State that a reduction changes, in segments. An undo of a spurious reduction restores the old state.
#[derive(Clone, Copy, Debug)]
struct CubicState {
    cwnd: f64,
    ssthresh: f64,
    /// Congestion window at the last reduction; `None` before the first reduction and after a timeout.
    w_max: Option<f64>,
    /// Congestion window when ssthresh was last set.
    cwnd_prior: f64,
    stage: Option<Stage>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    w_max: f64,
    /// K of eq. (2): seconds until the curve returns to `w_max`.
    k: f64,
    /// W_est of section 4.3: window of an equivalent Reno sender, segments.
    w_est: f64,
    /// Duration t of the stage, without times when the application limited the sender.
    age: Span,
    /// Time of the last ACK, and whether the window limited the sender at that time.
    last: Time,
    limited: bool,
}

impl Cubic {
    /// Creates the controller of a new connection.
    pub fn new(config: &CubicConfig, growth: Growth, context: CcContext) -> Self {
        let mss = f64::from(context.mss.max(1));
        let cwnd = (f64::from(context.initial_window) / mss).max(1.0);
        let ssthresh = f64::from(context.initial_ssthresh) / mss;
        Self {
            mss,
            loss_window: f64::from(context.loss_window) / mss,
            fast_convergence: config.fast_convergence,
            hystart: (config.hystart == SlowStartEnd::On).then(HyStart::new),
            hybrid: (config.hystart == SlowStartEnd::Classic).then(HybridStart::new),
            growth,
            linux: (context.stack == Stack::Linux).then(Bictcp::default),
            state: CubicState { cwnd, ssthresh, w_max: None, cwnd_prior: cwnd, stage: None },
            before: None,
        }
    }

    /// Ends slow start if hybrid slow start finds the pipe full.
    fn check_hybrid_slow_start(&mut self, sample: &AckSample) {
        let CubicState { cwnd, ssthresh, .. } = self.state;
        let slow = (cwnd < ssthresh).then_some(cwnd);
        if self.hybrid.as_mut().is_some_and(|hybrid| hybrid.on_ack(sample, slow)) {
            self.state.ssthresh = cwnd;
            self.state.cwnd_prior = cwnd;
        }
    }

    /// Slow start by RFC 5681 section 3.1 equation (2), or by RFC 9406 section 4.3.
    fn slow_start(&mut self, sample: &AckSample, delivered: f64) {
        let acked = f64::from(sample.acked) / self.mss;
        let Some(hystart) = &mut self.hystart else {
            self.state.cwnd += match self.growth {
                Growth::Acks => acked.min(1.0),
                // Growth in slow start stops at the threshold.
                Growth::Bytes => delivered.min(self.state.ssthresh - self.state.cwnd),
            };
            return;
        };
        let growth = acked.min(HYSTART_LIMIT);
        match hystart.on_ack(sample) {
            Pace::Full => self.state.cwnd += growth,
            Pace::Conservative => self.state.cwnd += growth / HYSTART_DIVISOR,
            Pace::Leave => {
                self.state.ssthresh = self.state.cwnd;
                self.state.cwnd_prior = self.state.cwnd;
                self.hystart = None;
            }
        }
    }

    /// Grows the window by whole segments, counting a partial segment as whole. Slow start grows the window up to the
    /// threshold; the cubic curve uses the remaining delivered segments.
    fn grow_as_linux(&mut self, sample: &AckSample) {
        let before = self.state.cwnd.floor();
        let delivered = libm::ceil(f64::from(sample.delivered) / self.mss);
        if before < self.state.ssthresh {
            self.slow_start(sample, delivered);
        }
        // Delivered segments that slow start did not use.
        let left = delivered - (self.state.cwnd - before).max(0.0);
        if let Some(curve) = &mut self.linux
            && self.state.cwnd >= self.state.ssthresh
            && left > 0.0
        {
            self.state.cwnd = curve.grow(sample.now, self.state.cwnd.floor(), left);
        }
    }

    /// Congestion avoidance by sections 4.2 to 4.5.
    fn avoid_congestion(&mut self, sample: &AckSample) {
        let cwnd = self.state.cwnd;
        let acked = f64::from(sample.acked) / self.mss;
        let cwnd_prior = self.state.cwnd_prior;
        let rtt = sample.srtt.unwrap_or(Span::ZERO).as_secs_f64();
        let stage = self.stage(sample.now);
        stage.pass(sample.now, Limited::ByWindow);
        let alpha = if stage.w_est >= cwnd_prior { 1.0 } else { ALPHA };
        stage.w_est += alpha * acked / cwnd;
        let age = stage.age.as_secs_f64();
        if stage.w_cubic(age) < stage.w_est {
            self.state.cwnd = cwnd.max(stage.w_est);
        } else {
            let target = stage.w_cubic(age + rtt).clamp(cwnd, 1.5 * cwnd);
            self.state.cwnd = (cwnd + acked * (target - cwnd) / cwnd).min(target);
        }
    }

    /// The current stage; starts a new stage if there is none.
    fn stage(&mut self, now: Time) -> &mut Stage {
        let CubicState { cwnd, w_max, .. } = self.state;
        let w_max = w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        self.state.w_max = Some(w_max);
        self.state.stage.get_or_insert_with(|| Stage {
            w_max,
            k: libm::cbrt((w_max - cwnd) / C),
            w_est: cwnd,
            age: Span::ZERO,
            last: now,
            limited: true,
        })
    }

    fn reduce(&mut self, event: &CongestionEvent) {
        let cwnd = self.state.cwnd;
        let remembered = match self.state.w_max {
            // Fast convergence (section 4.7).
            Some(w_max) if self.fast_convergence == Switch::On && cwnd < w_max => cwnd * (1.0 + BETA) / 2.0,
            _ => cwnd,
        };
        let in_use = f64::from(event.flight) / self.mss;
        let reduced = match &mut self.linux {
            Some(curve) => curve.on_loss(in_use.floor(), self.fast_convergence),
            None => BETA * in_use,
        };
        let ssthresh = reduced.max(LEAST_SSTHRESH);
        let (cwnd_after, w_max) = match event.cause {
            Congestion::FastRetransmit => (ssthresh, Some(remembered)),
            Congestion::Ecn if self.linux.is_some() => (ssthresh, Some(remembered)),
            Congestion::Ecn => (reduced.max(1.0), Some(remembered)),
            Congestion::Timeout => (self.loss_window, None),
        };
        self.state = CubicState { cwnd: cwnd_after, ssthresh, w_max, cwnd_prior: cwnd, stage: None };
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, sample: &AckSample) {
        if let (Some(curve), Some(rtt)) = (&mut self.linux, sample.rtt) {
            curve.on_rtt(sample.now, rtt);
        }
        self.check_hybrid_slow_start(sample);
        if sample.phase == Phase::FastRecovery || sample.acked == 0 {
            return;
        }
        if !sample.window_limited {
            if let Some(stage) = &mut self.state.stage {
                stage.pass(sample.now, Limited::ByApplication);
            }
            return;
        }
        if self.linux.is_some() {
            self.grow_as_linux(sample);
        } else if self.state.cwnd < self.state.ssthresh {
            self.slow_start(sample, f64::from(sample.delivered) / self.mss);
        } else {
            self.avoid_congestion(sample);
        }
        // Limits the congestion window to 32 bits of bytes.
        self.state.cwnd = self.state.cwnd.min(f64::from(u32::MAX) / self.mss);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.hystart = None;
        if event.cause == Congestion::Timeout {
            self.hybrid = self.hybrid.take().map(|_| HybridStart::new());
        }
        let held = event.cause == Congestion::Timeout && event.repeated_timeout;
        if held {
            // On a repeated timeout, ssthresh keeps its value (RFC 5681 section 3.1). The state saved for an undo also
            // stays on a repeated timeout.
            self.state.cwnd = self.loss_window;
            self.state.stage = None;
        } else {
            self.before = Some(self.state);
            self.reduce(event);
        }
        if let Some(curve) = self.linux.as_mut().filter(|_| event.cause == Congestion::Timeout) {
            curve.reset();
        }
    }

    fn on_spurious(&mut self, _now: Time, _cause: Congestion) {
        if let Some(before) = self.before.take().filter(|before| before.cwnd > self.state.cwnd) {
            if self.linux.is_some() {
                // An undo keeps the growth curve that the loss has set.
                self.state.cwnd = before.cwnd;
                self.state.ssthresh = self.state.ssthresh.max(before.ssthresh);
                return;
            }
            // The start of the stage is restored too (section 4.9), so the time spent in recovery counts.
            self.state = before;
        }
    }

    fn on_sent(&mut self, sent: &Departure) {
        if let Some(curve) = &mut self.linux {
            curve.on_sent(sent.now, sent.in_flight <= sent.bytes);
        }
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        self.state.cwnd = (f64::from(window) / self.mss).max(1.0);
        self.state.ssthresh = f64::from(ssthresh) / self.mss;
    }

    fn window(&self) -> u32 {
        bytes(self.state.cwnd, self.mss)
    }

    fn ssthresh(&self) -> u32 {
        bytes(self.state.ssthresh, self.mss)
    }
}

/// Converts segments to the nearest byte, so that 62.999 999 computed segments count as 63; saturates.
fn bytes(segments: f64, mss: f64) -> u32 {
    libm::round(segments * mss) as u32
}

/// Limit of the sender: the congestion window or the application.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limited {
    ByWindow,
    ByApplication,
}

impl Stage {
    /// W_cubic(t) of eq. (1), in segments; `t` is in seconds.
    fn w_cubic(&self, t: f64) -> f64 {
        let from_k = t - self.k;
        C * from_k * from_k * from_k + self.w_max
    }

    /// Advances the stage's clock to `now`. The time since the last ACK counts only if the window limited the sender
    /// during that time.
    fn pass(&mut self, now: Time, limited: Limited) {
        if self.limited {
            self.age += now.since(self.last);
        }
        self.last = self.last.max(now);
        self.limited = limited == Limited::ByWindow;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// A controller driven by an ACK clock: one segment is acknowledged every RTT / window.
    struct Bench {
        cubic: Cubic,
        now: Time,
        rtt: Span,
    }

    impl Bench {
        fn new(window: u32, rtt: Span) -> Self {
            let context = CcContext {
                mss: MSS,
                initial_window: window * MSS,
                initial_ssthresh: u32::MAX,
                loss_window: MSS,
                stack: Stack::Rfc,
            };
            Self { cubic: Cubic::new(&CubicConfig::default(), Growth::Acks, context), now: Time::ZERO, rtt }
        }

        fn segments(&self) -> f64 {
            self.cubic.state.cwnd
        }

        fn ack(&mut self, window_limited: bool) {
            self.cubic.on_ack(&AckSample {
                now: self.now,
                acked: MSS,
                delivered: MSS,
                in_flight: self.cubic.window(),
                rtt: Some(self.rtt),
                srtt: Some(self.rtt),
                min_rtt: Some(self.rtt),
                rate: None,
                paced_for: Span::ZERO,
                phase: Phase::Open,
                window_limited,
                lost: 0,
                lost_in_all: 0,
                marked: 0,
            });
        }

        /// Delivers ACKs for the duration of `span`.
        fn run(&mut self, span: Span) {
            let until = self.now + span;
            while self.now < until {
                self.ack(true);
                self.now += Span::from_secs_f64(self.rtt.as_secs_f64() / self.segments());
            }
        }

        fn congestion(&mut self, cause: Congestion, flight: u32) {
            let window = self.cubic.window();
            let event = CongestionEvent {
                now: self.now,
                cause,
                flight: flight * MSS,
                window,
                repeated_timeout: false,
                lost_in_all: 0,
            };
            self.cubic.on_congestion(&event);
        }
    }

    fn seconds(secs: f64) -> Span {
        Span::from_secs_f64(secs)
    }

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance, "{got} is not {expected} +- {tolerance}");
    }

    #[test]
    fn slow_start_adds_a_segment_for_each_ack() {
        let mut bench = Bench::new(2, Span::from_millis(100));
        for _ in 0..5 {
            bench.ack(true);
        }
        assert_eq!(bench.cubic.window(), 7 * MSS);
    }

    #[test]
    fn a_loss_leaves_seven_tenths_of_the_flight() {
        let mut bench = Bench::new(100, Span::from_millis(100));
        bench.congestion(Congestion::FastRetransmit, 90);
        assert_eq!((bench.cubic.window(), bench.cubic.ssthresh()), (63_000, 63_000));
        bench.congestion(Congestion::FastRetransmit, 1);
        assert_eq!(bench.cubic.ssthresh(), 2 * MSS);
    }

    #[test]
    fn the_window_is_back_at_w_max_after_k_concave_before_and_convex_after() {
        let mut bench = Bench::new(1000, Span::from_millis(100));
        bench.congestion(Congestion::FastRetransmit, 1000);
        // K = cbrt((1000 - 700) / 0.4) = cbrt(750) = 9.0856 s. The window follows W_cubic(t + RTT) within an RTT. At t
        // = K / 2 the window is 1000 - 0.4 * 4.5428^3 = 962.5. The slope is 3 * 0.4 * 4.54^2 = 24.8 a second, 2.5 an
        // RTT.
        bench.run(seconds(4.5428));
        close(bench.segments(), 962.5, 2.5);
        bench.run(seconds(4.5428));
        close(bench.segments(), 1000.0, 0.5);
        // Three seconds after K the window is 1000 + 0.4 * 27 = 1010.8, with a slope of 10.8 a second.
        bench.run(seconds(3.0));
        close(bench.segments(), 1010.8, 1.1);
    }

    #[test]
    fn with_little_to_win_it_grows_as_reno_with_alpha_and_then_with_one() {
        let mut bench = Bench::new(20, Span::from_millis(20));
        bench.congestion(Congestion::FastRetransmit, 20);
        // W_est starts at 14 segments and grows by 9/17 per round. In 200 ms, W_cubic = 20 - 0.4 (2.466 - 0.2)^3 = 15.3
        // is below W_est = 19.3.
        bench.run(Span::from_millis(200));
        close(bench.segments(), 14.0 + 10.0 * 9.0 / 17.0, 0.5);
        // From cwnd_prior = 20 on, W_est grows by one per round. It needs 6 / (9/17) = 11.33 rounds to reach 20, which
        // leaves 8.67 rounds.
        bench.run(Span::from_millis(200));
        close(bench.segments(), 20.0 + 8.67, 0.7);
    }

    #[test]
    fn a_loss_below_the_last_is_remembered_as_less() {
        let mut bench = Bench::new(100, Span::from_millis(100));
        bench.congestion(Congestion::FastRetransmit, 100);
        assert_eq!(bench.cubic.state.w_max, Some(100.0));
        bench.ack(true);
        let cwnd = bench.segments();
        bench.congestion(Congestion::FastRetransmit, 70);
        // Section 4.7 sets W_max to cwnd (1 + 0.7) / 2.
        close(bench.cubic.state.w_max.unwrap(), 0.85 * cwnd, 1e-9);
    }

    #[test]
    fn the_target_is_at_most_half_as_much_again() {
        let mut bench = Bench::new(10, Span::from_secs(10));
        bench.congestion(Congestion::FastRetransmit, 10);
        bench.ack(true);
        bench.now += Span::from_secs(1000);
        let before = bench.segments();
        bench.ack(true);
        // One ACK covers (1.5 cwnd - cwnd) / cwnd segments.
        close(bench.segments(), before + 0.5, 1e-9);
    }

    #[test]
    fn time_that_the_application_lets_pass_does_not_count() {
        let mut idle = Bench::new(100, Span::from_millis(100));
        idle.congestion(Congestion::FastRetransmit, 100);
        idle.run(seconds(1.0));
        let mut busy = Bench { cubic: idle.cubic.clone(), ..idle };
        idle.ack(false);
        idle.now += Span::from_secs(100);
        busy.run(seconds(1.0));
        idle.run(seconds(1.0));
        close(idle.segments(), busy.segments(), 0.2);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_flat_where_slow_start_ends() {
        let mut bench = Bench::new(100, Span::from_millis(100));
        bench.congestion(Congestion::Timeout, 100);
        assert_eq!((bench.cubic.window(), bench.cubic.ssthresh()), (MSS, 70_000));
        while bench.segments() < 70.0 {
            bench.ack(true);
        }
        bench.ack(true);
        let stage = bench.cubic.state.stage.unwrap();
        assert_eq!((stage.k, stage.w_max), (0.0, 70.0));
    }

    #[test]
    fn a_timeout_of_the_same_segment_holds_ssthresh() {
        let mut bench = Bench::new(100, Span::from_millis(100));
        bench.congestion(Congestion::Timeout, 100);
        let event = CongestionEvent {
            now: bench.now,
            cause: Congestion::Timeout,
            flight: MSS,
            window: MSS,
            repeated_timeout: true,
            lost_in_all: 0,
        };
        bench.cubic.on_congestion(&event);
        assert_eq!(bench.cubic.ssthresh(), 70_000);
        bench.cubic.on_spurious(bench.now, Congestion::Timeout);
        assert_eq!(bench.cubic.window(), 100_000);
    }

    #[test]
    fn a_spurious_reduction_gives_window_and_curve_back() {
        let mut bench = Bench::new(100, Span::from_millis(100));
        bench.congestion(Congestion::FastRetransmit, 100);
        bench.run(seconds(2.0));
        let mut untouched = Bench { cubic: bench.cubic.clone(), ..bench };
        bench.congestion(Congestion::FastRetransmit, 90);
        bench.cubic.on_spurious(bench.now, Congestion::FastRetransmit);
        bench.run(seconds(2.0));
        untouched.run(seconds(2.0));
        assert_eq!(bench.segments(), untouched.segments());
        bench.cubic.on_spurious(bench.now, Congestion::FastRetransmit);
        assert_eq!(bench.segments(), untouched.segments(), "only once");
    }

    #[test]
    fn nothing_grows_in_fast_recovery() {
        let mut bench = Bench::new(10, Span::from_millis(100));
        let sample = AckSample {
            now: bench.now,
            acked: MSS,
            delivered: MSS,
            in_flight: 0,
            rtt: None,
            srtt: None,
            min_rtt: None,
            rate: None,
            paced_for: Span::ZERO,
            phase: Phase::FastRecovery,
            window_limited: true,
            lost: 0,
            lost_in_all: 0,
            marked: 0,
        };
        bench.cubic.on_ack(&sample);
        assert_eq!(bench.cubic.window(), 10 * MSS);
    }
}
