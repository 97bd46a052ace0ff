//! The network of a scenario: islands, each consisting of boxes and the wires between them.
//!
//! With dedicated channels each flow is an island. Islands exchange no packets, so each runs separately on any core.
//! Memory does not grow with the number of flows, and the random numbers of a flow do not depend on other flows.
//!
//! An [`Island`] is described once, in `build`, and run by an [`Executor`]. The [engine](Islands) runs islands of any
//! shape, several together. A [`Line`] runs one island of the simplest shape several times faster. `tests/line.rs`
//! checks that both give the same results.

pub(crate) mod boxes;
mod build;
mod engine;
pub(crate) mod group;
mod line;

use ackclock_core::{Port, Time};
use ackclock_edge::Edge;
use ackclock_link::{Path, ReportWire};
use ackclock_tcp::{Host, Relay};

use self::boxes::{Boxes, Places};
pub(crate) use self::build::Builder;
pub(crate) use self::engine::Islands;
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
