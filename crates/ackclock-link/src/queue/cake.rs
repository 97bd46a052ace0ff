//! # CAKE
//!
//! ## Source
//! Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home Gateways"
//! (LANMAN 2018), sections III.B and III.C, and `tc-cake(8)` of iproute2.
//!
//! ## What it does
//! Each flow has a queue that COBALT manages. Flows are found by a hash of 1024 queues in sets of eight, so that flows
//! share a queue only when a set is full. Queues are served by deficit round robin with a quantum of 1514 bytes. Flows
//! that build up no queue go first. With `isolation = "triple"`, hosts share the capacity first: the quantum of a flow
//! is divided by the number of flows of its host that fill their queues. On overflow the longest queue loses its head.
//!
//! With `rate`, COBALT's target is at least 2.25 full packets' time, and the quantum `rate` / 4096 bytes, 300 to 1514.
//!
//! ## Differences from the source
//! - The rules are from memory of the paper and of Linux; no copy of the texts was at hand.
//! - The shaper is a link or box of its own: a `constant` link with `overhead`, or the bearer `autorate`.
//! - A host is a user (`flow.user`). Servers are not counted as hosts, since each simulated flow has its own.
//! - There is one tin: no DiffServ. `ack-filter` is a regulator.
//! - The quantum is divided exactly; Linux rounds it at random.
//! - The capacity is that of `buffer`, in packets or bytes of packets.
//!
//! ## Validation
//! Unit tests check shares of flows and hosts, the order of service and overflow by hand, and compare drops and delays
//! in an overload with those of ns-3.37's COBALT.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{Config, ConfigError, FlowId, Rate, Segment, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cobalt::{Cobalt, Settings, Verdict, mark};
use super::fifo::Fifo;
use super::{AnyQueue, Choose, Place, Queue, QueueConfig, QueueContext};
use crate::{Capacity, Cause, Load};

/// What shares the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Hosts, then the flows of each host.
    #[default]
    Triple,
    /// Flows, whatever their host.
    Flows,
}

/// Queueing of CAKE (LANMAN 2018): COBALT for each flow, and shares of hosts and flows. COBALT is compared with ns-3.37.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CakeConfig {
    /// Typical round-trip time of the flows: CoDel's interval. The target is a twentieth of it.
    pub rtt: Span,
    /// Rate of the link or shaper, for targets and quantum; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What shares the capacity: "triple" (hosts, then their flows) or "flows".
    pub isolation: Isolation,
}

impl Default for CakeConfig {
    fn default() -> Self {
        Self { rtt: Span::from_millis(100), rate: None, isolation: Isolation::Triple }
    }
}

impl Config for CakeConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if self.rtt < Span::from_micros(20) {
            return Err(ConfigError::new("rtt", format!("{} is below 20us", self.rtt)));
        }
        if self.rate == Some(Rate::ZERO) {
            return Err(ConfigError::new(
                "rate",
                "must be above 0; leave the key out if the rate is unknown",
            ));
        }
        Ok(())
    }
}

impl CakeConfig {
    fn settings(&self) -> Settings {
        let packet = self.rate.map_or(Span::ZERO, |rate| rate.time_for(FULL * 3 / 2));
        let usual = self.rtt / 20;
        let target = usual.max(packet * 3 / 2);
        let interval = (self.rtt + target).saturating_sub(usual).max(target * 2);
        Settings { target, interval, packet }
    }

    fn quantum(&self) -> f64 {
        let full = f64::from(QUANTUM);
        self.rate.map_or(full, |rate| (rate.as_bps() as f64 / 8.0 / 4096.0).clamp(300.0, full))
    }
}

impl QueueConfig for CakeConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        Cake::new(self, context.capacity, context.streams.stream(context.name)).any()
    }
}

/// Bytes of a full Ethernet frame without checksum: the largest quantum.
const QUANTUM: u32 = 1514;
/// Bytes of a full packet.
const FULL: u64 = 1500;
/// Number of queues, and of queues in a set.
const QUEUES: usize = 1024;
const WAYS: usize = 8;

