//! The event engine of a simulation or live link. Each node has one timer, and messages at one instant are delivered by
//! direct calls.
//!
//! Packets are not events. A packet in flight is in the ring buffer of its link, and the engine knows only the next
//! wake-up time of each node ([`Wakes`]). The engine has no clock: a simulation jumps from wake-up to wake-up, and a
//! live driver waits for each wake-up in real time.

use std::collections::VecDeque;

use crate::node::{Hop, MAX_PORTS, Wire};
use crate::{Copied, Message, Node, NullTracer, Outbox, PacketId, Port, Time, Tracer, Wakes};

/// Index that identifies a node in its engine.
pub type NodeId = usize;

/// Event engine: a graph of nodes with its current time.
pub struct Engine<N: Node = Box<dyn Node>, T: Tracer = NullTracer> {
    nodes: Vec<N>,
    wakes: Wakes,
    out: Outbox,
    /// Messages that the engine is delivering. The message buffer is kept to reuse its memory.
    batch: Vec<Hop>,
    egress: VecDeque<Egress>,
    now: Time,
    tracer: T,
    events: u64,
}

/// A message that left the graph at an unconnected port.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    /// Time at which the message left the graph.
    pub at: Time,
    /// Node that sent the message.
    pub node: NodeId,
    /// Port of the node at which the message left the graph.
    pub port: Port,
    /// Message that left the graph.
    pub message: Message,
}

impl<N: Node, T: Tracer> Engine<N, T> {
    /// Creates an engine with an empty graph at time zero.
    pub fn new(tracer: T) -> Self {
        Self {
            nodes: Vec::new(),
            wakes: Wakes::default(),
            out: Outbox::default(),
            batch: Vec::new(),
            egress: VecDeque::new(),
            now: Time::ZERO,
            tracer,
            events: 0,
        }
    }

    /// Adds a node and returns its number. If several nodes are due at the same instant, the node with the lowest
    /// number is woken first.
    pub fn add(&mut self, node: N) -> NodeId {
        let id = self.wakes.add();
        self.out.wires.push(std::array::from_fn(|port| Wire::unconnected(id as u32, port as Port)));
        self.wakes.set(id, node.next_wake());
        self.nodes.push(node);
        id
    }

    /// Connects two ports in both directions.
    ///
    /// # Panics
    /// Panics if a port is not below [`MAX_PORTS`] or a node does not exist. The panic is a programming error, because
    /// users do not build graphs.
    pub fn connect(&mut self, a: (NodeId, Port), b: (NodeId, Port)) {
        for (from, to) in [(a, b), (b, a)] {
            assert!(usize::from(from.1) < MAX_PORTS, "a node has {MAX_PORTS} ports");
            self.out.wires[from.0][usize::from(from.1)] =
                Wire { node: to.0 as u32, port: to.1, connected: true };
        }
    }

    /// Delivers a message from outside the graph to a port at time `now`.
    pub fn inject(&mut self, now: Time, node: NodeId, port: Port, message: Message) {
        self.advance(now);
        let to = Wire { node: node as u32, port, connected: true };
        self.out.push(Hop { to, message });
        self.deliver(now);
    }

    /// Processes all events due up to and including `until`.
    pub fn advance(&mut self, until: Time) {
        while let Some((time, node)) = self.wakes.first() {
            if time > until {
                break;
            }
            // A node may request a wake-up time in the past, but the engine's time never goes back.
            self.now = self.now.max(time);
            self.events += 1;
            self.out.from = node as u32;
            self.nodes[node].wake(self.now, &mut self.out);
            self.wakes.set(node, self.nodes[node].next_wake());
            self.deliver(self.now);
        }
        self.now = self.now.max(until);
    }

    /// Wakes a node at the current time, so that its statistics are up to date. A refreshing wake-up does not change
    /// the node's behaviour and does not count as an event.
    pub fn refresh(&mut self, node: NodeId) {
        self.out.from = node as u32;
        self.nodes[node].wake(self.now, &mut self.out);
        self.wakes.set(node, self.nodes[node].next_wake());
        self.deliver(self.now);
    }

