//! Boxes of an island for its traffic, probes and results, independent of the code that executes the island.

use ackclock_core::results::Towards;
use ackclock_core::{FlowId, NodeId};
use ackclock_edge::Edge;
use ackclock_link::path::Wires;
use ackclock_tcp::{Host, MediaReceiver, MediaSender, Receiver, Relay, Sender};

/// Boxes of an island, for reading results and for its traffic.
pub(crate) struct Boxes<'a> {
    pub(crate) servers: &'a mut Host,
    /// Wired links towards the servers and towards the edge.
    pub(crate) wires: [&'a mut Wires; 2],
    /// Relay on the network side of the edge, if any.
    pub(crate) relay: Option<RelayBoxes<'a>>,
    pub(crate) edge: &'a mut Edge,
    /// Separate radio observed by the edge, if any.
    pub(crate) behind: Option<&'a mut Edge>,
    pub(crate) clients: &'a mut Host,
}

impl Boxes<'_> {
    /// Edge with the regulators, then the separate radio that it observes, if any.
    pub(crate) fn edges(&mut self) -> impl Iterator<Item = &mut Edge> {
        [&mut *self.edge].into_iter().chain(self.behind.as_deref_mut())
    }

    /// Edge with the queues: the separate radio, if any.
    pub(crate) fn queue(&mut self) -> &mut Edge {
        self.behind.as_deref_mut().unwrap_or(self.edge)
    }

    /// Senders of a flow in the direction of its data: the original sender, then the sender of a relay.
    pub(crate) fn senders(&self, flow: FlowId) -> impl Iterator<Item = &dyn Sender> {
        let relay = self.relay.as_ref().and_then(|boxes| boxes.relay.sender(flow));
        self.sender(flow).into_iter().chain(relay)
    }

    /// Original sender of a flow: at the server, or at the mobile for an upload.
    pub(crate) fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        self.servers.sender(flow).or_else(|| self.clients.sender(flow))
    }

    /// Final receiver of a flow: at the mobile, or at the server for an upload.
    pub(crate) fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.clients.receiver(flow).or_else(|| self.servers.receiver(flow))
    }

    /// Both ends of a media flow; `None` for a TCP flow.
    pub(crate) fn media(&self, flow: FlowId) -> Option<(&MediaSender, &MediaReceiver)> {
        let hosts = [&*self.servers, &*self.clients];
        let sender = hosts.iter().find_map(|host| host.media_sender(flow))?;
        Some((sender, hosts.iter().find_map(|host| host.media_receiver(flow))?))
    }

    /// Payload delivered to the final receiver of a flow; `None` for a flow without a lasting receiver.
    pub(crate) fn delivered(&self, flow: FlowId) -> Option<Payload> {
        let tcp = |receiver: &Receiver| Payload {
            bytes: receiver.delivered_bytes(),
            wire_bytes: receiver.delivered_wire_bytes(),
        };
        let media = |receiver: &MediaReceiver| Payload {
            bytes: receiver.delivered_bytes(),
            wire_bytes: receiver.delivered_wire_bytes(),
        };
        self.receiver(flow).map(tcp).or_else(|| self.media(flow).map(|(_, receiver)| media(receiver)))
    }

    /// Sending and receiving host of a flow.
    pub(crate) fn hosts(&mut self, towards: Towards) -> [&mut Host; 2] {
        match towards {
            Towards::Mobile => [self.servers, self.clients],
            Towards::Server => [self.clients, self.servers],
        }
    }
}

/// Payload of a flow that was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Payload {
    pub(crate) bytes: u64,
    /// Payload with headers, each packet counted once.
    pub(crate) wire_bytes: u64,
}

/// Relay, with the wired paths between it and the edge.
pub(crate) struct RelayBoxes<'a> {
    pub(crate) relay: &'a mut Relay,
    /// Wired links towards the relay and towards the edge.
    pub(crate) core: [&'a mut Wires; 2],
}

/// Indices of an island's boxes, in the island or in an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) servers: NodeId,
    pub(crate) path: NodeId,
    /// Indices of the relay and of its wired path to the edge, if any.
    pub(crate) relay: Option<[NodeId; 2]>,
    pub(crate) edge: NodeId,
    /// Index of the separate radio observed by the edge, if any.
    pub(crate) behind: Option<NodeId>,
    pub(crate) clients: NodeId,
}

impl Places {
    pub(super) fn map(self, to: impl Fn(NodeId) -> NodeId) -> Self {
        let [servers, path, edge, clients] = [self.servers, self.path, self.edge, self.clients].map(&to);
        let relay = self.relay.map(|both| both.map(&to));
        Self { servers, path, relay, edge, behind: self.behind.map(to), clients }
    }

    pub(super) fn all(self) -> impl Iterator<Item = NodeId> {
        let Self { servers, path, relay, clients, .. } = self;
        [servers, path, clients].into_iter().chain(relay.into_iter().flatten()).chain(self.edges())
    }

    /// Indices of the edge with the regulators and of the separate radio, if any.
    pub(super) fn edges(self) -> impl Iterator<Item = NodeId> {
        [self.edge].into_iter().chain(self.behind)
    }

    /// Indices of the edge next to the wired path and of the edge next to the clients; equal if the island has only one
    /// edge.
    pub(crate) fn outer_edges(self) -> [NodeId; 2] {
        let other = self.behind.unwrap_or(self.edge);
        [self.edge.min(other), self.edge.max(other)]
    }
}
