//! Forecasts the service of the link until the arrival of data triggered by a window that is advertised now.
//!
//! The rate is the largest of the rates over several time windows. Long windows suit a rate that fades for seconds, and
//! short windows suit a rate that changes within 100 ms. While the link has no packets to serve, its rate is assumed to
//! be unchanged. The forecast is the link rate times a gain (`gain.rs`). The gain is learnt from the service in excess
//! of the rate within a horizon, and from unnecessary idle time. Nothing is learnt before the rate is known.
//!
//! The only inputs are the service and the idle time of the link. Service and idle time are derived from departures if
//! the regulator is at the queue, and from ACKs if the queue is observed.

use ackclock_core::{Span, Time};
use ackclock_observe::estimate::{GRAIN, History, RATE_WINDOWS};

use super::gain::{FIRST_GAIN, Gain};
use super::usual_rate::UsualRate;

/// Service time after which the rate is known: the length of the longest rate window.
const LONGEST: Span = RATE_WINDOWS[RATE_WINDOWS.len() - 1];
/// Multiple of the apparent service that is expected before the rate is known. A sender in slow start doubles its data
/// in flight per round trip.
const DOUBLED: f64 = 2.0;
/// Share of a horizon during which the link must be busy for the horizon to count.
const HALF: f64 = 0.5;
/// Maximum weight of a horizon. The weight of a horizon is the time since the previous horizon.
const LONG: Span = Span::from_millis(100);

/// Recent service and idle time of one link, over all its flows.
#[derive(Debug)]
pub(super) struct LinkState {
    gain: Gain,
    /// Horizon of the last forecast.
    horizon: Span,
    /// Payload served since the start, bytes.
    served: f64,
    /// Idle time of the link since the start, seconds.
    idle: f64,
    /// Time since which the link has no packets to serve.
    idle_since: Option<Time>,
    past: History<Row>,
    /// Rate of the link at the newest row, bytes per second.
    rate: f64,
    usual: UsualRate,
}

impl LinkState {
    pub(super) fn new(idle_share: f64, learning: f64) -> Self {
        Self {
            gain: Gain::new(idle_share, learning),
            horizon: Span::ZERO,
            served: 0.0,
            idle: 0.0,
            idle_since: None,
            past: History::default(),
            rate: 0.0,
            usual: UsualRate::default(),
        }
    }

    /// Notes that the link served `bytes` of payload until `now`.
    pub(super) fn on_served(&mut self, now: Time, bytes: u32) {
        let bytes = f64::from(bytes);
        self.served += bytes;
        self.measure(now);
        if self.rate > 0.0 {
            self.gain.on_served(bytes / self.rate, self.is_known());
        }
    }

    /// Payload served since the start, bytes.
    pub(super) const fn served(&self) -> f64 {
        self.served
    }

