//! The data plane: raw packets in, the unchanged graph of the simulation, raw packets out. It has no clock and no devices.
//!
//! Every packet that arrives departs, is discarded by the graph, or is inside it; [`Plane::inside`] counts those.

mod pages;

use std::sync::mpsc::{self, Receiver, Sender};

use ackclock_core::{ConfigError, FlowId, PacketId, Segment, Time, name_of};
use ackclock_edge::{Edge, REGULATORS, RegulatorConfig};
use ackclock_link::{Direction, Files, Load, Medium};

use crate::account::Totals;
use crate::flow::{Met, NO_FLOW};
use crate::graph::Graph;
use crate::log::LinkLog;
use crate::parse::{Layout, Parsed, Tuple, parse};
use crate::port::Side;
use crate::rewrite::rewrite;
use crate::tally::Tally;
use crate::template::Template;
use crate::users::Users;
use crate::watch::Seen;
use crate::{FlowReport, FlowTable, PlaneConfig, Pool};

/// A packet that departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it is due.
    pub at: Time,
    /// Where it leaves.
    pub side: Side,
    /// Its bytes in the pool; they are to be released when it has been written.
    pub packet: PacketId,
}

/// The graph with the packets inside it.
pub struct Plane {
    graph: Graph,
    pool: Pool,
    /// What is known of each packet, by slot of the pool.
    packets: Vec<Inside>,
    flows: FlowTable,
    users: Users,
    /// What is known of each connection, by number; nothing of number 0.
    connections: Vec<Option<Connection>>,
    /// Where connections go that lost their number to another, and how many more may.
    past: Sender<FlowReport>,
    past_room: usize,
    /// Of those for which there was no room.
    forgotten: Totals,
    /// Connections with ports so far.
    met: u32,
    /// The other end of `past`, until it is taken.
    account: Option<Receiver<FlowReport>>,
    /// An unused buffer, for packets that are made here.
    spare: Box<[u8]>,
    regulator: String,
    logs: [Option<LinkLog>; 2],
    discarded: u64,
    /// Packets inside that came in at each side, and those that found no room.
    present: [usize; 2],
    overflowed: u64,
}

/// A packet inside.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    flow: FlowId,
    layout: Layout,
    bytes: u32,
    /// When it came to the link.
    arrived: Time,
    /// Where it came in.
    from: Option<Side>,
}

#[derive(Clone, Debug)]
struct Connection {
    tally: Tally,
    /// What its packets look like, by the side that they come from.
    templates: [Template; 2],
}

/// Connections of the past of which rows are kept.
const MOST_PAST: usize = 1 << 16;

impl Plane {
    /// Builds the graph.
    ///
    /// # Errors
    /// Names the key of the `[edge]` table that is wrong.
    pub fn new(config: &PlaneConfig<'_>, files: &dyn Files) -> Result<Self, ConfigError> {
        let regulator = REGULATORS.resolve(&config.edge.regulator);
        Self::with_regulator(config, regulator.map_err(|error| error.under("regulator"))?, files)
    }

