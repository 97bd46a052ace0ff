//! What the scenario says, as islands: servers - wires - (relay - wires -) edge - clients, where a box that observes has the radio as another edge
//! on one of its sides.

use std::sync::Arc;

use ackclock_core::results::Towards;
use ackclock_core::{ConfigError, FlowId, NodeId, Port, Seq, Streams, Time, name_of};
use ackclock_edge::{Edge, Surroundings};
use ackclock_link::{Files, Path, ReportWire, Side, path, report_wire};
use ackclock_tcp::config::{Switch, window_bytes};
use ackclock_tcp::receiver::{Opening, WindowPolicy};
use ackclock_tcp::{
    Course, Host, Place, Receiver, ReceiverConfig, Relay, Sender, SenderRow, Supply, Workload, host, relay,
};

use super::{AnyNode, End, Island, Places};
use crate::active::Active;
use crate::link_share::Telling;
use crate::plan::FlowPlan;
use crate::tables::{FlowGroup, PathTable, RelayTable};
use crate::traffic::Traffic;
use crate::{Measure, Progress, Tables};

/// A group of flows with its components read.
pub(crate) struct Group {
    pub(crate) table: FlowGroup,
    pub(crate) sender_name: String,
    sender: Box<dyn SenderRow>,
    receiver: ReceiverConfig,
    relay: Option<RelayEnds>,
    workload: Box<dyn Workload>,
    /// Whether its flows are connections from the start on, not clients whose connections come and go.
    pub(crate) lasts: bool,
}

/// What a relay has for the flows of a group.
struct RelayEnds {
    receiver: ReceiverConfig,
    sender: Box<dyn SenderRow>,
    sender_name: String,
    steered: Option<Steered>,
}

/// What windows that are steered have.
struct Steered {
    /// The row whose congestion control rules while nobody steers.
    own: Box<dyn SenderRow>,
    whom: Whom,
}

/// Who is steered together.
#[derive(Clone, Copy, PartialEq)]
enum Whom {
    /// All users, who share one channel.
    All,
    /// Each user by itself.
    Each,
}

/// Why a sender can be built again.
const READ: &str = "the group was read by building one with the same options";

/// Where islands get what they are built from.
pub(crate) struct Builder<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) groups: Vec<Arc<Group>>,
    pub(crate) files: &'a (dyn Files + Sync),
    /// Where it tells what is built.
    pub(crate) progress: &'a Progress,
    /// What clients draw from, whatever island they are in.
    clients: Streams,
}

impl<'a> Builder<'a> {
    /// Reads the components of all flows.
    pub(crate) fn new(
        tables: &'a Tables,
        files: &'a (dyn Files + Sync),
        streams: &Streams,
        progress: &'a Progress,
    ) -> Result<Self, ConfigError> {
        let group = |(index, table): (usize, &'a FlowGroup)| {
            Group::new(table, tables).map(Arc::new).map_err(|error| error.under(&format!("flow.{index}")))
        };
        let groups = tables.flow.iter().enumerate().map(group).collect::<Result<_, _>>()?;
        Ok(Self { tables, groups, files, progress, clients: streams.within("clients") })
    }

