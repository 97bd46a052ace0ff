//! Packets in flight, ordered by arrival time.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{FlowId, Ring, Segment, Time, Wakes};

use super::packets::{Packets, Parted, Whole};

/// Packets in flight, ordered by arrival time. Packets with equal arrival times keep the order of insertion; if there
/// are late packets, packets in lanes come first.
///
/// Nearly every packet arrives after all other packets and goes into a queue. A packet that overtakes others goes into
/// a separate lane. A late packet, before which other packets are known to arrive, also goes into a lane: in the queue
/// it would turn all these packets into overtaking packets.
#[derive(Debug)]
pub(crate) struct Flight<P> {
    queue: P,
    /// Arrival time of the last packet in the queue.
    last: Time,
    side_lanes: Lanes<P>,
    /// Whether late packets are in flight. Among packets with equal arrival times, a late packet was inserted before
    /// the packets in the queue, and an overtaking packet after the packets in the queue.
    has_late: bool,
    due: Time,
}

/// Lanes for packets outside the queue: a packet goes into the first lane in which it arrives after all other packets.
/// If a burst of a flow leaves packet by packet between other flows' packets, there are about as many lanes as packets
/// in the burst. With delays drawn for each packet, the number of lanes is about twice the square root of the number of
/// packets in flight.
#[derive(Debug)]
struct Lanes<P> {
    lanes: Vec<P>,
    /// Arrival time of the last packet in each lane; the times decrease from lane to lane.
    lasts: Vec<Time>,
    /// Arrival time of the first packet in each lane. Among packets with equal times, the packet in the lower lane was
    /// inserted first.
    firsts: Wakes,
}

impl<P: Packets> Default for Flight<P> {
    fn default() -> Self {
        let side_lanes = Lanes { lanes: Vec::new(), lasts: Vec::new(), firsts: Wakes::default() };
        Self { queue: P::default(), last: Time::ZERO, side_lanes, has_late: false, due: Time::NEVER }
    }
}

impl<P: Packets> Flight<P> {
    /// Time of the next arrival; [`Time::NEVER`] if no packet is in flight.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Inserts a packet that arrives at `arrives`.
    #[inline(always)]
    pub(crate) fn put(&mut self, arrives: Time, segment: &Segment) {
        self.due = self.due.min(arrives);
        // If the queue is empty, its last packet has already arrived, and no new packet can arrive before that time.
        if arrives < self.last {
            self.side_lanes.put(arrives, segment);
            return;
        }
        self.last = arrives;
        self.queue.push(arrives, segment);
    }

    /// Inserts a late packet: packets that are inserted later may arrive before it.
    #[inline]
    pub(crate) fn put_late(&mut self, arrives: Time, segment: &Segment) {
        self.due = self.due.min(arrives);
        self.has_late = true;
        self.side_lanes.put(arrives, segment);
    }

    /// Removes the next packet, from a lane or the queue.
    #[inline(never)]
    fn take_either<T>(&mut self, out_of: impl FnOnce(&mut P) -> T) -> T {
        let taken = if self.is_in_lane() { self.side_lanes.take(out_of) } else { out_of(&mut self.queue) };
        self.due = self.first().min(self.side_lanes.due());
        taken
    }

    /// Whether the next packet to arrive is in a lane, not in the queue.
    #[inline]
    fn is_in_lane(&self) -> bool {
        let (lane, queue) = (self.side_lanes.due(), self.first());
        lane < queue || lane == queue && self.has_late
    }

    #[inline(always)]
    fn first(&self) -> Time {
        self.queue.first().unwrap_or(Time::NEVER)
    }

    /// Removes and returns the last packet of `flow`.
    pub(crate) fn remove_last_of(&mut self, flow: FlowId) -> Option<Segment> {
        self.remove_last_of_each(&[flow]).pop()
    }

    /// Removes the last packets of many flows, one packet for each time a flow is listed. The packet of the flow listed
    /// first arrives last. One pass handles all flows, so the cost for a long queue is at most the cost of sorting the
    /// queue.
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

    /// Returns the packets in flight with their arrival times, in order of arrival.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, Segment)> {
        let mut all: Vec<_> = self.queue.iter().map(|packet| (self.has_late, packet)).collect();
        let in_lanes = self.side_lanes.lanes.iter().flat_map(P::iter);
        all.extend(in_lanes.map(|packet| (!self.has_late, packet)));
        // The packets in lanes are already in order.
        all.sort_by_key(|&(after, (time, _))| (time, after));
        all.into_iter().map(|(_, packet)| packet)
    }
}

