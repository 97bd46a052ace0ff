//! # ABC
//!
//! Accel-Brake Control: the queue for senders of the kind `abc`.
//!
//! ## Source
//! Goyal, Agarwal, Netravali, Alizadeh and Balakrishnan, "ABC: A Simple Explicit Congestion Controller for Wireless
//! Networks", NSDI 2020: the target rate and the marking with tokens.
//!
//! ## What it does
//! The target rate is `tr = η μ - μ/δ max(x - d, 0)`, where μ is the capacity of the link, x the queueing delay and d
//! its target. Each packet that leaves adds the fraction `f = min(tr / (2 cr), 1)` of a token, where cr is the rate at
//! which packets leave. An ECN-capable packet takes a token and remains unmarked (*accelerate*), or gets a CE mark
//! (*brake*) if there is no more than one token. Half of the packets accelerate if the present rate is the
//! target. Rates are averages over 20 ms; the queueing delay is the queue over μ.
//!
//! ## Differences from the source
//! - The marking and the constants are those of the authors' emulator (commit b1693cbb), which was read; of the paper
//!   only the abstract, the introduction and summaries of the rules were at hand. The emulator has η cr in place of η μ.
//! - A brake is a CE mark, as in the emulator. Packets that are not ECN-capable share the queue and are not marked.
//! - The emulator knows the transmissions that the link offers to an empty queue. Here μ is measured while packets
//!   wait, and keeps its value otherwise; it is at least cr. A packet that follows none that waited accelerates.
//!
//! ## Validation
//! Unit tests check the target rate, the tokens and the measured rates by hand. Runs with the sender are in
//! `crates/ackclock-scenario/tests/abc.rs`.

use std::collections::VecDeque;

use ackclock_core::{Config, ConfigError, Ecn, FlowId, Segment, Span, Time, Unused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Buffer;
use super::{AnyQueue, Codepoints, Per, Place, Queue, QueueConfig, QueueContext, is_ect, one_buffer};
use crate::{Capacity, Cause, Load};

/// Accel-Brake Control (NSDI 2020), for senders of the kind `abc`. Other ECN-capable senders get its marks too, about half
/// of their packets, and become slow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AbcConfig {
    /// Queueing delay up to which the target rate is not reduced (d_t).
    pub target: Span,
    /// Time in which the target rate drains a queueing delay above the target (δ).
    pub drain: Span,
    /// Share of the capacity that the target rate uses (η).
    pub share: f64,
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Default for AbcConfig {
    /// Values of the authors' experiments over LTE at an RTT of 100 ms.
    fn default() -> Self {
        Self { target: Span::from_millis(50), drain: Span::from_millis(133), share: 0.98, per: Per::Shared }
    }
}

impl Config for AbcConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let least = Span::from_millis(1);
        if self.drain < least {
            return Err(ConfigError::new("drain", format!("{} is below {least}", self.drain)));
        }
        if !(0.0..=1.0).contains(&self.share) {
            return Err(ConfigError::new("share", format!("{} is not 0 to 1", self.share)));
        }
        Ok(())
    }
}

impl QueueConfig for AbcConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let (config, capacity) = (self.clone(), context.capacity);
        self.per.build(capacity, move |_| Abc::new(config.clone(), capacity).any())
    }

    fn unused(&self, packets: Codepoints) -> Vec<Unused> {
        let usual = Self::default();
        packets.unused_without_ect(&[
            ("target", self.target != usual.target),
            ("drain", self.drain != usual.drain),
            ("share", self.share != usual.share),
        ])
    }
}

/// Averaging time of rates, and the longest time that a departure counts as the service of one packet.
const WINDOW: Span = Span::from_millis(20);
/// Tokens at the start, and the most that are saved.
const MOST_TOKENS: f64 = 5.0;

/// One queue of ABC.
#[derive(Debug)]
pub struct Abc {
    config: AbcConfig,
    buffer: Buffer,
    rates: Rates,
    tokens: f64,
}

