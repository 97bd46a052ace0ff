//! Packets under way, by time of arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_core::{FlowId, Segment, Time};

use crate::ring::Ring;

/// Packets under way; equal times in the order in which they were put in.
///
/// Nearly every packet arrives behind all others: those stand in a ring. One that overtakes goes into a heap beside it.
#[derive(Debug)]
pub(crate) struct Flight {
    ring: Ring<(Time, Segment)>,
    ahead: BinaryHeap<Reverse<Overtaker>>,
    /// Packets that have overtaken so far.
    overtaken: u64,
    due: Time,
}

/// A packet that arrives before one that was put in earlier.
#[derive(Debug)]
struct Overtaker {
    arrives: Time,
    number: u64,
    segment: Segment,
}

impl Default for Flight {
    fn default() -> Self {
        Self { ring: Ring::default(), ahead: BinaryHeap::new(), overtaken: 0, due: Time::NEVER }
    }
}

impl Flight {
    /// When the next packet arrives; [`Time::NEVER`] where none is under way.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Puts a packet in, behind all that arrive no later.
    #[inline]
    pub(crate) fn put(&mut self, arrives: Time, segment: &Segment) {
        self.due = self.due.min(arrives);
        match self.ring.back() {
            Some(&(last, _)) if last > arrives => self.put_ahead(arrives, segment),
            _ => self.ring.push((arrives, *segment)),
        }
    }

    /// Takes the next packet out; [`due`](Self::due) says that there is one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Segment {
        let segment = *self.front();
        self.drop_front();
        segment
    }

    /// The next packet; [`due`](Self::due) says that there is one.
    #[inline]
    pub(crate) fn front(&self) -> &Segment {
        let overtaker = if self.ahead.is_empty() { None } else { self.overtaker() };
        overtaker.unwrap_or_else(|| {
            let (_, segment) = self.ring.front().expect("a packet is due only where there is one");
            segment
        })
    }

    /// Takes the next packet away.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        if self.ahead.is_empty() {
            self.ring.drop_front();
            self.due = self.ring.front().map_or(Time::NEVER, |&(time, _)| time);
        } else {
            self.drop_earlier();
        }
    }

    /// Takes out the last packet of `flow` that arrives at `arrives`.
    pub(crate) fn remove(&mut self, arrives: Time, flow: FlowId) -> Option<Segment> {
        self.remove_all(std::iter::once((arrives, flow))).pop()
    }

    /// The same for many: each takes out the last that is left. All at once, so that a long queue costs no more than sorting
    /// it.
    pub(crate) fn remove_all(&mut self, wanted: impl Iterator<Item = (Time, FlowId)>) -> Vec<Segment> {
        let mut all: Vec<_> = self.iter().map(|(time, segment)| (time, Some(*segment))).collect();
        let mut removed = Vec::new();
        for (arrives, flow) in wanted {
            let end = all.partition_point(|&(time, _)| time <= arrives);
            let same = all[..end].iter_mut().rev().take_while(|(time, _)| *time == arrives);
            let mut of_flow = same
                .map(|(_, segment)| segment)
                .filter(|segment| segment.is_some_and(|one| one.flow == flow));
            removed.extend(of_flow.next().and_then(Option::take));
        }
        self.ahead.clear();
        self.ring = all.into_iter().filter_map(|(time, segment)| Some((time, segment?))).collect();
        self.note_due();
        removed
    }

    /// The packets under way and when they arrive, in that order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, &Segment)> {
        let mut all: Vec<_> = self.ring.iter().map(|(time, segment)| (*time, 0, segment)).collect();
        all.extend(self.ahead.iter().map(|Reverse(one)| (one.arrives, 1 + one.number, &one.segment)));
        all.sort_by_key(|&(time, number, _)| (time, number));
        all.into_iter().map(|(time, _, segment)| (time, segment))
    }

    #[cold]
    fn put_ahead(&mut self, arrives: Time, segment: &Segment) {
        self.ahead.push(Reverse(Overtaker { arrives, number: self.overtaken, segment: *segment }));
        self.overtaken += 1;
    }

    /// The packet at the top of the heap, where it arrives before that at the front of the ring. Of equal times the ring's
    /// was put in first: what came into the ring after an overtaker arrives later than that.
    fn overtaker(&self) -> Option<&Segment> {
        let first = self.ring.front().map_or(Time::NEVER, |&(time, _)| time);
        self.ahead.peek().filter(|Reverse(one)| one.arrives < first).map(|Reverse(one)| &one.segment)
    }

    fn drop_earlier(&mut self) {
        if self.overtaker().is_some() {
            self.ahead.pop();
        } else {
            self.ring.drop_front();
        }
        self.note_due();
    }

    fn note_due(&mut self) {
        let first = self.ring.front().map_or(Time::NEVER, |&(time, _)| time);
        self.due = self.ahead.peek().map_or(first, |Reverse(one)| one.arrives.min(first));
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
    use ackclock_core::Seq;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is kept sorted: by time, and by order of entry among equal times.
        #[test]
        fn packets_leave_by_time_and_among_equals_as_they_came(operations in prop::collection::vec((0u64..12, prop::bool::ANY), 1..200)) {
            let (mut flight, mut list) = (Flight::default(), Vec::<(Time, u32)>::new());
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
