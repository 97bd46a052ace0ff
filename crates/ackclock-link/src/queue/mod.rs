//! Queue disciplines: they decide which segment is queued, dropped or sent next. Each discipline is in a separate file.

mod abc;
mod ack_filter;
mod age_limited;
mod cake;
mod cobalt;
mod codel;
mod drop_head;
mod drop_tail;
mod dualpi2;
mod fifo;
mod fq_codel;
#[cfg(test)]
mod laws;
mod pie;
mod red;
mod separate;
mod short_first;

pub use abc::{Abc, AbcConfig};
pub use ack_filter::{AckFilter, Filtered};
pub use age_limited::AgeLimited;
pub use cake::{Cake, CakeConfig, Isolation};
pub use codel::{Codel, CodelConfig};
pub use drop_head::{DropHead, DropHeadConfig};
pub use drop_tail::{DropTail, DropTailConfig};
pub use dualpi2::{DualPi2, DualPi2Config};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};
pub use separate::{Per, Separate};
pub use short_first::{ShortFirst, ShortFirstConfig};

use ackclock_core::{Ecn, FlowId, Segment, Time, Unused};
use delegate::delegate;

use crate::{Capacity, Cause, Load};

/// A queue in front of a transmitter, which takes one segment at a time.
///
/// Only [`any`](Self::any), [`enqueue`](Self::enqueue) and the methods that [`AgeLimited`] alone implements have default
/// implementations, so that a queue that wraps another queue cannot forget to forward a method. `one_buffer!` implements
/// the methods of a queue that stores all packets in one `buffer`.
pub trait Queue: Send {
    /// Accepts a segment that found the transmitter busy, at `place`. The load `unqueued` counts against the capacity but is not in
    /// this queue, for instance a packet in transmission that the link keeps in its buffer.
    ///
    /// # Errors
    /// Returns the cause if the segment is refused.
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause>;

    /// Accepts a segment like [`put`](Self::put), behind all queued segments.
    ///
    /// # Errors
    /// Returns the cause if the segment is refused.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, segment: &Segment, unqueued: Load) -> Result<(), Cause> {
        self.put(now, segment, unqueued, Place::Back)
    }

    /// Removes and returns the next segment to transmit, with its arrival time; returns `None` if the queue is empty.
    /// [`poll_dropped`](Self::poll_dropped) returns the segments that this call drops.
    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;

    /// Handles a segment that found the transmitter idle and passes the queue, with a queueing delay of zero.
    fn pass(&mut self, now: Time, segment: &Segment);

    /// Whether no segment is queued.
    fn is_empty(&self) -> bool;

    /// Returns the next segment that was dropped after it had been accepted, with the cause.
    fn poll_dropped(&mut self) -> Option<(Segment, Cause)>;

    /// Arrival time of the head packet that arrived first, of all subqueues; [`Time::NEVER`] if the queue is empty.
    fn oldest(&self) -> Time;

    /// Removes the head packet that arrived first, of all subqueues. To the discipline, the packet is neither sent nor
    /// dropped.
    fn remove_oldest(&mut self, now: Time) -> Option<Segment>;

    /// Removes one of the packets in the subqueue that serves `flow`. `choose` gets all packets of the subqueue in their
    /// order and returns the index of the packet. To the discipline, the packet is neither sent nor dropped.
    fn remove(&mut self, now: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment>;

    /// Time at which the queue next has to [drop aged packets](Self::expire), or an earlier time; [`Time::NEVER`]
    /// without an age limit and if the queue is empty.
    #[inline]
    fn expires(&self) -> Time {
        Time::NEVER
    }

    /// Drops the head packets that have reached the age limit at `now`. [`poll_dropped`](Self::poll_dropped) returns
    /// them.
    fn expire(&mut self, _now: Time) {}

    /// Load in the subqueue that serves `flow`.
    fn waiting(&self, flow: FlowId) -> Load;

    /// Load in all subqueues.
    fn load(&self) -> Load;

    /// Whether the two flows share a subqueue.
    fn together(&self, a: FlowId, b: FlowId) -> bool;

    /// Capacity of the subqueue that serves `flow`.
    fn capacity(&self, flow: FlowId) -> Capacity;

    /// Sets the user of a flow; by default the user is 0.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// Frees the state of a flow that ended.
    fn forget(&mut self, flow: FlowId);

    /// Returns this queue in the form that links store.
    fn any(self) -> AnyQueue
    where
        Self: Sized + 'static,
    {
        AnyQueue::Other(Box::new(self))
    }
}

