//! # Copa congestion control
//!
//! ## Source
//! Copa: Practical Delay-Based Congestion Control for the Internet (Arun and Balakrishnan, NSDI 2018), sections 2 and 3.
//!
//! ## What it does
//! The queueing delay `d_q` is the difference between two minima of the round-trip time: that of half a smoothed round
//! trip (RTTstanding) and that of 10 s. Each acknowledged segment moves the window by `v/(δ·cwnd)` segments towards the
//! target rate of `1/(δ·d_q)` segments a second. The velocity v doubles each round trip after the window has
//! moved in the same direction for three, and is 1 after the direction changed. Slow start doubles the window each
//! round trip until the rate exceeds the target. Segments are paced at twice the window per RTTstanding.
//!
//! The queue of Copa flows alone is nearly empty once in five round trips: `d_q` falls below a tenth of the largest one
//! of the last four. If it does not, other flows fill the buffer. 1/δ then grows by one per round trip and is halved
//! by a loss, but is at least its default.
//!
//! n flows alone keep a queue between 0 and `2.5·n/δ` segments: `1.25·n/δ` on average.
//!
//! ## Differences from the source
//! - Only the abstract and summaries of the text were at hand. The rules were compared one by one with the authors'
//!   own program (genericCC) and with mvfst.
//! - A window that turns against its direction within a round trip sets v to 1 at once, as in mvfst, and a v above
//!   1 never moves the window by more than itself in a round trip, as in genericCC.
//! - A queue of at most one segment counts as nearly empty: a tenth of the largest delay is less where queues are
//!   short, and flows alone would take their own queue for that of others.
//! - The handshake has no part in the minima: its packets are shorter.
//! - The minima may forget an extreme up to one hundredth of their interval early.
//! - A timeout restarts slow start from the loss window.
//!
//! ## Validation
//! Unit tests check steps, velocity, and modes by hand. In `tests/cc_paths.rs` four and ten flows, and one flow with δ of
//! 0.1 and 0.05, keep the queue of section 3 within a quarter, over 48 Mbit/s. A flow with the default δ keeps two segments
//! more than its 2.5. Where the queue by that formula is a third of the bandwidth-delay product or more, it never
//! empties, and flows compete with each other. With a buffer of two bandwidth-delay products, Copa gets a third to
//! two thirds of a link of 48 Mbit/s beside CUBIC at 40 ms, and a tenth at 100 ms (`docs/lab/2026-11-l4s.md`).

use std::collections::VecDeque;

use ackclock_core::{Config, ConfigError, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::marked_fraction::Round;
use crate::choices::Switch;
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Phase,
};

/// Options of Copa.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopaConfig {
    /// Weight of delay against throughput: a flow alone keeps `1.25/delta` segments in the queue on average. Above 0, at
    /// most 10.
    pub delta: f64,
    /// Compete with flows that fill the buffer by a smaller `delta`.
    pub competitive: Switch,
}

impl Default for CopaConfig {
    fn default() -> Self {
        Self { delta: 0.5, competitive: Switch::On }
    }
}

impl Config for CopaConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if self.delta > 0.0 && self.delta <= 10.0 {
            return Ok(());
        }
        Err(ConfigError::new("delta", format!("{} is not above 0 and at most 10", self.delta)))
    }
}

/// Interval of the minimum round-trip time.
const ROUTE: Span = Span::from_secs(10);
/// Number of round trips within which Copa flows alone empty the queue once.
const EMPTY_WITHIN: u64 = 5;
/// Number of round trips over which the largest round-trip time is measured.
const LARGEST_WITHIN: u64 = 4;
/// Share of the largest queueing delay below which a queue is nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// Number of round trips in one direction after which the velocity doubles.
const STEADY: u32 = 3;
/// Smallest window, segments.
const LEAST_WINDOW: f64 = 2.0;
/// Largest window, bytes (RFC 7323 section 2.3).
const LARGEST_WINDOW: f64 = (1 << 30) as f64;

/// Direction of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Up,
    Down,
}

/// Velocity of the window, and how long it has moved in the same direction.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    /// Segments by which the window moves per round trip, times δ: v.
    value: f64,
    direction: Direction,
    /// Number of round trips in this direction.
    rounds: u32,
    round: Round,
    /// Window at the start of the round trip, bytes.
    window: f64,
}