    /// Describes the island of `flows`. Within it they are numbered from zero in their order.
    pub(crate) fn island(&self, flows: &[FlowPlan], streams: &Streams) -> Result<Island, ConfigError> {
        let wires = |table: &PathTable, streams: &Streams| {
            Path::new(table.rate, table.delay, table.loss.probability(), streams)
        };
        let mut path = wires(&self.tables.path, streams);
        let core = self.tables.relay.as_ref().map(|relay| wires(&relay.core, &streams.within("core")));
        let mut relay = self.relay()?;
        let (mut edge, mut behind) = self.edges(streams).map_err(|error| error.under("edge"))?;
        let (mut servers, mut clients) = (Host::new(), Host::new());
        let mut traffic = self.traffic(flows)?;
        for (number, flow) in flows.iter().enumerate() {
            let (id, group) = (FlowId(number as u32), &self.groups[flow.group]);
            let (name, start) = (flow.name(), flow.start);
            let place =
                Place { streams: self.clients.within(&name), start, payload: group.receiver.mss.into() };
            match group.workload.course(&place) {
                Course::Connection(supply) => {
                    group.split(&mut relay, id, flow.cell_user, [Time::ZERO, flow.start], FIRST);
                    path.lengthen(id, group.table.route);
                    edge.assign(id, flow.cell_user);
                    if let Some((_, behind)) = &mut behind {
                        behind.assign(id, flow.cell_user);
                    }
                    if group.table.towards == Towards::Server {
                        edge.leave_upload_alone(id);
                    }
                    group.begin([&mut servers, &mut clients], id, flow.start, supply, &mut traffic);
                }
                Course::Client(client) => traffic.add(client, Arc::clone(group), flow, name),
            }
            self.progress.build();
        }
        let relay = core.map(|core| (relay, core));
        let mut island = Island::new([servers, clients], path, relay, edge, behind, traffic);
        if let Some(report) = &self.tables.edge.report {
            island.lay_report_wire(report.wire(streams).map_err(|error| error.under("edge.report"))?);
        }
        Ok(island)
    }

    /// Traffic of `flows` without its clients; it measures what the results are asked to tell.
    fn traffic(&self, flows: &[FlowPlan]) -> Result<Traffic, ConfigError> {
        let cell = self.tables.edge.cell_users().map_err(|error| error.under("edge"))?;
        let link = if cell.is_some() { Telling::AtTheEnd } else { Telling::Always };
        let start = flows.iter().map(|flow| flow.start).min().unwrap_or(Time::ZERO);
        let files = flows.iter().all(|flow| self.groups[flow.group].is_file()).then_some(flows.len());
        let mut traffic = Traffic::numbered_from(flows.len(), Active::new(link, start, files));
        if self.tables.measure.contains(&Measure::Utilisation) {
            traffic.measure_shares(link);
        }
        Ok(traffic)
    }

    /// The edge, and the radio that it observes, where it does.
    fn edges(&self, streams: &Streams) -> Result<(Edge, Option<(Side, Edge)>), ConfigError> {
        let around = self.surroundings();
        let edge = self.tables.edge.build(streams, self.files, around)?;
        Ok((edge, self.tables.edge.build_behind(streams, self.files, around)?))
    }

    /// A relay without connections.
    fn relay(&self) -> Result<Relay, ConfigError> {
        let Some(relay) = &self.tables.relay else { return Ok(Relay::new()) };
        Ok(Relay::steered_by(relay.steering().map_err(|error| error.under("relay"))?))
    }

    fn surroundings(&self) -> Surroundings {
        let packet = |group: &Arc<Group>| match group.table.packet {
            ackclock_core::Size::Bytes(bytes) => bytes as u32,
            // `check` lets only bytes pass.
            _ => 0,
        };
        // What an edge regulates ends at the relay.
        let wired = self.tables.relay.as_ref().map_or(&self.tables.path, |relay| &relay.core);
        Surroundings {
            wired_round_trip: wired.delay * 2,
            packet_bytes: self.groups.iter().map(packet).max().unwrap_or(0),
        }
    }
}

impl Island {
    /// Lays the wire on which reports of the radio travel from the edge to the relay.
    fn lay_report_wire(&mut self, wire: ReportWire) {
        let (edge, number) = (self.places.edge, self.boxes.len());
        if let Some([relay, _]) = self.places.relay {
            self.boxes.push(wire.into());
            self.wires.push([(edge, ackclock_edge::REPORTS), (number, report_wire::RADIO)]);
            self.wires.push([(number, report_wire::LISTENER), (relay, relay::REPORTS)]);
        }
    }

