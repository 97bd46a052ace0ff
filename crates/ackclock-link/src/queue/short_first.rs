//! # Short flows first
//!
//! ## Source
//! Source: our own design. The discipline treats the flows of one queue as the schedulers of CR04 treat the users of a
//! cell: users whose flows have sent little are served first (`scheduler/pf_sp.rs`).
//!
//! ## What it does
//! A flow is short until it has sent `bytes`, and becomes short again after it was idle for `idle`. Packets of short
//! flows are sent before packets of long flows; the packets of each class are sent in order of arrival. While packets
//! of both classes are queued, long flows get at least the share `long` of the bytes, so that short flows cannot starve
//! them. If a packet of a short flow does not fit, the oldest packets of long flows are dropped. A packet of a long
//! flow that does not fit is refused.
//!
//! A handshake and the first round trips of a page do not wait behind a standing queue, and the packets of a flow stay
//! in order.
//!
//! ## Differences from the source
//! In CR04 the priority of short flows applies to the users of a cell, and users with short flows are served in order
//! of their rates.
//!
//! ## Validation
//! Unit tests compare the order of service, the share of long flows and drops with values worked out by hand.
//! `tests/laws.rs` checks the order within a flow and the conservation of packets.

use std::collections::VecDeque;

use ackclock_core::{ConfigError, FlowId, Segment, Size, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{AnyQueue, Choose, Per, Place, Queue, QueueConfig, QueueContext};
use crate::short_flows::Class;
use crate::short_flows::{Account, CountsAt, ShortFlows};
use crate::{Capacity, Cause, Load};

/// Serves flows that have sent little before all other flows; drops packets of other flows that do not fit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShortFirstConfig {
    /// Number of bytes above which a flow is long.
    pub bytes: Size,
    /// Time without arrivals after which a flow is short again.
    pub idle: Span,
    /// Minimum share of the bytes that long flows get while short flows are queued.
    pub long: f64,
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Default for ShortFirstConfig {
    fn default() -> Self {
        Self { bytes: Size::Bytes(100_000), idle: Span::from_secs(1), long: 0.1, per: Per::default() }
    }
}

impl ShortFirstConfig {
    fn rule(&self) -> ShortFlows {
        ShortFlows { bytes: self.bytes, idle: self.idle, counts: CountsAt::Enqueued }
    }
}

impl ackclock_core::Config for ShortFirstConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.rule().check()?;
        if !(0.0..=1.0).contains(&self.long) {
            return Err(ConfigError::new("long", format!("{} is not 0 to 1", self.long)));
        }
        Ok(())
    }
}

impl QueueConfig for ShortFirstConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let (capacity, rule, long) = (context.capacity, self.rule(), self.long);
        self.per.build(capacity, move |_| ShortFirst::new(capacity, rule.clone(), long).any())
    }
}

/// Queue with two classes of flows; short flows have priority.
pub struct ShortFirst {
    rule: ShortFlows,
    /// Minimum share of the bytes that long flows get.
    long_share: f64,
    /// Number of bytes by which long flows lag behind their minimum share.
    behind: f64,
    capacity: Capacity,
    short: Fifo,
    long: Fifo,
    flows: Vec<Of>,
    dropped: VecDeque<Segment>,
}

/// State of one flow in the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Of {
    account: Account,
    /// Number of the flow's queued packets in the class of short flows.
    short: u32,
    /// Number of the flow's queued packets in the class of long flows.
    long: u32,
}

impl ShortFirst {
    fn new(capacity: Capacity, rule: ShortFlows, long_share: f64) -> Self {
        Self {
            rule,
            long_share,
            behind: 0.0,
            capacity,
            short: Fifo::default(),
            long: Fifo::default(),
            flows: Vec::new(),
            dropped: VecDeque::new(),
        }
    }

