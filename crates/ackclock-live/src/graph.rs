//! Graph of a scenario without its hosts: the extra delay of `[path]` if any, the edge, and the radio behind the edge
//! if the edge observes one. Segments at an unconnected port leave the graph.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use ackclock_core::{
    ConfigError, Copied, Engine, FlowId, Holds, Message, NodeId, PacketId, RadioReport, Rate, Segment, Span,
    Streams, Time,
};
use ackclock_edge::{Edge, RADIO, RegulatorConfig, Surroundings, WIRED};
use ackclock_link::{Change, Direction, Files, Path, Side as BoxSide, path};

use crate::PlaneConfig;
use crate::port::Side;
use crate::watch::{Seen, Watch};

/// Engine, with the roles of its nodes.
pub(crate) struct Graph {
    engine: Engine<AnyNode, Watch>,
    /// Node of the edge with the regulators, and node of the edge with the queues, which may be the same node or the
    /// observed radio.
    edge: NodeId,
    queue: NodeId,
    /// Nodes of the edges next to the wired side and next to the mobiles.
    ends: [NodeId; 2],
    path: Option<NodeId>,
    /// Receives the radio reports of the edge.
    pub(crate) reports: Option<Sender<RadioReport>>,
}

ackclock_core::nodes! {
    /// Node of the graph.
    enum AnyNode {
        Path(Path),
        Edge(Edge),
    }
}

impl Graph {
    pub(crate) fn new(
        config: &PlaneConfig<'_>,
        regulator: Arc<dyn RegulatorConfig>,
        files: &dyn Files,
    ) -> Result<Self, ConfigError> {
        let streams = Streams::new(config.seed, 0);
        let around =
            Surroundings { wired_round_trip: config.delay * 2, packet_bytes: config.packet_bytes as u32 };
        let mut engine = Engine::new(Watch::default());
        let edge = engine.add(config.edge.build_with(regulator, &streams, files, around)?.into());
        let behind = config.edge.build_behind(&streams, files, around)?;
        let (queue, ends) = match behind {
            None => (edge, [edge; 2]),
            Some((side, radio)) => {
                let radio = engine.add(radio.into());
                let ends = match side {
                    BoxSide::Network => [edge, radio],
                    BoxSide::Mobile => [radio, edge],
                };
                engine.connect((ends[0], RADIO), (ends[1], WIRED));
                (radio, ends)
            }
        };
        let path = (config.delay > Span::ZERO).then(|| {
            let wire = Path::new(Rate::from_bps(u64::MAX), config.delay, 0.0, &streams);
            let path = engine.add(wire.into());
            engine.connect((path, path::EDGE), (ends[0], WIRED));
            path
        });
        let beyond =
            if queue == ends[0] { path.map(|path| (path, path::EDGE)) } else { Some((ends[0], RADIO)) };
        engine.tracer_mut().at(queue, beyond);
        Ok(Self { engine, edge, queue, ends, path, reports: None })
    }

    /// Injects a segment that arrives from a side.
    pub(crate) fn inject(&mut self, now: Time, from: Side, segment: Segment) {
        let (node, port) = match (from, self.path) {
            (Side::Wired, Some(path)) => (path, path::SERVER),
            (Side::Wired, None) => (self.ends[0], WIRED),
            (Side::Radio, _) => (self.ends[1], RADIO),
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

    /// Returns the next segment that left the graph, with its time and side.
    pub(crate) fn poll_left(&mut self) -> Option<(Time, Side, Segment)> {
        loop {
            let egress = self.engine.poll_egress()?;
            match (egress.message, &self.reports) {
                (Message::Segment(segment), _) => {
                    let down = egress.node == self.ends[1] && egress.port == RADIO;
                    return Some((egress.at, if down { Side::Radio } else { Side::Wired }, segment));
                }
                // Sending fails only if the receiver has ended.
                (Message::Report(report), Some(reports)) => drop(reports.send(report)),
                _ => {}
            }
        }
    }

    /// Whether packets leaving at a side come directly from the link.
    pub(crate) const fn ends_with_link(&self, side: Side) -> bool {
        match side {
            Side::Radio => true,
            Side::Wired => self.path.is_none() && self.queue == self.ends[0],
        }
    }

    pub(crate) fn poll_copied(&mut self) -> Option<(PacketId, Copied)> {
        self.engine.poll_copied()
    }

    pub(crate) fn poll_discarded(&mut self) -> Option<PacketId> {
        self.engine.poll_discarded()
    }

    /// Starts recording the packets that enter and leave the link.
    pub(crate) fn begin(&mut self) {
        self.engine.tracer_mut().begin();
    }

    pub(crate) fn poll_seen(&mut self) -> Option<Seen> {
        self.engine.tracer_mut().poll()
    }

    pub(crate) fn change(&mut self, direction: Direction, change: Change) {
        let now = self.engine.now();
        self.queue_mut().change(now, direction, change);
        self.engine.refresh(self.queue);
    }

    /// Frees the number of a connection for reuse.
    pub(crate) fn forget(&mut self, flow: FlowId) {
        let now = self.engine.now();
        for node in self.edges() {
            self.node_mut(node).forget(now, flow);
            self.engine.note_wake(node);
        }
    }

    /// Assigns a flow to a user and to a class of service.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32, class: u8) {
        for node in self.edges() {
            self.node_mut(node).assign(flow, user);
            self.node_mut(node).classify(flow, class);
        }
    }

    /// Nodes of the edge with the regulators and, if different, of the edge with the queues.
    fn edges(&self) -> impl Iterator<Item = NodeId> + use<> {
        [self.edge].into_iter().chain(Some(self.queue).filter(|queue| *queue != self.edge))
    }

    pub(crate) fn edge(&self) -> &Edge {
        self.engine.node(self.edge).held().expect(ITS_EDGE)
    }

    pub(crate) fn edge_mut(&mut self) -> &mut Edge {
        self.node_mut(self.edge)
    }

    /// Edge with the queues.
    pub(crate) fn queue(&self) -> &Edge {
        self.engine.node(self.queue).held().expect(ITS_EDGE)
    }

    pub(crate) fn queue_mut(&mut self) -> &mut Edge {
        self.node_mut(self.queue)
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Edge {
        self.engine.node_mut(node).held_mut().expect(ITS_EDGE)
    }
}

const ITS_EDGE: &str = "the node of this number was added as an edge";
