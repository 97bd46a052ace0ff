//! # PIE
//!
//! ## Source
//! Source: RFC 8033 (Pan, Natarajan, Baker and White 2017), sections 4.1 to 4.4, 5.1 (ECN) and 5.5 (cap on the rise).
//!
//! ## What it does
//! Drops arriving packets at random. Every 15 ms a proportional integral controller adjusts the drop probability
//! towards a queueing delay of 15 ms: `p += 0.125 (delay - target) + 1.25 (delay - previous delay)` (1/s), scaled down
//! while p is small. After an idle time a burst of up to 150 ms passes without drops. With `ecn` an ECN-capable packet
//! is marked instead of dropped, as long as the probability is at most 10 %.
//!
//! ## Differences from the source
//! The queueing delay is measured from the timestamp of the last packet that left, and is zero once the queue is empty;
//! section 5.2 estimates the delay from the departure rate. Switching PIE off (5.3) and derandomisation (5.4) are
//! omitted. Updates of the drop probability happen at multiples of 15 ms from the start of the run, so polling does not
//! affect the updates.
//!
//! ## Validation
//! Unit tests check one step of the controller worked out by hand, and the convergence to the target.

use ackclock_core::{Config, ConfigError, Ecn, FlowId, Segment, Span, Stream, Time, Unused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Buffer;
use super::{AnyQueue, Codepoints, Per, Place, Queue, QueueConfig, QueueContext, is_ect, one_buffer};
use crate::{Capacity, Cause, Load};

/// Proportional integral controller enhanced (RFC 8033).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PieConfig {
    /// Target queueing delay.
    pub target: Span,
    /// Time between updates of the drop probability.
    pub update: Span,
    /// Length of a burst that passes without drops after an idle time.
    pub burst: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            burst: Span::from_millis(150),
            ecn: false,
            per: Per::Shared,
        }
    }
}

impl Config for PieConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let least = Span::from_millis(1);
        if self.update < least {
            return Err(ConfigError::new("update", format!("{} is below {least}", self.update)));
        }
        Ok(())
    }
}

impl QueueConfig for PieConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let (config, capacity) = (self.clone(), context.capacity);
        let (streams, name) = (context.streams.clone(), context.name.to_owned());
        self.per.build(capacity, move |number| {
            Pie::new(config.clone(), capacity, streams.stream(&format!("{name}/{number}"))).any()
        })
    }

    fn unused(&self, packets: Codepoints) -> Vec<Unused> {
        packets.unused_without_ect(&[("ecn", self.ecn)])
    }
}

/// One queue that PIE manages.
#[derive(Debug)]
pub struct Pie {
    config: PieConfig,
    buffer: Buffer,
    stream: Stream,
    probability: f64,
    /// Queueing delay of the last packet that left the queue.
    delay: Span,
    /// Queueing delay at the last update of the drop probability.
    delay_before: Span,
    burst_left: Span,
    next_update: Time,
}

/// Gains of the controller, per second (RFC 8033 section 4.2).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Drop probability above which ECN-capable packets are dropped too (RFC 8033 section 5.1).
const MARK_UP_TO: f64 = 0.1;

impl Pie {
    fn new(config: PieConfig, capacity: Capacity, stream: Stream) -> Self {
        let (burst_left, next_update) = (config.burst, Time::ZERO + config.update);
        Self {
            config,
            buffer: Buffer::new(capacity),
            stream,
            probability: 0.0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst_left,
            next_update,
        }
    }

    /// Performs the updates of the drop probability that are due by `now`.
    fn advance(&mut self, now: Time) {
        while self.next_update <= now {
            let calm = self.probability == 0.0 && self.delay == Span::ZERO && self.delay_before == Span::ZERO;
            // During an idle time only the burst allowance changes, and the next arriving packet refills it.
            let updates = if calm {
                1 + now.since(self.next_update).as_nanos() / self.config.update.as_nanos()
            } else {
                1
            };
            self.update();
            self.next_update += self.config.update * updates;
        }
    }

    /// Updates the drop probability once, as in RFC 8033 section 4.2, with the cap of section 5.5.
    fn update(&mut self) {
        let (delay, before) = (self.delay.as_secs_f64(), self.delay_before.as_secs_f64());
        let change = ALPHA * (delay - self.config.target.as_secs_f64()) + BETA * (delay - before);
        let mut step = change / self.caution();
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if self.delay == Span::ZERO && self.delay_before == Span::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_before = self.delay;
        self.burst_left -= self.config.update;
    }

