//! Packets under way, by time of arrival.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use ackclock_core::{FlowId, Segment, Time};

use crate::packets::{Packets, Whole};

/// Packets under way; equal times in the order in which they were put in.
///
/// Nearly every packet arrives behind all others: those stand in a queue. One that overtakes goes into a heap beside it.
#[derive(Debug)]
pub(crate) struct Flight<P> {
    packets: P,
    ahead: BinaryHeap<Reverse<Overtaker>>,
    /// Packets that have overtaken so far.
    overtaken: u64,
    /// When the last packet that was put into the queue arrives.
    last: Time,
    due: Time,
}

/// A packet that arrives before one that was put in earlier.
#[derive(Debug)]
struct Overtaker {
    arrives: Time,
    number: u64,
    segment: Segment,
}

impl<P: Packets> Default for Flight<P> {
    fn default() -> Self {
        Self {
            packets: P::default(),
            ahead: BinaryHeap::new(),
            overtaken: 0,
            last: Time::ZERO,
            due: Time::NEVER,
        }
    }
}

impl<P: Packets> Flight<P> {
    /// When the next packet arrives; [`Time::NEVER`] where none is under way.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Puts a packet in, behind all that arrive no later.
    #[inline(always)]
    pub(crate) fn put(&mut self, arrives: Time, segment: &Segment) {
        self.due = self.due.min(arrives);
        // Where the queue is empty the last one has arrived, which nothing that comes now did before.
        if arrives < self.last {
            self.put_ahead(arrives, segment);
            return;
        }
        self.last = arrives;
        self.packets.push(arrives, segment);
    }

    /// Takes the next packet out; [`due`](Self::due) says that there is one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Segment {
        if !self.ahead.is_empty() {
            return self.pop_earlier();
        }
        let segment = self.packets.pop();
        self.due = self.packets.first().unwrap_or(Time::NEVER);
        segment
    }

    /// Takes out the last packet of `flow`.
    pub(crate) fn remove_last_of(&mut self, flow: FlowId) -> Option<Segment> {
        self.remove_last_of_each(&[flow]).pop()
    }

    /// The same for many flows, a packet for each time that one is named: of those packets the first named is the last to
    /// arrive. All at once, so that a long queue costs no more than sorting it.
    pub(crate) fn remove_last_of_each(&mut self, flows: &[FlowId]) -> Vec<Segment> {
        let mut wanted = BTreeMap::<FlowId, usize>::new();
        flows.iter().for_each(|&flow| *wanted.entry(flow).or_default() += 1);
        let mut removed = BTreeMap::<FlowId, VecDeque<Segment>>::new();
        let mut kept: Vec<_> = self.iter().collect();
        kept.reverse();
        kept.retain(|(_, segment)| match wanted.get_mut(&segment.flow) {
            Some(left @ 1..) => {
                *left -= 1;
                removed.entry(segment.flow).or_default().push_back(*segment);
                false
            }
            _ => true,
        });
        *self = Self::default();
        kept.iter().rev().for_each(|(arrives, segment)| self.put(*arrives, segment));
        flows.iter().filter_map(|flow| removed.get_mut(flow)?.pop_front()).collect()
    }

    /// The packets under way and when they arrive, in that order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, Segment)> {
        let mut all: Vec<_> = self.packets.iter().map(|(time, segment)| (time, 0, segment)).collect();
        all.extend(self.ahead.iter().map(|Reverse(one)| (one.arrives, 1 + one.number, one.segment)));
        all.sort_by_key(|&(time, number, _)| (time, number));
        all.into_iter().map(|(time, _, segment)| (time, segment))
    }

    #[cold]
    fn put_ahead(&mut self, arrives: Time, segment: &Segment) {
        self.ahead.push(Reverse(Overtaker { arrives, number: self.overtaken, segment: *segment }));
        self.overtaken += 1;
    }

    /// The packet at the top of the heap, where it arrives before the first in the queue. Of equal times the one in the
    /// queue was put in first: what came into it after an overtaker arrives later than that.
    fn overtaker(&self) -> Option<&Segment> {
        let first = self.packets.first().unwrap_or(Time::NEVER);
        self.ahead.peek().filter(|Reverse(one)| one.arrives < first).map(|Reverse(one)| &one.segment)
    }

    #[inline(never)]
    fn pop_earlier(&mut self) -> Segment {
        let segment = match self.overtaker() {
            Some(&segment) => {
                self.ahead.pop();
                segment
            }
            None => self.packets.pop(),
        };
        self.note_due();
        segment
    }

    fn note_due(&mut self) {
        let first = self.packets.first().unwrap_or(Time::NEVER);
        self.due = self.ahead.peek().map_or(first, |Reverse(one)| one.arrives.min(first));
    }
}

impl Flight<Whole> {
    /// The next packet, in its place; [`due`](Self::due) says that there is one.
    #[inline(always)]
    pub(crate) fn front(&self) -> &Segment {
        let overtaker = if self.ahead.is_empty() { None } else { self.overtaker() };
        overtaker.unwrap_or_else(|| {
            let (_, segment) = self.packets.front().expect("a packet is due only where there is one");
            segment
        })
    }
}

impl Overtaker {
    fn key(&self) -> (Time, u64) {
        (self.arrives, self.number)
    }
}

impl PartialEq for Overtaker {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Overtaker {}

impl PartialOrd for Overtaker {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Overtaker {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Parted;
    use ackclock_core::Seq;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is kept sorted: by time, and by order of entry among equal times.
        #[test]
        fn packets_leave_by_time_and_among_equals_as_they_came(operations in prop::collection::vec((0u64..12, prop::bool::ANY), 1..200)) {
            let (mut flight, mut list) = (Flight::<Parted>::default(), Vec::<(Time, u32)>::new());
            for (number, (nanos, takes)) in operations.into_iter().enumerate() {
                if takes && !list.is_empty() {
                    prop_assert_eq!(flight.due(), list[0].0);
                    prop_assert_eq!(flight.pop().seq, Seq(list.remove(0).1));
                } else {
                    let (arrives, number) = (Time::from_nanos(nanos), number as u32);
                    flight.put(arrives, &Segment::data(FlowId(0), Seq(number), 960, 40));
                    let at = list.partition_point(|&(time, _)| time <= arrives);
                    list.insert(at, (arrives, number));
                }
                let under_way: Vec<_> = flight.iter().map(|(time, segment)| (time, segment.seq.0)).collect();
                prop_assert_eq!(&under_way, &list);
            }
        }
    }
}
