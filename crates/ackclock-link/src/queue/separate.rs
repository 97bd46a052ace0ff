//! # Separate queues
//!
//! ## Source
//! Source: CR02 section 6.2: each of several flows has its own queue. The queues are served by Deficit Round Robin,
//! Shreedhar and Varghese, SIGCOMM 1995, in the form of RFC 8290 section 4.2.
//!
//! ## What it does
//! Keeps one queue of any discipline per flow or user, each with the complete capacity, and serves non-empty queues in
//! turn, by bytes. A queue may send while it has credit; when its credit is used up, its turn ends and it gets a
//! quantum of 1514 bytes.
//!
//! ## Differences from the source
//! DRR waits until the credit covers the packet at the head. In this implementation the credit may become negative, so
//! that the size of the packet need not be known. DRR and this variant give equal shares in the long run.
//!
//! ## Validation
//! A unit test checks equal shares in bytes for packets of unequal size.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyQueue, Choose, Place, Queue};
use crate::{Capacity, Cause, Load};

/// Assignment of packets to queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// All packets share one queue.
    #[default]
    Shared,
    /// Each flow has a separate queue; the queues are served round robin by bytes.
    Flow,
    /// Each user has a separate queue; the queues are served round robin by bytes.
    User,
}

/// Function that builds the queue with a given number.
type Factory = Box<dyn Fn(u32) -> AnyQueue + Send>;

impl Per {
    /// Builds one queue with number 0, or one queue for each flow or user, each with this capacity.
    pub(super) fn build(
        self,
        capacity: Capacity,
        factory: impl Fn(u32) -> AnyQueue + Send + 'static,
    ) -> AnyQueue {
        match self {
            Self::Shared => factory(0),
            Self::Flow | Self::User => Separate::new(self, capacity, Box::new(factory)).any(),
        }
    }
}

/// One queue for each flow or user.
pub struct Separate {
    per: Per,
    capacity: Capacity,
    factory: Factory,
    parts: Vec<Option<Part>>,
    /// Numbers of the subqueues in order of service.
    turns: VecDeque<u32>,
    /// User of each flow, if a user was assigned.
    users: Vec<u32>,
    /// Number of segments in all subqueues.
    held: usize,
    dropped: VecDeque<(Segment, Cause)>,
}

struct Part {
    queue: AnyQueue,
    credit: i64,
    /// Whether the subqueue is listed in `turns`.
    active: bool,
    /// Set when the flow has ended: its subqueue is removed once it is empty.
    ended: bool,
}

const QUANTUM: i64 = 1514;

impl Separate {
    fn new(per: Per, capacity: Capacity, factory: Factory) -> Self {
        Self {
            per,
            capacity,
            factory,
            parts: Vec::new(),
            turns: VecDeque::new(),
            users: Vec::new(),
            held: 0,
            dropped: VecDeque::new(),
        }
    }

    /// Number of the subqueue that serves `flow`.
    fn number(&self, flow: FlowId) -> u32 {
        match self.per {
            Per::Shared => 0,
            Per::Flow => flow.0,
            Per::User => self.users.get(flow.index()).copied().unwrap_or(0),
        }
    }

    /// Returns the subqueue with this number, and creates it on first use.
    fn part(&mut self, number: u32) -> &mut Part {
        let index = number as usize;
        if self.parts.len() <= index {
            self.parts.resize_with(index + 1, || None);
        }
        let factory = &self.factory;
        self.parts[index].get_or_insert_with(|| Part {
            queue: factory(number),
            credit: 0,
            active: false,
            ended: false,
        })
    }

    fn collect_dropped(&mut self, number: u32) {
        while let Some(dropped) = self.part(number).queue.poll_dropped() {
            self.held -= 1;
            self.dropped.push_back(dropped);
        }
    }

    /// Arrival time of the head packet of a subqueue that arrived first.
    fn oldest_of(&self, number: u32) -> Option<Time> {
        self.parts.get(number as usize)?.as_ref().map(|part| part.queue.oldest())
    }

    /// Removes an empty subqueue from the round.
    fn retire(&mut self, number: u32) {
        self.turns.pop_front();
        let part = self.part(number);
        part.active = false;
        if part.ended {
            self.parts[number as usize] = None;
        }
    }
}