    /// Time of the next wake-up of any node.
    pub fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(time, _)| time)
    }

    /// Returns the next message that left the graph.
    pub fn poll_egress(&mut self) -> Option<Egress> {
        self.egress.pop_front()
    }

    /// Returns the next raw packet whose segment was discarded. The order of discarded packets is unspecified.
    pub fn poll_discarded(&mut self) -> Option<PacketId> {
        self.out.discarded.pop()
    }

    /// Returns the next raw packet that gained or lost a copy, in the order of these events. Callers must poll copied
    /// packets before the [discarded](Self::poll_discarded) packets.
    pub fn poll_copied(&mut self) -> Option<(PacketId, Copied)> {
        self.out.copied.pop_front()
    }

    /// Current time of the graph.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of wake-ups and messages so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the node with this number, for reading its statistics.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id]
    }

    /// Updates the wake-up time of a node that was changed between events.
    pub fn note_wake(&mut self, node: NodeId) {
        self.wakes.set(node, self.nodes[node].next_wake());
    }

    /// Returns the node with this number, for changing it between events. If the change may make the node due earlier,
    /// call [`note_wake`](Self::note_wake) afterwards.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.nodes[id]
    }

    /// Returns the nodes from `first` to `last`, for changing them between events. If a change may make a node due
    /// earlier, call [`note_wake`](Self::note_wake) afterwards.
    ///
    /// # Panics
    /// Panics if a node does not exist. The panic is a programming error, because users do not build graphs.
    pub fn nodes_mut(&mut self, first: NodeId, last: NodeId) -> &mut [N] {
        &mut self.nodes[first..=last]
    }

    /// Returns the tracer, for reading its records.
    pub fn tracer(&self) -> &T {
        &self.tracer
    }

    /// Returns the tracer for changes.
    pub fn tracer_mut(&mut self) -> &mut T {
        &mut self.tracer
    }

    /// Delivers all messages of this instant: first the messages already sent, then the messages that their delivery
    /// triggers, until none is left.
    fn deliver(&mut self, now: Time) {
        while self.out.swap(&mut self.batch) {
            for Hop { to, message } in &self.batch {
                let node = to.node as usize;
                if !to.connected {
                    self.egress.push_back(Egress { at: now, node, port: to.port, message: *message });
                    continue;
                }
                self.events += 1;
                self.tracer.message(now, node, to.port, message);
                self.out.from = to.node;
                self.nodes[node].receive(now, to.port, message, &mut self.out);
                self.wakes.set(node, self.nodes[node].next_wake());
            }
        }
    }
}

impl Node for Box<dyn Node> {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        (**self).receive(now, port, message, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        (**self).wake(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        (**self).next_wake()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, Segment, Seq, Span};

    /// Node that sends each received message out at port 1 after a fixed delay.
    struct Delay {
        delay: Span,
        held: VecDeque<(Time, Message)>,
    }

    impl Node for Delay {
        fn receive(&mut self, now: Time, _: Port, message: &Message, _: &mut Outbox) {
            self.held.push_back((now + self.delay, *message));
        }
        fn wake(&mut self, now: Time, out: &mut Outbox) {
            while let Some(&(due, message)) = self.held.front().filter(|(due, _)| *due <= now) {
                debug_assert!(due <= now);
                self.held.pop_front();
                out.send(1, message);
            }
        }
        fn next_wake(&self) -> Option<Time> {
            self.held.front().map(|(due, _)| *due)
        }
    }

    fn chain() -> Engine<Delay> {
        let mut engine = Engine::new(NullTracer);
        let delay = |ms| Delay { delay: Span::from_millis(ms), held: VecDeque::new() };
        let (a, b) = (engine.add(delay(3)), engine.add(delay(4)));
        engine.connect((a, 1), (b, 0));
        engine
    }

    fn segment(seq: u32) -> Message {
        Message::Segment(Segment::data(FlowId(0), Seq(seq), 960, 40))
    }

    #[test]
    fn a_message_leaves_a_chain_after_the_sum_of_its_delays() {
        let mut engine = chain();
        engine.inject(Time::from_nanos(5), 0, 0, segment(1));
        engine.advance(Time::ZERO + Span::from_secs(1));
        let left = engine.poll_egress().unwrap();
        assert_eq!((left.at, left.node, left.port), (Time::from_nanos(7_000_005), 1, 1));
        assert_eq!(left.message, segment(1));
        assert!(engine.poll_egress().is_none());
        assert_eq!(engine.next_wake(), None);
    }

    #[test]
    fn advancing_in_small_steps_changes_nothing() {
        let run = |steps: u64| {
            let mut engine = chain();
            for seq in 0..5 {
                engine.inject(Time::from_nanos(u64::from(seq) * 1_000_000), 0, 0, segment(seq));
            }
            for step in 1..=steps {
                engine.advance(Time::from_nanos(20_000_000 * step / steps));
            }
            std::iter::from_fn(|| engine.poll_egress().map(|e| (e.at, e.message))).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(977));
        assert_eq!(run(1).len(), 5);
    }
}
