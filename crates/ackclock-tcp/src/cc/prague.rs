//! # Prague congestion control
//!
//! ## Source
//! draft-briscoe-iccrg-prague-congestion-control-04 (De Schepper, Tilmans, Briscoe and Goel, July 2024), sections 2.4.1 to
//! 2.4.4, which fulfils the requirements of RFC 9331 section 4.
//!
//! ## What it does
//! New data has ECT(1), and the receiver counts all marks (AccECN). A moving average α follows the marked fraction of each
//! round trip with the gain 1/16; the first mark sets it to 1. The first mark of a round reduces the window by the factor
//! `1 - α/2`, at once, and for a round trip, and at least R_v, no other mark does. Between and after reductions, each unmarked byte acknowledged grows the window by
//! `(R / R_v)²` segments per window, where the virtual round-trip time R_v is the larger of the round-trip time R and
//! 25 ms. Rounds last at least R_v. Both make the rate independent of short round-trip times. Segments are paced at the
//! window per round trip, in slow start at twice that rate. A loss halves the window, once together with the marks of
//! its round.
//!
//! In the steady state with the marked fraction p, the window is 2/p segments if R is at least 25 ms.
//!
//! ## Differences from the source
//! - Of revision -04 only the abstract and quotations were at hand. The rules were compared one by one with the authors'
//!   working copy of November 2021, and with two programs: udp_prague of the L4S team, by authors of the draft, and a
//!   controller of quinn that cites -04.
//! - The virtual round-trip time applies from the start; the text begins with it after 500 rounds.
//! - Pacing follows the window, each segment alone; the text of 2021 paces by the larger of the window and the bytes in
//!   flight, in bursts of up to 0.25 ms.
//! - Slow start ends at the first mark or loss, without a test of the delay.
//! - There is no fallback for a classic ECN bottleneck, and no second, faster average.
//!
//! ## Validation
//! Unit tests check growth and reductions by hand, and the steady window against 2/p within 25 %. In
//! `crates/ackclock-scenario/tests/l4s.rs` Prague gets 0.5 to 2 times the rate of CUBIC over DualPI2, from 4 to 200 Mbit/s.
//! picoquic's Prague was run over the same queue with real packets at 4, 12 and 40 Mbit/s (`docs/lab/2026-11-l4s.md`).
//! Alone, the 95th percentile of its wait in the L queue is within 2.2 ms of ours; beside CUBIC it is 1.9 to 2.7 times
//! ours. Its throughput is lower; its bursts explain that at two of the three rates.

use ackclock_core::{Config, ConfigError, Ecn, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BuildControl;
use super::marked_fraction::{MarkedFraction, Round};
use crate::config::{Halves, SenderConfig};
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Phase,
};

/// Options of Prague.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PragueConfig {
    /// Smallest virtual round-trip time; flows with a shorter round-trip time grow more slowly.
    pub virtual_rtt: Span,
}

impl Default for PragueConfig {
    fn default() -> Self {
        Self { virtual_rtt: Span::from_millis(25) }
    }
}

impl Config for PragueConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let most = Span::from_secs(1);
        if self.virtual_rtt > most {
            return Err(ConfigError::new("virtual_rtt", format!("{} is above {most}", self.virtual_rtt)));
        }
        Ok(())
    }
}

/// State of Prague congestion control; windows are in bytes.
#[derive(Clone, Debug)]
pub struct Prague {
    cwnd: f64,
    ssthresh: f64,
    mss: f64,
    loss_window: f64,
    fraction: MarkedFraction,
    /// Whether any mark has arrived.
    marked: bool,
    /// Round trip after the last reduction, within which marks reduce nothing.
    spared: Option<Round>,
    /// Window before the reduction for marks, if that was the last reduction and its round trip is not over.
    before_marks: Option<f64>,
    /// Window and threshold before the last loss.
    before_loss: (f64, f64),
    srtt: Option<Span>,
    virtual_rtt: Span,
}

/// Smallest window that marks and losses leave, segments.
const LEAST_WINDOW: f64 = 2.0;
/// Largest window, bytes (RFC 7323 section 2.3).
const LARGEST_WINDOW: f64 = (1 << 30) as f64;

impl Prague {
    /// Creates the controller of a new connection.
    pub fn new(config: &PragueConfig, context: &CcContext) -> Self {
        let mss = f64::from(context.mss.max(1));
        let cwnd = f64::from(context.initial_window).max(mss);
        let ssthresh = f64::from(context.initial_ssthresh);
        Self {
            cwnd,
            ssthresh,
            mss,
            loss_window: context.loss_window.into(),
            fraction: MarkedFraction::new(0.0),
            marked: false,
            spared: None,
            before_marks: None,
            before_loss: (cwnd, ssthresh),
            srtt: None,
            virtual_rtt: config.virtual_rtt,
        }
    }

    fn least(&self) -> f64 {
        LEAST_WINDOW * self.mss
    }