/// Queues of flows, served in turn.
#[derive(Debug)]
pub struct Cake {
    settings: Settings,
    quantum: f64,
    isolation: Isolation,
    perturbation: u64,
    stream: Stream,
    flows: Vec<Flow>,
    /// Users of flows other than 0.
    users: BTreeMap<FlowId, u32>,
    /// Number of bulk flows of each user, and of all users.
    bulk_of: BTreeMap<u32, u32>,
    bulk: u32,
    /// Flows that build up no queue, in order of service.
    sparse: VecDeque<u32>,
    /// Flows in the bulk rotation, in order of service.
    rotation: VecDeque<u32>,
    total: Load,
    capacity: Capacity,
    dropped: VecDeque<(Segment, Cause)>,
}

/// State of a flow's queue in the two lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    /// In no list.
    #[default]
    None,
    /// In `sparse`.
    Sparse,
    /// In `rotation`, but empty when its credit was spent; not counted as bulk.
    SparseWait,
    /// In `rotation`, counted as bulk.
    Bulk,
}

#[derive(Debug, Default)]
struct Flow {
    /// Flow that used the queue last.
    tag: Option<FlowId>,
    user: u32,
    fifo: Fifo,
    cobalt: Cobalt,
    credit: f64,
    set: Set,
}

impl Cake {
    fn new(config: &CakeConfig, capacity: Capacity, mut stream: Stream) -> Self {
        Self {
            settings: config.settings(),
            quantum: config.quantum(),
            isolation: config.isolation,
            perturbation: stream.bits(),
            stream,
            flows: (0..QUEUES).map(|_| Flow::default()).collect(),
            users: BTreeMap::new(),
            bulk_of: BTreeMap::new(),
            bulk: 0,
            sparse: VecDeque::new(),
            rotation: VecDeque::new(),
            total: Load::NONE,
            capacity,
            dropped: VecDeque::new(),
        }
    }

