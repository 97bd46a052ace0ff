//! The graph of a scenario: servers - wires - edge - clients.
//!
//! Where each flow has a channel of its own, the graph falls into islands of one flow. Nothing passes between them, so
//! they can be run one after the other: memory does not grow with the number of flows, and a flow's chance does not depend
//! on how others behave.

use std::sync::Arc;

use ackclock_core::{
    ConfigError, Engine, FlowId, Message, Node, NodeId, Outbox, Port, Seq, Streams, Time, Tracer, name_of,
};
use ackclock_edge::{Edge, Surroundings};
use ackclock_link::{Files, Path, path};
use ackclock_tcp::config::{Switch, window_bytes};
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::{Course, Host, Place, Receiver, ReceiverConfig, Sender, SenderRow, Workload, host};

use crate::capture::{Numbers, Tap};
use crate::line::{Around, Line};
use crate::packet::{Interface, Source};
use crate::plan::FlowPlan;
use crate::tables::FlowTable;
use crate::traffic::{Boxes, Traffic};
use crate::{Progress, Tables};

/// A node of the graph. An enum, so that hops between nodes are direct calls.
// There are four to a graph, so it does not matter that some are larger than others.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Station {
    Host(Host),
    Path(Path),
    Edge(Edge),
}

/// A graph that is run: one island by itself, or several in one engine.
pub(crate) trait Graph {
    /// Does everything that is due up to and at `until`.
    fn advance(&mut self, until: Time);

    /// The parts of an island, brought up to the instant that was reached.
    fn parts(&mut self, island: usize) -> Parts<'_>;

    /// The edge of an island after its [`parts`](Self::parts), for what it works out when it is asked.
    fn edge(&mut self, island: usize) -> &mut Edge;

    /// How many events it took.
    fn events(&self) -> u64;

    /// The run is over: packets that are under way may be let go, so that its results find room.
    fn close(&mut self) {}
}

/// What there is to read of an island.
pub(crate) struct Parts<'a> {
    pub(crate) servers: &'a Host,
    pub(crate) edge: &'a Edge,
    pub(crate) clients: &'a Host,
    pub(crate) traffic: &'a Traffic,
}

/// Islands in one engine, with a tracer on their wires.
pub(crate) struct Wired<T: Tracer> {
    pub(crate) engine: Engine<Station, T>,
    pub(crate) islands: Vec<Island>,
    /// Of each island.
    pub(crate) traffic: Vec<Traffic>,
}

impl<T: Tracer> Graph for Wired<T> {
    fn advance(&mut self, until: Time) {
        if self.traffic.iter().all(Traffic::is_empty) {
            self.engine.advance(until);
            return;
        }
        loop {
            let due = self.traffic.iter().map(Traffic::due).fold(until, Time::min);
            let now = self.engine.next_wake().map_or(due, |wake| wake.min(due));
            self.engine.advance(now);
            if !self.serve(now) && now == until {
                return;
            }
        }
    }

    fn parts(&mut self, number: usize) -> Parts<'_> {
        let island = self.islands[number];
        let traffic = &self.traffic[number];
        self.engine.refresh(island.edge);
        let (servers, edge, clients) = (
            self.engine.node(island.servers),
            self.engine.node(island.edge),
            self.engine.node(island.clients),
        );
        match (servers, edge, clients) {
            (Station::Host(servers), Station::Edge(edge), Station::Host(clients)) => {
                Parts { servers, edge, clients, traffic }
            }
            _ => unreachable!("{STRANGE}"),
        }
    }

    fn edge(&mut self, number: usize) -> &mut Edge {
        match self.engine.node_mut(self.islands[number].edge) {
            Station::Edge(edge) => edge,
            _ => unreachable!("{STRANGE}"),
        }
    }

    fn events(&self) -> u64 {
        self.engine.events()
    }
}

impl<T: Tracer> Wired<T> {
    /// Lets the traffic of all islands act; whether there was any.
    fn serve(&mut self, now: Time) -> bool {
        let mut served = false;
        for (traffic, &island) in self.traffic.iter_mut().zip(&self.islands) {
            if traffic.serve(now, &mut Within { engine: &mut self.engine, island }) {
                served = true;
                for node in [island.servers, island.path, island.edge, island.clients] {
                    self.engine.note_wake(node);
                }
            }
        }
        served
    }
}