    /// Notes that the link has no packets to serve from `now` on.
    pub(super) const fn on_empty(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// Notes that the link has packets to serve again. Returns the duration of the pause.
    pub(super) fn on_filled(&mut self, now: Time) -> Option<Span> {
        let pause = now.since(self.idle_since.take()?);
        self.on_idle(now, pause);
        Some(pause)
    }

    /// Notes that the link had no packets to serve for `pause` until `now`.
    pub(super) fn on_idle(&mut self, now: Time, pause: Span) {
        self.idle += pause.as_secs_f64();
        self.measure(now);
    }

    /// Notes that a pause was unnecessary, because the sender would have sent more data with a larger window.
    /// `round_trip` is the sender's response time to an advertised window; the rest of a longer pause is due to the
    /// sender. The pause was either observed (`seen`) or inferred.
    pub(super) fn on_missed(&mut self, pause: Span, round_trip: Span, seen: bool) {
        if self.is_known() {
            self.gain.on_missed(pause.min(round_trip).as_secs_f64(), seen);
        }
    }

    /// Expected service within `horizon`, the delay from a window to its effect, in payload bytes. If the link was
    /// idle, a part of the ACK delay over the `air` is added to the
    /// horizon, because the ACKs of a burst arrive as a burst. Before the rate is known, the entire ACK delay is added,
    /// so that slow start is not slowed down.
    pub(super) fn forecast(&mut self, now: Time, horizon: Span, air: Span) -> f64 {
        if !self.is_known() {
            return DOUBLED * self.served_in(now, horizon + air);
        }
        self.horizon = horizon;
        let [served, over] = [horizon, air].map(|span| self.served_in(now, span));
        let gain = self.gain.get();
        gain * served + (gain - FIRST_GAIN).max(0.0) * over
    }

    /// Payload that the link usually serves within `span`, bytes.
    pub(super) fn usually_in(&self, span: Span) -> f64 {
        self.usual.rate() * span.as_secs_f64()
    }

    /// Payload that the link serves within `horizon` at the recent rate, without the gain, bytes.
    pub(super) fn served_in(&mut self, now: Time, horizon: Span) -> f64 {
        if self.past.newest().is_none_or(|(at, _)| now.since(*at) > GRAIN) {
            self.measure(now);
        }
        self.rate * horizon.as_secs_f64()
    }

    /// Returns whether the link rate is known. The rate is known after service for the length of the longest rate
    /// window.
    pub(super) fn is_known(&self) -> bool {
        self.gain.taught() >= LONGEST.as_secs_f64()
    }

    /// Updates the link rate, at most once per [`GRAIN`].
    fn measure(&mut self, now: Time) {
        let mut row = Row { served: self.served, idle: self.idle_at(now), rate: 0.0 };
        if let Some((at, newest)) = self.past.newest() {
            let passed = now.since(*at);
            if passed < GRAIN {
                return;
            }
            let busy = passed.as_secs_f64() - (row.idle - newest.idle);
            self.usual.note(row.served - newest.served, busy);
            self.compare(now, &row, passed);
            self.rate = RATE_WINDOWS.into_iter().fold(0.0, |rate, window| {
                let over = self
                    .past
                    .begin(now, window)
                    .map(|(at, before)| row.rate_since(before, now.since(*at), window, self.rate));
                rate.max(over.unwrap_or_default())
            });
        }
        row.rate = self.rate;
        self.past.push(now, row);
    }

    /// Compares the service in the horizon that ends with `row` with the rate at the horizon's start. `passed` is the
    /// time since the last comparison. A horizon in which the link was idle for half of the time is ignored.
    fn compare(&mut self, now: Time, row: &Row, passed: Span) {
        let Some((at, first)) = self.past.begin(now, self.horizon) else { return };
        let length = now.since(*at).as_secs_f64();
        let busy = length - (row.idle - first.idle);
        if first.rate > 0.0 && busy > HALF * length && self.is_known() {
            let times = (row.served - first.served) / busy / first.rate;
            self.gain.on_horizon(times, passed.min(LONG).as_secs_f64());
        }
    }

    /// Idle time of the link since the start, including the current pause, seconds.
    fn idle_at(&self, now: Time) -> f64 {
        self.idle + self.idle_since.map_or(0.0, |since| now.since(since).as_secs_f64())
    }
}

/// Total service, total idle time, and link rate at one instant.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Payload served since the start, bytes.
    served: f64,
    /// Idle time of the link since the start, seconds.
    idle: f64,
    /// Rate of the link at this instant, bytes per second.
    rate: f64,
}

