//! Tracing of messages between nodes. Components do not log; instead, a tracer sees every message between nodes.

use crate::{Message, Port, Time};

/// Receiver of every message that arrives at a node.
pub trait Tracer: Send {
    /// Called when `message` arrives at `port` of node number `node`.
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message);
}

/// Tracer that ignores all messages at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullTracer;

impl Tracer for NullTracer {
    #[inline(always)]
    fn message(&mut self, _: Time, _: usize, _: Port, _: &Message) {}
}

/// Tracer that counts messages by node.
#[derive(Clone, Debug, Default)]
pub struct CountingTracer {
    /// Number of messages that arrived, by node number.
    pub arrivals: Vec<u64>,
}

impl Tracer for CountingTracer {
    fn message(&mut self, _: Time, node: usize, _: Port, _: &Message) {
        if self.arrivals.len() <= node {
            self.arrivals.resize(node + 1, 0);
        }
        self.arrivals[node] += 1;
    }
}

/// An optional tracer traces nothing if it is `None`.
impl<T: Tracer> Tracer for Option<T> {
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message) {
        if let Some(tracer) = self {
            tracer.message(now, node, port, message);
        }
    }
}

/// A pair of tracers passes every message to both tracers.
impl<A: Tracer, B: Tracer> Tracer for (A, B) {
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message) {
        self.0.message(now, node, port, message);
        self.1.message(now, node, port, message);
    }
}

/// A boxed tracer can be chosen at run time.
impl Tracer for Box<dyn Tracer> {
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message) {
        (**self).message(now, node, port, message);
    }
}