/// A departure: the time since the previous one, and whether packets waited in this time.
#[derive(Clone, Copy, Debug)]
struct Departed {
    at: Time,
    bytes: f64,
    seconds: f64,
    backlogged: bool,
}

/// Departures of the last 20 ms, and the rates that they show.
#[derive(Debug, Default)]
struct Rates {
    departed: VecDeque<Departed>,
    last: Option<Time>,
    /// Whether packets remained in the queue behind the last one.
    backlogged: bool,
    /// Last measured capacity, bytes per second.
    capacity: f64,
}

impl Rates {
    /// Counts a departure, which leaves the queue empty or not.
    fn record(&mut self, now: Time, segment: &Segment, empties: bool) {
        let backlogged = std::mem::replace(&mut self.backlogged, !empties);
        if let Some(last) = self.last.replace(now) {
            let seconds = now.since(last).min(WINDOW).as_secs_f64();
            self.departed.push_back(Departed {
                at: now,
                bytes: segment.wire_bytes().into(),
                seconds,
                backlogged,
            });
        }
        while self.departed.front().is_some_and(|first| now.since(first.at) >= WINDOW) {
            self.departed.pop_front();
        }
        let measured = rate(self.departed.iter().filter(|one| one.backlogged));
        self.capacity = measured.unwrap_or(self.capacity).max(self.current());
    }

    /// Rate at which packets leave, bytes per second; 0 if it is not known.
    fn current(&self) -> f64 {
        rate(self.departed.iter()).unwrap_or(0.0)
    }
}

/// Bytes per second of some departures; `None` without time between them.
fn rate<'a>(departed: impl Iterator<Item = &'a Departed>) -> Option<f64> {
    let (bytes, seconds) = departed.fold((0.0, 0.0), |sum, one| (sum.0 + one.bytes, sum.1 + one.seconds));
    (seconds > 0.0).then(|| bytes / seconds)
}

impl Abc {
    fn new(config: AbcConfig, capacity: Capacity) -> Self {
        Self { config, buffer: Buffer::new(capacity), rates: Rates::default(), tokens: MOST_TOKENS }
    }

    /// Target rate at a capacity in bytes per second and a queueing delay in seconds.
    fn target(&self, capacity: f64, delay: f64) -> f64 {
        let excess = (delay - self.config.target.as_secs_f64()).max(0.0);
        capacity * (self.config.share - excess / self.config.drain.as_secs_f64())
    }

    /// Fraction of packets to accelerate, when `segment` leaves the queue.
    fn fraction(&self, segment: &Segment) -> f64 {
        let (capacity, current) = (self.rates.capacity, self.rates.current());
        if current <= 0.0 {
            return 1.0;
        }
        let queued = self.buffer.fifo.load().bytes as f64 + f64::from(segment.wire_bytes());
        (self.target(capacity, queued / capacity) / (2.0 * current)).clamp(0.0, 1.0)
    }

    /// Lets a departing packet accelerate or brake its sender.
    fn decide(&mut self, segment: &mut Segment, fraction: f64) {
        self.tokens = (self.tokens + fraction).min(MOST_TOKENS);
        if !is_ect(segment) || segment.ecn == Ecn::Ce {
            return;
        }
        if self.tokens > 1.0 {
            self.tokens -= 1.0;
        } else {
            segment.ecn = Ecn::Ce;
        }
    }
}

