//! # RED
//!
//! ## Source
//! Source: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993: figure 2 and sections 4 and 7. The gentle form is Floyd's recommendation of 2000. AC06
//! compares its controller with RED.
//!
//! ## What it does
//! Maintains the average queue length, `avg += w (q - avg)` at each arrival. Below the lower threshold every arriving
//! packet is accepted. Between the thresholds packets are dropped at random with a probability that rises from 0 to the
//! maximum, such that the gaps between drops are uniformly distributed. Above the upper threshold the gentle form
//! raises the probability further, to 1 at twice the threshold; the original form drops every packet. With `ecn` an
//! ECN-capable packet is marked instead of dropped, unless every packet is dropped.
//!
//! ## Differences from the source
//! - While the queue is empty, the average decays as if packets left one after another, as in the source. The time for
//!   one packet is the measured mean time between departures of queued packets.
//! - A packet that finds the transmitter idle is not queued: the packet updates the average and is never dropped.
//! - With thresholds in bytes the drop probability does not depend on the size of the packet.
//!
//! ## Validation
//! Unit tests check the average and the probability worked out by hand, the uniform distribution of the gaps between
//! drops, and the queue length reached under overload.

use ackclock_core::{Config, ConfigError, Ecn, FlowId, Segment, Size, Span, Stream, Time, Unused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Buffer;
use super::{AnyQueue, Codepoints, Per, Place, Queue, QueueConfig, QueueContext, is_ect, one_buffer};
use crate::{Capacity, Cause, Load};

/// Random early detection (Floyd and Jacobson 1993).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedConfig {
    /// Average queue length up to which every arriving packet is accepted, in packets or bytes.
    pub min_threshold: Size,
    /// Average queue length at which the drop probability reaches `max_probability`, in the unit of `min_threshold`.
    pub max_threshold: Size,
    /// Weight of a new sample in the average queue length.
    pub weight: f64,
    /// Drop probability at the upper threshold.
    pub max_probability: f64,
    /// Whether the probability rises linearly to 1 at twice the upper threshold, instead of jumping to 1.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Default for RedConfig {
    /// Returns the weight of section 7 of the source. The probability of 0.1, the thresholds of 5 and 15 packets, and
    /// the gentle form are Floyd's recommendations of 1997 and 2000.
    fn default() -> Self {
        Self {
            min_threshold: Size::Packets(5),
            max_threshold: Size::Packets(15),
            weight: 0.002,
            max_probability: 0.1,
            gentle: true,
            ecn: false,
            per: Per::Shared,
        }
    }
}

impl Config for RedConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let (least, in_bytes) = length("min_threshold", self.min_threshold)?;
        let (most, also) = length("max_threshold", self.max_threshold)?;
        if in_bytes != also || most <= least {
            let message =
                format!("{} is not above min_threshold = {}", self.max_threshold, self.min_threshold);
            return Err(ConfigError::new("max_threshold", message));
        }
        for (key, value) in [("weight", self.weight), ("max_probability", self.max_probability)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(ConfigError::new(key, format!("{value} is not above 0 and at most 1")));
            }
        }
        Ok(())
    }
}

/// Returns the value of a threshold, and whether it is in bytes.
fn length(key: &str, size: Size) -> Result<(f64, bool), ConfigError> {
    match size {
        Size::Packets(packets) => Ok((f64::from(packets), false)),
        Size::Bytes(bytes) => Ok((bytes as f64, true)),
        other => {
            let message = format!("{other} is not a length, written like \"5p\" or \"7500B\"");
            Err(ConfigError::new(key, message))
        }
    }
}

impl QueueConfig for RedConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let (config, capacity) = (self.clone(), context.capacity);
        let (streams, name) = (context.streams.clone(), context.name.to_owned());
        self.per.build(capacity, move |number| {
            Red::new(&config, capacity, streams.stream(&format!("{name}/{number}"))).any()
        })
    }

    fn unused(&self, packets: Codepoints) -> Vec<Unused> {
        packets.unused_without_ect(&[("ecn", self.ecn)])
    }
}

