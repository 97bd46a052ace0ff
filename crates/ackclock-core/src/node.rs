//! One box of the graph, and what it hands on.

use std::collections::VecDeque;

use crate::{PacketId, Rate, Segment, Time};

/// Where a wire enters or leaves a node.
pub type Port = u8;

/// Most wires that a node can have.
pub const MAX_PORTS: usize = 4;

/// What a radio controller can tell an edge or a proxy about a bearer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RadioReport {
    /// Its number among those that leave an edge, from 0 in the order in which they were made: who hears one late, behind a later
    /// one, knows it by this.
    pub number: u32,
    /// When it was made.
    pub at: Time,
    /// Whose bearer is meant; `None` where all users share one.
    pub user: Option<u32>,
    /// The rate that the bearer has from then on; zero while it is in outage.
    pub rate: Rate,
    /// Packets waiting in the bearer's queue.
    pub queued_packets: u32,
    /// Bytes waiting in the bearer's queue.
    pub queued_bytes: u64,
    /// Why it was made.
    pub reason: ReportReason,
}

/// Why a radio controller reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportReason {
    /// The rate is another than before.
    Change,
    /// A period has passed.
    Periodic,
}

/// What travels on a wire.
// Segments are copied, never boxed: that is what keeps the simulator free of allocation.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A packet.
    Segment(Segment),
    /// News of the radio.
    Report(RadioReport),
}

/// A box of the graph: a host, a wired path, an edge.
///
/// It is driven from outside: messages come in by [`receive`](Self::receive), time by [`wake`](Self::wake), and what
/// it wants to hand on goes into the [`Outbox`]. It never asks a clock. Waking it early or twice changes nothing.
pub trait Node: Send {
    /// Takes a message that arrives at `port` at the instant `now`.
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox);

    /// Does whatever is due at `now`.
    fn wake(&mut self, now: Time, out: &mut Outbox);

    /// When it next wants to be woken.
    fn next_wake(&self) -> Option<Time>;
}

/// A set of kinds of nodes that holds nodes of kind `B`.
pub trait Holds<B> {
    /// The node, if it is of this kind.
    fn held(&self) -> Option<&B>;

    /// The node for changing it, if it is of this kind.
    fn held_mut(&mut self) -> Option<&mut B>;
}

/// Declares the kinds of nodes of a graph: an enum with a line a kind, so that hops between nodes are direct calls.
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
        // A graph has few nodes, so it does not matter that some kinds are larger than others.
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

/// Where a component puts the segments that it hands on. A node's [`Outbox`] is one; who holds the neighbour itself hands
/// them straight over.
pub trait Sink {
    /// Hands `segment` on at `port` of the component.
    fn pass(&mut self, port: Port, segment: &Segment);

    /// Says that a segment goes no further: it was lost, refused or discarded.
    fn discard(&mut self, segment: &Segment);

    /// Says that there is one more of a segment that came in once, or one less.
    fn copied(&mut self, segment: &Segment, copied: Copied);

    /// Hands news of the radio on at `port`. Where no wire leads to anybody who listens, none are made.
    fn report(&mut self, _port: Port, _report: &RadioReport) {}
}

/// What becomes of a copy of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copied {
    /// One is made and kept, while the segment goes on.
    Kept,
    /// One is made of what is kept, and sent.
    Sent,
    /// The one that was kept is given back.
    Released,
}

/// Messages on their way to the next node. Hops at one instant are taken in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Outbox {
    hops: Vec<Hop>,
    /// Raw packets whose segments went no further.
    pub(crate) discarded: Vec<PacketId>,
    /// Raw packets that are needed once more, or no more.
    pub(crate) copied: VecDeque<(PacketId, Copied)>,
    pub(crate) wires: Vec<[Wire; MAX_PORTS]>,
    pub(crate) from: u32,
}

/// The far end of a wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) node: u32,
    pub(crate) port: Port,
    pub(crate) connected: bool,
}

impl Wire {
    /// The end of no wire: it remembers where a message would have left.
    pub(crate) const fn unconnected(node: u32, port: Port) -> Self {
        Self { node, port, connected: false }
    }
}

/// A message and the end of the wire on which it travels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) to: Wire,
    pub(crate) message: Message,
}

impl Outbox {
    /// Sends `message` out at `port` of the node that is running.
    #[inline]
    pub fn send(&mut self, port: Port, message: Message) {
        let to = self.wires[self.from as usize][usize::from(port)];
        self.hops.push(Hop { to, message });
    }

    /// Adds a hop behind those that were sent.
    pub(crate) fn push(&mut self, hop: Hop) {
        self.hops.push(hop);
    }

    /// Exchanges what was sent for an emptied list; false where nothing was sent.
    #[inline]
    pub(crate) fn swap(&mut self, batch: &mut Vec<Hop>) -> bool {
        batch.clear();
        std::mem::swap(&mut self.hops, batch);
        !batch.is_empty()
    }

    /// An outbox of a single unconnected node, for driving a node by hand.
    pub fn for_one_node() -> Self {
        let wires = std::array::from_fn(|port| Wire::unconnected(0, port as Port));
        Self { wires: vec![wires], ..Self::default() }
    }

    /// Takes the next message that was sent, with the port at which it left. Of use with [`Self::for_one_node`].
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

    /// Every segment that a node takes and does not send on is told here, or the live world would lose its raw bytes; a
    /// simulated one has none.
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