    /// Builds the graph with a regulator that need not stand in the registry, whatever the `[edge]` table says.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_regulator(
        config: &PlaneConfig<'_>,
        regulator: Box<dyn RegulatorConfig>,
        files: &dyn Files,
    ) -> Result<Self, ConfigError> {
        let pool = Pool::new(config.packets, config.packet_bytes);
        let (past, account) = mpsc::channel();
        Ok(Self {
            graph: Graph::new(config, regulator, files)?,
            packets: Vec::new(),
            flows: FlowTable::new(config.flows),
            users: Users::default(),
            connections: Vec::new(),
            past,
            past_room: MOST_PAST,
            forgotten: Totals::default(),
            met: 0,
            account: Some(account),
            spare: pool.buffer(),
            pool,
            regulator: name_of(&config.edge.regulator),
            logs: [None, None],
            discarded: 0,
            present: [0, 0],
            overflowed: 0,
        })
    }

    /// A packet has come in at `from`. The pool's packet is the plane's from now on.
    pub fn arrive(&mut self, now: Time, from: Side, packet: PacketId) {
        // What waits one way must not stand in the way of the other.
        if self.present[from as usize] >= self.pool.most() / 2 {
            self.overflowed += 1;
            self.discarded += 1;
            self.pool.release(packet);
            return;
        }
        let Some(bytes) = self.pool.bytes(packet) else { return };
        let (Parsed { segment, tuple, layout }, length) = (parse(bytes), bytes.len());
        let flow = self.flow(now, from, tuple.as_ref(), &segment);
        // What has no number is not regulated.
        let (mut segment, layout) = match flow {
            NO_FLOW => (Segment::opaque(NO_FLOW, u16::try_from(length).unwrap_or(u16::MAX)), Layout::Opaque),
            _ => (segment, layout),
        };
        self.learn(now, from, flow, packet, layout, &segment);
        segment.set_scale(self.flows.scale(flow, from));
        segment.identify(flow, packet);
        let bytes = segment.wire_bytes();
        self.note(packet, Inside { flow, layout, bytes, arrived: now, from: Some(from) });
        self.graph.inject(now, from, segment);
        self.settle();
    }

    /// Does everything that is due up to and at `now`.
    pub fn advance(&mut self, now: Time) {
        self.graph.advance(now);
        self.settle();
    }

    /// When something is next due.
    pub fn next_wake(&self) -> Option<Time> {
        self.graph.next_wake()
    }

    /// The next packet that departs, its bytes as they are to be written.
    pub fn poll_departure(&mut self) -> Option<Departure> {
        while let Some((at, side, segment)) = self.graph.poll_left() {
            if let Some(packet) = self.finish(&segment, side) {
                if self.graph.ends_with_link(side) {
                    self.log_left(at, packet);
                }
                return Some(Departure { at, side, packet });
            }
        }
        None
    }

    /// The bytes of a packet.
    pub fn bytes(&self, packet: PacketId) -> &[u8] {
        self.pool.bytes(packet).unwrap_or_default()
    }

    /// Gives back the packet of a departure that has been written.
    pub fn release(&mut self, packet: PacketId) {
        if self.pool.release(packet) {
            let Inside { flow, from, .. } = self.packets[packet.slot as usize];
            self.flows.leave(flow);
            if let Some(from) = from {
                self.present[from as usize] -= 1;
            }
        }
    }

    /// Where packets are read into.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Packets that arrived and have neither departed nor been discarded.
    pub fn inside(&self) -> usize {
        self.pool.in_use()
    }

    /// Packets that the graph lost, refused or discarded.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Packets that were lost before the link, because half of the most that may be inside had come in at their side.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// What waits in all queues towards the mobiles.
    pub fn waiting(&mut self) -> Load {
        let now = self.graph.now();
        self.graph.edge_mut().waiting(now)
    }

    /// The edge, for reading its statistics.
    pub fn edge(&self) -> &Edge {
        self.graph.edge()
    }

    /// The edge, for changing it between packets.
    pub fn edge_mut(&mut self) -> &mut Edge {
        self.graph.edge_mut()
    }

    /// From now on a direction of the link has another medium.
    pub fn exchange(&mut self, direction: Direction, medium: Box<dyn Medium>) {
        self.graph.exchange(direction, medium);
        self.settle();
    }

    /// Lets a packet's way over the link be logged from now on: towards the side `to`.
    pub fn log(&mut self, to: Side, log: LinkLog) {
        self.graph.watch();
        self.logs[to as usize] = Some(log);
    }

    /// Ends the logs.
    pub fn finish_logs(&mut self) {
        let now = self.graph.now();
        self.logs.iter_mut().filter_map(Option::take).for_each(|log| log.finish(now));
    }

    /// The number of a packet's connection, which is opened where it is new.
    fn flow(&mut self, now: Time, from: Side, tuple: Option<&Tuple>, segment: &Segment) -> FlowId {
        match self.flows.meet(from, tuple) {
            Met::None => NO_FLOW,
            Met::New(flow) => {
                self.open(now, flow);
                flow
            }
            Met::Known(flow) => {
                let connection = self.connections[flow.index()].as_ref();
                if connection.is_some_and(|connection| connection.tally.is_over_with(from, segment)) {
                    self.open(now, flow);
                }
                flow
            }
        }
    }

    /// Begins a connection under a number, and ends the one that had it.
    fn open(&mut self, now: Time, flow: FlowId) {
        self.connections.resize(self.connections.len().max(flow.index() + 1), None);
        let old = self.connections[flow.index()].take();
        if let Some(old) = &old {
            self.archive(flow, old);
            // The last packets of a connection between the same ends may still be inside; the edge then goes on with it.
            if self.flows.inside(flow) == 0 {
                self.graph.forget(flow);
            }
        }
        let ends = self.flows.ends(flow);
        let tally = ends.map(|ends| Tally::new(self.met, ends, now));
        self.met = self.met.saturating_add(u32::from(ends.is_some_and(|ends| pages::has_ports(&ends))));
        // The next user gets a number before the old one gives up its own: it may be the same.
        if let Some(ends) = ends {
            let user = self.users.enter(ends.radio.address);
            self.edge_mut().assign(flow, user);
        }
        if let Some(old) = old {
            self.users.leave(old.tally.report().ends.radio.address);
        }
        let templates = [Template::default(); 2];
        self.connections[flow.index()] = tally.map(|tally| Connection { tally, templates });
    }

    /// Learns what a packet shows of its connection.
    fn learn(
        &mut self,
        now: Time,
        from: Side,
        flow: FlowId,
        packet: PacketId,
        layout: Layout,
        segment: &Segment,
    ) {
        let Some(connection) = self.connections.get_mut(flow.index()).and_then(Option::as_mut) else {
            return;
        };
        connection.templates[from as usize].learn(self.pool.bytes(packet).unwrap_or_default(), layout);
        connection.tally.on_packet(now, from, segment);
        if connection.tally.is_proven() {
            self.flows.prove(flow);
        }
        self.flows.learn(flow, from, segment);
    }

    fn note(&mut self, packet: PacketId, inside: Inside) {
        let slot = packet.slot as usize;
        self.packets.resize(self.packets.len().max(slot + 1), Inside::default());
        self.packets[slot] = inside;
        self.flows.enter(inside.flow);
        if let Some(from) = inside.from {
            self.present[from as usize] += 1;
        }
    }

    /// Brings the bytes of a segment that departs up to date. `None` where it has none and they cannot be made.
    fn finish(&mut self, segment: &Segment, side: Side) -> Option<PacketId> {
        if segment.packet() == PacketId::NONE {
            return self.make(segment, side.other());
        }
        let layout = self.packets.get(segment.packet().slot as usize)?.layout;
        if let Some(connection) = self.connections.get_mut(segment.flow.index()).and_then(Option::as_mut) {
            connection.tally.on_left(side.other(), segment);
        }
        rewrite(self.pool.bytes_mut(segment.packet())?, layout, segment);
        Some(segment.packet())
    }

    /// Makes the packet of a segment that a regulator made; it comes as if from the side `from`.
    fn make(&mut self, segment: &Segment, from: Side) -> Option<PacketId> {
        let ends = self.flows.ends(segment.flow)?;
        let connection = self.connections.get(segment.flow.index())?.as_ref()?;
        let length = connection.templates[from as usize].build(segment, &ends, from, &mut self.spare)?;
        let packet = self.pool.claim(&mut self.spare, length)?;
        let (flow, bytes, arrived) = (segment.flow, length as u32, self.graph.now());
        self.note(packet, Inside { flow, layout: Layout::Opaque, bytes, arrived, from: None });
        Some(packet)
    }

    /// Gives back what the graph discarded, and logs what was seen on its wires.
    fn settle(&mut self) {
        while let Some(seen) = self.graph.poll_seen() {
            self.log_seen(seen);
        }
        while let Some(packet) = self.graph.poll_discarded() {
            self.discarded += 1;
            let Inside { bytes, from, .. } = self.packets[packet.slot as usize];
            let now = self.graph.now();
            if let Some(log) = from.and_then(|from| self.logs[from.other() as usize].as_mut()) {
                log.dropped(now, bytes);
            }
            self.release(packet);
        }
    }

    fn log_seen(&mut self, seen: Seen) {
        match seen {
            Seen::Arrived { at, packet } => {
                let Some(inside) = self.packets.get_mut(packet.slot as usize) else { return };
                inside.arrived = at;
                if let Some(log) = inside.from.and_then(|from| self.logs[from.other() as usize].as_mut()) {
                    log.arrived(at, inside.bytes);
                }
            }
            Seen::Left { at, packet } => self.log_left(at, packet),
        }
    }

    fn log_left(&mut self, at: Time, packet: PacketId) {
        let Some(&Inside { bytes, arrived, from, .. }) = self.packets.get(packet.slot as usize) else {
            return;
        };
        if let Some(log) = from.and_then(|from| self.logs[from.other() as usize].as_mut()) {
            log.left(at, bytes, at.since(arrived));
        }
    }
}