impl Flight<Whole> {
    /// Returns the next packet to arrive; check [`due`](Self::due) first.
    #[inline(always)]
    pub(crate) fn front(&self) -> &Segment {
        let in_lane = self.side_lanes.due() != Time::NEVER && self.is_in_lane();
        let next = if in_lane { self.side_lanes.next() } else { &self.queue };
        let (_, segment) = next.front().expect("a packet is due only where there is one");
        segment
    }

    /// Flow of the packet at the distance `place` from the front of the queue; lanes are not considered.
    #[inline(always)]
    pub(crate) fn flow_at(&self, place: usize) -> Option<FlowId> {
        (place < self.queue.len()).then(|| self.queue.get(place).1.flow)
    }

    /// Removes the next packet to arrive.
    #[inline(always)]
    pub(crate) fn drop_front(&mut self) {
        if self.side_lanes.due() != Time::NEVER {
            return self.take_either(Ring::drop_front);
        }
        self.queue.drop_front();
        self.due = self.first();
    }
}

impl Flight<Parted> {
    /// Removes and returns the next packet to arrive; check [`due`](Self::due) first.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Segment {
        if self.side_lanes.due() != Time::NEVER {
            return self.take_either(Parted::pop);
        }
        let segment = self.queue.pop();
        self.due = self.first();
        segment
    }
}

impl<P: Packets> Lanes<P> {
    /// Time of the next arrival in a lane.
    #[inline]
    fn due(&self) -> Time {
        self.firsts.due()
    }

    #[inline(never)]
    fn put(&mut self, arrives: Time, segment: &Segment) {
        let number = self.lasts.partition_point(|&last| last > arrives);
        if number == self.lanes.len() {
            self.lanes.push(P::default());
            self.lasts.push(arrives);
            self.firsts.add();
        }
        self.lasts[number] = arrives;
        self.lanes[number].push(arrives, segment);
        self.firsts.hasten(number, arrives);
    }

    /// Removes the next packet to arrive from its lane.
    fn take<T>(&mut self, out_of: impl FnOnce(&mut P) -> T) -> T {
        let number = self.number_of_next();
        let taken = out_of(&mut self.lanes[number]);
        self.firsts.set(number, self.lanes[number].first());
        taken
    }

    /// Returns the lane of the next packet to arrive.
    fn next(&self) -> &P {
        &self.lanes[self.number_of_next()]
    }

    fn number_of_next(&self) -> usize {
        let (_, number) = self.firsts.first().expect("the caller checked that a lane has a packet");
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a list sorted by time, and by order of insertion at equal times.
        #[test]
        fn packets_leave_by_time_and_among_equals_as_they_came(operations in prop::collection::vec((0u64..12, prop::bool::ANY), 1..200)) {
            let (mut flight, mut list) = (Flight::<Parted>::default(), Vec::<(Time, u32)>::new());
            for (number, (nanos, takes)) in operations.into_iter().enumerate() {
                if takes && !list.is_empty() {
                    prop_assert_eq!(flight.due(), list[0].0);
                    prop_assert_eq!(flight.pop().seq, Seq(list.remove(0).1));
                } else {
                    let (arrives, number) = (Time::from_nanos(nanos), number as u32);
                    flight.put(arrives, &segment(number));
                    let at = list.partition_point(|&(time, _)| time <= arrives);
                    list.insert(at, (arrives, number));
                }
                let under_way: Vec<_> = flight.iter().map(|(time, segment)| (time, segment.seq.0)).collect();
                prop_assert_eq!(&under_way, &list);
            }
        }

        /// Also with late packets, which at equal times come first, like overtakers.
        #[test]
        fn late_packets_leave_before_those_of_the_queue(operations in prop::collection::vec((0u64..12, 0u8..3), 1..200)) {
            let (mut flight, mut list) = (Flight::<Whole>::default(), Vec::<(Time, bool, u32)>::new());
            flight.put_late(Time::ZERO, &segment(0));
            list.push((Time::ZERO, false, 0));
            let mut last = Time::ZERO;
            for (number, (nanos, what)) in (1u32..).zip(operations) {
                let arrives = Time::from_nanos(nanos);
                if what == 0 && !list.is_empty() {
                    prop_assert_eq!(flight.due(), list[0].0);
                    prop_assert_eq!(flight.front().seq, Seq(list.remove(0).2));
                    flight.drop_front();
                } else if what == 1 {
                    flight.put_late(arrives, &segment(number));
                    list.push((arrives, false, number));
                } else {
                    flight.put(arrives, &segment(number));
                    list.push((arrives, arrives >= last, number));
                    last = last.max(arrives);
                }
                list.sort_unstable();
                let under_way: Vec<_> = flight.iter().map(|(time, segment)| (time, segment.seq.0)).collect();
                prop_assert_eq!(under_way, list.iter().map(|&(time, _, number)| (time, number)).collect::<Vec<_>>());
            }
        }
    }

    fn segment(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number), 960, 40)
    }
}
