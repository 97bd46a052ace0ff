//! The graph of a scenario: servers - wires - edge - clients.
//!
//! Where each flow has a channel of its own, the graph falls into islands of one flow. Nothing passes between them, so
//! they can be run one after the other: memory does not grow with the number of flows, and a flow's chance does not depend
//! on how others behave.

use ackclock_core::{
    ConfigError, Engine, FlowId, Message, Node, NodeId, Outbox, Port, Seq, Streams, Time, Tracer,
};
use ackclock_edge::{Edge, Surroundings};
use ackclock_link::{Files, Path, path};
use ackclock_tcp::config::{Switch, window_bytes};
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::{Host, Receiver, ReceiverConfig, Sender, SenderRow, Workload, host};

use crate::Tables;
use crate::acks::Acks;
use crate::capture::Tap;
use crate::line::Line;
use crate::packet::{Interface, Source};
use crate::tables::FlowTable;

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

    /// How many events it took.
    fn events(&self) -> u64;
}

/// What there is to read of an island.
pub(crate) struct Parts<'a> {
    pub(crate) servers: &'a Host,
    pub(crate) edge: &'a Edge,
    pub(crate) clients: &'a Host,
}

/// Islands in one engine, with a tracer on their wires.
pub(crate) struct Wired<T: Tracer> {
    pub(crate) engine: Engine<Station, T>,
    pub(crate) islands: Vec<Island>,
}

impl<T: Tracer> Graph for Wired<T> {
    fn advance(&mut self, until: Time) {
        self.engine.advance(until);
    }

    fn parts(&mut self, island: usize) -> Parts<'_> {
        let island = self.islands[island];
        self.engine.refresh(island.edge);
        let (servers, edge, clients) = (
            self.engine.node(island.servers),
            self.engine.node(island.edge),
            self.engine.node(island.clients),
        );
        match (servers, edge, clients) {
            (Station::Host(servers), Station::Edge(edge), Station::Host(clients)) => {
                Parts { servers, edge, clients }
            }
            _ => unreachable!("an island is built in this file, with these kinds of nodes"),
        }
    }

    fn events(&self) -> u64 {
        self.engine.events()
    }
}

/// One flow of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlan {
    /// Its number in the run.
    pub(crate) id: u32,
    /// Its group.
    pub(crate) group: usize,
    /// When it begins.
    pub(crate) start: Time,
}

/// A group of flows with its components read.
pub(crate) struct Group<'a> {
    pub(crate) table: &'a FlowTable,
    pub(crate) sender: Box<dyn SenderRow>,
    pub(crate) sender_name: String,
    workload: Box<dyn Workload>,
    acks: Box<dyn Acks>,
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
    pub(crate) groups: Vec<Group<'a>>,
    pub(crate) files: &'a dyn Files,
}

impl<'a> Builder<'a> {
    /// Reads the components of all flows.
    pub(crate) fn new(tables: &'a Tables, files: &'a dyn Files) -> Result<Self, ConfigError> {
        let group = |(index, table): (usize, &'a FlowTable)| {
            Group::new(table).map_err(|error| error.under(&format!("flow.{index}")))
        };
        let groups = tables.flow.iter().enumerate().map(group).collect::<Result<_, _>>()?;
        Ok(Self { tables, groups, files })
    }

    /// Every flow by number.
    pub(crate) fn flows(&self) -> Vec<FlowPlan> {
        let mut plans = Vec::new();
        for (group, Group { table, .. }) in self.groups.iter().enumerate() {
            for number in 0..table.count {
                let start = Time::ZERO + table.start + table.stagger * u64::from(number);
                plans.push(FlowPlan { id: plans.len() as u32, group, start });
            }
        }
        plans
    }

