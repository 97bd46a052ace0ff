//! Queue disciplines: which segment waits, which is lost, which goes next.

mod codel;
mod drop_head;
mod drop_tail;
mod fifo;
mod fq_codel;
mod pie;
mod separate;

pub use codel::{Codel, CodelConfig};
pub use drop_head::{DropHead, DropHeadConfig};
pub use drop_tail::{DropTail, DropTailConfig};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use pie::{Pie, PieConfig};
pub use separate::{Per, Separate};

use ackclock_core::{Ecn, FlowId, Segment, Time};

use crate::{Capacity, Cause, Load, Refused};

/// A queue in front of a transmitter. The transmitter takes one segment at a time.
pub trait Queue: Send {
    /// Takes a segment that found the transmitter busy. `beside` is what counts against the capacity without waiting
    /// here (the head of a link that keeps it in its buffer).
    ///
    /// # Errors
    /// [`Refused`] where the segment is not taken.
    fn enqueue(&mut self, now: Time, segment: Segment, beside: Load) -> Result<(), Refused>;

    /// Gives the next segment to transmit, if any is left, with the instant at which it had arrived. Segments that the discipline drops
    /// at this moment come out of [`poll_dropped`](Self::poll_dropped).
    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;

    /// A segment found the transmitter idle and goes straight through; it counts as having waited for no time.
    fn pass(&mut self, _now: Time, _segment: &mut Segment) {}

    /// Whether nothing waits.
    fn is_empty(&self) -> bool;

    /// The next segment that was dropped after it had been accepted.
    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        None
    }

    /// What waits in the part of the queue that serves `flow`.
    fn waiting(&self, flow: FlowId) -> Load;

    /// Whether one part of the queue serves both flows.
    fn together(&self, _a: FlowId, _b: FlowId) -> bool {
        true
    }

    /// The capacity of that part.
    fn capacity(&self, flow: FlowId) -> Capacity;

    /// The flow belongs to this user; one of which nothing is said belongs to user 0.
    fn assign(&mut self, _flow: FlowId, _user: u32) {}

    /// The flow has ended.
    fn forget(&mut self, _flow: FlowId) {}
}

impl Queue for Box<dyn Queue> {
    fn enqueue(&mut self, now: Time, segment: Segment, beside: Load) -> Result<(), Refused> {
        (**self).enqueue(now, segment, beside)
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        (**self).dequeue(now)
    }

    fn pass(&mut self, now: Time, segment: &mut Segment) {
        (**self).pass(now, segment);
    }

    fn is_empty(&self) -> bool {
        (**self).is_empty()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        (**self).poll_dropped()
    }

    fn waiting(&self, flow: FlowId) -> Load {
        (**self).waiting(flow)
    }

    fn together(&self, a: FlowId, b: FlowId) -> bool {
        (**self).together(a, b)
    }

    fn capacity(&self, flow: FlowId) -> Capacity {
        (**self).capacity(flow)
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        (**self).assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        (**self).forget(flow);
    }
}

/// What a queue is built from, beside its own table.
pub struct QueueContext<'a> {
    /// How much it holds.
    pub capacity: Capacity,
    /// Random streams of the run.
    pub streams: &'a ackclock_core::Streams,
    /// What its streams are called, as `down/queue`.
    pub name: &'a str,
}

/// The table of a queue discipline in a scenario file.
pub trait QueueConfig: std::fmt::Debug + Send + Sync {
    /// Builds the queue.
    fn build(&self, context: &QueueContext<'_>) -> Box<dyn Queue>;
}

ackclock_core::registry! {
    /// Queue disciplines by the name that scenario files give them.
    pub static QUEUES: dyn QueueConfig = "queue" {
        "drop-tail" => DropTailConfig,
        "drop-head" => DropHeadConfig,
        "codel" => CodelConfig,
        "pie" => PieConfig,
        "fq-codel" => FqCodelConfig,
    }
}

/// Whether a packet can be marked instead of dropped (RFC 3168 section 5).
fn is_ect(segment: &Segment) -> bool {
    segment.ecn != Ecn::NotEct
}
