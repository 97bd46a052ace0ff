//! Queues of packets with one time per packet, in order of insertion.

use ackclock_core::{Head, Rest, Ring, Segment, Time, Timestamps};

/// Queue of packets with one time per packet.
pub(crate) trait Packets: Default {
    /// Time stored with the first packet of the queue.
    fn first(&self) -> Option<Time>;

    /// Appends a packet to the queue.
    fn push(&mut self, time: Time, segment: &Segment);

    /// Iterates over all packets with their times, in queue order.
    fn iter(&self) -> impl Iterator<Item = (Time, Segment)>;
}

/// Queue that stores each packet in one piece, which is fastest for the few packets on a wired path.
pub(crate) type Whole = Ring<(Time, Segment)>;

impl Packets for Whole {
    #[inline]
    fn first(&self) -> Option<Time> {
        self.front().map(|&(time, _)| time)
    }

    #[inline(always)]
    fn push(&mut self, time: Time, segment: &Segment) {
        let place = self.add();
        *place = (time, *segment);
    }

    fn iter(&self) -> impl Iterator<Item = (Time, Segment)> {
        Self::iter(self).copied()
    }
}

/// Queue that stores each packet in parts: a head, and the options if present. Most simulated packets have no options,
/// so a packet in parts needs less than half of the memory. With thousands of flows, packets use most of the memory.
#[derive(Debug, Default)]
pub(crate) struct Parted {
    heads: Ring<(Time, Head)>,
    /// Timestamp options of the queued packets that have this option, in queue order.
    timestamps: Ring<Timestamps>,
    rests: Ring<Rest>,
}

impl Parted {
    /// Inserts a packet at the front of the queue.
    pub(crate) fn push_front(&mut self, time: Time, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps() {
            self.timestamps.push_front(timestamps);
        }
        if let Some(rest) = segment.rest() {
            self.rests.push_front(rest);
        }
        self.heads.push_front((time, *segment.head()));
    }

    /// Removes the first packet.
    ///
    /// # Panics
    /// Panics if the queue is empty.
    // The return type is `Segment`, because an `Option<Segment>` would be copied field by field, the largest cost of
    // this function.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Segment {
        let (_, head) = self.heads.front().expect("the caller checked that there is a packet");
        let segment = if head.is_all() { Segment::of_head(*head) } else { self.with_more(*head) };
        self.heads.drop_front();
        segment
    }

    /// Removes the packet with this index. Every packet of the queue is moved.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Segment> {
        let mut removed = None;
        for number in 0..self.heads.len() {
            let time = self.first()?;
            let segment = self.pop();
            if number == index { removed = Some(segment) } else { self.push(time, &segment) }
        }
        removed
    }

    // The function is not inlined, so that a packet without options is copied in machine words.
    #[inline(never)]
    fn push_more(&mut self, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps() {
            self.timestamps.push(timestamps);
        }
        if let Some(rest) = segment.rest() {
            self.rests.push(rest);
        }
    }

    /// Returns the first packet, whose head is `head`, and removes its other parts from the queue.
    #[inline(never)]
    fn with_more(&mut self, head: Head) -> Segment {
        let timestamps = if head.has_timestamps() { take(&mut self.timestamps) } else { None };
        let rest = if head.has_rest() { take(&mut self.rests) } else { None };
        Segment::of(head, timestamps, rest)
    }
}

fn take<T: Copy + Default>(ring: &mut Ring<T>) -> Option<T> {
    let first = ring.front().copied();
    ring.drop_front();
    first
}

impl Packets for Parted {
    #[inline]
    fn first(&self) -> Option<Time> {
        self.heads.front().map(|&(time, _)| time)
    }

    #[inline(always)]
    fn push(&mut self, time: Time, segment: &Segment) {
        if !segment.head().is_all() {
            self.push_more(segment);
        }
        let place = self.heads.add();
        *place = (time, *segment.head());
    }

    fn iter(&self) -> impl Iterator<Item = (Time, Segment)> {
        let (mut stamps, mut rests) = (self.timestamps.iter(), self.rests.iter());
        self.heads.iter().map(move |(time, head)| {
            let timestamps = if head.has_timestamps() { stamps.next() } else { None };
            let rest = if head.has_rest() { rests.next() } else { None };
            (*time, Segment::of(*head, timestamps.copied(), rest.copied()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ackclock_core::{FlowId, SackBlock, Seq};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_leave_as_they_came_with_their_options(operations in prop::collection::vec(0u32..10, 1..400)) {
            let (mut packets, mut queue) = (Parted::default(), VecDeque::new());
            for (number, operation) in operations.into_iter().enumerate() {
                if operation >= 8 {
                    if let Some((_, segment)) = queue.pop_front() {
                        prop_assert_eq!(packets.pop(), segment);
                    }
                } else {
                    let number = number as u32;
                    let mut segment = Segment::data(FlowId(0), Seq(number), 960, 40);
                    if operation & 1 != 0 {
                        segment.push_sack(SackBlock { left: Seq(number), right: Seq(7) });
                    }
                    if operation & 2 != 0 {
                        segment.set_timestamps(Timestamps { value: number, echo: 7 });
                    }
                    let time = Time::from_nanos(number.into());
                    if operation & 4 != 0 {
                        packets.push_front(time, &segment);
                        queue.push_front((time, segment));
                    } else {
                        packets.push(time, &segment);
                        queue.push_back((time, segment));
                    }
                }
                prop_assert_eq!(packets.first(), queue.front().map(|one| one.0));
                prop_assert!(packets.iter().eq(queue.iter().copied()));
            }
        }
    }
}
