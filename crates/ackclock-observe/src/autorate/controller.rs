//! Rules that adapt the rate of the autorate shaper.
//!
//! The rules run for each round-trip sample, about every 50 ms under traffic:
//! - `usual` tracks half of the round-trip time: `usual` rises by a thousandth of the difference and falls by nine
//!   tenths of the difference. `delta`, the excess of half the round-trip time over `usual`, is averaged with a weight
//!   of 0.095.
//! - Three late round trips among the last six indicate bufferbloat. In this case the rate falls by 1 % if the mean of
//!   `delta` equals `late` and by 25 % if the mean is twice `late`, linearly in between, at most every 300 ms.
//! - If fewer round trips are late and more than 75 % of the rate is used, the rate rises. The rise is 4 % if the mean
//!   of `delta` is at most a third of `late`, and 0 % if the mean equals `late`, linearly in between. The rate does not
//!   rise within 300 ms of a fall.
//! - If few round trips are late and at most 75 % of the rate is used, the rate moves towards the base rate by 1 %
//!   every second.

use ackclock_core::{Rate, Span, Time};

use super::AutorateConfig;

/// Adapts the rate of a shaper.
#[derive(Debug)]
pub(super) struct Controller {
    min_bps: f64,
    base_bps: f64,
    max_bps: f64,
    late: Span,
    rate_bps: f64,
    /// Half of the usual round trip, ms.
    usual_ms: Option<f64>,
    /// Mean excess of half the round trip over half the usual round trip, ms.
    delta_ms: f64,
    /// Bits that record which of the last round trips were late; the lowest bit is the latest round trip.
    late_ones: u32,
    fell: Time,
    decayed: Time,
    /// Start of the current load measurement, and the bytes sent since that start.
    carried: (Time, u64),
    achieved_bps: f64,
}

const RISE_OF_USUAL: f64 = 0.001;
const FALL_OF_USUAL: f64 = 0.9;
const WEIGHT_OF_DELTA: f64 = 0.095;
const WINDOW: u32 = 6;
const LATE_IN_WINDOW: u32 = 3;
/// Factors by which the rate changes: smallest fall, largest fall and largest rise.
const FALL: [f64; 2] = [0.99, 0.75];
const RISE: f64 = 1.04;
/// Lateness at which the rate falls most; the next constant is the lateness at which the rate rises most. The two
/// values are multiples of `late`.
const VERY_LATE: f64 = 2.0;
const IN_TIME: f64 = 1.0 / 3.0;
const DECAY: f64 = 0.01;
const HIGH_LOAD: f64 = 0.75;
const AFTER_FALL: Span = Span::from_millis(300);
const DECAY_EVERY: Span = Span::from_secs(1);
/// Interval over which the load is measured.
const MEASURED_OVER: Span = Span::from_millis(200);
const PACKET_BITS: f64 = 12_000.0;

impl Controller {
    pub(super) const fn new(config: &AutorateConfig) -> Self {
        let AutorateConfig { min, base, max, late, .. } = *config;
        Self {
            min_bps: min.as_bps() as f64,
            base_bps: base.as_bps() as f64,
            max_bps: max.as_bps() as f64,
            late,
            rate_bps: base.as_bps() as f64,
            usual_ms: None,
            delta_ms: 0.0,
            late_ones: 0,
            fell: Time::ZERO,
            decayed: Time::ZERO,
            carried: (Time::ZERO, 0),
            achieved_bps: 0.0,
        }
    }