    /// Reduces the window for a mark (section 2.4.2).
    fn reduce_for_marks(&mut self, sample: &AckSample) {
        self.spared = Some(Round::start(sample.now, sample.in_flight));
        if !self.marked {
            self.marked = true;
            self.fraction.set(1.0);
        }
        self.before_marks = Some(self.cwnd);
        let reduced = self.cwnd * (1.0 - self.fraction.average() / 2.0);
        self.cwnd = reduced.max(self.least()).min(self.cwnd);
        self.ssthresh = self.cwnd;
    }

    /// Grows the window by the unmarked bytes of an ACK (sections 2.4.3 and 2.4.4).
    fn grow(&mut self, bytes: f64) {
        let doubling = bytes.min((self.ssthresh - self.cwnd).max(0.0));
        let per_window = match self.srtt {
            Some(srtt) if srtt < self.virtual_rtt => {
                let ratio = srtt.as_secs_f64() / self.virtual_rtt.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        };
        self.cwnd += doubling;
        self.cwnd += per_window * self.mss * (bytes - doubling) / self.cwnd;
        self.cwnd = self.cwnd.min(LARGEST_WINDOW.max(self.mss));
    }
}

impl BuildControl for Prague {
    const OPTIONS: &'static [&'static str] =
        &["prr", "growth", "halves", "initial_ssthresh", "loss_window", "prague"];
    const CODEPOINT: Ecn = Ecn::Ect1;

    fn build(config: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        Self::new(&config.prague, context)
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, sample: &AckSample) {
        self.srtt = sample.srtt.or(self.srtt);
        let least = self.srtt.map_or(Span::ZERO, |srtt| srtt.max(self.virtual_rtt));
        self.fraction.on_ack(sample, least);
        if self.spared.as_mut().is_some_and(|round| round.is_over(sample, least)) {
            (self.spared, self.before_marks) = (None, None);
        }
        if sample.marked > 0 && self.spared.is_none() {
            self.reduce_for_marks(sample);
        }
        if sample.phase != Phase::FastRecovery && sample.window_limited {
            self.grow(sample.acked.saturating_sub(sample.marked).into());
        }
    }

    fn on_established(&mut self, _: Time, round_trip: Span) {
        self.srtt = Some(round_trip);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.before_loss = (self.cwnd, self.ssthresh);
        let before = self.before_marks.take().unwrap_or(self.cwnd);
        self.spared = Some(Round::start(event.now, event.flight));
        let half = (before / 2.0).max(self.least());
        if !event.repeated_timeout {
            self.ssthresh = half;
        }
        self.cwnd = match event.cause {
            Congestion::Timeout => self.loss_window,
            Congestion::FastRetransmit | Congestion::Ecn => self.cwnd.min(half).max(self.mss),
        };
    }

    fn on_spurious(&mut self, _: Time, _: Congestion) {
        (self.cwnd, self.ssthresh) = (self.before_loss.0.max(self.cwnd), self.before_loss.1);
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        self.cwnd = f64::from(window).max(self.mss);
        self.ssthresh = ssthresh.into();
    }

    fn window(&self) -> u32 {
        // The `as` conversion saturates.
        self.cwnd.max(self.mss) as u32
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh as u32
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let srtt = self.srtt.filter(|&srtt| srtt > Span::ZERO)?;
        let gain = if self.cwnd < self.ssthresh { 2.0 } else { 1.0 };
        // A pacing rate of zero would stop sending for ever.
        Some(Rate::from_bps_f64(8.0 * gain * self.cwnd / srtt.as_secs_f64()).max(Rate::from_bps(1)))
    }

    fn counts_marks(&self) -> bool {
        true
    }