/// An island within an engine.
struct Within<'a, T: Tracer> {
    engine: &'a mut Engine<Station, T>,
    island: Island,
}

const STRANGE: &str = "an island is built in this file, with these kinds of nodes";

impl<T: Tracer> Within<'_, T> {
    fn host(&mut self, node: NodeId) -> &mut Host {
        match self.engine.node_mut(node) {
            Station::Host(host) => host,
            _ => unreachable!("{STRANGE}"),
        }
    }
}

impl<T: Tracer> Boxes for Within<'_, T> {
    fn servers(&mut self) -> &mut Host {
        self.host(self.island.servers)
    }

    fn renew(&mut self, flow: FlowId, name: &str) {
        match self.engine.node_mut(self.island.path) {
            Station::Path(path) => path.renew(flow, name),
            _ => unreachable!("{STRANGE}"),
        }
    }

    fn edge(&mut self) -> &mut Edge {
        match self.engine.node_mut(self.island.edge) {
            Station::Edge(edge) => edge,
            _ => unreachable!("{STRANGE}"),
        }
    }

    fn clients(&mut self) -> &mut Host {
        self.host(self.island.clients)
    }
}

/// A group of flows with its components read.
pub(crate) struct Group {
    pub(crate) table: FlowTable,
    pub(crate) sender_name: String,
    sender: Box<dyn SenderRow>,
    receiver: ReceiverConfig,
    workload: Box<dyn Workload>,
    /// Whether its flows are connections from the start on, not clients whose connections come and go.
    pub(crate) lasts: bool,
}

/// The nodes of one island.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Island {
    pub(crate) servers: NodeId,
    pub(crate) path: NodeId,
    pub(crate) edge: NodeId,
    pub(crate) clients: NodeId,
}

/// Where islands get what they are built from.
pub(crate) struct Builder<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) groups: Vec<Arc<Group>>,
    pub(crate) files: &'a dyn Files,
    /// Where it tells what is built.
    pub(crate) progress: &'a Progress,
    /// What clients draw from, whatever island they are in.
    clients: Streams,
}

impl<'a> Builder<'a> {
    /// Reads the components of all flows.
    pub(crate) fn new(
        tables: &'a Tables,
        files: &'a dyn Files,
        streams: &Streams,
        progress: &'a Progress,
    ) -> Result<Self, ConfigError> {
        let group = |(index, table): (usize, &'a FlowTable)| {
            Group::new(table).map(Arc::new).map_err(|error| error.under(&format!("flow.{index}")))
        };
        let groups = tables.flow.iter().enumerate().map(group).collect::<Result<_, _>>()?;
        Ok(Self { tables, groups, files, progress, clients: streams.within("clients") })
    }

    /// Builds the island of `flows`. Within it they are numbered from zero in their order.
    pub(crate) fn line(&self, flows: &[FlowPlan], streams: &Streams) -> Result<Line, ConfigError> {
        let wires = &self.tables.path;
        let path = Path::new(wires.rate, wires.delay, wires.loss.probability(), streams);
        let edge = self.tables.edge.build(streams, self.files, self.surroundings());
        let mut edge = edge.map_err(|error| error.under("edge"))?;
        let (mut servers, mut clients) = (Host::new(), Host::new());
        let mut traffic = Traffic::beside(flows.len());
        for (number, flow) in flows.iter().enumerate() {
            let (id, group) = (FlowId(number as u32), &self.groups[flow.group]);
            let name = flow.name();
            let place = Place {
                streams: self.clients.within(&name),
                start: flow.start,
                payload: group.receiver.mss.into(),
            };
            match group.workload.course(&place) {
                Course::Connection(supply) => {
                    let (mut sender, receiver) = group.connection(id, flow.start, FIRST);
                    sender.supply(supply);
                    edge.assign(id, flow.seat);
                    servers.add_sender(id, sender);
                    clients.add_receiver(id, flow.start, receiver);
                }
                Course::Client(client) => traffic.add(client, Arc::clone(group), flow, name),
            }
            self.progress.build();
        }
        Ok(Line::new(servers, path, edge, clients, traffic))
    }

