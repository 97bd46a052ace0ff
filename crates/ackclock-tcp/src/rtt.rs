//! # Round-trip time and retransmission timeout
//!
//! ## Source
//! The exact form follows RFC 6298. The coarse-tick form follows the simulators of about 2002, with integer arithmetic
//! on ticks after Jacobson's appendix of 1988. The form that bounds the variation is Linux's (Sarolahti and Kuznetsov,
//! "Congestion control in Linux TCP", USENIX 2002).
//!
//! ## What it does
//! The estimator maintains the smoothed round-trip time and its variation, and computes the timeout including backoff.
//! The estimator also times one segment at a time. The samples of timed segments feed the coarse form and give the mean
//! that the papers call `rtt`.
//!
//! ## Differences from the source
//! - The backoff factor is a power of two up to 64. In every form of the estimator, the backoff ends with the next
//!   sample.
//! - The lower limit of the timeout applies before the backoff, the upper limit after.
//!
//! ## Validation
//! Unit tests compare with values computed by hand. `tests/table_one.rs` checks the mean of the timed segments in CR02
//! Table 1 item 1.

use ackclock_core::{ConfigError, RoundTrip, Seq, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choices::Switch;

/// Options of the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RtoConfig {
    /// Timeout before the first round-trip time sample (RFC 6298 (2.1)).
    pub initial: Span,
    /// Lower limit of the timeout (RFC 6298 (2.4)).
    pub min: Span,
    /// Upper limit of the timeout (RFC 6298 (2.5)).
    pub max: Span,
    /// Clock granularity G of RFC 6298.
    pub granularity: Span,
    /// Quantity that `min` bounds: the timeout or the variation.
    pub bounds: Bounds,
    /// Time from which the timeout counts, after an acknowledgement of new data restarts the timer.
    pub anchor: Anchor,
    /// Clock tick of the coarse timer, which times one segment at a time. Zero selects RFC 6298 with a sample from
    /// every segment that can be timed.
    pub tick: Span,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Span::from_secs(1),
            min: Span::from_secs(1),
            max: Span::from_secs(60),
            granularity: Span::from_millis(1),
            bounds: Bounds::Timeout,
            anchor: Anchor::Ack,
            tick: Span::ZERO,
        }
    }
}

/// Quantity that the lower limit of the retransmission timeout bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bounds {
    /// The timeout itself (RFC 6298).
    #[default]
    Timeout,
    /// Four times the variation, which is added to the smoothed round-trip time, as in Linux. The variation rises at
    /// once and falls once per round trip. A sample below the mean raises the variation by only an eighth as much as an
    /// equally distant sample above the mean.
    Variation,
}

/// Time from which the timeout counts, after an acknowledgement of new data restarts the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Anchor {
    /// Arrival of the acknowledgement (RFC 6298 (5.3)). A segment's timeout is then longer by the time it waits behind
    /// earlier segments.
    #[default]
    Ack,
    /// Time at which the oldest segment in flight was sent. Each segment is then retransmitted exactly one timeout
    /// after its transmission.
    Segment,
}

impl RtoConfig {
    /// Checks that the limits and the initial timeout are positive and in order.
    ///
    /// # Errors
    /// Returns an error that names the offending key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.min == Span::ZERO {
            return Err(ConfigError::new("min", "0s is not above 0"));
        }
        if self.initial == Span::ZERO {
            return Err(ConfigError::new("initial", "0s is not above 0"));
        }
        if self.max < self.min {
            return Err(ConfigError::new("max", format!("{} is below min, {}", self.max, self.min)));
        }
        Ok(())
    }
}

/// Round-trip time estimator of one connection. Fields that every ACK reads come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct RttEstimator {
    /// Retransmission timeout with limits and backoff.
    rto: Span,
    min_rtt: Span,
    timed: Option<Timed>,
    /// Exponent of the timeout's backoff, 0 to 6. The timeout is multiplied by 2^`backoff`.
    backoff: u32,
    anchor: Anchor,
    /// Whether the timeout is QUIC's probe timeout, which includes the peer's delay of acknowledgements.
    probes: Switch,
    config: RtoConfig,
    /// Current estimate; `None` before the first sample.
    estimate: Option<Estimate>,
}

