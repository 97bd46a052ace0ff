//! The packets of a flow in the queue and in transmission, looked up by sequence number in logarithmic time.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::Seq;

/// Sequence number of a packet's first byte, and of the byte after its last byte.
type Packet = (Seq, Seq);

/// Multiset of the packets of a flow that are in the queue or in transmission: the multiset may contain a
/// retransmission more than once.
#[derive(Debug, Default)]
pub(super) struct Inside {
    /// Packets in sequence order: each packet starts at or beyond the end of the packet before it.
    in_order: VecDeque<Packet>,
    /// Retransmitted or overtaken packets, each with its number of copies in the set.
    others: BTreeMap<(u32, u32), usize>,
    len: usize,
}

impl Inside {
    /// Number of packets in the queue and in transmission.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an arriving packet to the set.
    pub(super) fn add(&mut self, packet: Packet) {
        self.len += 1;
        if self.in_order.back().is_none_or(|last| last.1.at_or_before(packet.0)) {
            self.in_order.push_back(packet);
        } else {
            *self.others.entry(key(packet)).or_default() += 1;
        }
    }

    /// Removes a departing packet from the set. A packet that arrived before the flow was observed is ignored.
    pub(super) fn remove(&mut self, packet: Packet) {
        if let Some(at) = self.at(packet) {
            self.in_order.remove(at);
        } else if let Some(times) = self.others.get_mut(&key(packet)) {
            *times -= 1;
            if *times == 0 {
                self.others.remove(&key(packet));
            }
        } else {
            return;
        }
        self.len -= 1;
    }

    /// Removes the packets that end at or before `end`.
    pub(super) fn remove_until(&mut self, end: Seq) {
        while self.in_order.front().is_some_and(|first| first.1.at_or_before(end)) {
            self.in_order.pop_front();
            self.len -= 1;
        }
        while let Some(first) = self.first_of_others(end).filter(|first| Seq(first.1).at_or_before(end)) {
            self.len -= self.others.remove(&first).unwrap_or_default();
        }
    }

    /// The first of the other packets in sequence order, which wraps half of the numbers away from `near`.
    fn first_of_others(&self, near: Seq) -> Option<(u32, u32)> {
        let farthest = near.0.wrapping_add(1 << 31);
        let first = self.others.range((farthest, 0)..).next().or_else(|| self.others.first_key_value());
        first.map(|(packet, _)| *packet)
    }

    /// Removes all packets from the set.
    pub(super) fn clear(&mut self) {
        self.in_order.clear();
        self.others.clear();
        self.len = 0;
    }

    /// Whether `packet` is in the queue or in transmission.
    pub(super) fn contains(&self, packet: Packet) -> bool {
        self.at(packet).is_some() || self.others.contains_key(&key(packet))
    }

    /// Position of `packet` among the packets in sequence order. A packet is usually the first, unless the queue drops
    /// a packet further back.
    fn at(&self, packet: Packet) -> Option<usize> {
        if self.in_order.front() == Some(&packet) {
            return Some(0);
        }
        let at = self.in_order.partition_point(|other| {
            #[cfg(test)]
            tests::look();
            other.0.before(packet.0)
        });
        self.in_order.get(at).filter(|other| **other == packet).map(|_| at)
    }
}

const fn key(packet: Packet) -> (u32, u32) {
    (packet.0.0, packet.1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Counts one comparison with a packet.
    pub(super) fn look() {
        LOOKS.set(LOOKS.get() + 1);
    }

    fn packet(number: u32) -> Packet {
        (Seq(number * 1000), Seq(number * 1000 + 1000))
    }

    proptest! {
        #[test]
        fn packets_are_counted_as_in_a_list_that_is_looked_through(ops in prop::collection::vec((0u8..3, 0u32..12), 1..80)) {
            let (mut inside, mut list) = (Inside::default(), Vec::new());
            for (op, number) in ops {
                let packet = packet(number);
                if op == 0 {
                    inside.remove(packet);
                    if let Some(at) = list.iter().position(|other| *other == packet) {
                        list.remove(at);
                    }
                } else {
                    inside.add(packet);
                    list.push(packet);
                }
                prop_assert_eq!(inside.len(), list.len());
                prop_assert_eq!(inside.contains(packet), list.contains(&packet));
            }
        }
    }

    #[test]
    fn what_ends_at_or_before_an_ack_is_removed_with_its_copies() {
        let mut inside = Inside::default();
        [0, 1, 1, 2, 3, 3].into_iter().for_each(|number| inside.add(packet(number)));
        inside.remove_until(Seq(3000));
        assert_eq!((inside.len(), inside.contains(packet(2)), inside.contains(packet(3))), (2, false, true));
        inside.remove_until(Seq(3500));
        assert_eq!(inside.len(), 2, "an ACK within a packet");
        inside.remove_until(Seq(4000));
        assert_eq!(inside.len(), 0);
        // Retransmissions on both sides of the last sequence number.
        let before = (Seq(u32::MAX - 999), Seq(0));
        [packet(1), packet(0), before].into_iter().for_each(|packet| inside.add(packet));
        inside.remove_until(Seq(0));
        assert_eq!((inside.len(), inside.contains(before)), (2, false));
        inside.remove_until(Seq(2000));
        assert_eq!(inside.len(), 0);
    }

    #[test]
    fn a_packet_that_is_sent_again_is_found_in_a_large_queue_as_soon_as_in_a_small_one() {
        let looks = |packets: u32| {
            let mut inside = Inside::default();
            (0..packets).for_each(|number| inside.add(packet(number)));
            LOOKS.set(0);
            for number in packets - 100..packets {
                assert!(inside.contains(packet(number)));
                inside.add(packet(number));
                inside.remove(packet(number));
                inside.remove(packet(packets + number));
            }
            LOOKS.get()
        };
        let (few, many) = (looks(1000), looks(60_000));
        assert!(many <= 2 * few, "{few} looks in a queue of 1000, {many} in one of 60 000");
    }
}
