//! Builds the islands of a scenario: servers - wired paths - (relay - wired paths -) edge - clients. If the edge
//! observes a separate radio, the island has a second edge for this radio.

use std::sync::Arc;

use ackclock_core::results::Towards;
use ackclock_core::{ConfigError, FlowId, NodeId, Port, Streams, Time};
use ackclock_edge::{Edge, Surroundings};
use ackclock_link::{Files, Path, ReportWire, Side, path, report_wire};
use ackclock_tcp::{Course, Host, Media, MediaReceiver, MediaSender, Place, Relay, Supply, host, relay};

use super::boxes::Places;
use super::group::{FIRST, Group};
use super::{AnyNode, End, Island};
use crate::active::Active;
use crate::common_time::CommonTime;
use crate::link_share::CapacityReports;
use crate::plan::FlowPlan;
use crate::traffic::Traffic;
use crate::{FlowGroup, PathTable};
use crate::{Measure, Progress, Tables};

/// Builder of islands from the tables of a scenario.
pub(crate) struct Builder<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) groups: Vec<Arc<Group>>,
    pub(crate) files: &'a (dyn Files + Sync),
    /// Receives the progress of building.
    pub(crate) progress: &'a Progress,
    /// Random streams of the clients, independent of their island.
    clients: Streams,
}

impl<'a> Builder<'a> {
    /// Parses the components of all flows.
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

    /// Builds the island of `flows`. Within the island the flows are numbered from zero.
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
                    group.introduce(&mut path, &mut edge, behind.as_mut().map(|(_, edge)| edge), flow, id);
                    group.begin([&mut servers, &mut clients], id, flow.start, supply, &mut traffic);
                }
                Course::Media(media) => {
                    group.introduce(&mut path, &mut edge, behind.as_mut().map(|(_, edge)| edge), flow, id);
                    group.begin_media([&mut servers, &mut clients], id, flow.start, &media);
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

    /// Traffic of `flows` before the clients are added, with the measurements that the scenario requests.
    fn traffic(&self, flows: &[FlowPlan]) -> Result<Traffic, ConfigError> {
        let is_sampled = self.tables.edge.samples_capacity().map_err(|error| error.under("edge"))?;
        let link = if is_sampled { CapacityReports::AtTheEnd } else { CapacityReports::Always };
        let start = flows.iter().map(|flow| flow.start).min().unwrap_or(Time::ZERO);
        let files = flows.iter().all(|flow| self.groups[flow.group].is_file()).then_some(flows.len());
        let has_files = flows.iter().any(|flow| self.groups[flow.group].is_file());
        let common = CommonTime::new(flows.iter().map(|flow| flow.start), has_files);
        let mut traffic = Traffic::numbered_from(flows.len(), Active::new(link, start, files), common);
        if self.tables.measure.contains(&Measure::Utilisation) {
            traffic.measure_shares(link);
        }
        Ok(traffic)
    }

    /// Builds the edge, and the separate radio that it observes, if any.
    fn edges(&self, streams: &Streams) -> Result<(Edge, Option<(Side, Edge)>), ConfigError> {
        let around = self.surroundings();
        let edge = self.tables.edge.build(streams, self.files, around)?;
        Ok((edge, self.tables.edge.build_behind(streams, self.files, around)?))
    }

    /// Builds a relay without connections.
    fn relay(&self) -> Result<Relay, ConfigError> {
        let Some(relay) = &self.tables.relay else { return Ok(Relay::new()) };
        Ok(Relay::steered_by(Arc::clone(relay.steering().map_err(|error| error.under("relay"))?)))
    }

    fn surroundings(&self) -> Surroundings {
        let packet = |group: &Arc<Group>| match group.table.packet {
            ackclock_core::Size::Bytes(bytes) => bytes as u32,
            // The configuration check accepts only sizes in bytes.
            _ => 0,
        };
        // Connections regulated by the edge end at the relay if there is a relay.
        let wired = self.tables.relay.as_ref().map_or(&self.tables.path, |relay| &relay.core);
        Surroundings {
            wired_round_trip: wired.delay * 2,
            packet_bytes: self.groups.iter().map(packet).max().unwrap_or(0),
        }
    }
}

impl Island {
    /// Adds the connection for radio reports from the edge to the relay.
    fn lay_report_wire(&mut self, wire: ReportWire) {
        let (edge, number) = (self.places.edge, self.boxes.len());
        if let Some([relay, _]) = self.places.relay {
            self.boxes.push(wire.into());
            self.wires.push([(edge, ackclock_edge::REPORTS), (number, report_wire::RADIO)]);
            self.wires.push([(number, report_wire::LISTENER), (relay, relay::REPORTS)]);
        }
    }

    /// Connects the boxes in a row, from the servers to the clients.
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

/// A row of boxes, each connected to the previous box.
#[derive(Default)]
struct Row {
    boxes: Vec<AnyNode>,
    wires: Vec<[End; 2]>,
    /// Port of the last box that is still unconnected.
    open: Port,
}

impl Row {
    /// Appends a box with its ports towards the servers and towards the clients. Returns the index of the box.
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

/// Connections of the simplest island, which has servers, a path, an edge and clients.
pub(super) const IN_LINE: [[End; 2]; 3] = [
    [(0, host::WIRE), (1, path::SERVER)],
    [(1, path::EDGE), (2, ackclock_edge::WIRED)],
    [(2, ackclock_edge::RADIO), (3, host::WIRE)],
];

impl Group {
    /// Tells the boxes of an island the properties of a flow before its first segment.
    fn introduce(
        &self,
        path: &mut Path,
        edge: &mut Edge,
        behind: Option<&mut Edge>,
        flow: &FlowPlan,
        id: FlowId,
    ) {
        path.lengthen(id, self.table.route);
        for edge in [Some(&mut *edge), behind].into_iter().flatten() {
            edge.assign(id, flow.cell_user);
            edge.classify(id, self.class);
        }
        self.announce(edge, id);
    }

    /// Adds the two ends of a media flow to the servers and the clients.
    fn begin_media(&self, [servers, clients]: [&mut Host; 2], id: FlowId, start: Time, media: &Media) {
        let packet = self.table.packet_bytes();
        let [sending, receiving] = match self.table.towards {
            Towards::Mobile => [servers, clients],
            Towards::Server => [clients, servers],
        };
        sending.add_media_sender(id, MediaSender::new(id, media, packet, start));
        receiving.add_media_receiver(id, MediaReceiver::new(id, media, packet));
    }

    /// Adds the two endpoints of a connection with data `supply` to the servers and the clients. The end of a file is
    /// reported if `traffic` needs it.
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
}
