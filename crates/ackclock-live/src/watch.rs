//! Packets on the wires of the graph, for the logs: those arriving at the link, and those leaving it for the path.

use std::collections::VecDeque;

use ackclock_core::{Message, NodeId, PacketId, Port, Time, Tracer};

/// Records packets at the ports of the edge with the queues, once started.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    link: NodeId,
    /// Where packets from the link to the wired side arrive, if that node is in the graph.
    beyond: Option<(NodeId, Port)>,
    watching: bool,
    seen: VecDeque<Seen>,
}

/// A packet on a wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// It arrives at the link, from either side.
    Arrived { at: Time, packet: PacketId },
    /// It has left the link towards `beyond`.
    Left { at: Time, packet: PacketId },
}

impl Watch {
    /// Sets the nodes to watch.
    pub(crate) fn at(&mut self, link: NodeId, beyond: Option<(NodeId, Port)>) {
        (self.link, self.beyond) = (link, beyond);
    }

    /// Starts recording.
    pub(crate) fn begin(&mut self) {
        self.watching = true;
    }

    /// The next recorded packet.
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