impl Row {
    /// Link rate over the last `window`, bytes per second. The row `before` was recorded `elapsed` ago, at the start of
    /// the window or of the run. Idle time counts as service at the previous `rate`.
    fn rate_since(&self, before: &Self, elapsed: Span, window: Span, rate: f64) -> f64 {
        let elapsed = elapsed.as_secs_f64();
        let length = elapsed.max((window / 2).as_secs_f64());
        let paused = (length - elapsed + self.idle - before.idle).min(length);
        (self.served - before.served + rate * paused) / length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Lets the link serve 1000 bytes every `millis` ms, from `from` until `until`.
    fn serve(link: &mut LinkState, from: u64, until: u64, millis: u64) {
        (from + millis..=until).step_by(millis as usize).for_each(|now| link.on_served(at(now), 1000));
    }

    /// Returns the expected service in a second, without the initial gain.
    fn rate(link: &mut LinkState, now: u64) -> f64 {
        link.forecast(at(now), Span::from_secs(1), Span::ZERO) / FIRST_GAIN
    }

    #[test]
    fn the_largest_of_the_rates_counts() {
        let mut link = LinkState::new(0.01, 0.0);
        serve(&mut link, 0, 2000, 10);
        assert_eq!(rate(&mut link, 2000), 100_000.0);
        // The link slows down to a fifth of its rate. The window of 100 ms shows the new rate at once, and the window
        // of 1 s shows it gradually.
        serve(&mut link, 2000, 2500, 50);
        // The link served 10 packets in the last 500 ms, and 50 packets in the 500 ms before.
        assert_eq!(rate(&mut link, 2500), 60_000.0);
        serve(&mut link, 2500, 3000, 50);
        assert_eq!(rate(&mut link, 3000), 20_000.0);
        // The link speeds up and serves 10 packets in 100 ms.
        serve(&mut link, 3000, 3100, 10);
        assert_eq!(rate(&mut link, 3100), 100_000.0);
    }

    #[test]
    fn a_burst_after_a_pause_is_no_rate() {
        let mut link = LinkState::new(0.01, 0.0);
        // The link serves two packets a second, and then a burst of six packets in 20 ms.
        serve(&mut link, 0, 20_000, 500);
        link.on_empty(at(20_000));
        link.on_filled(at(25_000));
        serve(&mut link, 25_000, 25_018, 3);
        assert!(rate(&mut link, 25_020) < 3000.0, "{}", rate(&mut link, 25_020));
        // The fast service continues long enough to count as a rate, within two of the 25 packets in a window.
        serve(&mut link, 25_018, 25_150, 4);
        assert!((rate(&mut link, 25_150) - 250_000.0).abs() < 20_000.0, "{}", rate(&mut link, 25_150));
    }

    #[test]
    fn time_without_anything_to_serve_is_no_time_of_the_link() {
        let mut link = LinkState::new(0.01, 0.0);
        serve(&mut link, 0, 2000, 10);
        link.on_idle(at(2500), Span::from_millis(500));
        serve(&mut link, 2500, 2600, 10);
        assert_eq!(rate(&mut link, 2600).round(), 100_000.0);
    }

    #[test]
    fn a_pause_that_goes_on_is_no_time_of_the_link_either() {
        let mut link = LinkState::new(0.01, 0.0);
        serve(&mut link, 0, 2000, 10);
        link.on_empty(at(2000));
        for now in (2020..2200).step_by(20) {
            assert_eq!(rate(&mut link, now).round(), 100_000.0, "{now}");
        }
        // Idle time before a rate window does not count in the window.
        assert_eq!(link.on_filled(at(2200)), Some(Span::from_millis(200)));
        assert_eq!(rate(&mut link, 2200).round(), 100_000.0);
        serve(&mut link, 2200, 2300, 10);
        assert_eq!(rate(&mut link, 2300).round(), 100_000.0);
    }

    #[test]
    fn what_a_pause_teaches_is_no_longer_than_a_round_trip() {
        let taught = |pause: Span| {
            let mut link = LinkState::new(0.01, 0.5);
            serve(&mut link, 0, 2000, 10);
            link.on_missed(pause, Span::from_millis(42), true);
            link.gain.get()
        };
        assert!(taught(Span::from_millis(20)) < taught(Span::from_millis(42)));
        assert_eq!(taught(Span::from_secs(60)), taught(Span::from_millis(42)));
    }

    #[test]
    fn nothing_is_learnt_before_the_rate_is_known() {
        let mut link = LinkState::new(0.01, 0.5);
        serve(&mut link, 0, 500, 10);
        link.on_idle(at(520), Span::from_millis(20));
        link.on_missed(Span::from_millis(20), Span::from_millis(100), true);
        assert_eq!(link.gain.get(), FIRST_GAIN);
    }

    #[test]
    fn a_slow_start_is_not_held_back_before_the_rate_is_known() {
        let mut link = LinkState::new(0.01, 0.5);
        let (horizon, air) = (Span::from_millis(10), Span::from_millis(90));
        serve(&mut link, 0, 500, 10);
        assert_eq!(link.forecast(at(500), horizon, air), 2.0 * 10_000.0);
        serve(&mut link, 500, 1500, 10);
        assert_eq!(link.forecast(at(1500), horizon, air), link.gain.get() * 1000.0);
    }

    #[test]
    fn the_air_counts_where_the_horizon_was_too_short() {
        let mut link = LinkState::new(0.01, 0.5);
        serve(&mut link, 0, 2000, 10);
        let (horizon, air) = (Span::from_millis(10), Span::from_millis(100));
        let low = link.gain.get();
        assert!(low < FIRST_GAIN);
        assert_eq!(link.forecast(at(2000), horizon, air), low * 1000.0);
        link.gain.on_missed(0.5, true);
        let high = link.gain.get();
        assert!(high > FIRST_GAIN + 0.5);
        let more = high - FIRST_GAIN;
        assert!((link.forecast(at(2000), horizon, air) - high * 1000.0 - more * 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_link_that_serves_evenly_needs_little_gain_and_one_that_jumps_much() {
        let horizon = Span::from_millis(100);
        let gain = |jumps: bool| {
            let mut link = LinkState::new(0.0001, 0.5);
            for tenth in 0..400 {
                // The even link serves ten packets in every tenth of a second. The jumping link serves 33 packets in
                // every fifth tenth, and 5 packets in each of the others.
                let millis = if !jumps {
                    10
                } else if tenth % 5 == 4 {
                    3
                } else {
                    20
                };
                serve(&mut link, 100 * tenth, 100 * (tenth + 1), millis);
                link.forecast(at(100 * (tenth + 1)), horizon, Span::ZERO);
            }
            link.gain.get()
        };
        assert!(gain(false) < 1.2, "{}", gain(false));
        assert!(gain(true) > 1.5, "{}", gain(true));
    }

    #[test]
    fn a_horizon_in_which_the_link_was_idle_for_half_of_the_time_says_nothing() {
        let mut link = LinkState::new(0.01, 0.5);
        serve(&mut link, 0, 2000, 10);
        link.forecast(at(2000), Span::from_millis(100), Span::ZERO);
        let before = link.gain.get();
        link.on_idle(at(2100), Span::from_millis(100));
        link.on_idle(at(2200), Span::from_millis(100));
        assert_eq!(link.gain.get(), before);
        serve(&mut link, 2200, 2300, 10);
        assert_ne!(link.gain.get(), before);
    }

    #[test]
    fn the_usual_rate_follows_within_a_hundred_seconds() {
        let mut link = LinkState::new(0.01, 0.0);
        serve(&mut link, 0, 600_000, 10);
        let usual = link.usually_in(Span::from_secs(1));
        assert!((usual - 100_000.0).abs() < 1000.0, "{usual}");
        // After 100 s at a fifth of the rate, the usual rate is 20 + 80 / e thousand bytes per second.
        serve(&mut link, 600_000, 700_000, 50);
        let usual = link.usually_in(Span::from_secs(1));
        assert!((usual - 49_400.0).abs() < 500.0, "{usual}");
    }

    #[test]
    fn the_usual_rate_is_known_from_the_first_packets_and_leaves_out_pauses() {
        let mut link = LinkState::new(0.01, 0.0);
        assert_eq!(link.usually_in(Span::from_secs(1)), 0.0);
        serve(&mut link, 0, 100, 10);
        // Nine packets follow the first packet within 90 ms.
        let usual = link.usually_in(Span::from_secs(1));
        assert!((usual - 90_000.0).abs() < 500.0, "{usual}");
        link.on_empty(at(100));
        link.on_filled(at(5100));
        serve(&mut link, 5100, 5200, 10);
        let usual = link.usually_in(Span::from_secs(1));
        assert!((usual - 95_000.0).abs() < 500.0, "{usual}");
    }
}
