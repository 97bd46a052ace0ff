//! What crosses the wires of the graph, for the logs: packets that come to the link, and those that leave it for the path.

use std::collections::VecDeque;

use ackclock_core::{Message, NodeId, PacketId, Port, Time, Tracer};

/// Notes packets at the ports of the edge with the queues, once it is asked to.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    link: NodeId,
    /// Where it comes what leaves the link for the wired side, if that is in the graph.
    beyond: Option<(NodeId, Port)>,
    watching: bool,
    seen: VecDeque<Seen>,
}

/// A packet on a wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// It comes to the link, from either side.
    Arrived { at: Time, packet: PacketId },
    /// It comes from the link to what is beyond.
    Left { at: Time, packet: PacketId },
}

impl Watch {
    /// Which nodes are meant.
    pub(crate) fn at(&mut self, link: NodeId, beyond: Option<(NodeId, Port)>) {
        (self.link, self.beyond) = (link, beyond);
    }

    /// Begins to note.
    pub(crate) fn begin(&mut self) {
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
        if node == self.link {
            self.seen.push_back(Seen::Arrived { at, packet });
        } else if self.beyond == Some((node, port)) {
            self.seen.push_back(Seen::Left { at, packet });
        }
    }
}
