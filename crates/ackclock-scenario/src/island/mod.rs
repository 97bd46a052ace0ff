//! The network of a scenario: islands, each consisting of boxes and the wires between them.
//!
//! With dedicated channels each flow is an island. Islands exchange no packets, so each runs separately on any core.
//! Memory does not grow with the number of flows, and the random numbers of a flow do not depend on other flows.
//!
//! An [`Island`] is described once, in `build`, and run by an [`Executor`]. The [engine](Islands) runs islands of any
//! shape, several together. A [`Line`] runs one island of the simplest shape several times faster. `tests/line.rs`
//! checks that both give the same results.

mod build;
mod engine;
mod line;

use ackclock_core::results::Towards;
use ackclock_core::{FlowId, Port, Time};
use ackclock_edge::Edge;
use ackclock_link::path::Wires;
use ackclock_link::{Path, ReportWire};
use ackclock_tcp::{Host, Receiver, Relay, Sender};

pub(crate) use self::build::{Builder, Group};
pub(crate) use self::engine::{Islands, Places};
pub(crate) use self::line::Line;
use crate::probe::Probe;
use crate::traffic::Traffic;

ackclock_core::nodes! {
    /// A box of an island.
    pub(crate) enum AnyNode {
        Host(Host),
        Path(Path),
        Edge(Edge),
        Relay(Relay),
        ReportWire(ReportWire),
    }
}

/// The description of an island.
pub(crate) struct Island {
    /// The boxes. If several are due at the same instant, they act in this order.
    pub(crate) boxes: Vec<AnyNode>,
    /// The wires. Each joins two ports, in both directions.
    pub(crate) wires: Vec<[End; 2]>,
    /// Positions of the boxes from which results are read.
    pub(crate) places: Places,
    pub(crate) traffic: Traffic,
}

/// An end of a wire: the index of a box in the island, and a port.
pub(crate) type End = (usize, Port);

/// The boxes of an island, for reading results and for its traffic.
pub(crate) struct Boxes<'a> {
    pub(crate) servers: &'a mut Host,
    /// Wired links towards the servers and towards the edge.
    pub(crate) wires: [&'a mut Wires; 2],
    /// The relay on the network side of the edge, if any.
    pub(crate) relay: Option<RelayBoxes<'a>>,
    pub(crate) edge: &'a mut Edge,
    /// The separate radio observed by the edge, if any.
    pub(crate) behind: Option<&'a mut Edge>,
    pub(crate) clients: &'a mut Host,
}

impl Boxes<'_> {
    /// The edge with the regulators, then the separate radio it observes, if any.
    pub(crate) fn edges(&mut self) -> impl Iterator<Item = &mut Edge> {
        [&mut *self.edge].into_iter().chain(self.behind.as_deref_mut())
    }

    /// The edge with the queues: the separate radio, if any.
    pub(crate) fn queue(&mut self) -> &mut Edge {
        self.behind.as_deref_mut().unwrap_or(self.edge)
    }

    /// The senders of a flow in the direction of its data: the original sender, then that of a relay.
    pub(crate) fn senders(&self, flow: FlowId) -> impl Iterator<Item = &dyn Sender> {
        let relay = self.relay.as_ref().and_then(|boxes| boxes.relay.sender(flow));
        self.sender(flow).into_iter().chain(relay)
    }

    /// The original sender of a flow: at the server, or at the mobile for an upload.
    pub(crate) fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        self.servers.sender(flow).or_else(|| self.clients.sender(flow))
    }

    /// The final receiver of a flow: at the mobile, or at the server for an upload.
    pub(crate) fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.clients.receiver(flow).or_else(|| self.servers.receiver(flow))
    }

    /// The sending and the receiving host of a flow.
    pub(crate) fn hosts(&mut self, towards: Towards) -> [&mut Host; 2] {
        match towards {
            Towards::Mobile => [self.servers, self.clients],
            Towards::Server => [self.clients, self.servers],
        }
    }
}

/// A relay, and the wires between it and the edge.
pub(crate) struct RelayBoxes<'a> {
    pub(crate) relay: &'a mut Relay,
    /// Wired links towards the relay and towards the edge.
    pub(crate) core: [&'a mut Wires; 2],
}

/// Runs islands, numbered from zero.
pub(crate) trait Executor {
    /// Does everything that is due up to and at `until`.
    fn advance(&mut self, until: Time);

    /// The boxes of an island, updated to the current instant, and its traffic.
    fn island(&mut self, number: usize) -> (Boxes<'_>, &Traffic);

    /// The probe that measures packets, if any.
    fn probe(&self) -> Option<&Probe> {
        None
    }

    /// Number of events so far.
    fn events(&self) -> u64;

    /// Ends the run. Packets in transit may be freed to make room for results.
    fn close(&mut self) {}
}
