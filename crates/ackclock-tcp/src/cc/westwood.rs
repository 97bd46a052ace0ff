//! # TCP Westwood congestion control
//!
//! Westwood sets the window after a loss from a bandwidth estimate, so that a loss on the radio link does not halve the
//! window.
//!
//! ## Source
//! Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: bandwidth estimation for enhanced transport over wireless
//! links", MobiCom 2001. Sections: 2.1 (filter), 2.2 (bytes that an ACK counts) and 3 (setting the window).
//!
//! ## What it does
//! Each ACK gives a bandwidth sample: the bytes acknowledged over the time since the previous ACK. A first-order
//! low-pass filter turns the samples into the estimate B. The filter has the time constant τ and is discretised by
//! Tustin's rule. After τ/2 without an ACK, the filter gets a sample of zero. A loss sets `ssthresh = B · smallest
//! RTT`, and reduces a larger window to this threshold. A timeout also sets the window to one segment. Between losses
//! the window grows like Reno's.
//!
//! ## Differences from the source
//! - ACKs that arrive at the same instant form one sample, because a sample needs a duration.
//! - The first ACK only starts the clock; a loss before the second ACK halves the window like Reno.
//! - A duplicate ACK counts as one segment, even if SACK shows the exact amount.
//! - An ECN echo sets the window like a loss; the paper has no ECN.
//! - L02 section 3.1.5 multiplies the bandwidth by "the RTT"; the Westwood paper multiplies the bandwidth by the
//!   smallest RTT.
//!
//! ## Validation
//! Unit tests compare step response and decay of the filter with closed forms. In `tests/cc_paths.rs`, Westwood under
//! random loss fills a link that Reno leaves half empty. `papers/l02` reproduces L02's table 6, except for the value in
//! the first row: 22 instead of 34 %.

use ackclock_core::{Config, ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reno::Reno;
use crate::choices::{Growth, Halves};
use crate::congestion_control::{AckSample, CcContext, Congestion, CongestionControl, CongestionEvent};

/// Options of Westwood.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WestwoodConfig {
    /// Time constant of Westwood's bandwidth filter; westwood-plus ignores this option.
    pub tau: Span,
}

impl Default for WestwoodConfig {
    fn default() -> Self {
        Self { tau: Span::from_millis(500) }
    }
}

impl Config for WestwoodConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let least = Span::from_millis(1);
        if self.tau < least {
            return Err(ConfigError::new("tau", format!("{} is below {least}", self.tau)));
        }
        Ok(())
    }
}

/// Bandwidth estimator of a connection, updated with the data that ACKs acknowledge.
pub trait BandwidthFilter: Send {
    /// Options that Westwood with this filter reads, of those that not every control reads.
    const OPTIONS: &'static [&'static str] = crate::congestion_control::WINDOWED;

    /// Creates the filter of a new connection.
    fn new(config: &WestwoodConfig) -> Self;

    /// Adds `bytes` that an ACK reported as newly arrived. `rtt` is the smoothed round-trip time.
    fn on_acked(&mut self, now: Time, bytes: f64, rtt: Option<Span>);

    /// Bandwidth estimate at `now`, bytes per second; `None` before the first sample.
    fn estimate(&mut self, now: Time) -> Option<f64>;
}

/// State of Westwood congestion control with the bandwidth filter `F`.
#[derive(Clone, Debug)]
pub struct Westwood<F = LowPass> {
    reno: Reno,
    filter: F,
    mss: u32,
    /// Bytes counted from duplicate ACKs, which the next acknowledgement of new data will cover again.
    accounted: u32,
    min_rtt: Option<Span>,
}

/// Smallest slow-start threshold, segments (section 3).
const LEAST_THRESHOLD: u32 = 2;

impl<F: BandwidthFilter> Westwood<F> {
    /// Creates the controller of a new connection. `halves` and `growth` apply until there is a bandwidth estimate.
    pub fn new(config: &WestwoodConfig, context: &CcContext, halves: Halves, growth: Growth) -> Self {
        Self {
            reno: Reno::new(context, halves, growth),
            filter: F::new(config),
            mss: context.mss,
            accounted: 0,
            min_rtt: None,
        }
    }

