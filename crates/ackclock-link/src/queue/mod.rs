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

use crate::{Capacity, Cause, Load};

/// A queue in front of a transmitter. The transmitter takes one segment at a time.
pub trait Queue: Send {
    /// Takes a segment that found the transmitter busy. `beside` is what counts against the capacity without waiting
    /// here (the head of a link that keeps it in its buffer).
    ///
    /// # Errors
    /// The cause, where the segment is not taken.
    fn enqueue(&mut self, now: Time, segment: &Segment, beside: Load) -> Result<(), Cause>;

    /// Gives the next segment to transmit, if any is left, with the instant at which it had arrived. Segments that the discipline drops
    /// at this moment come out of [`poll_dropped`](Self::poll_dropped).
    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;

    /// A segment found the transmitter idle and goes straight through; it counts as having waited for no time.
    fn pass(&mut self, _now: Time, _segment: &Segment) {}

    /// Whether nothing waits.
    fn is_empty(&self) -> bool;

    /// The next segment that was dropped after it had been accepted.
    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        None
    }

    /// What waits in the part of the queue that serves `flow`.
    fn waiting(&self, flow: FlowId) -> Load;

    /// What waits in all its parts.
    fn load(&self) -> Load {
        self.waiting(FlowId(0))
    }

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

    /// As links hold it.
    fn any(self) -> AnyQueue
    where
        Self: Sized + 'static,
    {
        AnyQueue::Other(Box::new(self))
    }
}

/// A queue as links hold it: the plainest in place, because it stands before most links and a call through a pointer would
/// be much of its cost; every other behind a pointer.
pub enum AnyQueue {
    /// First in, first out, refusing what does not fit.
    DropTail(DropTail),
    /// Any other.
    Other(Box<dyn Queue>),
}

impl Queue for AnyQueue {
    #[inline]
    fn enqueue(&mut self, now: Time, segment: &Segment, beside: Load) -> Result<(), Cause> {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, segment, beside),
            Self::Other(queue) => queue.enqueue(now, segment, beside),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now),
            Self::Other(queue) => queue.dequeue(now),
        }
    }

    #[inline]
    fn pass(&mut self, now: Time, segment: &Segment) {
        match self {
            Self::DropTail(queue) => queue.pass(now, segment),
            Self::Other(queue) => queue.pass(now, segment),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.is_empty(),
            Self::Other(queue) => queue.is_empty(),
        }
    }

    #[inline]
    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        match self {
            Self::DropTail(queue) => queue.poll_dropped(),
            Self::Other(queue) => queue.poll_dropped(),
        }
    }

    #[inline]
    fn waiting(&self, flow: FlowId) -> Load {
        match self {
            Self::DropTail(queue) => queue.waiting(flow),
            Self::Other(queue) => queue.waiting(flow),
        }
    }

    fn load(&self) -> Load {
        match self {
            Self::DropTail(queue) => queue.load(),
            Self::Other(queue) => queue.load(),
        }
    }

    #[inline]
    fn together(&self, a: FlowId, b: FlowId) -> bool {
        match self {
            Self::DropTail(queue) => queue.together(a, b),
            Self::Other(queue) => queue.together(a, b),
        }
    }

    #[inline]
    fn capacity(&self, flow: FlowId) -> Capacity {
        match self {
            Self::DropTail(queue) => queue.capacity(flow),
            Self::Other(queue) => queue.capacity(flow),
        }
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        match self {
            Self::DropTail(queue) => queue.assign(flow, user),
            Self::Other(queue) => queue.assign(flow, user),
        }
    }

    fn forget(&mut self, flow: FlowId) {
        match self {
            Self::DropTail(queue) => queue.forget(flow),
            Self::Other(queue) => queue.forget(flow),
        }
    }

    fn any(self) -> AnyQueue {
        self
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
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue;
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