    fn of(&mut self, flow: FlowId) -> &mut Of {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, Of::default());
        }
        &mut self.flows[flow.index()]
    }

    /// Counts an arriving packet and returns its class: the class is long while an earlier packet of the flow is queued
    /// as long.
    fn class(&mut self, now: Time, segment: &Segment) -> Class {
        let rule = self.rule.clone();
        let of = self.of(segment.flow);
        of.account.on_arrival(now, &rule);
        of.account.count(CountsAt::Enqueued, segment.wire_bytes(), &rule);
        if of.long > 0 { Class::Long } else { of.account.class(now, &rule) }
    }

    /// Drops the oldest packets of long flows until a packet of a short flow fits.
    fn make_room(&mut self, class: Class, segment: &Segment, unqueued: Load) -> Result<(), Cause> {
        while !self.capacity.admits(self.load() + unqueued, segment) {
            if class == Class::Long || !self.capacity.admits(self.short.load() + unqueued, segment) {
                return Err(Cause::Full);
            }
            let Some((_, oldest)) = self.long.pop() else { return Err(Cause::Full) };
            self.of(oldest.flow).long -= 1;
            self.dropped.push_back(oldest);
        }
        Ok(())
    }

    /// Whether a packet of a long flow is sent before packets of short flows: long flows are behind their share, and no
    /// packet of the next long flow is queued as short.
    fn is_long_due(&self) -> bool {
        let head = self.long.head();
        self.behind > 0.0 && head.is_some_and(|flow| self.flows[flow.index()].short == 0)
    }
}