    /// Builds the island of `flows` into `engine`.
    pub(crate) fn wire<T: Tracer>(
        &self,
        engine: &mut Engine<Station, T>,
        flows: &[FlowPlan],
        streams: &Streams,
    ) -> Result<(Island, Traffic), ConfigError> {
        let Line { servers, down, edge, around: Around { up, clients, .. }, traffic, .. } =
            self.line(flows, streams)?;
        let island = Island {
            servers: engine.add(Station::Host(servers)),
            path: engine.add(Station::Path(Path { up, down })),
            edge: engine.add(Station::Edge(edge)),
            clients: engine.add(Station::Host(clients)),
        };
        engine.connect((island.servers, host::WIRE), (island.path, path::SERVER));
        engine.connect((island.path, path::EDGE), (island.edge, ackclock_edge::WIRED));
        engine.connect((island.edge, ackclock_edge::RADIO), (island.clients, host::WIRE));
        Ok((island, traffic))
    }

    fn surroundings(&self) -> Surroundings {
        let packet = |group: &Arc<Group>| match group.table.packet {
            ackclock_core::Size::Bytes(bytes) => bytes as u32,
            // `check` lets only bytes pass.
            _ => 0,
        };
        Surroundings {
            wired_round_trip: self.tables.path.delay * 2,
            packet_bytes: self.groups.iter().map(packet).max().unwrap_or(0),
        }
    }
}

/// First sequence number of data; a handshake has the one before.
const FIRST: Seq = Seq(1);

impl Group {
    fn new(table: &FlowTable) -> Result<Self, ConfigError> {
        let sender = table.sender()?;
        let mss = sender.build(table.params(FlowId(0), Time::ZERO, FIRST)?)?.mss();
        Ok(Self {
            table: table.clone(),
            sender_name: name_of(&table.sender),
            receiver: receiver(table, &*sender, mss)?,
            sender,
            workload: table.workload()?,
            lasts: table.lasts()?,
        })
    }

    /// Both ends of a connection whose data begins with the number `first`; what it sends is not said yet.
    pub(crate) fn connection(&self, id: FlowId, start: Time, first: Seq) -> (Box<dyn Sender>, Receiver) {
        let params = self.table.params(id, start, first);
        let sender = params.and_then(|params| self.sender.build(params));
        let opening = match self.receiver.opening {
            Opening::Established(_) => Opening::Established(first),
            Opening::Handshake => Opening::Handshake,
        };
        let receiver = Receiver::new(ReceiverConfig { opening, ..self.receiver }, id);
        (sender.expect("the group was read by building one with the same options"), receiver)
    }
}

fn receiver(table: &FlowTable, sender: &dyn SenderRow, mss: u32) -> Result<ReceiverConfig, ConfigError> {
    let options = sender.config();
    let on = |switch: Option<Switch>| switch == Some(Switch::On);
    // A packet has at most 65535 bytes.
    let mss = mss as u16;
    Ok(ReceiverConfig {
        opening: match options.handshake {
            Switch::On => Opening::Handshake,
            Switch::Off => Opening::Established(FIRST),
        },
        acks: table.acks()?.policy(),
        ack_size: table.ack_size.0,
        max_window: window_bytes(table.max_window, mss).map_err(|error| error.under("max_window"))?,
        window: table.receive_window,
        mss,
        sack: sender.uses_sack(),
        dsack: on(Some(table.dsack)),
        timestamps: on(options.timestamps),
        ecn: on(Some(options.ecn)),
    })
}

impl Island {
    /// Where a capture listens: at the servers' and at the clients' interfaces.
    pub(crate) fn taps(&self, numbers: Numbers) -> [Tap; 4] {
        let tap = |node, port, interface, source| Tap { node, port, interface, source, numbers };
        [
            tap(self.path, path::SERVER, Interface::Server, Source::Server),
            tap(self.servers, host::WIRE, Interface::Server, Source::Client),
            tap(self.clients, host::WIRE, Interface::Client, Source::Server),
            tap(self.edge, ackclock_edge::RADIO, Interface::Client, Source::Client),
        ]
    }
}

impl Node for Station {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        match self {
            Self::Host(node) => node.receive(now, port, message, out),
            Self::Path(node) => node.receive(now, port, message, out),
            Self::Edge(node) => node.receive(now, port, message, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        match self {
            Self::Host(node) => node.wake(now, out),
            Self::Path(node) => node.wake(now, out),
            Self::Edge(node) => node.wake(now, out),
        }
    }

    fn next_wake(&self) -> Option<Time> {
        match self {
            Self::Host(node) => node.next_wake(),
            Self::Path(node) => node.next_wake(),
            Self::Edge(node) => node.next_wake(),
        }
    }
}
