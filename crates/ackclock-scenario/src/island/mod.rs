//! The network of a scenario: islands, each of them boxes and the wires between them.
//!
//! Where each flow has a channel of its own, the network falls into islands of one flow. Nothing passes between islands, so
//! each can be run by itself, on any core: memory does not grow with the number of flows, and a flow's chance does not depend
//! on how others behave.
//!
//! An [`Island`] is described once, in `build`, and run by an [`Executor`]: an [engine](InEngine) runs islands of every
//! shape, several together; a [`Line`] runs one of the plainest shape several times faster. `tests/line.rs` holds both to
//! the same results.

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

/// An island as it is described.
pub(crate) struct Island {
    /// Of boxes that have something to do at the same instant, the first goes first.
    pub(crate) boxes: Vec<AnyNode>,
    /// Each joins two ports, in both directions.
    pub(crate) wires: Vec<[End; 2]>,
    /// Where the boxes stand that results are read from.
    pub(crate) places: Places,
    pub(crate) traffic: Traffic,
}

/// An end of a wire: a box by its place in the island, and its port.
pub(crate) type End = (usize, Port);

/// The boxes of an island that results are read from and its traffic acts on.
pub(crate) struct Boxes<'a> {
    pub(crate) servers: &'a mut Host,
    /// Towards the servers, and towards the edge.
    pub(crate) wires: [&'a mut Wires; 2],
    /// Before the edge, if there is one.
    pub(crate) relay: Option<RelayBoxes<'a>>,
    pub(crate) edge: &'a mut Edge,
    /// The radio that the edge observes, where it does.
    pub(crate) behind: Option<&'a mut Edge>,
    pub(crate) clients: &'a mut Host,
}

impl Boxes<'_> {
    /// The edges: that with the regulators, then the radio that it observes, where it does.
    pub(crate) fn edges(&mut self) -> impl Iterator<Item = &mut Edge> {
        [&mut *self.edge].into_iter().chain(self.behind.as_deref_mut())
    }

    /// The edge that has the queues: the last of them.
    pub(crate) fn queue(&mut self) -> &mut Edge {
        self.behind.as_deref_mut().unwrap_or(self.edge)
    }

    /// The senders of a flow, in the order in which its data passes them: that of its source, then that of a relay.
    pub(crate) fn senders(&self, flow: FlowId) -> impl Iterator<Item = &dyn Sender> {
        let relay = self.relay.as_ref().and_then(|boxes| boxes.relay.sender(flow));
        self.sender(flow).into_iter().chain(relay)
    }

    /// The sender where the data of a flow comes from: at the server, or, of an upload, at the mobile.
    pub(crate) fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        self.servers.sender(flow).or_else(|| self.clients.sender(flow))
    }

    /// The receiver where the data of a flow goes.
    pub(crate) fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.clients.receiver(flow).or_else(|| self.servers.receiver(flow))
    }

    /// The hosts of a flow: that which sends, and that which receives.
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
    /// Towards the relay, and towards the edge.
    pub(crate) core: [&'a mut Wires; 2],
}

/// Runs islands, which it numbers from zero.
pub(crate) trait Executor {
    /// Does everything that is due up to and at `until`.
    fn advance(&mut self, until: Time);

    /// The boxes of an island, brought up to the instant that was reached, and its traffic.
    fn island(&mut self, number: usize) -> (Boxes<'_>, &Traffic);

    /// What measures at the wires, if anything does.
    fn probe(&self) -> Option<&Probe> {
        None
    }

    /// How many events it took.
    fn events(&self) -> u64;

    /// The run is over: packets that are under way may be let go, so that its results find room.
    fn close(&mut self) {}
}
