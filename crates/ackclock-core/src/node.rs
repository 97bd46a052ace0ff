//! Nodes of the simulated graph, and the messages between them.

use std::collections::VecDeque;

use crate::{PacketId, Rate, Segment, Time};

/// Number of a connection point of a node.
pub type Port = u8;

/// Maximum number of ports of a node.
pub const MAX_PORTS: usize = 4;

/// Report of a radio controller about a bearer, sent to an edge or a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RadioReport {
    /// Sequence number among the reports of an edge, starting at 0. With the sequence number, a receiver recognises
    /// reports that arrive out of order.
    pub number: u32,
    /// Time at which the report was generated.
    pub at: Time,
    /// User of the bearer; `None` if all users share one bearer.
    pub user: Option<u32>,
    /// Rate of the bearer from time `at` on; zero during an outage.
    pub rate: Rate,
    /// Number of packets in the bearer's queue.
    pub queued_packets: u32,
    /// Number of bytes in the bearer's queue.
    pub queued_bytes: u64,
    /// Reason for which the report was sent.
    pub reason: ReportReason,
}

/// Reason for which a radio report was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportReason {
    /// The rate of the bearer has changed.
    Change,
    /// The period between two reports has passed.
    Periodic,
}

/// A message between nodes.
// Segments are copied, never boxed, so that the simulator does not allocate per packet.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A TCP or UDP packet.
    Segment(Segment),
    /// A report about the radio bearer.
    Report(RadioReport),
}

/// A node of the graph: a host, a wired path, or a network edge.
///
/// A node has no clock and is driven by its caller: messages arrive by [`receive`](Self::receive), time passes by
/// [`wake`](Self::wake), and outgoing messages go into the [`Outbox`]. A wake-up that is early or repeated changes
/// nothing.
pub trait Node: Send {
    /// Handles a message that arrives at `port` of the node at time `now`.
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox);

    /// Handles the node's timers that are due at `now`.
    fn wake(&mut self, now: Time, out: &mut Outbox);

    /// Time at which the node next needs a wake-up.
    fn next_wake(&self) -> Option<Time>;
}

/// Set of node types that includes the type `B`.
pub trait Holds<B> {
    /// Returns the node if it has the type `B`.
    fn held(&self) -> Option<&B>;

    /// Returns the node, mutable, if it has the type `B`.
    fn held_mut(&mut self) -> Option<&mut B>;
}

/// Declares the node types of a graph as an enum with one variant per type, so that methods of nodes are called without
/// dynamic dispatch.
///
/// ```
/// # use ackclock_core::{Message, Node, Outbox, Port, Time};
/// # struct Sink;
/// # impl Node for Sink {
/// #     fn receive(&mut self, _: Time, _: Port, _: &Message, _: &mut Outbox) {}
/// #     fn wake(&mut self, _: Time, _: &mut Outbox) {}
/// #     fn next_wake(&self) -> Option<Time> { None }
/// # }
/// ackclock_core::nodes! {
///     /// A box of the graph.
///     enum AnyNode {
///         Sink(Sink),
///     }
/// }
/// let node = AnyNode::from(Sink);
/// assert_eq!(node.next_wake(), None);
/// ```
#[macro_export]
macro_rules! nodes {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($kind:ident($node:ty)),+ $(,)? }) => {
        $(#[$meta])*
        // A graph has few nodes, so the different sizes of the variants do not matter.
        #[allow(clippy::large_enum_variant)]
        $vis enum $name {
            $(#[allow(missing_docs)] $kind($node),)+
        }

        impl $crate::Node for $name {
            fn receive(
                &mut self,
                now: $crate::Time,
                port: $crate::Port,
                message: &$crate::Message,
                out: &mut $crate::Outbox,
            ) {
                match self {
                    $(Self::$kind(node) => node.receive(now, port, message, out),)+
                }
            }

            fn wake(&mut self, now: $crate::Time, out: &mut $crate::Outbox) {
                match self {
                    $(Self::$kind(node) => node.wake(now, out),)+
                }
            }

            fn next_wake(&self) -> Option<$crate::Time> {
                match self {
                    $(Self::$kind(node) => node.next_wake(),)+
                }
            }
        }

        $(
            impl From<$node> for $name {
                fn from(node: $node) -> Self {
                    Self::$kind(node)
                }
            }

            impl $crate::Holds<$node> for $name {
                #[allow(unreachable_patterns, reason = "a graph may have one kind")]
                fn held(&self) -> Option<&$node> {
                    match self {
                        Self::$kind(node) => Some(node),
                        _ => None,
                    }
                }

                #[allow(unreachable_patterns, reason = "a graph may have one kind")]
                fn held_mut(&mut self) -> Option<&mut $node> {
                    match self {
                        Self::$kind(node) => Some(node),
                        _ => None,
                    }
                }
            }
        )+
    };
}

/// Receiver of the outgoing segments of a component. A node's [`Outbox`] queues outgoing segments; other sinks pass
/// segments directly to the next component.
pub trait Sink {
    /// Sends `segment` out at `port` of the component.
    fn pass(&mut self, port: Port, segment: &Segment);

    /// Reports that a segment was lost, refused or discarded.
    fn discard(&mut self, segment: &Segment);

    /// Reports that a copy of a received segment was made or released.
    fn copied(&mut self, segment: &Segment, copied: Copied);

    /// Sends a radio report out at `port`. Components generate reports only if the report port is connected.
    fn report(&mut self, _port: Port, _report: &RadioReport) {}
}

/// Event in the life of a segment's copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copied {
    /// A copy of the segment was made and kept, and the segment itself was passed on.
    Kept,
    /// A further copy was made from the kept copy and sent.
    Sent,
    /// The kept copy of the segment was released.
    Released,
    /// A link duplicated the segment.
    Duplicated,
}

