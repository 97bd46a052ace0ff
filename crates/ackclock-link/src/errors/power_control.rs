//! # Power control
//!
//! ## Source
//! Source: Möller, "Automatic control in TCP over wireless", KTH 2005, section 4.2, after Sampath, Kumar and Holtzman,
//! "On setting reverse link target SIR in a CDMA system", VTC 1997; described in `power-control.md` sections 1 and 2.
//!
//! ## What it does
//! An inner loop keeps the signal-to-interference ratio (SIR) near a reference r: within the deviation s, or as
//! modelled by [`inner_loop`](inner_loop). An outer loop changes r once a frame: down by `step` after a frame that
//! arrives, up by `rise` steps after a lost frame. As a result, 1 frame in 1 + `rise` is lost on any channel. The
//! probability that a frame sent at reference r (in dB) is lost is
//!
//! f(r) = 1 - (1 - Q(sqrt(2 a exp(b r + b^2 s^2 / 2))))^L, where b = ln(10) / 10 and Q(x) = P(standard normal > x).
//!
//! In the formula for f(r), a is `coding_gain`, s is `deviation`, and L is `frame_bits`. With an inner loop each sample
//! of a frame has its share of the bits and its own r. The values of r are `lowest` + k `step` for k = 1 to N;
//! `highest` is the value of the last state but one. In state 1 every frame is lost, in the upper `rise` states no
//! frame is lost. A frame is sent in every interval of the channel. Frames that other users send while this link is
//! idle change r too. With `idle = "freeze"` r does not change in idle intervals.
//!
//! The state depends only on the number of the interval, although the state is a Markov chain with a long memory. The
//! random number of an interval is derived from the interval's number. Two chains of the same phase (k + number is
//! constant modulo 1 + `rise`) that use the same random numbers keep their order. So a pause is skipped by simulating
//! the lowest and the highest chain until they meet (coupling from the past, Propp and Wilson 1996), and the state at
//! time zero has the stationary distribution.
//!
//! ## Differences from the source
//! The source prints exp(-x^2) in the integral Q, but its figures follow from the normal density. The source also
//! requires f to end (6 dB) below the upper `rise` states, which its own choice of N violates: at `step = 0.2` these
//! states start at 4.6 dB. The tables of the source follow from that choice of N.
//!
//! ## Validation
//! Unit tests check the operating point f(2.759 dB) = 0.1, mean and deviation of r, the share of lost frames, and the
//! loss probability three frames after a loss. With an inner loop over a constant channel, the distribution of r is
//! compared with the Markov chain of the corresponding formula. The properties required of all error processes are
//! checked too. `tests/power_controlled.rs` checks the packet delay distribution of the link `power-controlled`.

mod inner_loop;

use std::f64::consts::{LN_10, SQRT_2};

use ackclock_core::{Config, ConfigError, Indexed, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::inner_loop::{InnerLoop, InnerLoopConfig};
use super::{AnyErrorProcess, ErrorConfig, ErrorContext, ErrorProcess, check_interval};
use crate::{Fate, Files};

/// A power-controlled channel that loses a fixed share of frames. After a loss the next frames are sent with more
/// power, so losses are spread out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PowerControlConfig {
    /// Decrease of the reference after a frame that arrives, dB.
    pub step: f64,
    /// Increase of the reference after a lost frame, in steps; 1/(1 + rise) of the frames are lost.
    pub rise: u32,
    /// Coding gain, as a factor (not in dB).
    pub coding_gain: f64,
    /// Standard deviation of the received SIR around the reference, dB; 0 with an `inner_loop`, which determines the
    /// deviation.
    pub deviation: f64,
    /// Model of the loop that keeps the SIR near the reference; without it the SIR varies by `deviation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_loop: Option<InnerLoopConfig>,
    /// Number of bits in a frame; an error in any bit loses the frame.
    pub frame_bits: u32,
    /// Lower limit of the reference, exclusive, dB.
    pub lowest: f64,
    /// Upper limit of the reference, inclusive, dB.
    pub highest: f64,
    /// Change of the reference SIR in intervals in which this link sends nothing.
    pub idle: Idle,
    /// Duration of an interval, in which one frame is sent; default: the TTI of `power-controlled` and `umts-rlc`, the
    /// slot of a cell, 10ms for any other link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

/// Behaviour of the reference level of the power control in intervals in which this link sends nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Other users send frames in idle intervals, which change the reference.
    #[default]
    Carry,
    /// Nothing is sent in idle intervals, and the reference does not change.
    Freeze,
}

