//! # Drop-tail
//!
//! ## Source
//! Source: the queue of every experiment of CR02; `links.md` section 1 defines "a buffer of B packets".
//!
//! ## What it does
//! Packets are served first in, first out. A packet that does not fit is refused.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! With B = 10, a constant link of 200 kbit/s and 400 ms loses its first packet at a window of 22 packets, as in CR02
//! Table 1 item 1.

use ackclock_core::{Config, FlowId, Segment, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Buffer;
use super::{AnyQueue, Per, Place, Queue, QueueConfig, QueueContext, one_buffer};
use crate::{Capacity, Cause, Load};

/// First in, first out; an arriving packet that does not fit is dropped.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DropTailConfig {
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Config for DropTailConfig {}

impl QueueConfig for DropTailConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let capacity = context.capacity;
        self.per.build(capacity, move |_| DropTail::new(capacity).any())
    }
}

/// Queue that serves packets first in, first out, and refuses packets that do not fit.
#[derive(Debug, Default)]
pub struct DropTail {
    buffer: Buffer,
}

impl DropTail {
    /// Creates an empty queue with this capacity.
    pub fn new(capacity: Capacity) -> Self {
        Self { buffer: Buffer::new(capacity) }
    }
}

impl Queue for DropTail {
    #[inline(always)]
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.buffer.put(now, segment, unqueued, place)
    }

    #[inline]
    fn dequeue(&mut self, _: Time) -> Option<(Time, Segment)> {
        self.buffer.fifo.pop()
    }

    fn pass(&mut self, _: Time, _: &Segment) {}

    one_buffer!();

    fn any(self) -> AnyQueue {
        AnyQueue::DropTail(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn segment(seq: u32) -> Segment {
        Segment::data(FlowId(0), Seq(seq), 960, 40)
    }

    #[test]
    fn a_full_queue_refuses_and_keeps_order() {
        let mut queue = DropTail::new(Capacity::Packets(2));
        for seq in 0..2 {
            queue.enqueue(Time::ZERO, &segment(seq), Load::NONE).unwrap();
        }
        let refused = queue.enqueue(Time::ZERO, &segment(2), Load::NONE).unwrap_err();
        assert_eq!(refused, Cause::Full);
        assert_eq!(queue.waiting(FlowId(0)), Load { packets: 2, bytes: 2000 });
        assert_eq!(queue.dequeue(Time::ZERO).unwrap().1.seq, Seq(0));
    }

    #[test]
    fn what_counts_beside_the_queue_takes_room() {
        let mut queue = DropTail::new(Capacity::Bytes(1500));
        assert!(queue.enqueue(Time::ZERO, &segment(0), Load { packets: 1, bytes: 501 }).is_err());
        assert!(queue.enqueue(Time::ZERO, &segment(0), Load { packets: 1, bytes: 500 }).is_ok());
    }
}