impl Velocity {
    fn new(direction: Direction, round: Round, window: f64) -> Self {
        Self { value: 1.0, direction, rounds: 0, round, window }
    }

    /// Takes an ACK that moves the window of `window` bytes in `direction`.
    fn on_ack(&mut self, sample: &AckSample, window: f64, direction: Direction) {
        let round = Round::start(sample.now, sample.in_flight);
        if direction != self.direction && self.value > 1.0 {
            *self = Self::new(direction, round, window);
        } else if self.round.is_over(sample, Span::ZERO) {
            let moved = if window > self.window { Direction::Up } else { Direction::Down };
            if moved == self.direction {
                self.rounds = self.rounds.saturating_add(1);
                let doubled = if self.rounds >= STEADY { 2.0 } else { 1.0 };
                (self.value, self.round, self.window) = (doubled * self.value, round, window);
            } else {
                *self = Self::new(moved, round, window);
            }
        }
    }
}

/// Smallest or largest of the latest samples.
#[derive(Clone, Debug, Default)]
struct Extreme {
    /// Samples that no later one exceeds, each with its time.
    samples: VecDeque<(Time, Span)>,
}

impl Extreme {
    /// Adds a sample. Of the older samples those of the last `within` count. `replaces` is whether a new sample makes
    /// an older one superfluous.
    fn add(&mut self, now: Time, sample: Span, within: Span, replaces: impl Fn(Span, Span) -> bool) {
        while self.samples.back().is_some_and(|&(_, old)| replaces(sample, old)) {
            self.samples.pop_back();
        }
        if self.samples.back().is_none_or(|&(at, _)| now.since(at) >= within / 100) {
            self.samples.push_back((now, sample));
        }
        while self.samples.len() > 1 && self.samples.front().is_some_and(|&(at, _)| now.since(at) > within) {
            self.samples.pop_front();
        }
    }

    fn get(&self) -> Option<Span> {
        self.samples.front().map(|&(_, sample)| sample)
    }
}

/// Round-trip times that Copa compares.
#[derive(Clone, Debug, Default)]
struct RoundTrips {
    /// Minimum over half a smoothed round trip: RTTstanding.
    standing: Extreme,
    /// Minimum over 10 s: RTTmin.
    least: Extreme,
    /// Minimum within which the queue must be nearly empty once.
    lately: Extreme,
    /// Maximum against which that minimum is judged: RTTmax.
    most: Extreme,
}

impl RoundTrips {
    fn add(&mut self, now: Time, rtt: Span, srtt: Span) {
        let below = |new, old| new <= old;
        self.standing.add(now, rtt, srtt / 2, below);
        self.least.add(now, rtt, ROUTE, below);
        self.lately.add(now, rtt, srtt * EMPTY_WITHIN, below);
        self.most.add(now, rtt, srtt * LARGEST_WITHIN, |new, old| new >= old);
    }

    /// RTTstanding and the queueing delay, seconds.
    fn standing(&self) -> Option<(f64, f64)> {
        let standing = self.standing.get()?;
        let queueing = standing.saturating_sub(self.least.get()?);
        Some((standing.as_secs_f64(), queueing.as_secs_f64()))
    }

    /// Whether the queue was nearly empty in the last round trips, or had at most one of `window` segments.
    fn was_nearly_empty(&self, window: f64) -> bool {
        let (Some(least), Some(lately), Some(most)) = (self.least.get(), self.lately.get(), self.most.get())
        else {
            return true;
        };
        let largest = most.saturating_sub(least).as_secs_f64();
        let segment = lately.as_secs_f64() / window;
        lately.saturating_sub(least).as_secs_f64() <= segment.max(NEARLY_EMPTY * largest)
    }
}

/// State of Copa congestion control; windows are in bytes.
#[derive(Clone, Debug)]
pub struct Copa {
    config: CopaConfig,
    cwnd: f64,
    mss: f64,
    loss_window: f64,
    slow_start: bool,
    /// Window and slow start before the last timeout.
    before_timeout: Option<(f64, bool)>,
    times: RoundTrips,
    velocity: Velocity,
    /// Throughput against delay: 1/δ.
    eagerness: f64,
    /// Round trip after which 1/δ may change, and whether it had a loss.
    round: Round,
    lost: bool,
}