impl Default for PowerControlConfig {
    /// Returns the channel of M05 with its middle step.
    fn default() -> Self {
        Self {
            step: 0.06,
            rise: 9,
            coding_gain: 4.0,
            deviation: 1.0,
            inner_loop: None,
            frame_bits: 2560,
            lowest: 0.0,
            highest: 6.0,
            idle: Idle::Carry,
            interval: None,
        }
    }
}

/// Maximum number of states of the reference.
const MOST_STATES: f64 = 10_000.0;
/// Largest allowed ratio or deviation, dB.
const MOST_DB: f64 = 100.0;

impl Config for PowerControlConfig {
    /// Sets the default deviation to 0 if the table has an inner loop.
    fn chosen_defaults(table: &Value) -> Option<Value> {
        table.get("inner_loop").map(|_| json!({ "deviation": 0.0 }))
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (key, value, allowed) in [
            ("lowest", self.lowest, -MOST_DB..=MOST_DB),
            ("highest", self.highest, -MOST_DB..=MOST_DB),
            ("deviation", self.deviation, 0.0..=MOST_DB),
            ("coding_gain", self.coding_gain, 1e-6..=1e6),
        ] {
            if !allowed.contains(&value) {
                let message = format!("{value} is not {} to {}", allowed.start(), allowed.end());
                return Err(ConfigError::new(key, message));
            }
        }
        let states = (self.highest - self.lowest) / self.step;
        if !(self.step > 0.0 && (2.0..MOST_STATES).contains(&states)) {
            let message = format!(
                "{} does not divide the range from {} to {} dB into 2 to {MOST_STATES} steps",
                self.step, self.lowest, self.highest
            );
            return Err(ConfigError::new("step", message));
        }
        if self.rise == 0 || f64::from(self.rise) + 1.0 > states {
            let message =
                format!("{} is not from 1 to less than the {states:.0} steps of the range", self.rise);
            return Err(ConfigError::new("rise", message));
        }
        if let Some(inner_loop) = &self.inner_loop {
            inner_loop.check().map_err(|error| error.under("inner_loop"))?;
            if self.deviation != 0.0 {
                let message = format!("{} must be 0: `inner_loop` determines the deviation", self.deviation);
                return Err(ConfigError::new("deviation", message));
            }
        }
        if self.frame_bits == 0 {
            return Err(ConfigError::new("frame_bits", "0 is not above 0"));
        }
        check_interval(self.interval)
    }
}

impl PowerControlConfig {
    /// Probability that a frame with the reference `reference` (dB) is lost; the SIR of its samples exceeds the
    /// reference by `above`.
    fn frame_error(&self, reference: f64, above: &[f64]) -> f64 {
        const B: f64 = LN_10 / 10.0;
        let bits = f64::from(self.frame_bits) / above.len() as f64;
        let spread = B * B * self.deviation * self.deviation / 2.0;
        let good = |above: &f64| {
            let mean_sir = libm::exp(B * (reference + above) + spread);
            let bit_error = 0.5 * libm::erfc(libm::sqrt(2.0 * self.coding_gain * mean_sir) / SQRT_2);
            bits * libm::log1p(-bit_error)
        };
        -libm::expm1(above.iter().map(good).sum::<f64>())
    }

    /// Number of states of the reference.
    fn states(&self) -> u32 {
        1 + libm::round((self.highest - self.lowest) / self.step) as u32
    }

    /// Loss probability of a frame in state `k`; state 1 has the lowest reference.
    fn loss(&self, k: u32, above: &[f64]) -> f64 {
        match k {
            1 => 1.0,
            k if k > self.states() - self.rise => 0.0,
            k => self.frame_error(self.lowest + f64::from(k) * self.step, above),
        }
    }
}