    /// Builds the island of `flows`. Within it they are numbered from zero in their order.
    pub(crate) fn line(&self, flows: &[FlowPlan], streams: &Streams) -> Result<Line, ConfigError> {
        let (mut servers, mut clients) = (Host::new(), Host::new());
        for (number, flow) in flows.iter().enumerate() {
            let id = FlowId(number as u32);
            let under = |error: ConfigError| error.under(&format!("flow.{}", flow.group));
            let (sender, receiver) = self.groups[flow.group].connection(id, flow.start).map_err(under)?;
            servers.add_sender(id, sender);
            clients.add_receiver(id, flow.start, receiver);
        }
        let wires = &self.tables.path;
        let path = Path::new(wires.rate, wires.delay, wires.loss, streams);
        let edge = self.tables.edge.build(streams, self.files, self.surroundings());
        let edge = edge.map_err(|error| error.under("edge"))?;
        Ok(Line::new(servers, path, edge, clients))
    }

    /// Builds the island of `flows` into `engine`.
    pub(crate) fn wire<T: Tracer>(
        &self,
        engine: &mut Engine<Station, T>,
        flows: &[FlowPlan],
        streams: &Streams,
    ) -> Result<Island, ConfigError> {
        let Line { servers, path, edge, clients, .. } = self.line(flows, streams)?;
        let island = Island {
            servers: engine.add(Station::Host(servers)),
            path: engine.add(Station::Path(path)),
            edge: engine.add(Station::Edge(edge)),
            clients: engine.add(Station::Host(clients)),
        };
        engine.connect((island.servers, host::WIRE), (island.path, path::SERVER));
        engine.connect((island.path, path::EDGE), (island.edge, ackclock_edge::WIRED));
        engine.connect((island.edge, ackclock_edge::RADIO), (island.clients, host::WIRE));
        Ok(island)
    }

    fn surroundings(&self) -> Surroundings {
        let packet = |group: &Group<'_>| match group.table.packet {
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

impl<'a> Group<'a> {
    fn new(table: &'a FlowTable) -> Result<Self, ConfigError> {
        Ok(Self {
            table,
            sender: table.sender()?,
            sender_name: name_of(&table.sender),
            workload: table.workload()?,
            acks: table.acks()?,
        })
    }

    /// Both ends of one connection.
    fn connection(&self, id: FlowId, start: Time) -> Result<(Box<dyn Sender>, Receiver), ConfigError> {
        let mut sender = self.sender.build(self.table.params(id, start)?)?;
        sender.supply(self.workload.supply());
        let receiver = Receiver::new(self.receiver(sender.mss())?, id);
        Ok((sender, receiver))
    }

    fn receiver(&self, mss: u32) -> Result<ReceiverConfig, ConfigError> {
        let options = self.sender.config();
        let on = |switch: Option<Switch>| switch == Some(Switch::On);
        // A packet has at most 65535 bytes.
        let mss = mss as u16;
        Ok(ReceiverConfig {
            opening: match options.handshake {
                Switch::On => Opening::Handshake,
                Switch::Off => Opening::Established(Seq(1)),
            },
            acks: self.acks.policy(),
            ack_size: self.table.ack_size.0,
            max_window: window_bytes(self.table.max_window, mss)
                .map_err(|error| error.under("max_window"))?,
            mss,
            sack: self.sender.uses_sack(),
            dsack: on(Some(self.table.dsack)),
            timestamps: on(options.timestamps),
            ecn: on(Some(options.ecn)),
        })
    }
}

impl Island {
    /// Where a capture listens: at the servers' and at the clients' interfaces.
    pub(crate) fn taps(&self, first_flow: u32) -> [Tap; 4] {
        let tap = |node, port, interface, source| Tap { node, port, interface, source, first_flow };
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

/// The name of a component as written.
pub(crate) fn name_of(component: &serde_json::Value) -> String {
    let name = component.as_str().or_else(|| component.get("kind").and_then(serde_json::Value::as_str));
    // Resolving it has failed already where it has no name.
    name.unwrap_or_default().to_owned()
}