/// Place at which a segment enters a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind all segments in the queue.
    Back,
    /// Before all segments of its flow.
    Front,
}

/// Chooses one of the packets of a subqueue by its index.
pub type Choose<'a> = &'a mut dyn FnMut(&mut dyn Iterator<Item = Segment>) -> Option<usize>;

/// Implements the [`Queue`] methods of a discipline in which all flows share one queue and no state is kept per flow.
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

/// Implements the [`Queue`] methods of a discipline that stores all packets in one `buffer`.
macro_rules! one_buffer {
    () => {
        fn remove_oldest(&mut self, _: Time) -> Option<Segment> {
            self.buffer.fifo.pop().map(|(_, segment)| segment)
        }

        one_buffer!(except remove_oldest);
    };
    (except remove_oldest) => {
        #[inline]
        fn is_empty(&self) -> bool {
            self.buffer.fifo.is_empty()
        }

        #[inline]
        fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
            self.buffer.dropped.pop_front()
        }

        fn oldest(&self) -> Time {
            self.buffer.fifo.oldest()
        }

        fn remove(&mut self, _: Time, _: FlowId, choose: crate::queue::Choose<'_>) -> Option<Segment> {
            self.buffer.fifo.remove(choose)
        }

        fn waiting(&self, _: FlowId) -> Load {
            self.buffer.fifo.load()
        }

        fn capacity(&self, _: FlowId) -> Capacity {
            self.buffer.capacity
        }

        crate::queue::shared_by_all_flows!();
    };
}
use one_buffer;
use shared_by_all_flows;

/// A queue as links store it: a drop-tail queue inline, any other queue behind a pointer. Most links have a drop-tail
/// queue, and a call through a pointer would be a large part of its cost.
pub enum AnyQueue {
    /// A drop-tail queue: first in, first out, refusing packets that do not fit.
    DropTail(DropTail),
    /// A queue of any other discipline.
    Other(Box<dyn Queue>),
}

impl Queue for AnyQueue {
    delegate! {
        to match self {
            Self::DropTail(queue) => queue,
            Self::Other(queue) => queue,
        } {
            fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause>;
            fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;
            fn pass(&mut self, now: Time, segment: &Segment);
            fn is_empty(&self) -> bool;
            fn poll_dropped(&mut self) -> Option<(Segment, Cause)>;
            fn oldest(&self) -> Time;
            fn remove_oldest(&mut self, now: Time) -> Option<Segment>;
            fn remove(&mut self, now: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment>;
            fn expires(&self) -> Time;
            fn expire(&mut self, now: Time);
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

/// Everything a queue needs to be built from its table.
pub struct QueueContext<'a> {
    /// Capacity of the queue.
    pub capacity: Capacity,
    /// Random streams of the run.
    pub streams: &'a ackclock_core::Streams,
    /// Name of the queue's random stream, such as `down/queue`.
    pub name: &'a str,
}

/// Configuration of a queue discipline: its table in a scenario file.
pub trait QueueConfig: std::fmt::Debug + Send + Sync {
    /// Builds the queue from its table.
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue;

    /// Keys of the queue's table that are not at their default and have no effect on these packets. Paths are relative
    /// to the table.
    fn unused(&self, _packets: Codepoints) -> Vec<Unused> {
        Vec::new()
    }
}

/// ECN codepoints of the packets of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Codepoints {
    /// Whether there may be ECN-capable packets.
    pub ect: bool,
    /// Whether there may be packets of L4S: with the codepoint ECT(1).
    pub l4s: bool,
}

impl Codepoints {
    /// Keys for ECN-capable packets, if there are none. A pair in `keys` is a key, and whether it is not at its default.
    fn unused_without_ect(self, keys: &[(&str, bool)]) -> Vec<Unused> {
        if self.ect { Vec::new() } else { unused(keys, "has no effect without a sender with ecn = \"on\"") }
    }

    /// Keys for packets of L4S, like [`unused_without_ect`](Self::unused_without_ect).
    fn unused_without_l4s(self, keys: &[(&str, bool)]) -> Vec<Unused> {
        if self.l4s {
            Vec::new()
        } else {
            unused(keys, "has no effect without a sender of L4S: use `prague`")
        }
    }
}

fn unused(keys: &[(&str, bool)], reason: &str) -> Vec<Unused> {
    keys.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| Unused::new(key, &[], reason)).collect()
}

/// Whether a packet is ECN-capable and can be marked instead of dropped (RFC 3168 section 5).
fn is_ect(segment: &Segment) -> bool {
    segment.ecn != Ecn::NotEct
}
