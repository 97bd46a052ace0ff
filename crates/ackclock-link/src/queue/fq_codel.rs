//! # FQ-CoDel
//!
//! ## Source
//! RFC 8290 (Høiland-Jørgensen, McKenney, Täht, Gettys and Dumazet 2018), section 4.
//!
//! ## What it does
//! Flows are hashed into 1024 queues, each with its own CoDel. The queues are served by deficit round robin with a
//! quantum of 1514 bytes; queues that have just become active are served first. If all queues together exceed the
//! capacity, packets are dropped from the head of the queue with the most bytes. ECN-capable packets are marked instead
//! of dropped.
//!
//! ## Differences from the source
//! The hash is calculated from the flow's number and the run's seed. On overload packets are dropped one at a time, as
//! many as needed, instead of half of the queue, at most 64. A queue whose credit is exactly used up ends its turn, as in
//! Linux; the text says a negative credit. There is no CE threshold. CoDel's exemption of the last packet applies to each queue separately.
//!
//! ## Validation
//! Sections 4.1, 4.2 and 5.2 were compared with the code. Unit tests check the order of service worked out by hand, the shares of flows, and drops from the longest queue.

use std::collections::VecDeque;

use ackclock_core::{Config, ConfigError, FlowId, Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::{Backlog, Control, Settings};
use super::fifo::Fifo;
use super::{AnyQueue, Choose, Place, Queue, QueueConfig, QueueContext};
use crate::{Capacity, Cause, Load};

/// Flow queueing with controlled delay (RFC 8290).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodelConfig {
    /// Number of queues into which flows are hashed.
    pub flows: u32,
    /// Number of bytes that a queue may send per round.
    pub quantum: u32,
    /// Acceptable queueing delay.
    pub target: Span,
    /// Time for which the target must be exceeded before drops start.
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        let Settings { target, interval, .. } = Settings::default();
        Self { flows: 1024, quantum: 1514, target, interval, ecn: true }
    }
}

impl Config for FqCodelConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=65_536).contains(&self.flows) {
            return Err(ConfigError::new("flows", format!("{} is not from 1 to 65536", self.flows)));
        }
        if self.quantum == 0 {
            return Err(ConfigError::new("quantum", "0 bytes: no queue would ever be served"));
        }
        self.settings().check()
    }
}

impl FqCodelConfig {
    const fn settings(&self) -> Settings {
        Settings { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}

impl QueueConfig for FqCodelConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        FqCodel::new(self, context.capacity, context.streams.stream(context.name).bits()).any()
    }
}

/// Queues that CoDel manages, served in turn.
#[derive(Debug)]
pub struct FqCodel {
    settings: Settings,
    quantum: i64,
    perturbation: u64,
    buckets: Vec<Bucket>,
    /// Queues that have just become active, in order of service.
    new: VecDeque<u32>,
    /// Active queues that were served before, in order of service.
    old: VecDeque<u32>,
    total: Load,
    capacity: Capacity,
    dropped: VecDeque<(Segment, Cause)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    #[default]
    None,
    New,
    Old,
}

#[derive(Debug, Default)]
struct Bucket {
    fifo: Fifo,
    control: Control,
    credit: i64,
    list: List,
}

