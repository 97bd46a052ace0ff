//! Records packets between nodes of the graph, for the logs: packets that arrive at the link, and packets that leave it
//! for the path.

use std::collections::VecDeque;

use ackclock_core::{Message, NodeId, PacketId, Port, Time, Tracer};

/// Recorder of packets at the ports of the edge with the queues.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    link: NodeId,
    /// Node and port at which packets from the link to the wired side arrive, if that node is in the graph.
    beyond: Option<(NodeId, Port)>,
    watching: bool,
    seen: VecDeque<Seen>,
}

/// Recorded packet between two nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    /// The packet arrives at the link, from either side.
    Arrived { at: Time, packet: PacketId },
    /// The packet has left the link towards `beyond`.
    Left { at: Time, packet: PacketId },
}

impl Watch {
    /// Sets the graph nodes to watch.
    pub(crate) fn at(&mut self, link: NodeId, beyond: Option<(NodeId, Port)>) {
        (self.link, self.beyond) = (link, beyond);
    }

    /// Starts recording packets.
    pub(crate) fn begin(&mut self) {
        self.watching = true;
    }

    /// Removes and returns the next recorded packet.
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
