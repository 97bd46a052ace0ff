//! Islands in an engine, which runs every shape; several together, so that what crosses their wires is in order.

use ackclock_core::{Engine, Holds, NodeId, Time, Tracer};
use ackclock_link::Path;

use super::{Boxes, Executor, Island, Station};
use crate::traffic::Traffic;

/// Islands in one engine.
pub(crate) struct Islands<T: Tracer> {
    engine: Engine<Station, T>,
    islands: Vec<(Places, Traffic)>,
}

/// Where the boxes of an island stand that results are read from: in the island, or in an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) servers: NodeId,
    pub(crate) path: NodeId,
    pub(crate) edge: NodeId,
    pub(crate) clients: NodeId,
}

impl<T: Tracer> Islands<T> {
    /// No islands yet; `tracer` sees what crosses wires.
    pub(crate) fn new(tracer: T) -> Self {
        Self { engine: Engine::new(tracer), islands: Vec::new() }
    }

    /// Adds an island; says where it stands in the engine.
    pub(crate) fn add(&mut self, island: Island) -> Places {
        let Island { boxes, wires, places, traffic } = island;
        let nodes: Vec<NodeId> = boxes.into_iter().map(|station| self.engine.add(station)).collect();
        for [one, other] in wires {
            self.engine.connect((nodes[one.0], one.1), (nodes[other.0], other.1));
        }
        let places = places.map(|place| nodes[place]);
        self.islands.push((places, traffic));
        places
    }

    /// The tracer.
    pub(crate) fn tracer_mut(&mut self) -> &mut T {
        self.engine.tracer_mut()
    }

    /// Lets the traffic of all islands act; whether there was any.
    fn serve(&mut self, now: Time) -> bool {
        let mut served = false;
        for (places, traffic) in &mut self.islands {
            if traffic.serve(now, &mut boxes(&mut self.engine, *places)) {
                served = true;
                places.all().into_iter().for_each(|node| self.engine.note_wake(node));
            }
        }
        served
    }
}

impl<T: Tracer> Executor for Islands<T> {
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
        self.engine.refresh(places.edge);
        (boxes(&mut self.engine, *places), traffic)
    }

    fn events(&self) -> u64 {
        self.engine.events()
    }
}

impl Places {
    fn map(self, to: impl Fn(NodeId) -> NodeId) -> Self {
        let [servers, path, edge, clients] = self.all().map(to);
        Self { servers, path, edge, clients }
    }

    const fn all(self) -> [NodeId; 4] {
        [self.servers, self.path, self.edge, self.clients]
    }
}

fn boxes<T: Tracer>(engine: &mut Engine<Station, T>, places: Places) -> Boxes<'_> {
    let [servers, path, edge, clients] = engine.nodes_mut(places.all());
    let Path { up, down } = held(path);
    Boxes { servers: held(servers), wires: [up, down], edge: held(edge), clients: held(clients) }
}

fn held<B>(station: &mut Station) -> &mut B
where
    Station: Holds<B>,
{
    station.held_mut().expect("the places of an island are told by who made its boxes")
}