impl FqCodel {
    fn new(config: &FqCodelConfig, capacity: Capacity, perturbation: u64) -> Self {
        Self {
            settings: config.settings(),
            quantum: config.quantum.into(),
            perturbation,
            buckets: (0..config.flows).map(|_| Bucket::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            total: Load::NONE,
            capacity,
            dropped: VecDeque::new(),
        }
    }

    /// Number of a flow's queue: the upper bits of a multiplicative hash, scaled to the number of queues.
    fn bucket(&self, flow: FlowId) -> usize {
        let mixed = (u64::from(flow.0) ^ self.perturbation).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (((mixed >> 32) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Drops a packet from the head of the queue with the most bytes (RFC 8290 section 4.1).
    fn drop_from_fattest(&mut self) {
        let bytes = |&index: &u32| self.buckets[index as usize].fifo.load().bytes;
        let fattest = self.new.iter().chain(&self.old).copied().max_by_key(bytes);
        if let Some((_, segment)) = fattest.and_then(|index| self.buckets[index as usize].fifo.pop()) {
            self.total -= Load::of(&segment);
            self.dropped.push_back((segment, Cause::Full));
        }
    }

    /// Number of the active queue whose head packet arrived first.
    fn with_oldest(&self) -> Option<u32> {
        let oldest = |&index: &u32| self.buckets[index as usize].fifo.oldest();
        self.new.iter().chain(&self.old).copied().min_by_key(oldest)
    }

    /// Moves the queue at the front of its list to the end of the old queues, or makes it inactive.
    fn rotate(&mut self, index: u32, to: List) {
        match self.buckets[index as usize].list {
            List::New => self.new.pop_front(),
            _ => self.old.pop_front(),
        };
        self.buckets[index as usize].list = to;
        if to == List::Old {
            self.old.push_back(index);
        }
    }
}

impl Queue for FqCodel {
    /// Adds a segment to the queue of its flow, then drops packets from the longest queue until the rest fits.
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        if !self.capacity.admits(unqueued, segment) {
            return Err(Cause::Full);
        }
        let index = self.bucket(segment.flow);
        let bucket = &mut self.buckets[index];
        bucket.fifo.put(now, segment, place);
        self.total += Load::of(segment);
        if bucket.list == List::None {
            bucket.list = List::New;
            bucket.credit = self.quantum;
            self.new.push_back(index as u32);
        }
        while !self.capacity.holds(self.total + unqueued) {
            self.drop_from_fattest();
        }
        Ok(())
    }

    /// Serves the next packet as in RFC 8290 section 4.2.
    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        while let Some(&index) = self.new.front().or(self.old.front()) {
            let bucket = &mut self.buckets[index as usize];
            if bucket.credit <= 0 {
                bucket.credit += self.quantum;
                self.rotate(index, List::Old);
                continue;
            }
            let told = self.dropped.len();
            let from = Backlog { fifo: &mut bucket.fifo, dropped: &mut self.dropped };
            let next = bucket.control.dequeue(&self.settings, now, from);
            for (segment, _) in self.dropped.range(told..) {
                self.total -= Load::of(segment);
            }
            let Some((arrived, segment)) = next else {
                // A new queue that ran empty first moves to the old queues, so that it cannot jump ahead repeatedly.
                let to =
                    if bucket.list == List::New && !self.old.is_empty() { List::Old } else { List::None };
                self.rotate(index, to);
                continue;
            };
            bucket.credit -= i64::from(segment.wire_bytes());
            self.total -= Load::of(&segment);
            return Some((arrived, segment));
        }
        None
    }

    fn pass(&mut self, _: Time, segment: &Segment) {
        let index = self.bucket(segment.flow);
        self.buckets[index].control.pass(segment);
    }

    fn is_empty(&self) -> bool {
        self.total.is_none()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.dropped.pop_front()
    }

    fn oldest(&self) -> Time {
        self.with_oldest().map_or(Time::NEVER, |index| self.buckets[index as usize].fifo.oldest())
    }

    // An active queue that is now empty leaves its list at its turn.
    fn remove_oldest(&mut self, _: Time) -> Option<Segment> {
        let index = self.with_oldest()?;
        let (_, segment) = self.buckets[index as usize].fifo.pop()?;
        self.total -= Load::of(&segment);
        Some(segment)
    }

    fn remove(&mut self, _: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment> {
        let bucket = self.bucket(flow);
        let segment = self.buckets[bucket].fifo.remove(choose)?;
        self.total -= Load::of(&segment);
        Some(segment)
    }

    fn waiting(&self, flow: FlowId) -> Load {
        self.buckets[self.bucket(flow)].fifo.load()
    }

    fn load(&self) -> Load {
        self.total
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }

    fn together(&self, a: FlowId, b: FlowId) -> bool {
        self.bucket(a) == self.bucket(b)
    }

    fn assign(&mut self, _: FlowId, _: u32) {}

    fn forget(&mut self, _: FlowId) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn queue(capacity: Capacity) -> FqCodel {
        FqCodel::new(&FqCodelConfig::default(), capacity, 7)
    }

    fn segment(flow: u32, seq: u32) -> Segment {
        Segment::data(FlowId(flow), Seq(seq), 960, 40)
    }

    fn order(queue: &mut FqCodel, count: usize) -> Vec<u32> {
        (0..count).filter_map(|_| queue.dequeue(Time::ZERO)).map(|(_, segment)| segment.flow.0).collect()
    }

    #[test]
    fn a_flow_that_begins_goes_before_those_that_have_been_at_it() {
        let mut queue = queue(Capacity::Unlimited);
        (0..10).for_each(|seq| queue.enqueue(Time::ZERO, &segment(0, seq), Load::NONE).unwrap());
        // The quantum of 1514 covers two packets of 1000 B, the second on credit.
        assert_eq!(order(&mut queue, 3), [0, 0, 0]);
        queue.enqueue(Time::ZERO, &segment(1, 0), Load::NONE).unwrap();
        assert_eq!(order(&mut queue, 2), [1, 0]);
    }

    #[test]
    fn flows_share_alike() {
        let mut queue = queue(Capacity::Unlimited);
        for seq in 0..300 {
            (0..3).for_each(|flow| queue.enqueue(Time::ZERO, &segment(flow, seq), Load::NONE).unwrap());
        }
        let served = order(&mut queue, 300);
        for flow in 0..3 {
            let share = served.iter().filter(|&&of| of == flow).count();
            assert!((97..=103).contains(&share), "flow {flow}: {share} of 300");
        }
    }

    #[test]
    fn the_fattest_flow_pays_for_an_overload() {
        let mut queue = queue(Capacity::Packets(10));
        (0..9).for_each(|seq| queue.enqueue(Time::ZERO, &segment(0, seq), Load::NONE).unwrap());
        (0..3).for_each(|seq| queue.enqueue(Time::ZERO, &segment(1, seq), Load::NONE).unwrap());
        let dropped: Vec<_> =
            std::iter::from_fn(|| queue.poll_dropped()).map(|(s, _)| (s.flow.0, s.seq.0)).collect();
        assert_eq!(dropped, [(0, 0), (0, 1)], "its oldest, two for two arrivals too many");
        assert_eq!(queue.waiting(FlowId(1)).packets, 3);
        assert_eq!(queue.waiting(FlowId(0)).packets, 7);
    }

    #[test]
    fn flows_are_spread_over_the_queues() {
        let queue = queue(Capacity::Unlimited);
        let mut used: Vec<usize> = (0..1024).map(|flow| queue.bucket(FlowId(flow))).collect();
        used.sort_unstable();
        used.dedup();
        // 1024 balls in 1024 bins leave 1/e empty: 647 used, standard deviation about 10; five of them
        assert!((597..=697).contains(&used.len()), "{}", used.len());
    }
}
