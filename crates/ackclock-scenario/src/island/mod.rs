//! The network of a scenario: islands, each consisting of boxes and the wires between them.
//!
//! With dedicated channels each flow is a separate island. Islands exchange no packets, so each island can run on any
//! core. Memory does not grow with the number of flows, and the random numbers of a flow do not depend on other flows.
//!
//! `build` describes an [`Island`], and an [`Executor`] runs it. The [engine](Islands) runs islands of any shape,
//! several together. A [`Line`] runs one island of the simplest shape several times faster. `tests/line.rs` checks that
//! the engine and [`Line`] give the same results.

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
    /// A box of an island, for instance a host or the edge.
    pub(crate) enum AnyNode {
        Host(Host),
        Path(Path),
        Edge(Edge),
        Relay(Relay),
        ReportWire(ReportWire),
    }
}

/// Description of an island: boxes, the wires between them, and traffic.
pub(crate) struct Island {
    /// Boxes of the island, in the order in which they run if due at the same instant.
    pub(crate) boxes: Vec<AnyNode>,
    /// Wires of the island. Each wire joins two ports, in both directions.
    pub(crate) wires: Vec<[End; 2]>,
    /// Positions of the boxes from which results are read.
    pub(crate) places: Places,
    pub(crate) traffic: Traffic,
}

/// An end of a wire: the index of a box in the island, and a port.
pub(crate) type End = (usize, Port);

/// Runs islands that are numbered from zero.
pub(crate) trait Executor {
    /// Processes all events that are due up to and including `until`.
    fn advance(&mut self, until: Time);

    /// Boxes and traffic of an island, updated to the current instant.
    fn island(&mut self, number: usize) -> (Boxes<'_>, &Traffic);

    /// Probe that measures packets; `None` if no packet measurement is enabled.
    fn probe(&self) -> Option<&Probe> {
        None
    }

    /// Number of events processed so far.
    fn events(&self) -> u64;

    /// Ends the run. Packets in transit may be freed to make room for results.
    fn close(&mut self) {}
}