impl Copa {
    /// Creates the controller of a new connection.
    pub fn new(config: &CopaConfig, context: &CcContext) -> Self {
        let mss = f64::from(context.mss.max(1));
        let cwnd = f64::from(context.initial_window).max(mss);
        Self {
            eagerness: 1.0 / config.delta,
            config: config.clone(),
            cwnd,
            mss,
            loss_window: f64::from(context.loss_window).max(mss),
            slow_start: true,
            before_timeout: None,
            times: RoundTrips::default(),
            velocity: Velocity::new(Direction::Up, Round::OVER, cwnd),
            round: Round::OVER,
            lost: false,
        }
    }

    /// Adapts δ once per round trip (section 2.2).
    fn adapt(&mut self, sample: &AckSample) {
        let alone =
            self.config.competitive == Switch::Off || self.times.was_nearly_empty(self.cwnd / self.mss);
        if alone {
            self.eagerness = 1.0 / self.config.delta;
        }
        if !self.round.is_over(sample, Span::ZERO) {
            return;
        }
        if !alone && !self.lost {
            self.eagerness += 1.0;
        }
        self.lost = false;
        self.round = Round::start(sample.now, sample.in_flight);
    }

    /// Direction towards the target rate: `cwnd/RTTstanding` against `1/(δ·d_q)` (section 2.1).
    fn direction(&self) -> Direction {
        match self.times.standing() {
            Some((standing, queueing)) if self.cwnd * queueing > self.eagerness * self.mss * standing => {
                Direction::Down
            }
            _ => Direction::Up,
        }
    }

    fn steer(&mut self, sample: &AckSample, direction: Direction) {
        self.velocity.on_ack(sample, self.cwnd, direction);
        // The window moves by at most itself per round trip.
        self.velocity.value = self.velocity.value.min(self.cwnd / (self.mss * self.eagerness)).max(1.0);
        let segments = f64::from(sample.delivered) / self.cwnd;
        let step = self.velocity.value * self.eagerness * self.mss * segments.min(1.0);
        match direction {
            Direction::Up if sample.window_limited => self.cwnd += step,
            Direction::Up => {}
            Direction::Down => self.cwnd -= step,
        }
    }
}