impl Queue for ShortFirst {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        // A segment at the front goes before the flow's queued packets, so it takes the class of these packets.
        let is_short = place == Place::Front && self.of(segment.flow).short > 0;
        let class = if is_short { Class::Short } else { self.class(now, segment) };
        self.make_room(class, segment, unqueued)?;
        let of = self.of(segment.flow);
        match class {
            Class::Short => {
                of.short += 1;
                self.short.put(now, segment, place);
            }
            Class::Long => {
                of.long += 1;
                self.long.put(now, segment, place);
            }
        }
        Ok(())
    }

    fn dequeue(&mut self, _: Time) -> Option<(Time, Segment)> {
        let both = !self.short.is_empty() && !self.long.is_empty();
        let takes_long = self.short.is_empty() || (both && self.is_long_due());
        let (arrived, segment) = if takes_long { self.long.pop()? } else { self.short.pop()? };
        let bytes = f64::from(segment.wire_bytes());
        if !both {
            self.behind = 0.0;
        } else if takes_long {
            self.behind -= (1.0 - self.long_share) * bytes;
        } else {
            self.behind += self.long_share * bytes;
        }
        let of = self.of(segment.flow);
        let waits = if takes_long { &mut of.long } else { &mut of.short };
        *waits -= 1;
        Some((arrived, segment))
    }

    fn pass(&mut self, now: Time, segment: &Segment) {
        self.class(now, segment);
    }

    fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.dropped.pop_front().map(|segment| (segment, Cause::Full))
    }

    fn oldest(&self) -> Time {
        self.short.oldest().min(self.long.oldest())
    }

    fn remove_oldest(&mut self, _: Time) -> Option<Segment> {
        let is_long = self.long.oldest() < self.short.oldest();
        let (_, segment) = if is_long { self.long.pop()? } else { self.short.pop()? };
        let of = self.of(segment.flow);
        *if is_long { &mut of.long } else { &mut of.short } -= 1;
        Some(segment)
    }

    fn remove(&mut self, _: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment> {
        let is_long = self.of(flow).long > 0;
        let segment = if is_long { self.long.remove(choose)? } else { self.short.remove(choose)? };
        let of = self.of(segment.flow);
        *if is_long { &mut of.long } else { &mut of.short } -= 1;
        Some(segment)
    }

    fn waiting(&self, _: FlowId) -> Load {
        self.load()
    }

    fn load(&self) -> Load {
        self.short.load() + self.long.load()
    }

    fn together(&self, _: FlowId, _: FlowId) -> bool {
        true
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }

    fn assign(&mut self, _: FlowId, _: u32) {}

    fn forget(&mut self, flow: FlowId) {
        if let Some(of) = self.flows.get_mut(flow.index()) {
            of.account = Account::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    /// A queue in which flows are long beyond 3 packets.
    fn queue(packets: u32, long: f64) -> ShortFirst {
        let config = ShortFirstConfig { bytes: Size::Bytes(3000), ..ShortFirstConfig::default() };
        ShortFirst::new(Capacity::Packets(packets), config.rule(), long)
    }

    fn segment(flow: u32, seq: u32) -> Segment {
        Segment::data(FlowId(flow), Seq(seq), 960, 40)
    }

    fn put(queue: &mut ShortFirst, flow: u32, seqs: impl IntoIterator<Item = u32>) {
        seqs.into_iter().for_each(|seq| queue.enqueue(Time::ZERO, &segment(flow, seq), Load::NONE).unwrap());
    }

    /// Flow and number of each packet in order of service.
    fn order(queue: &mut ShortFirst) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| queue.dequeue(Time::ZERO)).map(|(_, s)| (s.flow.0, s.seq.0)).collect()
    }

    #[test]
    fn what_a_flow_sends_that_has_sent_little_goes_first() {
        let mut queue = queue(100, 0.0);
        put(&mut queue, 0, 0..6);
        put(&mut queue, 1, 0..2);
        // The first three packets of flow 0 arrived while it was short.
        let first = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)];
        assert_eq!(order(&mut queue), [&first[..], &[(0, 3), (0, 4), (0, 5)]].concat());
        assert_eq!((queue.load(), queue.is_empty()), (Load::NONE, true));
    }

    #[test]
    fn a_flow_is_short_again_after_a_quiet_second_but_overtakes_nothing_of_its_own() {
        let mut queue = queue(100, 0.0);
        put(&mut queue, 0, 0..5);
        put(&mut queue, 1, 0..5);
        let later = Time::ZERO + Span::from_secs(1);
        queue.enqueue(later, &segment(1, 5), Load::NONE).unwrap();
        for _ in 0..10 {
            queue.dequeue(later);
        }
        assert_eq!(order(&mut queue), [(1, 5)], "it went last");
        put(&mut queue, 0, 5..7);
        queue.enqueue(later + Span::from_secs(1), &segment(1, 6), Load::NONE).unwrap();
        assert_eq!(order(&mut queue), [(1, 6), (0, 5), (0, 6)]);
    }

    #[test]
    fn long_flows_have_their_share_while_short_ones_wait() {
        let mut queue = queue(1000, 0.25);
        put(&mut queue, 0, 0..103);
        (1..100).for_each(|flow| put(&mut queue, flow, 0..1));
        let order = order(&mut queue);
        let long = order[3..83].iter().filter(|(flow, _)| *flow == 0).count();
        assert!(long.abs_diff(20) <= 1, "a quarter of 80: {long}");
        assert!(
            order.iter().filter(|(flow, _)| *flow == 0).map(|(_, seq)| *seq).eq(0..103),
            "in their order"
        );
    }

    #[test]
    fn the_share_of_long_flows_takes_no_packet_before_an_earlier_one_of_its_flow() {
        let mut queue = queue(1000, 0.9);
        put(&mut queue, 0, 0..20);
        assert!(order(&mut queue).iter().map(|(_, seq)| *seq).eq(0..20));
    }

    #[test]
    fn a_short_flow_pushes_out_the_oldest_of_long_ones_and_a_long_one_is_refused() {
        let mut queue = queue(8, 0.0);
        put(&mut queue, 0, 0..8);
        assert_eq!(queue.enqueue(Time::ZERO, &segment(0, 8), Load::NONE), Err(Cause::Full));
        put(&mut queue, 1, 0..2);
        let dropped: Vec<_> =
            std::iter::from_fn(|| queue.poll_dropped()).map(|(s, _)| (s.flow.0, s.seq.0)).collect();
        assert_eq!(dropped, [(0, 3), (0, 4)]);
        put(&mut queue, 2, 0..3);
        assert_eq!(
            queue.enqueue(Time::ZERO, &segment(3, 0), Load::NONE),
            Err(Cause::Full),
            "all are of short flows"
        );
        assert_eq!(queue.load().packets, 8);
    }

    #[test]
    fn what_goes_to_the_front_goes_before_the_others_of_its_flow() {
        let mut queue = queue(100, 0.0);
        put(&mut queue, 0, 1..5);
        queue.put(Time::ZERO, &segment(0, 0), Load::NONE, Place::Front).unwrap();
        assert_eq!(order(&mut queue), [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]);
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        use ackclock_core::Config;
        let config = ShortFirstConfig { long: 1.5, ..ShortFirstConfig::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "long: 1.5 is not 0 to 1");
        let config = ShortFirstConfig { bytes: Size::Packets(3), ..ShortFirstConfig::default() };
        assert!(config.check().unwrap_err().to_string().starts_with("bytes: 3p is not in bytes"));
    }
}
