//! What crosses the wires of the graph, for the logs: packets that come to the link, and those that leave it for the path.

use std::collections::VecDeque;

use ackclock_core::{Message, NodeId, PacketId, Port, Time, Tracer};

/// Notes packets at the edge's ports, once it is asked to.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    edge: NodeId,
    path: Option<NodeId>,
    watching: bool,
    seen: VecDeque<Seen>,
}

/// A packet on a wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// It comes to the edge, from either side.
    Arrived { at: Time, packet: PacketId },
    /// It comes from the edge to the path.
    Left { at: Time, packet: PacketId },
}

impl Watch {
    /// Which nodes are meant.
    pub(crate) fn at(&mut self, edge: NodeId, path: Option<NodeId>) {
        (self.edge, self.path) = (edge, path);
    }

    /// Begins to note.
    pub(crate) fn watch(&mut self) {
        self.watching = true;
    }

    /// What was noted next.
    pub(crate) fn poll(&mut self) -> Option<Seen> {
        self.seen.pop_front()
    }
}

impl Tracer for Watch {
    #[inline]
    fn message(&mut self, at: Time, node: usize, port: Port, message: &Message) {
        if !self.watching {
            return;
        }
        let Message::Segment(segment) = message else { return };
        let packet = segment.packet();
        if !packet.has_bytes() {
            return;
        }
        if node == self.edge {
            self.seen.push_back(Seen::Arrived { at, packet });
        } else if Some(node) == self.path && port == ackclock_link::path::EDGE {
            self.seen.push_back(Seen::Left { at, packet });
        }
    }
}