impl ErrorConfig for PowerControlConfig {
    fn share(&self, _: &dyn Files) -> Result<f64, ConfigError> {
        Ok(1.0 / (1.0 + f64::from(self.rise)))
    }

    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        let ErrorContext { streams, name, .. } = context;
        let interval = self.interval.unwrap_or(context.block);
        let losses = match &self.inner_loop {
            None => Losses::Fixed((1..=self.states()).map(|k| self.loss(k, &[0.0])).collect()),
            Some(config) => {
                let stream = streams.stream(&format!("{name}/inner-loop"));
                let inner =
                    InnerLoop::new(config, interval, stream).map_err(|error| error.under("inner_loop"))?;
                Losses::Followed(self.clone(), Box::new(inner))
            }
        };
        let chain = Chain::new(losses, self.rise, self.states(), streams.stream(name));
        Ok(AnyErrorProcess::Other(Box::new(PowerControl { chain, interval, idle: self.idle, asked: None })))
    }
}

/// State of the outer loop of the power control over time.
struct PowerControl {
    chain: Chain,
    interval: Span,
    idle: Idle,
    /// Number of the interval of the latest query, and the number of queried intervals before it.
    asked: Option<(u64, u64)>,
}

impl ErrorProcess for PowerControl {
    fn fate(&mut self, at: Time) -> Fate {
        let interval = at.as_nanos() / self.interval.as_nanos();
        let before = match self.asked {
            Some((last, before)) => before + u64::from(last != interval),
            None => 0,
        };
        self.asked = Some((interval, before));
        let number = match self.idle {
            Idle::Carry => interval,
            Idle::Freeze => before,
        };
        self.chain.advance(number + ORIGIN);
        if self.chain.loses() { Fate::Lost } else { Fate::Arrives }
    }
}

/// Number of the frame at time zero: a chain may have to be followed this many frames back.
const ORIGIN: u64 = 1 << 24;
/// Idle gaps of at least this number of frames are skipped in one step.
const JUMP: u64 = 1 << 9;

/// Loss probability of a frame in each state; a higher state has a lower loss probability.
enum Losses {
    /// Probabilities that are the same in every frame.
    Fixed(Vec<f64>),
    /// Probabilities that follow from the inner loop, separately for each frame.
    Followed(PowerControlConfig, Box<InnerLoop>),
}

impl Losses {
    fn of(&mut self, frame: u64, state: usize) -> f64 {
        match self {
            Self::Fixed(losses) => losses[state],
            Self::Followed(config, inner) => config.loss(state as u32 + 1, inner.errors(frame)),
        }
    }

    /// Maximum number of frames that a reference is followed back. The maximum is lower with an inner loop, because a
    /// frame then takes a hundred times more CPU time.
    const fn horizon(&self) -> u64 {
        match self {
            Self::Fixed(_) => ORIGIN,
            Self::Followed(..) => ORIGIN >> 7,
        }
    }
}

/// Chain that gives the reference as a function of the frame's number.
struct Chain {
    losses: Losses,
    rise: u32,
    states: usize,
    /// Random number of each frame: a frame is lost if its random number is below the loss probability of its state.
    draws: Indexed,
    /// Phase that determines which states are possible in a frame of a given number.
    phase: u64,
    number: u64,
    /// State of the chain, counted from 0; state 0 here is state 1 of the source.
    state: usize,
}

impl Chain {
    fn new(losses: Losses, rise: u32, states: u32, mut stream: Stream) -> Self {
        let (phase, draws) = (stream.bits() % (u64::from(rise) + 1), stream.indexed());
        let mut chain = Self { losses, rise, states: states as usize, draws, phase, number: 0, state: 0 };
        chain.state = chain.lowest_at(0);
        chain.advance(ORIGIN);
        chain
    }

    /// State after a frame that started in `state`.
    fn next(&mut self, number: u64, state: usize) -> usize {
        if self.is_lost(number, state) { state + self.rise as usize } else { state - 1 }
    }

    fn is_lost(&mut self, number: u64, state: usize) -> bool {
        self.draws.unit(number) < self.losses.of(number, state)
    }