impl Queue for Separate {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        let number = self.number(segment.flow);
        let part = self.part(number);
        part.queue.put(now, segment, unqueued, place)?;
        part.ended = false;
        if !std::mem::replace(&mut part.active, true) {
            part.credit = QUANTUM;
            self.turns.push_back(number);
        }
        self.held += 1;
        self.collect_dropped(number);
        Ok(())
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        while let Some(&number) = self.turns.front() {
            let part = self.part(number);
            if part.credit <= 0 {
                part.credit += QUANTUM;
                self.turns.rotate_left(1);
                continue;
            }
            let next = part.queue.dequeue(now);
            self.collect_dropped(number);
            let Some((arrived, segment)) = next else {
                self.retire(number);
                continue;
            };
            self.part(number).credit -= i64::from(segment.wire_bytes());
            self.held -= 1;
            return Some((arrived, segment));
        }
        None
    }

    fn pass(&mut self, now: Time, segment: &Segment) {
        let number = self.number(segment.flow);
        self.part(number).queue.pass(now, segment);
    }

    fn is_empty(&self) -> bool {
        self.held == 0
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.dropped.pop_front()
    }

    fn oldest(&self) -> Time {
        self.turns.iter().filter_map(|&number| self.oldest_of(number)).min().unwrap_or(Time::NEVER)
    }

    // A subqueue that is now empty leaves the round at its turn.
    fn remove_oldest(&mut self, now: Time) -> Option<Segment> {
        let number = self.turns.iter().copied().min_by_key(|&number| self.oldest_of(number))?;
        let segment = self.part(number).queue.remove_oldest(now)?;
        self.held -= 1;
        Some(segment)
    }

    fn remove(&mut self, now: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment> {
        let number = self.number(flow);
        let segment = self.part(number).queue.remove(now, flow, choose)?;
        self.held -= 1;
        Some(segment)
    }

    fn waiting(&self, flow: FlowId) -> Load {
        let part = self.parts.get(self.number(flow) as usize).and_then(Option::as_ref);
        part.map_or(Load::NONE, |part| part.queue.waiting(flow))
    }

    fn load(&self) -> Load {
        self.parts.iter().flatten().fold(Load::NONE, |sum, part| sum + part.queue.load())
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }

    fn together(&self, a: FlowId, b: FlowId) -> bool {
        self.number(a) == self.number(b)
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        if self.users.len() <= flow.index() {
            self.users.resize(flow.index() + 1, 0);
        }
        self.users[flow.index()] = user;
    }

    fn forget(&mut self, flow: FlowId) {
        // A user's queue is kept for the other flows of the user.
        if self.per != Per::Flow {
            return;
        }
        if let Some(slot) = self.parts.get_mut(flow.index()) {
            match slot {
                Some(part) if part.active => part.ended = true,
                _ => *slot = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::DropTail;
    use ackclock_core::Seq;

    fn segment(flow: u32, bytes: u16) -> Segment {
        Segment::data(FlowId(flow), Seq(0), bytes - 40, 40)
    }

    fn separate(per: Per, packets: u32) -> AnyQueue {
        let capacity = Capacity::Packets(packets);
        per.build(capacity, move |_| DropTail::new(capacity).any())
    }

    #[test]
    fn flows_get_equal_bytes_whatever_their_packets() {
        let mut queue = separate(Per::Flow, 1000);
        for _ in 0..1000 {
            queue.enqueue(Time::ZERO, &segment(0, 1500), Load::NONE).unwrap();
            queue.enqueue(Time::ZERO, &segment(1, 100), Load::NONE).unwrap();
        }
        let mut bytes = [0u32; 2];
        for _ in 0..500 {
            let (_, segment) = queue.dequeue(Time::ZERO).unwrap();
            bytes[segment.flow.index()] += segment.wire_bytes();
        }
        // Each is ahead by at most a quantum and a packet.
        assert!(bytes[0].abs_diff(bytes[1]) <= 1514 + 1500, "{bytes:?}");
    }

    #[test]
    fn each_flow_has_the_whole_capacity_and_sees_only_its_own() {
        let mut queue = separate(Per::Flow, 2);
        for flow in [0, 0, 1] {
            queue.enqueue(Time::ZERO, &segment(flow, 1000), Load::NONE).unwrap();
        }
        assert!(queue.enqueue(Time::ZERO, &segment(0, 1000), Load::NONE).is_err());
        assert_eq!(queue.waiting(FlowId(1)), Load { packets: 1, bytes: 1000 });
        assert_eq!(queue.waiting(FlowId(7)), Load::NONE);
        assert_eq!(queue.capacity(FlowId(7)), Capacity::Packets(2));
    }

    #[test]
    fn flows_of_a_user_share_his_queue() {
        let mut queue = separate(Per::User, 2);
        for (flow, user) in [(0, 0), (1, 1), (2, 1)] {
            queue.assign(FlowId(flow), user);
        }
        queue.enqueue(Time::ZERO, &segment(1, 1000), Load::NONE).unwrap();
        queue.enqueue(Time::ZERO, &segment(2, 1000), Load::NONE).unwrap();
        assert!(queue.enqueue(Time::ZERO, &segment(1, 1000), Load::NONE).is_err());
        assert!(queue.enqueue(Time::ZERO, &segment(0, 1000), Load::NONE).is_ok());
        assert!(queue.together(FlowId(1), FlowId(2)) && !queue.together(FlowId(0), FlowId(1)));
    }

    #[test]
    fn a_flow_that_ended_gives_its_queue_back_once_it_is_drained() {
        let mut queue = separate(Per::Flow, 2);
        queue.enqueue(Time::ZERO, &segment(0, 1000), Load::NONE).unwrap();
        queue.forget(FlowId(0));
        assert!(queue.dequeue(Time::ZERO).is_some());
        assert!(queue.dequeue(Time::ZERO).is_none());
        assert!(queue.is_empty());
    }
}
