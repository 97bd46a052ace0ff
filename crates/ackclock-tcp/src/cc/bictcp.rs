//! # CUBIC growth curve of Linux
//!
//! CUBIC window growth in congestion avoidance, as implemented in Linux.
//!
//! ## Source
//! Ha, Rhee and Xu, "CUBIC: a new TCP-friendly high-speed TCP variant" (ACM SIGOPS OSR 42(5), 2008), sections 3.1 to
//! 3.4. The arithmetic is from Linux 6.18 (bictcp_update).
//!
//! ## What it does
//! The cubic curve is evaluated one smallest round-trip time ahead. The result is the number of segments to deliver per
//! segment of window growth: at least two, and at most 20 until a loss has set W_max. The curve is evaluated again when
//! the window has changed or 32 ms have passed. Time is counted in 250 Hz ticks, as in Linux; the rounding makes
//! otherwise equal epochs differ in length. The window of an equivalent Reno sender grows by one segment when 15/8 of
//! that window is delivered.
//!
//! ## Differences from the source
//! The cube root is exact, unlike in Linux. If the window changes within a tick, the curve is re-evaluated at once.
//!
//! ## Validation
//! Unit tests below compare with hand-computed values. `make agree` compares the sender with the kernel's sender in
//! many scenarios.

use ackclock_core::{Span, Time};

use super::steps::Steps;
use crate::choices::Switch;

/// Constant C, segments per second cubed: 410 of 1024.
const C: f64 = 410.0 / 1024.0;
/// Multiplicative decrease factor beta: 717 of 1024.
const BETA: f64 = 717.0 / 1024.0;
/// Segments delivered per segment of growth of Reno's window, as a multiple of that window.
const RENO: f64 = 15.0 / 8.0;
/// Largest number of segments to deliver per segment of growth while W_max is unknown, and smallest number at any time.
const MOST_WITHOUT_W_MAX: f64 = 20.0;
const LEAST: f64 = 2.0;
/// Unit of time of the curve (CONFIG_HZ of 250).
const TICK: Span = Span::from_millis(4);
/// Shortest time between evaluations of the curve while the window is unchanged, ticks: a 32nd of a second.
const REREAD: u64 = 7;
/// Time after a loss during which round-trip times are ignored, ticks: one second.
const RTT_BLACKOUT: u64 = 250;

/// Cubic growth curve of one connection. All windows are in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bictcp {
    /// W_max in segments; zero while unknown.
    w_max: f64,
    epoch: Option<Epoch>,
    /// Segments to deliver per segment of window growth.
    per: f64,
    steps: Steps,
    /// Time and congestion window of the last evaluation of the curve.
    read: Option<(Ticks, f64)>,
    least_rtt: Option<Span>,
    /// Time of the last transmission, ticks.
    sent: Ticks,
}

/// Time since the start of the run, ticks.
type Ticks = u64;

fn ticks(now: Time) -> Ticks {
    now.as_nanos() / TICK.as_nanos()
}

/// One epoch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Ticks,
    origin: f64,
    k: f64,
    /// Window of an equivalent Reno sender, and the segments delivered towards its next step.
    reno: f64,
    acked: f64,
}