    /// Whether the current frame is lost.
    fn loses(&mut self) -> bool {
        self.is_lost(self.number, self.state)
    }

    /// Advances the chain to a frame.
    fn advance(&mut self, number: u64) {
        let mut back = JUMP;
        while number - self.number > back {
            if let Some(state) = self.met(number - back, number) {
                (self.number, self.state) = (number, state);
                return;
            }
            back *= 2;
        }
        while self.number < number {
            self.state = self.next(self.number, self.state);
            self.number += 1;
        }
    }

    /// State at frame `to` if it does not depend on the state at frame `from`, because the lowest and the highest chain
    /// have met by then. If the chains have not met within the maximum number of frames, which is rare, the lower chain
    /// is used.
    fn met(&mut self, from: u64, to: u64) -> Option<usize> {
        let period = self.period() as usize;
        let mut low = self.lowest_at(from);
        let mut high = low + (self.states - 1 - low) / period * period;
        for number in from..to {
            let met = low == high;
            low = self.next(number, low);
            high = if met { low } else { self.next(number, high) };
        }
        (low == high || to - from >= self.losses.horizon()).then_some(low)
    }

    /// Lowest possible state in a frame: each step changes the sum of state and frame number by a multiple of `1 +
    /// rise`.
    fn lowest_at(&self, number: u64) -> usize {
        let period = u64::from(self.period());
        ((self.phase + period - number % period) % period) as usize
    }