/// Outgoing messages of nodes. Messages sent at one instant are delivered in the order sent.
#[derive(Debug, Default)]
pub struct Outbox {
    hops: Vec<Hop>,
    /// Identifiers of the raw packets whose segments were discarded.
    pub(crate) discarded: Vec<PacketId>,
    /// Raw packets that gained or lost a copy, with the event.
    pub(crate) copied: VecDeque<(PacketId, Copied)>,
    pub(crate) wires: Vec<[Wire; MAX_PORTS]>,
    pub(crate) from: u32,
}

/// Far end of a connection between two ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) node: u32,
    pub(crate) port: Port,
    pub(crate) connected: bool,
}

impl Wire {
    /// Creates the far end of an unconnected port. The far end records the node and port at which a message left the
    /// graph.
    pub(crate) const fn unconnected(node: u32, port: Port) -> Self {
        Self { node, port, connected: false }
    }
}

/// A message, and the node and port to which it is delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) to: Wire,
    pub(crate) message: Message,
}

impl Outbox {
    /// Sends `message` out at `port` of the running node.
    #[inline]
    pub fn send(&mut self, port: Port, message: Message) {
        let to = self.wires[self.from as usize][usize::from(port)];
        self.hops.push(Hop { to, message });
    }

    /// Appends a message to the outbox.
    pub(crate) fn push(&mut self, hop: Hop) {
        self.hops.push(hop);
    }

    /// Swaps the list of sent messages with an empty list. Returns false if no message was sent.
    #[inline]
    pub(crate) fn swap(&mut self, batch: &mut Vec<Hop>) -> bool {
        batch.clear();
        std::mem::swap(&mut self.hops, batch);
        !batch.is_empty()
    }

    /// Creates an outbox of a single unconnected node, for driving a node without an engine.
    pub fn for_one_node() -> Self {
        let wires = std::array::from_fn(|port| Wire::unconnected(0, port as Port));
        Self { wires: vec![wires], ..Self::default() }
    }

    /// Takes the next sent message and its port, for use with [`Self::for_one_node`].
    pub fn take(&mut self) -> Option<(Port, Message)> {
        if self.hops.is_empty() {
            return None;
        }
        let hop = self.hops.remove(0);
        Some((hop.to.port, hop.message))
    }
}

impl Sink for Outbox {
    #[inline]
    fn pass(&mut self, port: Port, segment: &Segment) {
        self.send(port, Message::Segment(*segment));
    }

    /// Every received segment that is not passed on must be discarded, so that its raw bytes are freed. Simulated
    /// segments have no raw bytes.
    #[inline]
    fn discard(&mut self, segment: &Segment) {
        if segment.packet().has_bytes() {
            self.discarded.push(segment.packet());
        }
    }

    #[inline]
    fn copied(&mut self, segment: &Segment, copied: Copied) {
        if segment.packet().has_bytes() {
            self.copied.push_back((segment.packet(), copied));
        }
    }

    fn report(&mut self, port: Port, report: &RadioReport) {
        self.send(port, Message::Report(*report));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_within_its_72_bytes() {
        assert!(size_of::<Message>() <= 72, "{} bytes", size_of::<Message>());
    }
}
