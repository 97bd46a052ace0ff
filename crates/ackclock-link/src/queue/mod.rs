//! Queue disciplines: which segment waits, which is lost, which goes next.

mod codel;
mod drop_head;
mod drop_tail;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod separate;
mod short_first;

pub use codel::{Codel, CodelConfig};
pub use drop_head::{DropHead, DropHeadConfig};
pub use drop_tail::{DropTail, DropTailConfig};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};
pub use separate::{Per, Separate};
pub use short_first::{ShortFirst, ShortFirstConfig};

use ackclock_core::{Ecn, FlowId, Segment, Time};
use delegate::delegate;

use crate::{Capacity, Cause, Load};

/// A queue in front of a transmitter. The transmitter takes one segment at a time.
///
/// No method has a default but [`any`](Self::any): a queue around another one must pass each of them on.
/// `shared_by_all_flows!` writes those of a queue that does not tell flows apart.
pub trait Queue: Send {
    /// Takes a segment that found the transmitter busy. `unqueued` is what counts against the capacity without waiting
    /// here (the head of a link that keeps it in its buffer).
    ///
    /// # Errors
    /// The cause, where the segment is not taken.
    fn enqueue(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause>;

    /// Takes a segment as [`enqueue`](Self::enqueue) does, and puts it before all others of its flow that wait.
    ///
    /// # Errors
    /// The cause, where the segment is not taken.
    fn enqueue_front(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause>;

    /// Gives the next segment to transmit, if any is left, with the instant at which it had arrived. Segments that the discipline drops
    /// at this moment come out of [`poll_dropped`](Self::poll_dropped).
    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;

    /// A segment found the transmitter idle and goes straight through; it counts as having waited for no time.
    fn pass(&mut self, now: Time, segment: &Segment);

    /// Whether nothing waits.
    fn is_empty(&self) -> bool;

    /// The next segment that was dropped after it had been accepted.
    fn poll_dropped(&mut self) -> Option<(Segment, Cause)>;

    /// What waits in the part of the queue that serves `flow`.
    fn waiting(&self, flow: FlowId) -> Load;

    /// What waits in all its parts.
    fn load(&self) -> Load;

    /// Whether one part of the queue serves both flows.
    fn together(&self, a: FlowId, b: FlowId) -> bool;

    /// The capacity of that part.
    fn capacity(&self, flow: FlowId) -> Capacity;

    /// The flow belongs to this user; one of which nothing is said belongs to user 0.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// The flow has ended.
    fn forget(&mut self, flow: FlowId);

    /// As links hold it.
    fn any(self) -> AnyQueue
    where
        Self: Sized + 'static,
    {
        AnyQueue::Other(Box::new(self))
    }
}

/// Writes the methods of a [`Queue`] in which all flows wait together, and which keeps nothing of any of them.
macro_rules! shared_by_all_flows {
    () => {
        fn load(&self) -> Load {
            self.waiting(FlowId(0))
        }

        fn together(&self, _: FlowId, _: FlowId) -> bool {
            true
        }

        fn assign(&mut self, _: FlowId, _: u32) {}

        fn forget(&mut self, _: FlowId) {}
    };
}
use shared_by_all_flows;

/// A queue as links hold it: the plainest in place, because it stands before most links and a call through a pointer would
/// be much of its cost; every other behind a pointer.
pub enum AnyQueue {
    /// First in, first out, refusing what does not fit.
    DropTail(DropTail),
    /// Any other.
    Other(Box<dyn Queue>),
}

impl Queue for AnyQueue {
    delegate! {
        to match self {
            Self::DropTail(queue) => queue,
            Self::Other(queue) => queue,
        } {
            fn enqueue(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause>;
            fn enqueue_front(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause>;
            fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;
            fn pass(&mut self, now: Time, segment: &Segment);
            fn is_empty(&self) -> bool;
            fn poll_dropped(&mut self) -> Option<(Segment, Cause)>;
            fn waiting(&self, flow: FlowId) -> Load;
            fn load(&self) -> Load;
            fn together(&self, a: FlowId, b: FlowId) -> bool;
            fn capacity(&self, flow: FlowId) -> Capacity;
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
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
        "red" => RedConfig,
        "fq-codel" => FqCodelConfig,
        "short-first" => ShortFirstConfig,
    }
}

/// Whether a packet can be marked instead of dropped (RFC 3168 section 5).
fn is_ect(segment: &Segment) -> bool {
    segment.ecn != Ecn::NotEct
}