#[derive(Clone, Copy, Debug)]
enum Estimate {
    Exact(RoundTrip),
    /// Linux's form: the timeout is `srtt + margin`. `peak` is the largest value of four times the deviation in the
    /// current round trip. The round trip ends when more than `round` is acknowledged.
    Bounded {
        srtt: Span,
        deviation: Span,
        peak: Span,
        margin: Span,
        round: Seq,
    },
    /// Coarse form, in ticks: `S` is eight times the mean, `V` four times the deviation.
    Coarse {
        s: i64,
        v: i64,
    },
}

/// Segment whose round-trip time is being measured.
#[derive(Clone, Copy, Debug)]
struct Timed {
    end: Seq,
    sent_at: Time,
}

/// Default of max_ack_delay (RFC 9000 section 18.2).
const MAX_ACK_DELAY: Span = Span::from_millis(25);

/// Largest number of doublings of the timeout; gives a factor of 64.
const MAX_BACKOFF: u32 = 6;

impl RttEstimator {
    /// Creates an estimator without samples.
    pub fn new(config: RtoConfig) -> Self {
        let mut estimator = Self {
            anchor: config.anchor,
            config,
            estimate: None,
            rto: Span::ZERO,
            backoff: 0,
            min_rtt: Span::MAX,
            timed: None,
            probes: Switch::Off,
        };
        estimator.update_rto();
        estimator
    }

    /// Creates an estimator without samples whose timeout is the probe timeout of QUIC (RFC 9002 section 6.2.1): the
    /// exact form, limited below by the granularity, plus the peer's max_ack_delay.
    pub fn for_probes(config: RtoConfig) -> Self {
        let config =
            RtoConfig { min: config.granularity.max(Span::from_nanos(1)), bounds: Bounds::Timeout, ..config };
        Self { probes: Switch::On, ..Self::new(config) }
    }

    /// Current retransmission timeout, including backoff.
    pub fn rto(&self) -> Span {
        self.rto
    }

    /// Current retransmission timeout without backoff.
    #[inline]
    pub fn base_rto(&self) -> Span {
        if self.backoff == 0 { self.rto } else { self.base().min(self.config.max) }
    }

    /// Expiry time of the retransmission timer if an acknowledgement of new data restarts it at `now`. `last` is the time
    /// of the last transmission, from which a probe timeout counts (RFC 9002 section 6.2.1). `oldest` returns the
    /// transmission time of the oldest segment in flight.
    #[inline]
    pub fn expiry(&self, now: Time, last: Time, oldest: impl FnOnce() -> Option<Time>) -> Time {
        match self.anchor {
            _ if self.probes == Switch::On => (last + self.rto).max(now),
            Anchor::Ack => now + self.rto,
            Anchor::Segment => (oldest().unwrap_or(now) + self.rto).max(now),
        }
    }