    fn period(&self) -> u32 {
        self.rise + 1
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Streams;
    use ackclock_core::registry::read_table;
    use serde_json::json;

    use super::*;

    const FRAME: Span = Span::from_millis(20);

    fn with_step(step: f64) -> PowerControlConfig {
        PowerControlConfig { step, ..PowerControlConfig::default() }
    }

    /// Loss probabilities without an inner loop.
    fn fixed(config: &PowerControlConfig, above: &[f64]) -> Vec<f64> {
        (1..=config.states()).map(|k| config.loss(k, above)).collect()
    }

    fn chain(step: f64, seed: u64) -> Chain {
        let config = with_step(step);
        let losses = Losses::Fixed(fixed(&config, &[0.0]));
        Chain::new(losses, 9, config.states(), Streams::new(seed, 0).stream("up/errors"))
    }

    /// State and loss of each of the first `count` frames.
    fn frames(step: f64, count: u64) -> Vec<(usize, bool)> {
        let mut chain = chain(step, 7);
        let frame = |number| {
            chain.advance(ORIGIN + number);
            (chain.state, chain.loses())
        };
        (0..count).map(frame).collect()
    }

    #[test]
    fn frames_are_lost_as_the_formula_says() {
        // power-control.md section 1.
        for (reference, lost, within) in [(2.759, 0.1, 2e-4), (0.0, 0.995, 5e-4), (6.0, 1.4e-5, 5e-7)] {
            let got = with_step(0.06).frame_error(reference, &[0.0]);
            assert!((got - lost).abs() < within, "{reference} dB: {got}");
        }
    }

    #[test]
    fn the_reference_has_the_stationary_law_and_a_tenth_is_lost() {
        // power-control.md section 2: mean and standard deviation of r. A reference forgets its past within about 25
        // frames at the smallest step, so the mean of 1e6 errs by less than 0.228 sqrt(50/1e6) = 0.0016 there, and
        // less elsewhere for its deviation; four of them. Losses: exact except for the end of the reference, +- 5 dB /
        // (10 x 0.02 dB) = 25 of 1e5.
        for (step, mean, deviation) in [(0.2, 3.182, 0.824), (0.06, 2.874, 0.408), (0.02, 2.796, 0.228)] {
            let seen = frames(step, 1_000_000);
            let of = |power: i32, middle: f64| {
                let term = |&(state, _): &(usize, bool)| (((state + 1) as f64) * step - middle).powi(power);
                seen.iter().map(term).sum::<f64>() / 1e6
            };
            assert!((of(1, 0.0) - mean).abs() < 0.0065, "{step}: {}", of(1, 0.0));
            assert!((of(2, mean).sqrt() - deviation).abs() < 0.0065, "{step}: {}", of(2, mean).sqrt());
            let lost = seen.iter().filter(|frame| frame.1).count() as f64;
            assert!((lost - 1e5).abs() <= 25.0, "{step}: {lost}");
        }
    }

    #[test]
    fn losses_avoid_each_other() {
        // Recomputed from the chain: P(lost three frames after a loss). Binomial over 1e5 losses, four deviations.
        for (step, again) in [(0.2, 0.026), (0.06, 0.065)] {
            let seen = frames(step, 1_000_000);
            let pairs = seen.windows(4).filter(|four| four[0].1);
            let (both, first) = pairs
                .fold((0.0, 0.0), |(both, first), four| (both + f64::from(u8::from(four[3].1)), first + 1.0));
            let got: f64 = both / first;
            assert!((got - again).abs() < 4.0 * f64::sqrt(again / 1e5) + 0.0005, "{step}: {got}");
        }
    }

    /// Mean reference under the stationary law of a chain, dB.
    fn mean_reference(config: &PowerControlConfig, losses: &[f64]) -> f64 {
        let mut law = vec![1.0 / losses.len() as f64; losses.len()];
        let mut sum = 0.0;
        for round in 0..20_000 {
            let mut next = vec![0.0; losses.len()];
            for (state, (&p, &loss)) in law.iter().zip(losses).enumerate() {
                if loss > 0.0 {
                    next[state + config.rise as usize] += p * loss;
                }
                if loss < 1.0 {
                    next[state - 1] += p * (1.0 - loss);
                }
            }
            law = next;
            if round >= 10_000 {
                sum += law
                    .iter()
                    .enumerate()
                    .map(|(state, p)| p * (state + 1) as f64 * config.step)
                    .sum::<f64>();
            }
        }
        sum / 10_000.0
    }

    #[test]
    fn over_a_still_channel_an_inner_loop_asks_for_as_much_more_as_its_swing_costs() {
        // Closed form: with a delay of 2 samples a period has the values (u - 2) step and (u + 1) step once, (u - 1)
        // step and u step twice; a frame of 30 samples has five periods. The loss probability of a frame is the mean
        // of that over u.
        let config: PowerControlConfig =
            read_table(json!({ "step": 0.2, "inner_loop": { "step": 2.0, "delay": 2 } })).unwrap();
        assert_eq!(config.deviation, 0.0);
        let offsets = 1000;
        let mut losses = vec![0.0; config.states() as usize];
        for offset in 0..offsets {
            let u = (f64::from(offset) + 0.5) / f64::from(offsets);
            let above = [u - 2.0, u - 1.0, u - 1.0, u, u, u + 1.0].map(|steps| 2.0 * steps);
            for (sum, loss) in losses.iter_mut().zip(fixed(&config, &above)) {
                *sum += loss / f64::from(offsets);
            }
        }
        let expected = mean_reference(&config, &losses);
        let streams = Streams::new(5, 0);
        let inner =
            InnerLoop::new(config.inner_loop.as_ref().unwrap(), FRAME, streams.stream("inner")).unwrap();
        let mut chain = Chain::new(
            Losses::Followed(config.clone(), Box::new(inner)),
            9,
            config.states(),
            streams.stream("up"),
        );
        let (frames, mut sum, mut lost) = (60_000, 0.0, 0);
        for number in 0..frames {
            chain.advance(ORIGIN + number);
            sum += (chain.state + 1) as f64 * config.step;
            lost += u32::from(chain.loses());
        }
        // The deviation of r is 0.8 dB, and r forgets its past within about ten frames: 0.8 sqrt(20 / 60 000) = 0.015
        // dB; four of them.
        let mean = sum / frames as f64;
        assert!((mean - expected).abs() < 0.06, "{mean} dB, and {expected} by the formula");
        // The outer loop alone needs 3.18 dB (section 2): the swing costs more than a decibel.
        assert!(expected > 4.2, "{expected}");
        // Exact except for the end of the reference, as without an inner loop.
        assert!((f64::from(lost) - 6000.0).abs() <= 5.0, "{lost}");
    }

    #[test]
    fn a_loop_that_hardly_moves_is_the_outer_loop_alone() {
        // Steps of 0.001 dB over a constant channel: the SIR equals the reference, as with no deviation.
        let losses = |table| {
            let config: PowerControlConfig = read_table(table).unwrap();
            let streams = Streams::new(2, 0);
            let context =
                ErrorContext { streams: &streams, name: "up/errors", files: &crate::NoFiles, block: FRAME };
            let mut process = config.build(context).unwrap();
            (0..5000).map(|number| process.fate(Time::ZERO + FRAME * number)).collect::<Vec<_>>()
        };
        let alone = losses(json!({ "deviation": 0.0 }));
        let followed = losses(json!({ "inner_loop": { "step": 0.001 } }));
        let other = alone.iter().zip(&followed).filter(|(a, b)| a != b).count();
        assert!(other < 50, "{other} of 5000 frames differ");
    }

    #[test]
    fn a_pause_is_jumped_over_to_the_state_that_there_would_have_been() {
        for step in [0.2, 0.02] {
            let all = frames(step, 50_000);
            for pause in [1, 10, 511, 513, 1000, 7919, 40_000] {
                let mut jumping = chain(step, 7);
                for number in (0..50_000).step_by(pause) {
                    jumping.advance(ORIGIN + number as u64);
                    assert_eq!(jumping.state, all[number].0, "{step}: frame {number} by {pause}");
                }
            }
        }
    }

    #[test]
    fn no_pause_is_too_long() {
        // Only the ends of the range decide; chains meet late.
        for config in
            [with_step(0.06), PowerControlConfig { coding_gain: 1e-6, step: 0.001, ..with_step(0.06) }]
        {
            let streams = Streams::new(1, 0);
            let context =
                ErrorContext { streams: &streams, name: "up/errors", files: &crate::NoFiles, block: FRAME };
            let mut process = config.build(context).unwrap();
            process.fate(Time::from_nanos(u64::MAX / 2));
        }
    }

    #[test]
    fn the_reference_stays_while_nobody_asks_where_it_freezes() {
        let fates = |idle, gap: u64| -> Vec<Fate> {
            let streams = Streams::new(3, 0);
            let context =
                ErrorContext { streams: &streams, name: "up/errors", files: &crate::NoFiles, block: FRAME };
            let config = PowerControlConfig { idle, ..with_step(0.2) };
            let mut process = config.build(context).unwrap();
            // A second query in an interval changes nothing.
            let mut ask = |number: u64| {
                let at = Time::ZERO + FRAME * (number * gap);
                assert_eq!(process.fate(at), process.fate(at + FRAME / 2));
                process.fate(at)
            };
            (0..1000).map(&mut ask).collect()
        };
        assert_eq!(fates(Idle::Freeze, 1), fates(Idle::Carry, 1));
        assert_eq!(fates(Idle::Freeze, 1), fates(Idle::Freeze, 7));
        assert_ne!(fates(Idle::Carry, 1), fates(Idle::Carry, 7));
    }

    #[test]
    fn a_control_that_cannot_be_is_refused() {
        let refused = |table| read_table::<PowerControlConfig>(table).unwrap_err();
        assert_eq!(
            refused(json!({"step": 0})).message,
            "0 does not divide the range from 0 to 6 dB into 2 to 10000 steps"
        );
        assert_eq!(refused(json!({"step": 1e-4})).path, "step");
        assert_eq!(refused(json!({"highest": -1})).path, "step");
        assert_eq!(
            refused(json!({"rise": 100})).message,
            "100 is not from 1 to less than the 100 steps of the range"
        );
        assert_eq!(refused(json!({"deviation": -1.0})).message, "-1 is not 0 to 100");
        assert_eq!(refused(json!({"frame_bits": 0})).path, "frame_bits");
        assert_eq!(refused(json!({"interval": "1us"})).path, "interval");
        assert_eq!(refused(json!({"inner_loop": {}, "deviation": 1.0})).path, "deviation");
        assert_eq!(
            refused(json!({"inner_loop": {"delay": 0}})),
            ConfigError::new("inner_loop.delay", "0 is not 1 to 8")
        );
    }
}