    fn codepoint(&self) -> Ecn {
        Self::CODEPOINT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;

    const MSS: u32 = 1000;

    fn prague(segments: u32) -> Prague {
        let context = CcContext {
            mss: MSS,
            initial_window: segments * MSS,
            initial_ssthresh: segments * MSS,
            loss_window: MSS,
            stack: Stack::Rfc,
        };
        Prague::new(&PragueConfig::default(), &context)
    }

    fn ack(millis: u64, marked: u32, rtt: u64) -> AckSample {
        let now = Time::ZERO + Span::from_millis(millis);
        let srtt = Some(Span::from_millis(rtt));
        AckSample { now, marked, srtt, in_flight: 100 * MSS, ..AckSample::of(MSS) }
    }

    #[test]
    fn growth_is_a_segment_per_window_and_less_at_short_round_trips() {
        let mut long = prague(100);
        long.on_ack(&ack(0, 0, 50));
        // 1/100 of a segment.
        assert!((long.cwnd - 100_010.0).abs() < 1e-9, "{}", long.cwnd);
        let mut short = prague(100);
        short.on_ack(&ack(0, 0, 5));
        // (5/25)² = 1/25 of it.
        assert!((short.cwnd - 100_000.4).abs() < 1e-9, "{}", short.cwnd);
        let mut marked = prague(100);
        marked.marked = true;
        marked.on_ack(&ack(0, MSS, 50));
        assert!(
            (marked.cwnd - 100_000.0).abs() < 1e-9,
            "marked bytes do not grow the window: {}",
            marked.cwnd
        );
    }

    #[test]
    fn the_first_mark_halves_and_later_rounds_reduce_by_the_average() {
        let mut prague = prague(100);
        prague.on_ack(&ack(0, 0, 50));
        prague.on_ack(&ack(1, MSS, 50));
        assert!((prague.cwnd - 50_005.0).abs() < 1e-9, "{}", prague.cwnd);
        prague.on_ack(&ack(2, MSS, 50));
        assert!((prague.cwnd - 50_005.0).abs() < 1e-9, "once a round: {}", prague.cwnd);
        prague.fraction.set(0.2);
        (prague.spared, prague.before_marks) = (None, None);
        prague.on_ack(&ack(3, MSS, 50));
        // 50005·(1 - 0.1).
        assert!((prague.cwnd - 45_004.5).abs() < 1e-9, "{}", prague.cwnd);
    }

    #[test]
    fn a_loss_in_the_round_of_a_mark_halves_the_window_before_it() {
        let mut prague = prague(100);
        prague.marked = true;
        prague.fraction.set(0.2);
        prague.on_ack(&ack(0, 0, 50));
        prague.on_ack(&ack(1, MSS, 50));
        let event = CongestionEvent {
            now: Time::ZERO,
            cause: Congestion::FastRetransmit,
            flight: 0,
            window: 0,
            repeated_timeout: false,
            lost_in_all: 1,
        };
        prague.on_congestion(&event);
        assert!((prague.cwnd - 50_005.0).abs() < 1.0, "{}", prague.cwnd);
    }

    /// A reduction late in a round of the average is followed by a whole round trip without another.
    #[test]
    fn marks_are_spared_for_a_round_trip_from_the_reduction() {
        let mut prague = prague(100);
        prague.marked = true;
        let sample = |millis, marked, in_flight| AckSample { in_flight, ..ack(millis, marked, 50) };
        // The first ACK starts a round of the average of 2 segments, whose last ACK is marked.
        prague.on_ack(&sample(0, 0, 2 * MSS));
        prague.on_ack(&sample(30, 0, 2 * MSS));
        prague.on_ack(&sample(60, MSS, 3 * MSS));
        let reduced = prague.cwnd;
        // The round of the reduction has 3 segments: two more ACKs are spared although the average has a new round.
        prague.on_ack(&sample(61, MSS, 3 * MSS));
        prague.on_ack(&sample(115, MSS, 3 * MSS));
        assert_eq!(prague.cwnd, reduced);
        prague.on_ack(&sample(116, MSS, 3 * MSS));
        assert!(prague.cwnd < reduced, "{}", prague.cwnd);
    }

    #[test]
    fn marks_after_a_loss_are_spared_for_a_round_trip() {
        let mut prague = prague(100);
        prague.marked = true;
        prague.fraction.set(1.0);
        let event = CongestionEvent {
            now: Time::ZERO,
            cause: Congestion::FastRetransmit,
            flight: 10 * MSS,
            window: 0,
            repeated_timeout: false,
            lost_in_all: 1,
        };
        prague.on_congestion(&event);
        prague.on_ack(&ack(10, MSS, 50));
        assert!((prague.cwnd - 50_000.0).abs() < 1e-9, "{}", prague.cwnd);
    }

    /// Section 2.4.2 with RFC 9332 appendix A.1: the steady state of a scalable control is 2/p segments.
    #[test]
    fn the_steady_window_is_two_over_the_marked_fraction() {
        for every in [10u32, 25, 50, 100] {
            let mut prague = prague(20);
            let (mut sum, mut counted, mut now) = (0.0, 0.0, Time::ZERO);
            for number in 0..400_000u32 {
                let marked = if number % every == 0 { MSS } else { 0 };
                let in_flight = prague.window();
                // A window per 50 ms.
                now += Span::from_secs_f64(0.05 * f64::from(MSS) / f64::from(in_flight));
                prague.on_ack(&AckSample { now, in_flight, ..ack(0, marked, 50) });
                if number > 200_000 {
                    (sum, counted) = (sum + prague.cwnd / f64::from(MSS), counted + 1.0);
                }
            }
            let (window, expected) = (sum / counted, 2.0 * f64::from(every));
            assert!((window / expected - 1.0).abs() < 0.25, "{window} {expected}");
        }
    }

    #[test]
    fn pacing_sends_a_window_per_round_trip_and_twice_in_slow_start() {
        let mut prague = prague(100);
        prague.on_established(Time::ZERO, Span::from_millis(50));
        // 100 kB in 50 ms are 16 Mbit/s.
        assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(16_000_000)));
        prague.ssthresh = 1e6;
        assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(32_000_000)));
    }
}
