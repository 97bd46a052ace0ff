//! # Age limit
//!
//! ## Source
//! The discard timer of PDCP (3GPP TS 36.323 section 5.4, TS 38.323 section 5.3) and the timer-based SDU discard of UMTS
//! RLC (TS 25.322 section 9.7.3): a packet that was queued for a given time is discarded without being sent.
//!
//! ## What it does
//! The limit is added to a queue of any discipline. A packet leaves from the head of its subqueue as soon as it has been
//! queued for the limit, whether or not the link can send at that time. To the discipline, the packet has left without
//! being sent.
//!
//! ## Differences from the source
//! A packet behind the head stays until it is the head. Packets are in order of arrival, except behind a packet that was
//! inserted at the front.
//!
//! ## Validation
//! Unit tests compare drop times worked out by hand. The laws of all links and bearers run with an age limit.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Span, Time};
use delegate::delegate;

use super::{AnyQueue, Choose, Place, Queue};
use crate::{Capacity, Cause, Load};

/// A queue of any discipline that packets leave when they reach an age limit.
pub struct AgeLimited {
    queue: AnyQueue,
    limit: Span,
    /// Lower bound of the time at which the next head packet reaches the limit.
    expires: Time,
    aged: VecDeque<Segment>,
}

impl AgeLimited {
    /// Adds an age limit to an empty queue.
    pub fn new(queue: AnyQueue, limit: Span) -> Self {
        Self { queue, limit, expires: Time::NEVER, aged: VecDeque::new() }
    }
}

impl Queue for AgeLimited {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.expire(now);
        self.queue.put(now, segment, unqueued, place)?;
        self.expires = self.expires.min(now + self.limit);
        Ok(())
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        self.expire(now);
        loop {
            let (arrived, segment) = self.queue.dequeue(now)?;
            // Behind a packet that was inserted at the front, a packet may reach the limit before it is the head.
            if now.since(arrived) < self.limit {
                return Some((arrived, segment));
            }
            self.aged.push_back(segment);
        }
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.queue.poll_dropped().or_else(|| self.aged.pop_front().map(|segment| (segment, Cause::Aged)))
    }

    fn expires(&self) -> Time {
        self.expires
    }

    fn expire(&mut self, now: Time) {
        while self.expires <= now {
            self.expires = self.queue.oldest() + self.limit;
            if self.expires > now {
                return;
            }
            let Some(segment) = self.queue.remove_oldest(now) else { return };
            self.aged.push_back(segment);
        }
    }

    delegate! {
        to self.queue {
            fn pass(&mut self, now: Time, segment: &Segment);
            fn oldest(&self) -> Time;
            fn remove_oldest(&mut self, now: Time) -> Option<Segment>;
            fn remove(&mut self, now: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment>;
            fn waiting(&self, flow: FlowId) -> Load;
            fn load(&self) -> Load;
            fn together(&self, a: FlowId, b: FlowId) -> bool;
            fn capacity(&self, flow: FlowId) -> Capacity;
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Seq;

    use super::*;
    use crate::queue::DropTail;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn segment(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number), 960, 40)
    }

    /// A queue of at most 3 packets, with the packets 0 and 1 that arrived at 0 and 10 ms, and a limit of 100 ms.
    fn queue() -> AgeLimited {
        let mut queue = AgeLimited::new(DropTail::new(Capacity::Packets(3)).any(), Span::from_millis(100));
        for number in 0..2 {
            queue.enqueue(ms(10 * u64::from(number)), &segment(number), Load::NONE).unwrap();
        }
        queue
    }

    fn dropped(queue: &mut AgeLimited) -> Vec<(u32, Cause)> {
        std::iter::from_fn(|| queue.poll_dropped()).map(|(segment, cause)| (segment.seq.0, cause)).collect()
    }

    #[test]
    fn a_packet_leaves_at_the_limit_and_not_before() {
        let mut queue = queue();
        assert_eq!(queue.expires(), ms(100));
        queue.expire(ms(99));
        assert_eq!(dropped(&mut queue), []);
        queue.expire(ms(100));
        assert_eq!(dropped(&mut queue), [(0, Cause::Aged)]);
        assert_eq!((queue.expires(), queue.load().packets), (ms(110), 1));
        queue.expire(ms(500));
        assert_eq!(dropped(&mut queue), [(1, Cause::Aged)]);
        assert_eq!((queue.expires(), queue.is_empty()), (Time::NEVER, true));
    }

    #[test]
    fn what_is_sent_is_younger_than_the_limit() {
        let mut queue = queue();
        assert_eq!(queue.dequeue(ms(105)).unwrap().1.seq, Seq(1));
        assert_eq!(dropped(&mut queue), [(0, Cause::Aged)]);
        assert!(queue.dequeue(ms(105)).is_none());
    }

    #[test]
    fn aged_packets_make_room_before_a_packet_is_refused() {
        let mut queue = queue();
        queue.enqueue(ms(20), &segment(2), Load::NONE).unwrap();
        assert!(queue.enqueue(ms(99), &segment(3), Load::NONE).is_err());
        queue.enqueue(ms(100), &segment(3), Load::NONE).unwrap();
        assert_eq!(dropped(&mut queue), [(0, Cause::Aged)]);
    }

    #[test]
    fn a_packet_behind_a_younger_one_leaves_when_it_is_the_head() {
        let mut queue = queue();
        queue.put(ms(50), &segment(9), Load::NONE, Place::Front).unwrap();
        queue.expire(ms(120));
        assert_eq!(dropped(&mut queue), []);
        assert_eq!(queue.dequeue(ms(120)).unwrap().1.seq, Seq(9));
        assert!(queue.dequeue(ms(120)).is_none());
        assert_eq!(dropped(&mut queue), [(0, Cause::Aged), (1, Cause::Aged)]);
    }
}
