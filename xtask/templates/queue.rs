//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far first in, first out, refusing what does not fit.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use ackclock_core::{FlowId, Segment, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Buffer;
use super::{AnyQueue, Per, Place, Queue, QueueConfig, QueueContext, one_buffer};
use crate::{Capacity, Cause, Load};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whose packets share a queue.
    pub per: Per,
}

impl ackclock_core::Config for Config {}

impl QueueConfig for Config {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let capacity = context.capacity;
        self.per.build(capacity, move |_| STRUCT { buffer: Buffer::new(capacity) }.any())
    }
}

/// The queue.
struct STRUCT {
    buffer: Buffer,
}

impl Queue for STRUCT {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.buffer.put(now, segment, unqueued, place)
    }

    fn dequeue(&mut self, _: Time) -> Option<(Time, Segment)> {
        self.buffer.fifo.pop()
    }

    fn pass(&mut self, _: Time, _: &Segment) {}

    one_buffer!();
}