    /// Divisor of an update of the drop probability while the probability is small (RFC 8033 section 4.2).
    fn caution(&self) -> f64 {
        const STEPS: [(f64, f64); 6] =
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
        STEPS.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, divisor)| *divisor)
    }

    /// Whether to drop or mark an arriving packet (RFC 8033 sections 4.1 and 4.4).
    fn drops_early(&mut self) -> bool {
        let half = self.config.target / 2;
        if self.probability == 0.0 && self.delay < half && self.delay_before < half {
            self.burst_left = self.config.burst;
        }
        // No packet is dropped while the delay is low, or while at most two packets are queued: this keeps the link
        // busy.
        let spared =
            (self.delay_before < half && self.probability < 0.2) || self.buffer.fifo.load().packets <= 2;
        self.burst_left == Span::ZERO && !spared && self.stream.chance(self.probability)
    }
}

impl Queue for Pie {
    /// A segment inserted at the front was queued before, so it is not dropped early.
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.advance(now);
        if !self.buffer.admits(segment, unqueued) {
            return Err(Cause::Full);
        }
        let mut segment = *segment;
        if place == Place::Back && self.drops_early() {
            if !(self.config.ecn && is_ect(&segment) && self.probability <= MARK_UP_TO) {
                return Err(Cause::Policy);
            }
            segment.ecn = Ecn::Ce;
        }
        self.buffer.fifo.put(now, &segment, place);
        Ok(())
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        self.advance(now);
        let (arrived, segment) = self.buffer.fifo.pop()?;
        self.delay = if self.buffer.fifo.is_empty() { Span::ZERO } else { now.since(arrived) };
        Some((arrived, segment))
    }

    fn pass(&mut self, now: Time, _: &Segment) {
        self.advance(now);
        self.delay = Span::ZERO;
    }

    one_buffer!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{Seq, Streams};

    fn pie() -> Pie {
        Pie::new(PieConfig::default(), Capacity::Unlimited, Streams::new(1, 0).stream("pie"))
    }

    fn segment() -> Segment {
        Segment::data(FlowId(0), Seq(0), 960, 40)
    }

    #[test]
    fn one_step_of_the_controller_is_that_of_the_formula() {
        let mut pie = pie();
        (pie.probability, pie.delay, pie.delay_before) = (0.05, Span::from_millis(25), Span::from_millis(20));
        pie.update();
        // (0.125·10 ms + 1.25·5 ms)/2 = 0.00375
        assert!((pie.probability - 0.053_75).abs() < 1e-12, "{}", pie.probability);
        (pie.probability, pie.delay, pie.delay_before) = (0.5, Span::from_secs(1), Span::ZERO);
        pie.update();
        assert!((pie.probability - 0.52).abs() < 1e-12, "a rise is at most 0.02: {}", pie.probability);
    }

    #[test]
    fn a_calm_time_changes_nothing_however_long() {
        let (mut long, mut steps) = (pie(), pie());
        long.advance(Time::ZERO + Span::from_secs(3600));
        (0..=3_600_000).step_by(7).for_each(|ms| steps.advance(Time::ZERO + Span::from_millis(ms)));
        steps.advance(Time::ZERO + Span::from_secs(3600));
        assert_eq!((long.next_update, long.probability), (steps.next_update, steps.probability));
    }

    #[test]
    fn an_overload_is_dropped_and_the_delay_settles_near_the_target() {
        let mut pie = pie();
        let (mut refused, mut waited) = (0u32, Vec::new());
        // 1500 arrivals and 1000 departures a second: a third must go.
        for tick in 0..60_000u64 {
            let now = Time::from_nanos(tick * 1_000_000);
            for _ in 0..1 + tick % 2 {
                refused += u32::from(pie.enqueue(now, &segment(), Load::NONE).is_err());
            }
            if let Some((arrived, _)) = pie.dequeue(now)
                && tick > 30_000
            {
                waited.push(now.since(arrived).as_millis_f64());
            }
        }
        let mean = waited.iter().sum::<f64>() / waited.len() as f64;
        assert!((28_000..31_000).contains(&refused), "{refused} of 90 000");
        assert!((10.0..20.0).contains(&mean), "{mean} ms against a target of 15");
    }

    #[test]
    fn a_burst_after_a_calm_time_passes() {
        let mut pie = pie();
        let now = Time::ZERO + Span::from_secs(10);
        assert!((0..500).all(|_| pie.enqueue(now, &segment(), Load::NONE).is_ok()));
    }
}