    /// Number of bytes that newly arrived according to this ACK (section 2.2).
    fn arrived(&mut self, acked: u32) -> u32 {
        if acked == 0 {
            self.accounted = self.accounted.saturating_add(self.mss);
            return self.mss;
        }
        if acked <= self.mss {
            return acked;
        }
        let counted = self.accounted.min(acked);
        self.accounted -= counted;
        if counted == acked { self.mss } else { acked - counted }
    }

    fn observe(&mut self, sample: &AckSample) {
        self.min_rtt = sample.min_rtt.or(self.min_rtt);
        let bytes = self.arrived(sample.acked);
        self.filter.on_acked(sample.now, f64::from(bytes), sample.srtt);
    }

    /// Bandwidth-delay product at the estimated bandwidth and the smallest RTT, bytes.
    fn pipe(&mut self, now: Time) -> Option<u32> {
        let bytes = self.filter.estimate(now)? * self.min_rtt?.as_secs_f64();
        // The `as` conversion saturates.
        Some((bytes as u32).max(LEAST_THRESHOLD.saturating_mul(self.mss)))
    }
}

impl<F: BandwidthFilter> CongestionControl for Westwood<F> {
    fn on_ack(&mut self, sample: &AckSample) {
        self.observe(sample);
        self.reno.on_ack(sample);
    }

    fn on_duplicate(&mut self, sample: &AckSample) {
        self.observe(sample);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let before = self.reno.window();
        self.reno.on_congestion(event);
        let Some(pipe) = self.pipe(event.now) else { return };
        let window = match event.cause {
            Congestion::Timeout => self.reno.window(),
            Congestion::FastRetransmit | Congestion::Ecn => before.min(pipe),
        };
        self.reno.adopt(window, pipe);
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
}

/// Bandwidth filter of Westwood: a low pass with the time constant τ (section 2.1).
#[derive(Clone, Debug)]
pub struct LowPass {
    /// Time constant τ, seconds.
    tau: f64,
    /// Longest time between two samples: τ/m with m = 2.
    longest: Span,
    /// Time of the last bandwidth sample.
    sampled: Option<Time>,
    /// Duration of the last sample, seconds; zero before the first sample.
    duration: f64,
    /// Last sample b of the filter, bytes per second.
    sample: f64,
    /// Bandwidth estimate B, bytes per second.
    bandwidth: f64,
}

impl LowPass {
    /// Filter weight of the old estimate: `a = (2τ - D)/(2τ + D)`, where D is the duration of a sample.
    fn weight(&self, duration: f64) -> f64 {
        (2.0 * self.tau - duration) / (2.0 * self.tau + duration)
    }

    /// Filters a sample: `B = a B + (1 - a)(b + b before)/2`.
    fn take(&mut self, sample: f64, duration: f64) {
        let a = self.weight(duration);
        self.bandwidth = a * self.bandwidth + (1.0 - a) * (sample + self.sample) / 2.0;
        (self.sample, self.duration) = (sample, duration);
    }

    /// Adds the zero samples due before `now`. Returns the time since the last sample.
    fn advance(&mut self, now: Time) -> Option<Span> {
        let silence = now.since(self.sampled?);
        if silence <= self.longest {
            return Some(silence);
        }
        // Zero samples are τ/m apart. The remaining time is never zero, because an ACK may still arrive at the time of
        // a sample due now.
        let virtual_samples = (silence.as_nanos() - 1) / self.longest.as_nanos();
        let step = self.longest.as_secs_f64();
        self.take(0.0, step);
        self.bandwidth *= libm::pow(self.weight(step), (virtual_samples - 1) as f64);
        let passed = Span::from_nanos(self.longest.as_nanos() * virtual_samples);
        self.sampled = self.sampled.map(|at| at + passed);
        Some(silence.saturating_sub(passed))
    }
}

impl BandwidthFilter for LowPass {
    const OPTIONS: &'static [&'static str] =
        &["prr", "growth", "halves", "initial_ssthresh", "loss_window", "westwood"];

    fn new(config: &WestwoodConfig) -> Self {
        Self {
            tau: config.tau.as_secs_f64(),
            longest: config.tau / 2,
            sampled: None,
            duration: 0.0,
            sample: 0.0,
            bandwidth: 0.0,
        }
    }

