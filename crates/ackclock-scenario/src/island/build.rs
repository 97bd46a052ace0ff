//! What the scenario says, as islands: servers - wires - edge - clients.

use std::sync::Arc;

use ackclock_core::{ConfigError, FlowId, Seq, Streams, Time, name_of};
use ackclock_edge::{Edge, Surroundings};
use ackclock_link::{Files, Path, path};
use ackclock_tcp::config::{Switch, window_bytes};
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::{Course, Host, Place, Receiver, ReceiverConfig, Sender, SenderRow, Workload, host};

use super::{End, Island, Places};
use crate::plan::FlowPlan;
use crate::tables::FlowTable;
use crate::traffic::Traffic;
use crate::{Progress, Tables};

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

    /// Describes the island of `flows`. Within it they are numbered from zero in their order.
    pub(crate) fn island(&self, flows: &[FlowPlan], streams: &Streams) -> Result<Island, ConfigError> {
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
        Ok(Island::in_line(servers, path, edge, clients, traffic))
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

impl Island {
    /// Servers - wires - edge - clients.
    fn in_line(servers: Host, path: Path, edge: Edge, clients: Host, traffic: Traffic) -> Self {
        Self {
            boxes: vec![servers.into(), path.into(), edge.into(), clients.into()],
            wires: IN_LINE.to_vec(),
            places: Places { servers: 0, path: 1, edge: 2, clients: 3 },
            traffic,
        }
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