impl Bictcp {
    /// Updates the smallest round-trip time with a sample.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Span) {
        if self.epoch.is_none_or(|epoch| ticks(now).saturating_sub(epoch.start) >= RTT_BLACKOUT) {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Congestion window in segments after `acked` more segments are delivered. `cwnd` is the current congestion
    /// window, segments.
    pub(super) fn grow(&mut self, now: Time, cwnd: f64, acked: f64) -> f64 {
        self.update(now, cwnd, acked);
        self.steps.grow(cwnd, self.per.max(LEAST), acked)
    }

    fn update(&mut self, now: Time, cwnd: f64, acked: f64) {
        let now = ticks(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        if self.read.is_some_and(|(at, then)| then == cwnd && now - at <= REREAD) {
            return;
        }
        self.read = Some((now, cwnd));
        let w_max = self.w_max;
        let ahead = self.least_rtt.map_or(0, |rtt| rtt.as_nanos().div_ceil(TICK.as_nanos()));
        let epoch = self.epoch.get_or_insert_with(|| {
            let k = if w_max > cwnd { libm::cbrt((w_max - cwnd) / C) } else { 0.0 };
            Epoch { start: now, origin: w_max.max(cwnd), k, reno: cwnd, acked }
        });
        let from_k = (TICK * (now.saturating_sub(epoch.start) + ahead)).as_secs_f64() - epoch.k;
        let offset = (C * from_k * from_k * from_k.abs()).floor();
        let target = if from_k < 0.0 { epoch.origin - offset } else { epoch.origin + offset };
        self.per = if target > cwnd { (cwnd / (target - cwnd)).floor() } else { 100.0 * cwnd };
        if w_max == 0.0 {
            self.per = self.per.min(MOST_WITHOUT_W_MAX);
        }
        let step = (RENO * cwnd).floor().max(1.0);
        // The window grows one delivery late, as in the kernel.
        if epoch.acked > step {
            let steps = (epoch.acked / step).ceil() - 1.0;
            epoch.acked -= steps * step;
            epoch.reno += steps;
        }
        if epoch.reno > cwnd {
            self.per = self.per.min((cwnd / (epoch.reno - cwnd)).floor());
        }
    }

    /// Handles a loss at a congestion window of `cwnd` segments. Returns the new slow-start threshold.
    pub(super) fn on_loss(&mut self, cwnd: f64, fast_convergence: Switch) -> f64 {
        let gives_way = fast_convergence == Switch::On && cwnd < self.w_max;
        self.w_max = if gives_way { (cwnd * f64::midpoint(1.0, BETA)).floor() } else { cwnd };
        self.epoch = None;
        self.steps = Steps::default();
        (cwnd * BETA).floor()
    }

    /// Resets the curve after a timeout.
    pub(super) fn reset(&mut self) {
        *self = Self { sent: self.sent, ..Self::default() };
    }

    /// Handles the departure of a segment. If nothing was in flight, the time since the last transmission does not
    /// count for the cubic curve.
    pub(super) fn on_sent(&mut self, now: Time, idle: bool) {
        let now = ticks(now);
        if idle && let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + (now - self.sent)).min(now);
        }
        self.sent = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn while_no_largest_window_is_known_twenty_deliveries_move_the_window() {
        let mut curve = Bictcp::default();
        let mut cwnd = 40.0;
        // In the first 60 ms the curve is flat: 40 deliveries grow the window by two segments.
        for n in 0..20 {
            cwnd = curve.grow(at(3 * n), cwnd, 2.0);
        }
        assert_eq!(cwnd, 42.0);
    }

    #[test]
    fn the_curve_is_read_where_it_is_after_the_smallest_round_trip() {
        for (rtt, per) in [(100, 23.0), (2000, 2.0)] {
            let mut curve = Bictcp::default();
            curve.on_rtt(at(0), Span::from_millis(rtt));
            assert_eq!(curve.on_loss(100.0, Switch::On), 70.0);
            // K = cbrt(30 / 0.4004) = 4.216 s. After 0.1 s the curve is 0.4004 * 4.116^3 = 27.9 below 100, rounded down
            // to 27: 70 / (73 - 70). After 2 s the difference is 4.4, rounded down to 4: 70 / (96 - 70).
            curve.update(at(10), 70.0, 1.0);
            assert_eq!(curve.per, per);
        }
    }

    #[test]
    fn reno_would_grow_by_one_for_fifteen_eighths_of_a_window() {
        let mut curve = Bictcp::default();
        curve.on_loss(1000.0, Switch::On);
        curve.update(at(0), 16.0, 1.0);
        // 30 segments are delivered, and one more shows the step: the Reno window is 17.
        (0..30).for_each(|_| curve.update(at(40), 16.0, 1.0));
        curve.update(at(80), 16.0, 0.0);
        assert_eq!(curve.epoch.map(|epoch| epoch.reno), Some(17.0));
    }

    #[test]
    fn however_much_is_acknowledged_at_once_is_counted_at_once() {
        let mut curve = Bictcp::default();
        // With a window of 16 the Reno window grows once per 30 deliveries: 100 deliveries grow it three times, and ten
        // are left.
        curve.update(at(0), 16.0, 100.0);
        assert_eq!(curve.epoch.map(|epoch| (epoch.reno, epoch.acked)), Some((19.0, 10.0)));
        // The window grows by single segments.
        curve.update(at(40), 0.25, 1e15);
        assert_eq!(curve.epoch.map(|epoch| epoch.acked), Some(1.0));
    }

    #[test]
    fn time_passes_in_ticks() {
        for (ms, read) in [(30, 0), (31, 0), (32, 8), (35, 8)] {
            let mut curve = Bictcp::default();
            curve.update(at(3), 16.0, 1.0);
            curve.update(at(ms), 16.0, 1.0);
            assert_eq!(curve.read, Some((read, 16.0)), "after {ms} ms");
        }
        // No time passes between two ticks, and round-trip times are rounded up to ticks.
        let rates = [(4, 97), (7, 100)].map(|(ms, rtt)| {
            let mut curve = Bictcp::default();
            curve.on_loss(100.0, Switch::On);
            curve.on_rtt(at(0), Span::from_millis(rtt));
            curve.update(at(4), 70.0, 1.0);
            curve.update(at(4000 + ms), 72.0, 1.0);
            curve.update(at(8000 + ms), 91.0, 1.0);
            (curve.per, curve.epoch.map(|epoch| epoch.start))
        });
        assert_eq!(rates[0], rates[1]);
    }

    #[test]
    fn a_silence_is_no_time_of_the_curve() {
        let mut curve = Bictcp::default();
        curve.update(at(0), 50.0, 1.0);
        curve.on_sent(at(100), false);
        curve.on_sent(at(5100), true);
        assert_eq!(curve.epoch.map(|epoch| epoch.start), Some(1250));
    }

    #[test]
    fn a_second_loss_below_the_largest_window_gives_way() {
        let mut curve = Bictcp::default();
        curve.on_loss(100.0, Switch::On);
        // 80 * (1 + 0.7002) / 2 = 68.007
        assert_eq!((curve.on_loss(80.0, Switch::On), curve.w_max), (56.0, 68.0));
        curve.on_loss(60.0, Switch::Off);
        assert_eq!(curve.w_max, 60.0);
    }
}