impl Queue for Abc {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        // Packets may also have been removed since the last departure.
        self.rates.backlogged &= !self.buffer.fifo.is_empty();
        self.buffer.put(now, segment, unqueued, place)
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        let (arrived, mut segment) = self.buffer.fifo.pop()?;
        let follows = self.rates.backlogged;
        self.rates.record(now, &segment, self.buffer.fifo.is_empty());
        let fraction = if follows { self.fraction(&segment) } else { 1.0 };
        self.decide(&mut segment, fraction);
        Some((arrived, segment))
    }

    fn pass(&mut self, now: Time, segment: &Segment) {
        self.rates.backlogged = false;
        self.rates.record(now, segment, true);
    }

    one_buffer!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn abc() -> Abc {
        Abc::new(AbcConfig::default(), Capacity::Unlimited)
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A packet of 1000 bytes on the wire.
    fn packet() -> Segment {
        let mut packet = Segment::data(FlowId(0), Seq(0), 960, 40);
        packet.ecn = Ecn::Ect0;
        packet
    }

    /// Lets packets leave each millisecond from a queue that keeps `queued` of them. Returns the number of marks.
    fn served(abc: &mut Abc, queued: usize, count: u64) -> usize {
        (0..queued).for_each(|_| abc.enqueue(ms(0), &packet(), Load::NONE).unwrap());
        let marked = |millis| {
            let ce = abc.dequeue(ms(millis)).unwrap().1.ecn == Ecn::Ce;
            abc.enqueue(ms(millis), &packet(), Load::NONE).unwrap();
            ce
        };
        (1..=count).map(marked).filter(|&ce| ce).count()
    }

    #[test]
    fn the_target_rate_is_below_the_capacity_and_falls_with_the_delay() {
        let abc = abc();
        assert!((abc.target(1000.0, 0.05) - 980.0).abs() < 1e-9);
        // 980 - 1000/0.133 · 0.0133
        assert!((abc.target(1000.0, 0.0633) - 880.0).abs() < 1e-9);
    }

    #[test]
    fn about_half_of_the_packets_accelerate_at_the_capacity_and_none_behind_a_long_queue() {
        // 20 packets wait 20 ms, below the target of 50 ms: f = 0.49, and 5 tokens at the start.
        let marks = served(&mut abc(), 20, 1000);
        assert!((500..=512).contains(&marks), "{marks}");
        // A queue of 200 ms gives tr < 0; the tokens of the start, and of the first packets, are used up.
        let marks = served(&mut abc(), 200, 1000);
        assert!(marks > 990, "{marks}");
    }

    #[test]
    fn rates_are_averages_over_20_ms_while_packets_wait() {
        let mut abc = abc();
        served(&mut abc, 20, 100);
        // 1000 bytes a millisecond
        assert!((abc.rates.capacity - 1e6).abs() < 1.0, "{}", abc.rates.capacity);
        assert!((abc.rates.current() - 1e6).abs() < 1.0);
        // An idle link measures nothing; the capacity of before remains, and the departure counts as one in 20 ms.
        while abc.buffer.fifo.pop().is_some() {}
        abc.pass(ms(500), &packet());
        assert!((abc.rates.capacity - 1e6).abs() < 1.0, "{}", abc.rates.capacity);
        assert!((abc.rates.current() - 5e4).abs() < 1.0, "{}", abc.rates.current());
    }

    #[test]
    fn packets_that_are_removed_leave_no_queue_behind_the_last_departure() {
        let mut abc = abc();
        served(&mut abc, 20, 100);
        while abc.remove_oldest(ms(101)).is_some() {}
        abc.enqueue(ms(500), &packet(), Load::NONE).unwrap();
        assert_eq!(abc.dequeue(ms(501)).unwrap().1.ecn, Ecn::Ect0, "it follows none that waited");
        assert!((abc.rates.capacity - 1e6).abs() < 1.0, "{}", abc.rates.capacity);
    }

    #[test]
    fn a_packet_without_a_predecessor_accelerates_and_one_without_ecn_is_never_marked() {
        let mut abc = abc();
        abc.tokens = 0.0;
        for step in 1..100 {
            abc.enqueue(ms(10 * step), &packet(), Load::NONE).unwrap();
            assert_eq!(
                abc.dequeue(ms(10 * step + 1)).unwrap().1.ecn,
                if step == 1 { Ecn::Ce } else { Ecn::Ect0 }
            );
        }
        let mut plain = packet();
        plain.ecn = Ecn::NotEct;
        (0..300).for_each(|_| abc.enqueue(ms(0), &plain, Load::NONE).unwrap());
        assert!((1..300).all(|step| abc.dequeue(ms(2000 + step)).unwrap().1.ecn == Ecn::NotEct));
    }
}