    /// Number of times the timeout has been doubled since the last sample.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        self.estimate.map(|state| match state {
            Estimate::Exact(RoundTrip { mean: srtt, .. }) | Estimate::Bounded { srtt, .. } => srtt,
            Estimate::Coarse { s, .. } => Span::from_nanos(self.config.tick.as_nanos() * s as u64 / 8),
        })
    }

    /// Smoothed variation of the round-trip time; `None` before the first sample.
    pub fn rttvar(&self) -> Option<Span> {
        self.estimate.map(|state| match state {
            Estimate::Exact(estimate) => estimate.deviation,
            Estimate::Bounded { margin, .. } => margin / 4,
            Estimate::Coarse { v, .. } => Span::from_nanos(self.config.tick.as_nanos() * v as u64 / 4),
        })
    }

    /// Smallest round-trip time sample of the connection.
    pub fn min_rtt(&self) -> Option<Span> {
        Some(self.min_rtt).filter(|&span| span != Span::MAX)
    }

    /// Records that new data up to `end` is sent. The new segment is timed if no other segment is being timed.
    pub fn on_sent(&mut self, now: Time, end: Seq) {
        if self.timed.is_none() {
            self.timed = Some(Timed { end, sent_at: now });
        }
    }

    /// Records that everything before `ack` has arrived. Returns the round-trip time of the timed segment if this
    /// segment has arrived.
    #[inline(always)]
    pub fn on_acknowledged(&mut self, now: Time, ack: Seq) -> Option<Span> {
        let timed = self.timed.filter(|timed| timed.end.at_or_before(ack))?;
        Some(self.take_timed(now, timed))
    }

    // This function is not inlined, because it runs only once per round trip.
    #[inline(never)]
    fn take_timed(&mut self, now: Time, timed: Timed) -> Span {
        self.timed = None;
        let rtt = now.since(timed.sent_at);
        if self.config.tick != Span::ZERO {
            self.min_rtt = self.min_rtt.min(rtt);
            self.take_coarse(timed.sent_at, rtt);
        }
        rtt
    }

    /// Takes a round-trip time sample from any segment. The sample comes from an ACK up to `una`, when everything
    /// before `next` had been sent. The coarse form of the estimator ignores the sample.
    #[inline(always)]
    pub fn on_sample(&mut self, rtt: Span, una: Seq, next: Seq) {
        if self.config.tick == Span::ZERO {
            self.take_exact(rtt, una, next);
        }
    }

    fn take_exact(&mut self, rtt: Span, una: Seq, next: Seq) {
        self.min_rtt = self.min_rtt.min(rtt);
        if self.config.bounds == Bounds::Variation {
            self.take_bounded(rtt, una, next);
            return;
        }
        self.accept(Estimate::Exact(match self.estimate {
            Some(Estimate::Exact(estimate)) => estimate.after(rtt),
            _ => RoundTrip::first(rtt),
        }));
    }

    /// Stops timing the segment up to `end`, because it is retransmitted (Karn's rule).
    pub fn on_sent_again(&mut self, end: Seq) {
        self.timed = self.timed.filter(|timed| timed.end != end);
    }

    /// Stops timing when a loss was found, because the retransmission may delay the timed segment.
    pub fn stop_timing(&mut self) {
        self.timed = None;
    }

    /// Doubles the timeout after the timer expired (RFC 6298 (5.5)).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.timed = None;
        self.update_rto();
    }

    /// Ends the backoff that probes of a closed window caused.
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
        self.update_rto();
    }

    /// Restarts the estimate after a spurious timeout, from the larger of its previous value and the first sample (RFC
    /// 4015 section 3 step (9)). Everything before `next` has been sent.
    pub fn restart_from(&mut self, previous: (Span, Span), rtt: Span, next: Seq) {
        if self.config.tick == Span::ZERO {
            let (srtt, rttvar) = previous;
            let (srtt, rttvar) = (srtt.max(rtt), rttvar.max(rtt / 2));
            self.accept(match self.config.bounds {
                Bounds::Timeout => Estimate::Exact(RoundTrip { mean: srtt, deviation: rttvar }),
                Bounds::Variation => {
                    let margin = (rttvar * 4).max(self.config.min);
                    Estimate::Bounded { srtt, deviation: rttvar * 4, peak: margin, margin, round: next }
                }
            });
        }
    }

    /// Values to save before a reduction: the smoothed round-trip time plus twice the granularity, and the variation
    /// (RFC 4015 section 3 step (DET)).
    pub fn saved(&self) -> Option<(Span, Span)> {
        Some((self.srtt()? + self.config.granularity * 2, self.rttvar()?))
    }

    /// Updates Linux's form of the estimate with a sample. The deviation is stored as four times its value, as in
    /// Jacobson's appendix.
    fn take_bounded(&mut self, rtt: Span, una: Seq, next: Seq) {
        let least = self.config.min;
        let Some(Estimate::Bounded { srtt, deviation, peak, margin, mut round }) = self.estimate else {
            let margin = (rtt * 2).max(least);
            self.accept(Estimate::Bounded {
                srtt: rtt,
                deviation: rtt * 2,
                peak: margin,
                margin,
                round: next,
            });
            return;
        };
        let error = srtt.abs_diff(rtt);
        let step = error.abs_diff(deviation / 4);
        let deviation = if error <= deviation / 4 {
            deviation.saturating_sub(step)
        } else {
            deviation + if rtt < srtt { step / 8 } else { step }
        };
        let mut peak = peak.max(deviation);
        let mut margin = margin.max(peak);
        if una.after(round) {
            margin = (margin * 3 + peak) / 4;
            (peak, round) = (least, next);
        }
        self.accept(Estimate::Bounded { srtt: (srtt * 7 + rtt) / 8, deviation, peak, margin, round });
    }

    /// Updates the coarse form of the estimate with a sample in whole ticks, as a clock with that granularity measures
    /// it.
    fn take_coarse(&mut self, sent_at: Time, rtt: Span) {
        let tick = self.config.tick.as_nanos();
        let into_tick = sent_at.as_nanos() % tick;
        let r = (((rtt.as_nanos() + into_tick) / tick) as i64).max(1);
        let state = match self.estimate {
            Some(Estimate::Coarse { s, v }) => {
                let delta = r - (s >> 3);
                let deviation = delta.abs() - (v >> 2);
                Estimate::Coarse { s: (s + delta).max(1), v: (v + deviation).max(1) }
            }
            _ => Estimate::Coarse { s: r << 3, v: r << 1 },
        };
        self.accept(state);
    }

    fn accept(&mut self, state: Estimate) {
        self.estimate = Some(state);
        self.backoff = 0;
        self.update_rto();
    }

    fn update_rto(&mut self) {
        self.rto = (self.base() * (1 << self.backoff)).min(self.config.max);
    }

    /// The timeout with its lower limit, before backoff.
    fn base(&self) -> Span {
        let base = match self.estimate {
            None => self.config.initial,
            Some(Estimate::Exact(RoundTrip { mean, deviation })) => {
                let ack_delay = if self.probes == Switch::On { MAX_ACK_DELAY } else { Span::ZERO };
                mean + self.config.granularity.max(deviation * 4) + ack_delay
            }
            Some(Estimate::Bounded { srtt, margin, .. }) => srtt + margin,
            Some(Estimate::Coarse { s, v }) => self.config.tick * (((v << 3) + s) >> 3) as u64,
        };
        // Before the first sample the initial timeout applies, even if it is below the lower limit.
        if self.estimate.is_some() { base.max(self.config.min) } else { base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn sample(rtt: &mut RttEstimator, sample: Span) {
        rtt.on_sample(sample, Seq(1), Seq(1));
    }

    fn exact() -> RttEstimator {
        RttEstimator::new(RtoConfig { min: MS(10), ..RtoConfig::default() })
    }

    #[test]
    fn the_first_sample_sets_mean_and_half_of_it_as_variation() {
        let mut rtt = exact();
        assert_eq!(rtt.rto(), Span::from_secs(1));
        sample(&mut rtt, MS(100));
        // 100 + 4 * 50
        assert_eq!(rtt.rto(), MS(300));
        sample(&mut rtt, MS(180));
        // rttvar = 3/4 * 50 + 1/4 * |100 - 180| = 57.5; srtt = 7/8 * 100 + 1/8 * 180 = 110; rto = 110 + 230
        assert_eq!(rtt.srtt(), Some(MS(110)));
        assert_eq!(rtt.rto(), MS(340));
        assert_eq!(rtt.min_rtt(), Some(MS(100)));
    }

    /// RFC 9002 section 6.2.1 with the samples above and max_ack_delay = 25 ms; a backoff doubles all of it. 100 equal
    /// samples leave the granularity of 1 ms.
    #[test]
    fn a_probe_timeout_adds_the_delay_of_acknowledgements_and_has_no_other_limit() {
        let mut rtt = RttEstimator::for_probes(RtoConfig::default());
        sample(&mut rtt, MS(100));
        assert_eq!(rtt.rto(), MS(325));
        sample(&mut rtt, MS(180));
        assert_eq!(rtt.rto(), MS(365));
        rtt.back_off();
        assert_eq!(rtt.rto(), MS(730));
        let mut steady = RttEstimator::for_probes(RtoConfig::default());
        (0..100).for_each(|_| sample(&mut steady, MS(10)));
        assert_eq!(steady.rto(), MS(36));
    }

    #[test]
    fn backoff_doubles_up_to_64_times_and_ends_with_a_sample() {
        let mut rtt = exact();
        sample(&mut rtt, MS(100));
        for factor in [2, 4, 8, 16, 32, 64, 64] {
            rtt.back_off();
            assert_eq!(rtt.rto(), MS(300 * factor));
        }
        sample(&mut rtt, MS(100));
        // rttvar 37.5
        assert_eq!(rtt.rto(), MS(250));
    }

    #[test]
    fn the_limits_hold_below_and_above() {
        let mut rtt = RttEstimator::new(RtoConfig { max: Span::from_secs(3), ..RtoConfig::default() });
        sample(&mut rtt, MS(10));
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_secs(3));
    }

    #[test]
    fn a_bound_on_the_variation_keeps_the_timeout_above_the_mean() {
        let config = RtoConfig { min: MS(200), bounds: Bounds::Variation, ..RtoConfig::default() };
        let mut rtt = RttEstimator::new(config);
        sample(&mut rtt, MS(100));
        // The margin above the mean is max(2 * 100, 200).
        assert_eq!(rtt.rto(), MS(300));
        // Four times the deviation is 200 + (200 - 200 / 4) = 350; the mean is 125.
        sample(&mut rtt, MS(300));
        assert_eq!(rtt.rto(), MS(125 + 350));
        // A sample far below the mean gives 350 + (125 - 25 - 87.5) / 8 = 351.5625; the mean is 112.5.
        sample(&mut rtt, MS(25));
        assert_eq!(rtt.rto(), Span::from_micros(112_500 + 351_562) + Span::from_nanos(500));
    }

    #[test]
    fn the_margin_falls_by_a_quarter_a_round_trip() {
        let config = RtoConfig { min: MS(200), bounds: Bounds::Variation, ..RtoConfig::default() };
        let mut rtt = RttEstimator::new(config);
        // The margin is 1600 above the mean. The round trip ends when more than 10 is acknowledged.
        rtt.on_sample(MS(800), Seq(1), Seq(10));
        let timeouts = [(10, 20), (11, 30), (30, 40), (31, 50)].map(|(una, next)| {
            rtt.on_sample(MS(800), Seq(una), Seq(next));
            rtt.rto()
        });
        // The peak of the first round trip is from the first sample, the peak of the second is a deviation of 675: (3 *
        // 1600 + 675) / 4.
        let last = MS(800) + Span::from_micros(1_368_750);
        assert_eq!(timeouts, [MS(2400), MS(2400), MS(2400), last]);
    }

    #[test]
    fn the_coarse_form_counts_whole_ticks() {
        let config = RtoConfig { tick: MS(100), ..RtoConfig::default() };
        let mut rtt = RttEstimator::new(config);
        // A segment sent 60 ms into a tick with an RTT of 450 ms takes 510 ms, which are 5 ticks. S = 40, V = 10, rto =
        // (80 + 40) / 8 = 15 ticks.
        rtt.on_sent(Time::ZERO + MS(60), Seq(10));
        assert_eq!(rtt.on_acknowledged(Time::ZERO + MS(510), Seq(10)), Some(MS(450)));
        assert_eq!(rtt.rto(), MS(1500));
        // A sample of 7 ticks: d = 7 - 5 = 2, S = 42; |2| - 10/4 = 0, V = 10; rto = (80 + 42) / 8 = 15 ticks.
        rtt.on_sent(Time::ZERO + MS(600), Seq(20));
        assert_eq!(rtt.on_acknowledged(Time::ZERO + MS(1300), Seq(25)), Some(MS(700)));
        assert_eq!(rtt.rto(), MS(1500));
        assert_eq!(rtt.srtt(), Some(MS(525)));
    }

    #[test]
    fn the_timer_restarts_from_the_acknowledgement_or_from_the_oldest_segment_but_never_in_the_past() {
        let expiry = |anchor, sent: Option<u64>| {
            let rtt = RttEstimator::new(RtoConfig { anchor, ..RtoConfig::default() });
            // Before the first sample the timeout is 1 s.
            rtt.expiry(Time::ZERO + MS(5000), Time::ZERO, || sent.map(|ms| Time::ZERO + MS(ms))).as_nanos()
                / 1_000_000
        };
        assert_eq!(expiry(Anchor::Ack, Some(4700)), 6000);
        assert_eq!(
            [Some(4700), Some(3000), None].map(|sent| expiry(Anchor::Segment, sent)),
            [5700, 5000, 6000]
        );
    }

    #[test]
    fn one_segment_is_timed_at_a_time_and_none_that_was_sent_again() {
        let mut rtt = exact();
        rtt.on_sent(Time::ZERO, Seq(10));
        rtt.on_sent(Time::ZERO + MS(5), Seq(20));
        assert_eq!(rtt.on_acknowledged(Time::ZERO + MS(100), Seq(20)), Some(MS(100)));
        rtt.on_sent(Time::ZERO + MS(200), Seq(30));
        rtt.stop_timing();
        assert_eq!(rtt.on_acknowledged(Time::ZERO + MS(300), Seq(30)), None);
    }
}