/// One queue that RED manages.
#[derive(Debug)]
pub struct Red {
    config: RedConfig,
    /// Lower and upper threshold, in packets or bytes.
    least: f64,
    most: f64,
    in_bytes: bool,
    buffer: Buffer,
    stream: Stream,
    /// Average queue length, in packets or bytes.
    average: f64,
    /// Number of arrivals since the last drop; `None` if the average was below the lower threshold.
    since_drop: Option<u32>,
    /// Time at which the last queued packet started its transmission, if no packet has arrived since.
    emptied: Option<Time>,
    /// Last departure time of a packet that was queued.
    departed: Option<Time>,
    /// Mean time between departures of queued packets.
    spacing: Span,
    /// Number of samples in the mean `spacing`.
    spacings: u64,
}

/// Decision for an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Taken,
    /// The packet was selected at random: an ECN-capable packet may be marked instead of dropped.
    AtRandom,
    Dropped,
}

impl Red {
    fn new(config: &RedConfig, capacity: Capacity, stream: Stream) -> Self {
        // The thresholds were checked when the scenario was loaded, so parsing succeeds.
        let threshold = |size| length("", size).unwrap_or((0.0, false));
        let ((least, in_bytes), (most, _)) =
            (threshold(config.min_threshold), threshold(config.max_threshold));
        Self {
            config: config.clone(),
            least,
            most,
            in_bytes,
            buffer: Buffer::new(capacity),
            stream,
            average: 0.0,
            since_drop: None,
            emptied: None,
            departed: None,
            spacing: Span::ZERO,
            spacings: 0,
        }
    }

    /// Updates the average for a packet that arrives at a queue with `load`.
    fn average(&mut self, load: Load) {
        self.emptied = None;
        let length = if self.in_bytes { load.bytes as f64 } else { f64::from(load.packets) };
        self.average += self.config.weight * (length - self.average);
    }

    /// Decays the average by the number of packets that could have been sent since the queue ran empty.
    fn sink(&mut self, now: Time) {
        if let Some(since) = self.emptied
            && self.spacing > Span::ZERO
        {
            // The count includes the transmission of the last queued packet, so one packet time is subtracted.
            let missed = now.since(since).as_secs_f64() / self.spacing.as_secs_f64() - 1.0;
            self.average *= libm::pow(1.0 - self.config.weight, missed.max(0.0));
        }
    }

    /// Drop probability before drops are spread evenly; `None` if every packet is dropped.
    fn probability(&self) -> Option<f64> {
        let Self { average, least, most, config, .. } = self;
        let top = config.max_probability;
        match () {
            () if average < most => Some(top * (average - least) / (most - least)),
            () if config.gentle && *average < 2.0 * most => Some(top + (1.0 - top) * (average - most) / most),
            () => None,
        }
    }

    /// Decides whether to queue, mark or drop an arriving packet, as in figure 2 of the source document.
    fn choose(&mut self) -> Chosen {
        if self.average < self.least {
            self.since_drop = None;
            return Chosen::Taken;
        }
        let count = self.since_drop.map_or(0, |count| count + 1);
        self.since_drop = Some(count);
        let Some(probability) = self.probability() else {
            self.since_drop = Some(0);
            return Chosen::Dropped;
        };
        let left = 1.0 - f64::from(count) * probability;
        if left > 0.0 && !self.stream.chance((probability / left).min(1.0)) {
            return Chosen::Taken;
        }
        self.since_drop = Some(0);
        Chosen::AtRandom
    }