    /// Queue to which a flow hashes, which is in a set of eight.
    fn hashed(&self, flow: FlowId) -> usize {
        let mixed = (u64::from(flow.0) ^ self.perturbation).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed >> 32) as usize % QUEUES
    }

    /// Queues of the set of a flow, beginning with the one to which it hashes.
    fn set(&self, flow: FlowId) -> impl Iterator<Item = usize> + use<> {
        let hashed = self.hashed(flow);
        let first = hashed - hashed % WAYS;
        (0..WAYS).map(move |way| first + (hashed + way) % WAYS)
    }

    /// Queue that holds packets of a flow, or held the last ones.
    fn find(&self, flow: FlowId) -> Option<usize> {
        self.set(flow).find(|&index| self.flows[index].tag == Some(flow))
    }

    /// Queue for a packet of a flow: its own, else an idle one of its set, else the one to which it hashes.
    fn claim(&mut self, flow: FlowId) -> usize {
        let idle = |index: &usize| self.flows[*index].set == Set::None;
        let index =
            self.find(flow).or_else(|| self.set(flow).find(idle)).unwrap_or_else(|| self.hashed(flow));
        let queue = &mut self.flows[index];
        if queue.set == Set::None && queue.tag != Some(flow) {
            queue.cobalt = Cobalt::default();
        }
        if queue.set == Set::None {
            (queue.tag, queue.user) = (Some(flow), self.users.get(&flow).copied().unwrap_or(0));
        }
        index
    }

    /// Quantum of a flow: divided by the number of bulk flows of its host.
    fn share(&self, user: u32) -> f64 {
        let flows = match self.isolation {
            Isolation::Triple => self.bulk_of.get(&user).copied().unwrap_or(0).max(1),
            Isolation::Flows => 1,
        };
        self.quantum / f64::from(flows)
    }

    fn count_bulk(&mut self, index: usize) {
        self.flows[index].set = Set::Bulk;
        *self.bulk_of.entry(self.flows[index].user).or_insert(0) += 1;
        self.bulk += 1;
    }

    /// Removes the flow at the front of its list, which has no packets.
    fn retire(&mut self, index: usize) {
        let list = if self.flows[index].set == Set::Sparse { &mut self.sparse } else { &mut self.rotation };
        list.pop_front();
        if self.flows[index].set == Set::Bulk {
            let user = self.flows[index].user;
            if let Some(bulk) = self.bulk_of.get_mut(&user) {
                *bulk -= 1;
                if *bulk == 0 {
                    self.bulk_of.remove(&user);
                }
            }
            self.bulk -= 1;
        }
        self.flows[index].set = Set::None;
    }

    /// Gives the flow at the front of its list a quantum, and moves it to the end of the rotation.
    fn rotate(&mut self, index: usize) {
        if self.flows[index].set == Set::Sparse {
            self.sparse.pop_front();
            if self.flows[index].fifo.is_empty() {
                self.flows[index].set = Set::SparseWait;
            } else {
                self.count_bulk(index);
            }
        } else {
            self.rotation.pop_front();
        }
        self.flows[index].credit += self.share(self.flows[index].user);
        self.rotation.push_back(index as u32);
    }

    /// Takes the next packet that COBALT lets pass from a queue; the last packet of a queue is not dropped.
    fn take(&mut self, index: usize, now: Time) -> Option<(Time, Segment)> {
        loop {
            let flow = &mut self.flows[index];
            let (arrived, mut segment) = flow.fifo.pop()?;
            self.total -= Load::of(&segment);
            let delay = now.since(arrived);
            let verdict =
                flow.cobalt.judge(&self.settings, now, delay, self.bulk, &segment, &mut self.stream);
            match verdict {
                Verdict::Drop if !flow.fifo.is_empty() => self.dropped.push_back((segment, Cause::Policy)),
                Verdict::Mark => {
                    mark(&mut segment);
                    return Some((arrived, segment));
                }
                Verdict::Drop | Verdict::Pass => return Some((arrived, segment)),
            }
        }
    }

    /// Drops the head of the queue with the most bytes.
    fn drop_from_longest(&mut self, now: Time) {
        let bytes = |&index: &u32| self.flows[index as usize].fifo.load().bytes;
        let longest = self.sparse.iter().chain(&self.rotation).copied().max_by_key(bytes);
        let Some(flow) = longest.map(|index| &mut self.flows[index as usize]) else { return };
        if let Some((_, segment)) = flow.fifo.pop() {
            flow.cobalt.on_overflow(&self.settings, now);
            self.total -= Load::of(&segment);
            self.dropped.push_back((segment, Cause::Full));
        }
    }

    /// Active queue whose head packet arrived first.
    fn with_oldest(&self) -> Option<usize> {
        let oldest = |&index: &usize| self.flows[index].fifo.oldest();
        self.sparse.iter().chain(&self.rotation).map(|&index| index as usize).min_by_key(oldest)
    }
}

impl Queue for Cake {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        if !self.capacity.admits(unqueued, segment) {
            return Err(Cause::Full);
        }
        let index = self.claim(segment.flow);
        self.flows[index].fifo.put(now, segment, place);
        self.total += Load::of(segment);
        match self.flows[index].set {
            Set::None => {
                let credit = self.share(self.flows[index].user);
                (self.flows[index].set, self.flows[index].credit) = (Set::Sparse, credit);
                self.sparse.push_back(index as u32);
            }
            Set::SparseWait => self.count_bulk(index),
            Set::Sparse | Set::Bulk => {}
        }
        while !self.capacity.holds(self.total + unqueued) {
            self.drop_from_longest(now);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        while !self.total.is_none() {
            let index = *self.sparse.front().or(self.rotation.front())? as usize;
            if self.flows[index].credit <= 0.0 {
                self.rotate(index);
                continue;
            }
            if let Some((arrived, segment)) = self.take(index, now) {
                self.flows[index].credit -= f64::from(segment.wire_bytes());
                return Some((arrived, segment));
            }
            self.flows[index].cobalt.on_empty(&self.settings, now);
            self.retire(index);
        }
        None
    }