    /// Current rate of the shaper.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bps_f64(self.rate_bps)
    }

    /// Handles `bytes` that the shaper has sent.
    pub(super) fn on_carried(&mut self, now: Time, bytes: u32) {
        let (since, before) = self.carried;
        let span = now.since(since);
        if span >= MEASURED_OVER {
            self.achieved_bps = before as f64 * 8.0 / span.as_secs_f64();
            self.carried = (now, bytes.into());
        } else {
            self.carried.1 += u64::from(bytes);
        }
    }

    /// Handles a round-trip sample through the observed queue.
    pub(super) fn on_round_trip(&mut self, now: Time, round_trip: Span) {
        let half_ms = round_trip.as_millis_f64() / 2.0;
        let usual_ms = self.usual_ms.map_or(half_ms, |usual| {
            let weight = if half_ms > usual { RISE_OF_USUAL } else { FALL_OF_USUAL };
            usual + weight * (half_ms - usual)
        });
        let delta_ms = half_ms - usual_ms;
        self.usual_ms = Some(usual_ms);
        self.delta_ms += WEIGHT_OF_DELTA * (delta_ms - self.delta_ms);
        // The transmission time of one packet is not queueing delay, so it is added to the threshold.
        let packet_ms = PACKET_BITS / self.rate_bps * 1e3;
        let is_late = delta_ms > self.late.as_millis_f64() + packet_ms;
        self.late_ones = (self.late_ones << 1 | u32::from(is_late)) & ((1 << WINDOW) - 1);
        self.adjust(now, (self.delta_ms - packet_ms).max(0.0) / self.late.as_millis_f64());
    }

    /// Changes the rate; `lateness` is the mean excess delay as a multiple of `late`.
    fn adjust(&mut self, now: Time, lateness: f64) {
        let has_fallen = now.since(self.fell) < AFTER_FALL;
        let factor = if self.late_ones.count_ones() >= LATE_IN_WINDOW {
            if has_fallen {
                return;
            }
            (self.fell, self.decayed) = (now, now);
            let share = ((lateness - 1.0) / (VERY_LATE - 1.0)).clamp(0.0, 1.0);
            FALL[0] + share * (FALL[1] - FALL[0])
        } else if self.achieved_bps > HIGH_LOAD * self.rate_bps {
            self.decayed = now;
            let share = ((1.0 - lateness) / (1.0 - IN_TIME)).clamp(0.0, 1.0);
            if has_fallen { 1.0 } else { 1.0 + share * (RISE - 1.0) }
        } else {
            return self.decay(now);
        };
        self.rate_bps = (self.rate_bps * factor).clamp(self.min_bps, self.max_bps);
    }

    /// Moves the rate towards the base rate, by one step for each second that has passed.
    fn decay(&mut self, now: Time) {
        while now.since(self.decayed) >= DECAY_EVERY && self.rate_bps != self.base_bps {
            self.decayed += DECAY_EVERY;
            self.rate_bps = if self.rate_bps > self.base_bps {
                (self.rate_bps * (1.0 - DECAY)).max(self.base_bps)
            } else {
                (self.rate_bps * (1.0 + DECAY)).min(self.base_bps)
            };
        }
    }

    /// Values of the gauges: rate of the shaper and of its output, bit/s; half of the usual round trip and the mean
    /// excess over this half, ms.
    pub(super) fn gauges(&self) -> Vec<f64> {
        vec![self.rate_bps, self.achieved_bps, self.usual_ms.unwrap_or(0.0), self.delta_ms]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// 10 Mbit/s, limits 1 and 100; `share` of it is used for ten seconds while a round trip of 40 ms ends every 50
    /// ms.
    fn steady(share: f64) -> Controller {
        let mbit = |rate: u64| Rate::from_bps(rate * 1_000_000);
        let config =
            AutorateConfig { min: mbit(1), base: mbit(10), max: mbit(100), ..AutorateConfig::default() };
        let mut controller = Controller::new(&config);
        carry(&mut controller, 0, 200, share, 40);
        controller
    }

    fn carry(controller: &mut Controller, from: u64, rounds: u64, share: f64, round_trip: u64) {
        for round in from..from + rounds {
            let now = at(50 * (round + 1));
            controller.on_carried(now, (share * controller.rate_bps * 0.05 / 8.0) as u32);
            controller.on_round_trip(now, Span::from_millis(round_trip));
        }
    }

    #[test]
    fn a_loaded_shaper_without_delay_rises_to_its_maximum() {
        assert_eq!(steady(1.0).rate(), Rate::from_bps(100_000_000));
    }

    #[test]
    fn one_with_little_to_carry_stays_at_its_base() {
        assert_eq!(steady(0.5).rate(), Rate::from_bps(10_000_000));
    }

    #[test]
    fn three_late_of_six_are_bufferbloat_and_the_rate_falls_at_most_every_300_ms() {
        let mut controller = steady(1.0);
        // Half of 240 ms is 100 ms above usual.
        carry(&mut controller, 200, 2, 1.0, 240);
        assert_eq!(controller.rate().as_bps(), 100_000_000, "two are none");
        carry(&mut controller, 202, 1, 1.0, 240);
        let fallen = controller.rate_bps;
        assert!((75e6..100e6).contains(&fallen), "{fallen}");
        carry(&mut controller, 203, 5, 1.0, 240);
        assert_eq!(controller.rate_bps, fallen, "250 ms later");
        carry(&mut controller, 208, 1, 1.0, 240);
        assert!(controller.rate_bps < fallen);
    }

    #[test]
    fn the_rate_falls_by_the_mean_delay_and_not_by_the_last() {
        let mut controller = steady(1.0);
        // Half of 160 ms is 60 ms above usual, `usual` rises by 0.06 ms per round trip, and a packet takes 0.12 ms at
        // 100 Mbit/s. Means of `delta`: 5.7, 10.8 and 15.4 ms, below `late`, so the rate falls least: by 1 %.
        carry(&mut controller, 200, 3, 1.0, 160);
        assert!((controller.rate_bps / 99e6 - 1.0).abs() < 1e-9, "{}", controller.rate_bps);
    }

    #[test]
    fn the_longer_the_delay_the_more_it_falls_and_never_below_its_minimum() {
        let mut controller = steady(1.0);
        carry(&mut controller, 200, 400, 1.0, 640);
        assert_eq!(controller.rate().as_bps(), 1_000_000);
    }

    #[test]
    fn a_shaper_that_fell_returns_to_its_base_a_second_later() {
        let mut controller = steady(0.5);
        carry(&mut controller, 200, 3, 0.5, 240);
        let fallen = controller.rate_bps;
        assert!(fallen < 10e6, "{fallen}");
        carry(&mut controller, 203, 19, 0.5, 40);
        assert_eq!(controller.rate_bps, fallen, "950 ms later");
        carry(&mut controller, 222, 1, 0.5, 40);
        assert!((controller.rate_bps / fallen - 1.01).abs() < 1e-9, "{}", controller.rate_bps);
    }

    #[test]
    fn a_quiet_shaper_goes_back_to_its_base_by_a_hundredth_a_second() {
        let mut controller = steady(1.0);
        // 100 Mbit/s less 1 % five times: the load of the last 200 ms is still high at first.
        carry(&mut controller, 200, 104, 0.1, 40);
        assert!(
            (controller.rate_bps / (100e6 * libm::pow(0.99, 5.0)) - 1.0).abs() < 1e-9,
            "{}",
            controller.rate_bps
        );
    }
}
