//! # Drop-head
//!
//! ## Source
//! Source: drop from front, in Lakshman, Neidhardt and Ott, "The drop from front strategy in TCP and in TCP over ATM",
//! INFOCOM 1996.
//!
//! ## What it does
//! Packets are served first in, first out. If an arriving packet does not fit, the oldest packets are dropped until it
//! fits. The sender then learns of the loss earlier, by the drain time of the queue.
//!
//! ## Differences from the source
//! A packet that would not fit even into the empty queue is refused.
//!
//! ## Validation
//! Unit tests and `tests/laws.rs` check the order and the conservation of packets.

use ackclock_core::{Config, FlowId, Segment, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Buffer;
use super::{AnyQueue, Per, Place, Queue, QueueConfig, QueueContext, one_buffer};
use crate::{Capacity, Cause, Load};

/// First in, first out; the oldest packets are dropped if an arriving packet does not fit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DropHeadConfig {
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Config for DropHeadConfig {}

impl QueueConfig for DropHeadConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let capacity = context.capacity;
        self.per.build(capacity, move |_| DropHead::new(capacity).any())
    }
}

/// Queue that serves packets first in, first out, and drops the oldest packets.
#[derive(Debug, Default)]
pub struct DropHead {
    buffer: Buffer,
}

impl DropHead {
    /// Creates an empty queue with this capacity.
    pub fn new(capacity: Capacity) -> Self {
        Self { buffer: Buffer::new(capacity) }
    }
}

impl Queue for DropHead {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        let buffer = &mut self.buffer;
        if !buffer.capacity.admits(unqueued, segment) {
            return Err(Cause::Full);
        }
        while !buffer.admits(segment, unqueued) {
            buffer.dropped.extend(buffer.fifo.pop().map(|(_, oldest)| (oldest, Cause::Full)));
        }
        buffer.fifo.put(now, segment, place);
        Ok(())
    }

    fn dequeue(&mut self, _: Time) -> Option<(Time, Segment)> {
        self.buffer.fifo.pop()
    }

    fn pass(&mut self, _: Time, _: &Segment) {}

    one_buffer!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn segment(seq: u32, bytes: u16) -> Segment {
        Segment::data(FlowId(0), Seq(seq), bytes - 40, 40)
    }

    #[test]
    fn an_arrival_pushes_out_as_many_of_the_oldest_as_it_needs() {
        let mut queue = DropHead::new(Capacity::Bytes(1500));
        for seq in 0..3 {
            queue.enqueue(Time::ZERO, &segment(seq, 500), Load::NONE).unwrap();
        }
        queue.enqueue(Time::ZERO, &segment(3, 700), Load::NONE).unwrap();
        let dropped: Vec<u32> = std::iter::from_fn(|| queue.poll_dropped()).map(|(s, _)| s.seq.0).collect();
        assert_eq!(dropped, [0, 1], "700 B need the room of two");
        assert_eq!(queue.waiting(FlowId(0)), Load { packets: 2, bytes: 1200 });
        assert_eq!(queue.enqueue(Time::ZERO, &segment(4, 1501), Load::NONE), Err(Cause::Full));
    }
}