    /// Decides about an arriving packet; returns the segment that enters the queue, which may be marked.
    fn admit(&mut self, segment: &Segment, unqueued: Load) -> Result<Segment, Cause> {
        let load = self.buffer.fifo.load() + unqueued;
        self.average(load);
        let chosen = self.choose();
        if !self.buffer.capacity.admits(load, segment) {
            return Err(Cause::Full);
        }
        let mut admitted = *segment;
        match chosen {
            Chosen::Taken => {}
            Chosen::AtRandom if self.config.ecn && is_ect(segment) => admitted.ecn = Ecn::Ce,
            Chosen::AtRandom | Chosen::Dropped => return Err(Cause::Policy),
        }
        Ok(admitted)
    }
}

impl Queue for Red {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        let admitted = self.admit(segment, unqueued)?;
        self.buffer.fifo.put(now, &admitted, place);
        Ok(())
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        let first = self.buffer.fifo.pop()?;
        if let Some(before) = self.departed.replace(now) {
            self.spacings += 1;
            let (old, new) = (self.spacing.as_nanos() as i128, now.since(before).as_nanos() as i128);
            self.spacing = Span::from_nanos((old + (new - old) / i128::from(self.spacings)).max(0) as u64);
        }
        if self.buffer.fifo.is_empty() {
            (self.emptied, self.departed) = (Some(now), None);
        }
        Some(first)
    }

    fn pass(&mut self, now: Time, _: &Segment) {
        self.sink(now);
        self.average(Load::NONE);
    }

    fn remove_oldest(&mut self, now: Time) -> Option<Segment> {
        let (_, segment) = self.buffer.fifo.pop()?;
        if self.buffer.fifo.is_empty() {
            (self.emptied, self.departed) = (Some(now), None);
        }
        Some(segment)
    }

    one_buffer!(except remove_oldest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{Seq, Streams};

    fn red(config: &RedConfig) -> Red {
        Red::new(config, Capacity::Unlimited, Streams::new(1, 0).stream("red"))
    }

    fn packet(seq: u32) -> Segment {
        Segment::data(FlowId(0), Seq(seq), 960, 40)
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_average_follows_the_queue_and_sinks_while_it_is_empty() {
        let mut red = red(&RedConfig { weight: 0.5, ..RedConfig::default() });
        for seq in 0..3 {
            red.enqueue(ms(0), &packet(seq), Load::NONE).unwrap();
        }
        // Arrivals find 0, 1 and 2: average 0, 0.5, 1.25.
        assert_eq!(red.average, 1.25);
        for at in [10, 20, 30] {
            assert!(red.dequeue(ms(at)).is_some());
        }
        assert_eq!(red.spacing, Span::from_millis(10));
        assert!(red.dequeue(ms(40)).is_none());
        // The last left at 40 ms, and 20 ms are two packets: 1.25 / 4, and half of that for an arrival that finds an
        // empty queue.
        red.pass(ms(60), &packet(3));
        assert!((red.average - 1.25 / 8.0).abs() < 1e-12, "{}", red.average);
        // The next arrival is only a sample: the average has decayed for the time before.
        red.pass(ms(60), &packet(4));
        assert!((red.average - 1.25 / 16.0).abs() < 1e-12, "{}", red.average);
    }

    #[test]
    fn the_time_between_departures_leaves_out_the_time_without_packets() {
        let mut red = red(&RedConfig::default());
        for burst in [0, 1000] {
            (0..3).for_each(|seq| red.enqueue(ms(burst), &packet(seq), Load::NONE).unwrap());
            (1..=3).for_each(|n| assert!(red.dequeue(ms(burst + 10 * n)).is_some()));
        }
        assert_eq!(red.spacing, Span::from_millis(10));
    }

    #[test]
    fn the_average_sinks_in_the_same_way_after_a_packet_has_aged() {
        let averages = [false, true].map(|has_aged| {
            let mut red = red(&RedConfig { weight: 0.5, ..RedConfig::default() });
            (0..3).for_each(|seq| red.enqueue(ms(0), &packet(seq), Load::NONE).unwrap());
            [10, 20].into_iter().for_each(|at| assert!(red.dequeue(ms(at)).is_some()));
            let last =
                if has_aged { red.remove_oldest(ms(30)).is_some() } else { red.dequeue(ms(30)).is_some() };
            red.pass(ms(60), &packet(3));
            (last, red.average)
        });
        assert_eq!(averages[0], averages[1]);
    }

    #[test]
    fn the_probability_rises_to_a_tenth_and_gently_to_one() {
        let mut red = red(&RedConfig::default());
        for (average, expected) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (29.999, 0.999_94)] {
            red.average = average;
            assert!((red.probability().unwrap() - expected).abs() < 1e-5, "{average}");
        }
        red.average = 30.0;
        assert_eq!(red.probability(), None);
        red.config.gentle = false;
        red.average = 15.0;
        assert_eq!(red.probability(), None);
    }

    #[test]
    fn packets_between_two_drops_are_spread_evenly() {
        let mut red = red(&RedConfig::default());
        red.average = 10.0;
        let mut gaps = Vec::new();
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            if red.choose() == Chosen::AtRandom {
                gaps.push(gap);
                gap = 0;
            }
        }
        // With p = 1/20 and a count that starts at 1 after a drop: gaps of 1 to 19, equally frequent except the last,
        // which includes the twentieth.
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&19)));
        let share = |of: u32| gaps.iter().filter(|gap| **gap == of).count() as f64 / gaps.len() as f64;
        for of in [1, 5, 10, 15, 19] {
            assert!((share(of) - 1.0 / 19.0).abs() < 0.006, "{of}: {}", share(of));
        }
    }

    #[test]
    fn an_overload_settles_where_as_much_is_dropped_as_does_not_fit() {
        let mut red = red(&RedConfig { max_threshold: Size::Packets(25), ..RedConfig::default() });
        let mut dropped = 0;
        // Eleven arrivals for ten departures: a share of 1/11 is too much.
        for at in 0..220_000 {
            dropped += u32::from(red.enqueue(ms(10 * at), &packet(0), Load::NONE).is_err());
            if at % 11 != 0 {
                red.dequeue(ms(10 * at + 5));
            }
        }
        assert!((f64::from(dropped) / 220_000.0 - 1.0 / 11.0).abs() < 0.002, "{dropped}");
        // With uniform gaps a probability p drops a share of 2p/(1 + p): 1/11 is p = 1/21, reached at 5 + 20/2.1.
        assert!((red.average - 14.5).abs() < 2.5, "{}", red.average);
    }

    #[test]
    fn ecn_capable_packets_are_marked_while_there_is_a_choice() {
        let mut red = red(&RedConfig { ecn: true, weight: 1e-9, ..RedConfig::default() });
        let mut capable = packet(0);
        capable.ecn = Ecn::Ect0;
        red.average = 29.9;
        for _ in 0..50 {
            assert!(red.enqueue(ms(0), &capable, Load::NONE).is_ok());
        }
        let marked = std::iter::from_fn(|| red.dequeue(ms(1))).filter(|(_, one)| one.ecn == Ecn::Ce).count();
        assert!(marked >= 25, "{marked}");
        red.average = 31.0;
        assert_eq!(red.enqueue(ms(2), &capable, Load::NONE), Err(Cause::Policy));
    }

    #[test]
    fn thresholds_that_are_none_are_refused() {
        let complaint = |config: RedConfig| config.check().unwrap_err().to_string();
        let default = RedConfig::default;
        assert!(
            complaint(RedConfig { max_threshold: Size::Packets(5), ..default() })
                .contains("max_threshold: 5p")
        );
        assert!(
            complaint(RedConfig { max_threshold: Size::Bytes(9000), ..default() }).contains("max_threshold")
        );
        assert!(complaint(RedConfig { weight: 0.0, ..default() }).contains("weight: 0"));
        assert!(complaint(RedConfig { max_probability: f64::NAN, ..default() }).contains("max_probability"));
    }
}