    fn pass(&mut self, now: Time, segment: &Segment) {
        if let Some(index) = self.find(segment.flow) {
            self.flows[index].cobalt.on_empty(&self.settings, now);
        }
    }

    fn is_empty(&self) -> bool {
        self.total.is_none()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.dropped.pop_front()
    }

    fn oldest(&self) -> Time {
        self.with_oldest().map_or(Time::NEVER, |index| self.flows[index].fifo.oldest())
    }

    // An active queue that is now empty leaves its list at its turn.
    fn remove_oldest(&mut self, _: Time) -> Option<Segment> {
        let index = self.with_oldest()?;
        let (_, segment) = self.flows[index].fifo.pop()?;
        self.total -= Load::of(&segment);
        Some(segment)
    }

    fn remove(&mut self, _: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment> {
        let index = self.find(flow)?;
        let segment = self.flows[index].fifo.remove(choose)?;
        self.total -= Load::of(&segment);
        Some(segment)
    }

    fn waiting(&self, flow: FlowId) -> Load {
        self.find(flow).map_or(Load::NONE, |index| self.flows[index].fifo.load())
    }

    fn load(&self) -> Load {
        self.total
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }

    fn together(&self, a: FlowId, b: FlowId) -> bool {
        a == b || self.find(a).is_some_and(|index| self.find(b) == Some(index))
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.users.insert(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.users.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{Seq, Streams};

    fn queue(config: &CakeConfig, capacity: Capacity) -> Cake {
        Cake::new(config, capacity, Streams::new(7, 0).stream("queue"))
    }

    fn segment(flow: u32, seq: u32) -> Segment {
        Segment::data(FlowId(flow), Seq(seq), 960, 40)
    }

    /// Number of packets of each of `flows` among the next `count`.
    fn served(queue: &mut Cake, flows: u32, count: usize) -> Vec<usize> {
        let left: Vec<u32> =
            (0..count).filter_map(|_| queue.dequeue(Time::ZERO)).map(|(_, left)| left.flow.0).collect();
        (0..flows).map(|flow| left.iter().filter(|&&of| of == flow).count()).collect()
    }

    fn fill(queue: &mut Cake, flows: u32) {
        for seq in 0..400 {
            (0..flows).for_each(|flow| queue.enqueue(Time::ZERO, &segment(flow, seq), Load::NONE).unwrap());
        }
    }

    /// User 0 has flow 0, user 1 has flows 1 to 3: by host 3 : 1 : 1 : 1, by flow alike.
    #[test]
    fn hosts_share_first_and_then_their_flows() {
        let shares = |isolation| {
            let mut queue = queue(&CakeConfig { isolation, ..CakeConfig::default() }, Capacity::Unlimited);
            (1..4).for_each(|flow| queue.assign(FlowId(flow), 1));
            fill(&mut queue, 4);
            served(&mut queue, 4, 600)
        };
        let near = |got: Vec<usize>, expected: [usize; 4]| {
            assert!(got.iter().zip(expected).all(|(&got, want)| got.abs_diff(want) <= 6), "{got:?}");
        };
        near(shares(Isolation::Triple), [300, 100, 100, 100]);
        near(shares(Isolation::Flows), [150; 4]);
    }

    #[test]
    fn a_flow_without_a_queue_goes_first() {
        let mut queue = queue(&CakeConfig::default(), Capacity::Unlimited);
        fill(&mut queue, 2);
        served(&mut queue, 2, 10);
        queue.enqueue(Time::ZERO, &segment(2, 0), Load::NONE).unwrap();
        assert_eq!(queue.dequeue(Time::ZERO).unwrap().1.flow, FlowId(2));
    }

    #[test]
    fn the_longest_queue_pays_for_an_overload() {
        let mut queue = queue(&CakeConfig::default(), Capacity::Packets(10));
        (0..9).for_each(|seq| queue.enqueue(Time::ZERO, &segment(0, seq), Load::NONE).unwrap());
        (0..3).for_each(|seq| queue.enqueue(Time::ZERO, &segment(1, seq), Load::NONE).unwrap());
        let dropped: Vec<_> =
            std::iter::from_fn(|| queue.poll_dropped()).map(|(s, _)| (s.flow.0, s.seq.0)).collect();
        assert_eq!(dropped, [(0, 0), (0, 1)]);
    }

    /// 256 flows in 1024 queues: a plain hash lets about 28 pairs collide, sets of eight none unless a set overflows.
    #[test]
    fn flows_do_not_share_queues() {
        let mut queue = queue(&CakeConfig::default(), Capacity::Unlimited);
        fill(&mut queue, 256);
        let mut used: Vec<usize> = (0..256).map(|flow| queue.find(FlowId(flow)).unwrap()).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 256);
    }

    /// At 1 Mbit/s: 1.5 full packets take 18 ms, so the target is 27 ms, the interval 100 + 27 - 5 ms, and the
    /// quantum is at its least. At 100 Mbit/s the target stays 5 ms.
    #[test]
    fn a_known_rate_sets_target_and_quantum() {
        let with = |bps| CakeConfig { rate: Some(Rate::from_bps(bps)), ..CakeConfig::default() };
        let slow = with(1_000_000);
        let Settings { target, interval, .. } = slow.settings();
        assert_eq!((target, interval), (Span::from_millis(27), Span::from_millis(122)));
        assert_eq!(slow.quantum(), 300.0);
        assert_eq!(with(100_000_000).settings().target, Span::from_millis(5));
        assert_eq!(with(100_000_000).quantum(), 1514.0);
    }

    /// Packets of 1500 B arrive each 4 ms and leave each 5 ms, without regard to drops. ns-3.37's CobaltQueueDisc dropped
    /// 499 packets in 10 s, with a mean delay of 13.4 ms of those that left, and 2999 in 60 s with 6.40 ms.
    #[test]
    fn an_overload_is_dropped_as_by_ns_3() {
        let mut queue = queue(&CakeConfig::default(), Capacity::Packets(1000));
        let (mut dropped, mut left, mut wait) = (0, 0, 0.0);
        for ms in 0..60_000_u64 {
            let now = Time::ZERO + Span::from_micros(ms * 1000 + 500);
            if ms % 4 == 0 {
                let packet = Segment::data(FlowId(0), Seq(0), 1460, 40);
                queue.enqueue(Time::ZERO + Span::from_micros(ms * 1000), &packet, Load::NONE).unwrap();
            }
            if ms % 5 == 2
                && let Some((arrived, _)) = queue.dequeue(now)
            {
                (left, wait) = (left + 1, wait + now.since(arrived).as_millis_f64());
            }
            dropped += std::iter::from_fn(|| queue.poll_dropped()).count();
            let seen = (dropped, wait / f64::from(left.max(1)));
            let expected = match ms {
                9_999 => (499, 13.4),
                59_999 => (2999, 6.40),
                _ => continue,
            };
            assert!(seen.0.abs_diff(expected.0) <= 3, "{seen:?}");
            assert!((seen.1 / expected.1 - 1.0).abs() < 0.1, "{seen:?}");
        }
    }

    #[test]
    fn an_impossible_value_is_refused() {
        let error = |config: CakeConfig| config.check().unwrap_err().to_string();
        assert!(error(CakeConfig { rtt: Span::ZERO, ..CakeConfig::default() }).starts_with("rtt: 0"));
        assert!(
            error(CakeConfig { rate: Some(Rate::ZERO), ..CakeConfig::default() }).starts_with("rate: must")
        );
    }
}
