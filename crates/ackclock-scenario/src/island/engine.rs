//! Runs islands in the event engine. The engine supports islands of every shape, and runs several islands together if a
//! capture must be in time order.

use std::io::Write;

use ackclock_core::{Engine, Holds, NodeId, Time};
use ackclock_link::Path;
use ackclock_link::path::Wires;

use super::boxes::{Boxes, Places, RelayBoxes};
use super::{AnyNode, Executor, Island};
use crate::capture::Capture;
use crate::probe::Probe;
use crate::traffic::Traffic;

/// Islands in one event engine, with an optional capture and probe.
pub(crate) struct Islands {
    engine: Engine<AnyNode, Listeners>,
    islands: Vec<(Places, Traffic)>,
}

type Listeners = (Option<Capture<Box<dyn Write + Send>>>, Option<Probe>);

impl Islands {
    /// Creates an engine without islands.
    pub(crate) fn new(capture: Option<Capture<Box<dyn Write + Send>>>, probe: Option<Probe>) -> Self {
        Self { engine: Engine::new((capture, probe)), islands: Vec::new() }
    }

    /// Adds an island. Returns the indices of the island's boxes in the engine.
    pub(crate) fn add(&mut self, island: Island) -> Places {
        let Island { boxes, wires, places, traffic } = island;
        let nodes: Vec<NodeId> = boxes.into_iter().map(|station| self.engine.add(station)).collect();
        for [one, other] in wires {
            self.engine.connect((nodes[one.0], one.1), (nodes[other.0], other.1));
        }
        let places = places.map(|place| nodes[place]);
        self.islands.push((places, traffic));
        if let (_, Some(probe)) = self.engine.tracer_mut() {
            probe.listen(places);
        }
        places
    }

    /// Packet capture of the islands, if any.
    pub(crate) fn capture_mut(&mut self) -> Option<&mut Capture<Box<dyn Write + Send>>> {
        self.engine.tracer_mut().0.as_mut()
    }

    /// Runs the traffic of all islands that is due at `now`. Returns whether traffic was due.
    fn serve(&mut self, now: Time) -> bool {
        let mut served = false;
        for (places, traffic) in &mut self.islands {
            if traffic.serve(now, &mut boxes(&mut self.engine, *places)) {
                served = true;
                places.all().for_each(|node| self.engine.note_wake(node));
            }
        }
        served
    }
}

impl Executor for Islands {
    fn advance(&mut self, until: Time) {
        if self.islands.iter().all(|(_, traffic)| traffic.is_empty()) {
            self.engine.advance(until);
            return;
        }
        loop {
            let due = self.islands.iter().map(|(_, traffic)| traffic.due()).fold(until, Time::min);
            let now = self.engine.next_wake().map_or(due, |wake| wake.min(due));
            self.engine.advance(now);
            if !self.serve(now) && now == until {
                return;
            }
        }
    }

    fn island(&mut self, number: usize) -> (Boxes<'_>, &Traffic) {
        let (places, traffic) = &self.islands[number];
        places.edges().for_each(|node| self.engine.refresh(node));
        (boxes(&mut self.engine, *places), traffic)
    }

    fn probe(&self) -> Option<&Probe> {
        self.engine.tracer().1.as_ref()
    }

    fn events(&self) -> u64 {
        self.engine.events()
    }
}

/// Boxes of an island. The indices of the boxes are consecutive, from servers to clients.
fn boxes(engine: &mut Engine<AnyNode, Listeners>, places: Places) -> Boxes<'_> {
    let Places { servers, path, relay, edge, behind, clients } = places;
    let mut row = engine.nodes_mut(servers, clients).iter_mut();
    let mut row: [_; LONGEST_ROW] = std::array::from_fn(|_| row.next());
    let mut at = |node: NodeId| row[node - servers].take().expect("the places of an island are different");
    let relay = relay.map(|[relay, core]| RelayBoxes { relay: held(at(relay)), core: wires(at(core)) });
    let behind = behind.map(|behind| held(at(behind)));
    let (wires, edge) = (wires(at(path)), held(at(edge)));
    Boxes { servers: held(at(servers)), wires, relay, edge, behind, clients: held(at(clients)) }
}

/// Maximum number of boxes in an island: servers, wired paths, relay, its wired paths, edge, separate radio, clients.
const LONGEST_ROW: usize = 7;

fn wires(path: &mut AnyNode) -> [&mut Wires; 2] {
    let Path { up, down } = held(path);
    [up, down]
}

fn held<B>(station: &mut AnyNode) -> &mut B
where
    AnyNode: Holds<B>,
{
    station.held_mut().expect("the indices of an island come from the code that made its boxes")
}
