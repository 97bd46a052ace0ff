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

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Queue, QueueConfig, QueueContext};
use crate::{Capacity, Cause, Load, Refused};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {}

impl ackclock_core::Config for Config {}

impl QueueConfig for Config {
    fn build(&self, context: &QueueContext<'_>) -> Box<dyn Queue> {
        Box::new(State { segments: VecDeque::new(), waiting: Load::NONE, capacity: context.capacity })
    }
}

/// The queue.
struct State {
    /// What waits, with the instant at which it arrived.
    segments: VecDeque<(Time, Segment)>,
    waiting: Load,
    capacity: Capacity,
}

impl Queue for State {
    fn enqueue(&mut self, now: Time, segment: Segment, beside: Load) -> Result<(), Refused> {
        let mut occupied = self.waiting;
        occupied += beside;
        if !self.capacity.admits(occupied, &segment) {
            return Err(Refused { segment, cause: Cause::Full });
        }
        self.waiting += Load::of(&segment);
        self.segments.push_back((now, segment));
        Ok(())
    }

    fn dequeue(&mut self, _: Time) -> Option<(Time, Segment)> {
        let (arrived, segment) = self.segments.pop_front()?;
        self.waiting -= Load::of(&segment);
        Some((arrived, segment))
    }

    fn waiting(&self, _: FlowId) -> Load {
        self.waiting
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }
}