    fn on_acked(&mut self, now: Time, bytes: f64, _: Option<Span>) {
        match self.advance(now) {
            None => self.sampled = Some(now),
            Some(Span::ZERO) if self.duration > 0.0 => {
                // Adding bytes increases the last bandwidth sample. The filter is linear, so the estimate increases in
                // proportion.
                let more = bytes / self.duration;
                self.bandwidth += (1.0 - self.weight(self.duration)) * more / 2.0;
                self.sample += more;
            }
            Some(Span::ZERO) => {}
            Some(duration) => {
                self.sampled = Some(now);
                self.take(bytes / duration.as_secs_f64(), duration.as_secs_f64());
            }
        }
    }

    fn estimate(&mut self, now: Time) -> Option<f64> {
        self.advance(now)?;
        Some(self.bandwidth).filter(|_| self.duration > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;

    const MSS: u32 = 1000;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn filter() -> LowPass {
        LowPass::new(&WestwoodConfig::default())
    }

    fn westwood<F: BandwidthFilter>(window: u32) -> Westwood<F> {
        let context = CcContext {
            mss: MSS,
            initial_window: window * MSS,
            initial_ssthresh: window * MSS,
            loss_window: MSS,
            stack: Stack::Rfc,
        };
        Westwood::new(&WestwoodConfig::default(), &context, Halves::Window, Growth::Acks)
    }

    fn ack(now: Time, segments: u32) -> AckSample {
        AckSample {
            now,
            rtt: Some(Span::from_millis(100)),
            srtt: Some(Span::from_millis(200)),
            min_rtt: Some(Span::from_millis(100)),
            ..AckSample::of(segments * MSS)
        }
    }

    fn loss(now: Time, cause: Congestion, segments: u32) -> CongestionEvent {
        let bytes = segments * MSS;
        CongestionEvent { now, cause, flight: bytes, window: bytes, repeated_timeout: false, lost_in_all: 0 }
    }

    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn an_even_stream_of_acks_gives_the_step_response_of_the_filter() {
        let mut filter = filter();
        for n in 0..=50 {
            filter.on_acked(ms(20 * n), 1000.0, None);
        }
        // b = 50 000 B/s and a = (1 - 0.02)/(1 + 0.02) = 0.98/1.02.
        // The first sample is averaged with a zero: B_1 = (1 - a)/2 b. Then B_n = b - (b - B_1) a^(n-1), at n = 50.
        let a: f64 = 0.98 / 1.02;
        let first = (1.0 - a) / 2.0 * 50_000.0;
        close(filter.estimate(ms(1000)).unwrap(), 50_000.0 - (50_000.0 - first) * libm::pow(a, 49.0));
    }

    #[test]
    fn silence_lets_samples_of_zero_in_every_half_time_constant() {
        let mut filter = filter();
        (0..=500).for_each(|n| filter.on_acked(ms(20 * n), 1000.0, None));
        let before = filter.estimate(ms(10_000)).unwrap();
        close(filter.estimate(ms(10_250)).unwrap(), before);
        // Zero samples are due at 10.25, 10.5 and 10.75 s, with a = (1 - 0.25)/(1 + 0.25) = 0.6. The first zero follows
        // a sample of 50 000 B/s, which counts (1 - 0.6)/2; the next zeros follow zeros.
        let after = (0.6 * before + 0.2 * 50_000.0) * 0.6 * 0.6;
        close(filter.estimate(ms(10_900)).unwrap(), after);
        // An ACK 150 ms after the last zero sample is a sample of 1000 B in 0.15 s, with a = 0.85/1.15.
        filter.on_acked(ms(10_900), 1000.0, None);
        let a = 0.85 / 1.15;
        close(filter.estimate(ms(10_900)).unwrap(), a * after + (1.0 - a) * (1000.0 / 0.15) / 2.0);
    }

    #[test]
    fn asking_in_between_changes_nothing() {
        let (mut asked, mut quiet) = (filter(), filter());
        for filter in [&mut asked, &mut quiet] {
            (0..9).for_each(|n| filter.on_acked(ms(30 * n), 1000.0, None));
        }
        let readings = (240..3000).step_by(7).filter_map(|n| asked.estimate(ms(n)));
        assert_eq!(readings.count(), 395);
        close(asked.estimate(ms(3000)).unwrap(), quiet.estimate(ms(3000)).unwrap());
    }

    #[test]
    fn acks_of_one_instant_make_one_sample() {
        let (mut one, mut two) = (filter(), filter());
        for filter in [&mut one, &mut two] {
            filter.on_acked(ms(0), 1000.0, None);
        }
        one.on_acked(ms(40), 3000.0, None);
        two.on_acked(ms(40), 1000.0, None);
        two.on_acked(ms(40), 2000.0, None);
        close(two.estimate(ms(40)).unwrap(), one.estimate(ms(40)).unwrap());
        close(two.sample, 75_000.0);
    }

    #[test]
    fn what_duplicates_counted_is_not_counted_again_by_the_advance() {
        let mut westwood = westwood::<LowPass>(10);
        let count = |westwood: &mut Westwood, acked: &[u32]| {
            acked.iter().map(|n| westwood.arrived(n * MSS)).sum::<u32>()
        };
        // After five duplicates, an ACK covers the lost segment and those five: six segments in total.
        assert_eq!(count(&mut westwood, &[0, 0, 0, 0, 0, 6]), 6 * MSS);
        // A later delayed ACK counts in full.
        assert_eq!(count(&mut westwood, &[2]), 2 * MSS);
        // A partial ACK of 2 segments after five duplicates counts one segment. The remaining 3 are deducted from the
        // next ACK.
        assert_eq!(count(&mut westwood, &[0, 0, 0, 0, 0]), 5 * MSS);
        assert_eq!(count(&mut westwood, &[2]), MSS);
        assert_eq!(count(&mut westwood, &[5]), 2 * MSS);
    }

    /// One segment every 10 ms for ten seconds gives 100 000 B/s, which is ten segments in a pipe of 100 ms.
    fn settled(window: u32) -> Westwood {
        let mut westwood = westwood(window);
        (0..1000).for_each(|n| westwood.on_duplicate(&ack(ms(10 * n), 1)));
        assert_eq!(westwood.window(), window * MSS);
        westwood
    }

    #[test]
    fn a_loss_sets_the_window_to_what_the_path_holds() {
        let mut westwood = settled(40);
        westwood.on_congestion(&loss(ms(9990), Congestion::FastRetransmit, 40));
        // The filter output has reached 1 - exp(-10/0.5), practically all, of the step.
        assert!((9_990..=10_000).contains(&westwood.window()), "{}", westwood.window());
        assert_eq!(westwood.ssthresh(), westwood.window());
        westwood.on_spurious(ms(9991), Congestion::FastRetransmit);
        assert_eq!(westwood.window(), 40 * MSS);
    }

    #[test]
    fn a_window_that_the_path_holds_survives_a_loss() {
        let mut westwood = settled(7);
        westwood.on_congestion(&loss(ms(9990), Congestion::FastRetransmit, 7));
        assert_eq!(westwood.window(), 7 * MSS);
        assert!(westwood.ssthresh() > 9 * MSS);
    }

    #[test]
    fn a_timeout_starts_from_one_segment_and_knows_of_the_silence() {
        let mut westwood = settled(40);
        westwood.on_congestion(&loss(ms(9990 + 600), Congestion::Timeout, 40));
        // Two zero samples leave (0.6 + 0.2) · 0.6 = 0.48 of ten segments.
        assert_eq!(westwood.window(), MSS);
        assert!((4_790..=4_800).contains(&westwood.ssthresh()), "{}", westwood.ssthresh());
        westwood.on_congestion(&loss(ms(100_000), Congestion::Timeout, 1));
        assert_eq!(westwood.ssthresh(), 2 * MSS);
    }

    #[test]
    fn before_there_is_an_estimate_a_loss_halves() {
        let mut westwood = westwood::<LowPass>(40);
        westwood.on_duplicate(&ack(ms(10), 1));
        westwood.on_congestion(&loss(ms(20), Congestion::FastRetransmit, 40));
        assert_eq!((westwood.window(), westwood.ssthresh()), (20 * MSS, 20 * MSS));
    }

    #[test]
    fn a_time_constant_of_zero_is_refused() {
        let error = WestwoodConfig { tau: Span::ZERO }.check().unwrap_err();
        assert_eq!(error.to_string(), "tau: 0ms is below 1ms");
    }
}
