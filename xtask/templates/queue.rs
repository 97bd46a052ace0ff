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

use super::fifo::Fifo;
use super::{AnyQueue, Per, Queue, QueueConfig, QueueContext, shared_by_all_flows};
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
        self.per.build(capacity, move |_| STRUCT { fifo: Fifo::default(), capacity }.any())
    }
}

/// The queue.
struct STRUCT {
    fifo: Fifo,
    capacity: Capacity,
}

impl Queue for STRUCT {
    fn enqueue(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause> {
        if !self.capacity.admits(self.fifo.load() + unqueued, segment) {
            return Err(Cause::Full);
        }
        self.fifo.push(now, segment);
        Ok(())
    }

    fn enqueue_front(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause> {
        if !self.capacity.admits(self.fifo.load() + unqueued, segment) {
            return Err(Cause::Full);
        }
        self.fifo.push_front(now, segment);
        Ok(())
    }

    fn dequeue(&mut self, _: Time) -> Option<(Time, Segment)> {
        self.fifo.pop()
    }

    fn pass(&mut self, _: Time, _: &Segment) {}

    fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        None
    }

    fn waiting(&self, _: FlowId) -> Load {
        self.fifo.load()
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }

    shared_by_all_flows!();
}