impl CongestionControl for Copa {
    fn on_ack(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.times.add(sample.now, rtt, sample.srtt.unwrap_or(rtt));
        }
        self.adapt(sample);
        let direction = self.direction();
        self.slow_start &= direction == Direction::Up;
        if !self.slow_start {
            self.steer(sample, direction);
        } else if sample.window_limited && sample.phase != Phase::FastRecovery {
            self.cwnd += f64::from(sample.delivered);
        }
        self.cwnd = self.cwnd.clamp(LEAST_WINDOW * self.mss, LARGEST_WINDOW.max(LEAST_WINDOW * self.mss));
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.lost = true;
        self.eagerness = (self.eagerness / 2.0).max(1.0 / self.config.delta);
        if event.cause == Congestion::Timeout {
            if !event.repeated_timeout {
                self.before_timeout = Some((self.cwnd, self.slow_start));
            }
            (self.cwnd, self.slow_start) = (self.cwnd.min(self.loss_window), true);
        } else {
            self.before_timeout = None;
        }
    }

    fn on_spurious(&mut self, _: Time, cause: Congestion) {
        if cause == Congestion::Timeout
            && let Some((cwnd, slow_start)) = self.before_timeout.take()
        {
            (self.cwnd, self.slow_start) = (cwnd.max(self.cwnd), slow_start);
        }
    }

    fn on_persistent_congestion(&mut self, window: u32) {
        (self.cwnd, self.slow_start) = (window.into(), true);
    }

    fn window(&self) -> u32 {
        // The `as` conversion saturates.
        self.cwnd.max(self.mss) as u32
    }

    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let (standing, _) = self.times.standing().filter(|&(standing, _)| standing > 0.0)?;
        // A pacing rate of zero would stop sending for ever.
        Some(Rate::from_bps_f64(16.0 * self.cwnd / standing).max(Rate::from_bps(1)))
    }

    fn rules_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;

    const MSS: u32 = 1000;

    fn copa(segments: u32) -> Copa {
        let context = CcContext {
            mss: MSS,
            initial_window: segments * MSS,
            initial_ssthresh: u32::MAX,
            loss_window: MSS,
            stack: Stack::Rfc,
        };
        Copa::new(&CopaConfig::default(), &context)
    }

    /// An ACK of a segment, `millis` after the start.
    fn ack(millis: u64, rtt: u64, in_flight: u32) -> AckSample {
        let rtt = Some(Span::from_millis(rtt));
        let now = Time::ZERO + Span::from_millis(millis);
        AckSample { now, rtt, srtt: rtt, in_flight: in_flight * MSS, ..AckSample::of(MSS) }
    }

    fn loss(cause: Congestion) -> CongestionEvent {
        let now = Time::ZERO;
        CongestionEvent { now, cause, flight: 0, window: 0, repeated_timeout: false, lost_in_all: 1 }
    }

    #[test]
    fn a_segment_moves_the_window_by_the_reciprocal_of_delta_and_window() {
        let mut copa = copa(10);
        copa.slow_start = false;
        copa.on_ack(&ack(0, 100, 9));
        // No queueing delay: 10 + 1/(0.5·10) segments.
        assert!((copa.cwnd - 10_200.0).abs() < 1e-9, "{}", copa.cwnd);
        // 30 ms of queue: the target is 1/(0.5·0.03) = 67 segments/s, and the rate is 10.2/0.13 = 78.
        copa.on_ack(&ack(100, 130, 9));
        assert!((copa.cwnd - (10_200.0 - 2000.0 / 10.2)).abs() < 1e-9, "{}", copa.cwnd);
    }

    #[test]
    fn slow_start_ends_when_the_rate_exceeds_the_target() {
        let mut copa = copa(10);
        copa.on_ack(&ack(0, 100, 9));
        copa.on_ack(&ack(60, 120, 9));
        // 12/0.12 = 100 segments/s, below and at 1/(0.5·0.02) = 100.
        assert_eq!((copa.window(), copa.slow_start), (12 * MSS, true));
        copa.on_ack(&ack(130, 121, 9));
        assert!(!copa.slow_start && copa.window() < 12 * MSS);
    }

    #[test]
    fn velocity_doubles_after_three_rounds_and_is_one_after_a_turn() {
        let mut copa = copa(100);
        copa.slow_start = false;
        let mut values = Vec::new();
        // Rounds of one segment; the first ACK starts the first round.
        for round in 0..6 {
            copa.on_ack(&ack(round, 100, 1));
            values.push(copa.velocity.value);
        }
        // The first ACK ends an empty round, in which the window did not grow.
        assert_eq!(values, [1.0, 1.0, 1.0, 1.0, 2.0, 4.0]);
        copa.on_ack(&ack(300, 200, 1));
        assert_eq!((copa.velocity.value, copa.velocity.direction), (1.0, Direction::Down));
    }

    #[test]
    fn a_queue_that_never_empties_makes_it_compete_until_a_loss() {
        let mut copa = copa(10);
        copa.on_ack(&ack(0, 100, 1));
        // 100 ms later the queue stands at 50 to 60 ms: within 5 round trips of 150 ms the first sample still counts.
        for step in 1..=20u64 {
            copa.on_ack(&ack(100 * step, 150 + step % 2 * 10, 1));
        }
        assert!(copa.eagerness > 5.0, "{}", copa.eagerness);
        let before = copa.eagerness;
        copa.on_congestion(&loss(Congestion::FastRetransmit));
        assert_eq!(copa.eagerness, before / 2.0);
        // Nearly empty: a tenth of 60 ms.
        copa.on_ack(&ack(2100, 105, 1));
        assert_eq!(copa.eagerness, 2.0);
    }

    #[test]
    fn a_spurious_timeout_is_undone() {
        let mut copa = copa(40);
        copa.slow_start = false;
        copa.on_congestion(&loss(Congestion::Timeout));
        assert_eq!((copa.window(), copa.slow_start), (MSS, true));
        copa.on_spurious(Time::ZERO, Congestion::Timeout);
        assert_eq!((copa.window(), copa.slow_start), (40 * MSS, false));
    }

    #[test]
    fn a_minimum_forgets_what_is_older_than_its_interval() {
        let mut least = Extreme::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        for (millis, rtt) in [(0, 5), (100, 7), (200, 9)] {
            least.add(at(millis), Span::from_millis(rtt), Span::from_millis(150), |new, old| new <= old);
        }
        assert_eq!(least.get(), Some(Span::from_millis(7)));
    }
}