    /// The boxes in a row, from the servers to the clients.
    fn new(
        [servers, clients]: [Host; 2],
        path: Path,
        relay: Option<(Relay, Path)>,
        edge: Edge,
        behind: Option<(Side, Edge)>,
        traffic: Traffic,
    ) -> Self {
        let mut row = Row::default();
        let servers = row.add(servers, [host::WIRE; 2]);
        let path = row.add(path, [path::SERVER, path::EDGE]);
        let relay = relay.map(|(relay, core)| {
            [row.add(relay, [relay::SERVER, relay::EDGE]), row.add(core, [path::SERVER, path::EDGE])]
        });
        let mut add = |edge| row.add(edge, [ackclock_edge::WIRED, ackclock_edge::RADIO]);
        let (edge, behind) = match behind {
            None => (add(edge), None),
            Some((Side::Network, behind)) => (add(edge), Some(add(behind))),
            Some((Side::Mobile, behind)) => {
                let behind = add(behind);
                (add(edge), Some(behind))
            }
        };
        let clients = row.add(clients, [host::WIRE; 2]);
        let places = Places { servers, path, relay, edge, behind, clients };
        Self { boxes: row.boxes, wires: row.wires, places, traffic }
    }
}

/// Boxes, each with a wire to the one before.
#[derive(Default)]
struct Row {
    boxes: Vec<AnyNode>,
    wires: Vec<[End; 2]>,
    /// The port of the last one to which the next is joined.
    open: Port,
}

impl Row {
    /// Adds a box with the ports towards the servers and towards the clients; says where it stands.
    fn add(&mut self, station: impl Into<AnyNode>, [before, behind]: [Port; 2]) -> NodeId {
        let place = self.boxes.len();
        if place > 0 {
            self.wires.push([(place - 1, self.open), (place, before)]);
        }
        self.boxes.push(station.into());
        self.open = behind;
        place
    }
}

/// The wires between servers, path, edge and clients, in this order.
pub(super) const IN_LINE: [[End; 2]; 3] = [
    [(0, host::WIRE), (1, path::SERVER)],
    [(1, path::EDGE), (2, ackclock_edge::WIRED)],
    [(2, ackclock_edge::RADIO), (3, host::WIRE)],
];

/// First sequence number of data; a handshake has the one before.
const FIRST: Seq = Seq(1);

impl Group {
    fn new(table: &FlowGroup, tables: &Tables) -> Result<Self, ConfigError> {
        let sender = table.sender()?;
        let whom = if tables.edge.cell_users()?.is_some() { Whom::Each } else { Whom::All };
        let relay = tables.relay.as_ref();
        let ends = relay.map(|relay| RelayEnds::new(relay, whom, table, &*sender)).transpose();
        let relay = ends.map_err(|error| error.under("relay"))?;
        // Who receives hears the relay, where there is one.
        let heard = relay.as_ref().map_or(&*sender, |ends| &*ends.sender);
        Ok(Self {
            receiver: receiver(table, heard)?,
            relay,
            table: table.clone(),
            sender_name: name_of(&table.sender),
            sender,
            workload: table.workload()?,
            lasts: table.lasts()?,
        })
    }

    /// Both ends of a connection whose data begins with the number `first`; what it sends is not said yet. With a relay these
    /// are the ends at the server and at the mobile.
    pub(crate) fn connection(&self, id: FlowId, start: Time, first: Seq) -> (Box<dyn Sender>, Receiver) {
        let mut sender = self.sender_of(&*self.sender, id, start, first);
        if !self.workload.is_endless() {
            // As servers of files do.
            sender.set_nodelay();
        }
        (sender, receiver_of(self.receiver, id, first))
    }

    /// Whether each flow is one file.
    fn is_file(&self) -> bool {
        self.lasts && !self.workload.is_endless()
    }

