//! The graph of a scenario without its hosts: the extra delay of `[path]`, where there is one, and the edge. What reaches a
//! port without a wire leaves for the world.

use ackclock_core::{
    ConfigError, Copied, Engine, FlowId, Holds, Message, NodeId, PacketId, Rate, Segment, Span, Streams, Time,
};
use ackclock_edge::{Edge, RADIO, RegulatorConfig, Surroundings, WIRED};
use ackclock_link::{Direction, Files, Medium, Path, path};

use crate::PlaneConfig;
use crate::port::Side;
use crate::watch::{Seen, Watch};

/// The engine, and which of its nodes is which.
pub(crate) struct Graph {
    engine: Engine<Station, Watch>,
    edge: NodeId,
    path: Option<NodeId>,
}

ackclock_core::nodes! {
    /// A box of the graph.
    enum Station {
        Path(Path),
        Edge(Edge),
    }
}

impl Graph {
    pub(crate) fn new(
        config: &PlaneConfig<'_>,
        regulator: Box<dyn RegulatorConfig>,
        files: &dyn Files,
    ) -> Result<Self, ConfigError> {
        let streams = Streams::new(config.seed, 0);
        let around =
            Surroundings { wired_round_trip: config.delay * 2, packet_bytes: config.packet_bytes as u32 };
        let mut engine = Engine::new(Watch::default());
        let edge = engine.add(config.edge.build_with(regulator, &streams, files, around)?.into());
        let path = (config.delay > Span::ZERO).then(|| {
            let wire = Path::new(Rate::from_bps(u64::MAX), config.delay, 0.0, &streams);
            let path = engine.add(wire.into());
            engine.connect((path, path::EDGE), (edge, WIRED));
            path
        });
        engine.tracer_mut().at(edge, path);
        Ok(Self { engine, edge, path })
    }

    /// Brings a segment in at a side.
    pub(crate) fn inject(&mut self, now: Time, from: Side, segment: Segment) {
        let (node, port) = match (from, self.path) {
            (Side::Wired, Some(path)) => (path, path::SERVER),
            (Side::Wired, None) => (self.edge, WIRED),
            (Side::Radio, _) => (self.edge, RADIO),
        };
        self.engine.inject(now, node, port, Message::Segment(segment));
    }

    pub(crate) fn advance(&mut self, now: Time) {
        self.engine.advance(now);
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.engine.next_wake()
    }

    pub(crate) fn now(&self) -> Time {
        self.engine.now()
    }

    pub(crate) fn events(&self) -> u64 {
        self.engine.events()
    }

    /// The next segment that left the graph, when, and at which side.
    pub(crate) fn poll_left(&mut self) -> Option<(Time, Side, Segment)> {
        loop {
            let egress = self.engine.poll_egress()?;
            if let Message::Segment(segment) = egress.message {
                let down = egress.node == self.edge && egress.port == RADIO;
                return Some((egress.at, if down { Side::Radio } else { Side::Wired }, segment));
            }
        }
    }

    /// Whether what leaves at a side comes right from the link.
    pub(crate) const fn ends_with_link(&self, side: Side) -> bool {
        matches!(side, Side::Radio) || self.path.is_none()
    }

    pub(crate) fn poll_copied(&mut self) -> Option<(PacketId, Copied)> {
        self.engine.poll_copied()
    }

    pub(crate) fn poll_discarded(&mut self) -> Option<PacketId> {
        self.engine.poll_discarded()
    }

    /// From now on what comes to the link and leaves it is noted.
    pub(crate) fn watch(&mut self) {
        self.engine.tracer_mut().watch();
    }

    pub(crate) fn poll_seen(&mut self) -> Option<Seen> {
        self.engine.tracer_mut().poll()
    }

    pub(crate) fn replace_medium(&mut self, direction: Direction, medium: Box<dyn Medium>) {
        let now = self.engine.now();
        self.edge_mut().replace_medium(now, direction, medium);
        self.engine.refresh(self.edge);
    }

    /// The number of a connection goes to another.
    pub(crate) fn forget(&mut self, flow: FlowId) {
        let now = self.engine.now();
        self.edge_mut().forget(now, flow);
        self.engine.note_wake(self.edge);
    }

    pub(crate) fn edge(&self) -> &Edge {
        self.engine.node(self.edge).held().expect(ITS_EDGE)
    }

    pub(crate) fn edge_mut(&mut self) -> &mut Edge {
        self.engine.node_mut(self.edge).held_mut().expect(ITS_EDGE)
    }
}

const ITS_EDGE: &str = "the node of this number was added as an edge";