    /// Adds both ends of a connection that has `supply` to send to the servers and the clients. Of a file they tell when it is there
    /// where `traffic` asks.
    fn begin(
        &self,
        [servers, clients]: [&mut Host; 2],
        id: FlowId,
        start: Time,
        supply: Supply,
        traffic: &mut Traffic,
    ) {
        let (mut sender, receiver) = self.connection(id, start, FIRST);
        sender.supply(supply);
        let towards = self.table.towards;
        let receiving = match towards {
            Towards::Mobile => {
                servers.add_sender(id, sender);
                clients
            }
            Towards::Server => {
                clients.connect_sender(id, start, sender);
                servers
            }
        };
        match supply {
            Supply::Bytes(bytes) if traffic.awaits_ends() => {
                receiving.watch_receiver(id, start, receiver);
                receiving.mark(id, bytes);
                traffic.shares_mut().into_iter().for_each(|shares| shares.add(start, id, towards));
            }
            _ => receiving.add_receiver(id, start, receiver),
        }
    }

    /// Splits such a connection of the user `cell_user` at `relay`, where the scenario has one: its ends are made `now` and begin at `start`.
    pub(crate) fn split(
        &self,
        relay: &mut Relay,
        id: FlowId,
        cell_user: u32,
        [now, start]: [Time; 2],
        first: Seq,
    ) {
        let Some(RelayEnds { receiver, sender, steered, .. }) = &self.relay else { return };
        let receiver = receiver_of(*receiver, id, first);
        let params = self.table.params(id, start, first);
        match (self.table.towards, steered) {
            (Towards::Mobile, Some(Steered { own, whom })) => {
                let sender = params.and_then(|params| sender.build_steered(params, &**own)).expect(READ);
                relay.split(id, relay::SERVER, receiver, sender);
                relay.steer(now, id, if *whom == Whom::All { 0 } else { cell_user });
            }
            (towards, _) => {
                let from = if towards == Towards::Mobile { relay::SERVER } else { relay::EDGE };
                relay.split(id, from, receiver, self.sender_of(&**sender, id, start, first));
            }
        }
    }

    /// Row of the sender table for the connections of a relay, where there is one, by which it sends on.
    pub(crate) fn relay_sender_name(&self) -> Option<&str> {
        self.relay.as_ref().map(|relay| &*relay.sender_name)
    }

    fn sender_of(&self, row: &dyn SenderRow, id: FlowId, start: Time, first: Seq) -> Box<dyn Sender> {
        let sender = self.table.params(id, start, first).and_then(|params| row.build(params));
        sender.expect(READ)
    }
}

fn receiver_of(config: ReceiverConfig, id: FlowId, first: Seq) -> Receiver {
    let opening = match config.opening {
        Opening::Established(_) => Opening::Established(first),
        opening => opening,
    };
    Receiver::new(ReceiverConfig { opening, ..config }, id)
}

impl RelayEnds {
    fn new(
        relay: &RelayTable,
        whom: Whom,
        table: &FlowGroup,
        far: &dyn SenderRow,
    ) -> Result<Self, ConfigError> {
        let max_window = relay.buffer_bytes()?;
        Ok(Self {
            receiver: ReceiverConfig { max_window, window: WindowPolicy::Unread, ..receiver(table, far)? },
            sender: relay.row(table)?,
            sender_name: name_of(relay.sender.as_ref().unwrap_or(&table.sender)),
            steered: if relay.listens()? { Some(Steered { own: relay.fallback()?, whom }) } else { None },
        })
    }
}

/// The peer of `sender`.
fn receiver(table: &FlowGroup, sender: &dyn SenderRow) -> Result<ReceiverConfig, ConfigError> {
    let mss = sender.build(table.params(FlowId(0), Time::ZERO, FIRST)?)?.mss();
    let options = sender.config();
    let on = |switch: Option<Switch>| switch == Some(Switch::On);
    // A packet has at most 65535 bytes.
    let mss = mss as u16;
    Ok(ReceiverConfig {
        opening: match options.handshake {
            Switch::On if table.towards == Towards::Server => Opening::Awaited,
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
