//! The data plane: raw packets in, the unchanged graph of the simulation, raw packets out. It has no clock and no devices.
//!
//! Every packet that arrives departs, is discarded by the graph, or is inside it; [`Plane::inside`] counts those. What a
//! regulator makes or sends once more departs, is discarded or is inside as well, or could not be built.

mod collect;
mod inventory;
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
use crate::{FlowReport, PlaneConfig, Pool};
use inventory::{Inside, Inventory};

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
    inventory: Inventory,
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
    /// Packets that were made here, and segments of which none could be made.
    built: u64,
    unbuilt: u64,
    /// Packets that found no room, and what was inside before the first of them.
    overflowed: u64,
    crowd: Option<Crowd>,
}

/// What the packets inside a plane are doing. A packet that waits may also be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// All packets inside.
    pub inside: usize,
    /// Packets that wait in queues, in both directions.
    pub waiting: usize,
    /// ACKs held by regulators.
    pub held: usize,
    /// Packets of which regulators keep a copy.
    pub kept: usize,
}

#[derive(Clone, Debug)]
struct Connection {
    tally: Tally,
    user: u32,
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
        let inventory = Inventory::new(config);
        let (past, account) = mpsc::channel();
        let mut graph = Graph::new(config, regulator, files)?;
        // Copies are no packets: those that come in have three quarters of a side to themselves.
        graph.edge_mut().keep_at_most(config.packets / 8);
        Ok(Self {
            graph,
            users: Users::default(),
            connections: Vec::new(),
            past,
            past_room: MOST_PAST,
            forgotten: Totals::default(),
            met: 0,
            account: Some(account),
            spare: inventory.pool.buffer(),
            inventory,
            regulator: name_of(&config.edge.regulator),
            logs: [None, None],
            discarded: 0,
            built: 0,
            unbuilt: 0,
            overflowed: 0,
            crowd: None,
        })
    }

    /// A packet has come in at `from`. The pool's packet is the plane's from now on.
    pub fn arrive(&mut self, now: Time, from: Side, packet: PacketId) {
        if self.inventory.is_crowded(from) {
            return self.refuse(packet);
        }
        let Some(bytes) = self.inventory.pool.bytes(packet) else { return };
        let (Parsed { segment, tuple, layout }, length) = (parse(bytes), bytes.len());
        let flow = self.flow(now, from, tuple.as_ref(), &segment);
        let user =
            self.connections.get(flow.index()).and_then(Option::as_ref).map(|connection| connection.user);
        if self.inventory.has_its_share(from, flow, user) {
            return self.refuse(packet);
        }
        // What has no number is not regulated.
        let (mut segment, layout) = match flow {
            NO_FLOW => (Segment::opaque(NO_FLOW, u16::try_from(length).unwrap_or(u16::MAX)), Layout::Opaque),
            _ => (segment, layout),
        };
        self.learn(now, from, flow, packet, layout, &segment);
        segment.set_scale(self.inventory.flows.scale(flow, from));
        segment.identify(flow, packet);
        let bytes = segment.wire_bytes();
        self.inventory.enter(packet, Inside { flow, user, layout, bytes, arrived: now, from: Some(from) });
        self.graph.inject(now, from, segment);
        self.collect();
    }

    /// Does everything that is due up to and at `now`.
    pub fn advance(&mut self, now: Time) {
        self.graph.advance(now);
        self.collect();
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
        self.inventory.pool.bytes(packet).unwrap_or_default()
    }

    /// Gives back the packet of a departure that has been written.
    pub fn release(&mut self, packet: PacketId) {
        self.inventory.leave(packet);
    }

    /// Where packets are read into.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.inventory.pool
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.inventory.pool
    }

    /// Packets that arrived and have neither departed nor been discarded.
    pub fn inside(&self) -> usize {
        self.inventory.pool.in_use()
    }

    /// Packets that the graph lost, refused or discarded.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Packets that were built of what a regulator made.
    pub fn built(&self) -> u64 {
        self.built
    }

    /// Segments that a regulator made and that could not be built, and so are lost: of a connection that is not known, with a
    /// payload, too large, or where no more packets may be inside.
    pub fn unbuilt(&self) -> u64 {
        self.unbuilt
    }

    /// Packets that were lost before the link: half of the most that may be inside had come in at their side, or their connection or its
    /// user had its share.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// What was inside when the first packet found no room.
    pub fn crowd(&self) -> Option<Crowd> {
        self.crowd
    }

    /// What waits in all queues towards the mobiles.
    pub fn waiting(&mut self) -> Load {
        let now = self.graph.now();
        self.graph.queue_mut().waiting(now, Direction::Down)
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
    pub fn replace_medium(&mut self, direction: Direction, medium: Box<dyn Medium>) {
        self.graph.replace_medium(direction, medium);
        self.collect();
    }

    /// A packet finds no room.
    #[cold]
    fn refuse(&mut self, packet: PacketId) {
        self.inventory.pool.release(packet);
        if self.overflowed == 0 {
            self.crowd = Some(self.count());
        }
        self.overflowed += 1;
        self.discarded += 1;
    }

    fn count(&mut self) -> Crowd {
        let now = self.graph.now();
        let queue = self.graph.queue_mut();
        let waiting =
            Direction::BOTH.map(|direction| queue.waiting(now, direction).packets as usize).iter().sum();
        let held = (0..self.connections.len()).map(|flow| self.edge().held(FlowId(flow as u32))).sum();
        Crowd { inside: self.inside(), waiting, held, kept: self.edge().copies() }
    }

    /// Events of the engine so far.
    pub(crate) fn events(&self) -> u64 {
        self.graph.events()
    }

    /// The number of a packet's connection, which is opened where it is new.
    fn flow(&mut self, now: Time, from: Side, tuple: Option<&Tuple>, segment: &Segment) -> FlowId {
        match self.inventory.flows.meet(from, tuple) {
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
            if self.inventory.flows.inside(flow) == 0 {
                self.graph.forget(flow);
            }
        }
        let ends = self.inventory.flows.ends(flow);
        let tally = ends.map(|ends| Tally::new(self.met, ends, now));
        self.met = self.met.saturating_add(u32::from(ends.is_some_and(|ends| pages::has_ports(&ends))));
        // The next user gets a number before the old one gives up its own: it may be the same.
        let user = ends.map(|ends| self.users.enter(ends.radio.address));
        if let Some(user) = user {
            self.graph.assign(flow, user);
        }
        if let Some(old) = old {
            self.users.leave(old.tally.report().ends.radio.address);
        }
        let templates = [Template::default(); 2];
        self.connections[flow.index()] =
            tally.zip(user).map(|(tally, user)| Connection { tally, user, templates });
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
        connection.templates[from as usize]
            .learn(self.inventory.pool.bytes(packet).unwrap_or_default(), layout);
        connection.tally.on_packet(now, from, segment);
        if connection.tally.is_proven() {
            self.inventory.flows.prove(flow);
        }
        self.inventory.flows.learn(flow, from, segment);
    }

    /// Brings the bytes of a segment that departs up to date. `None` where it has none and they cannot be made.
    fn finish(&mut self, segment: &Segment, side: Side) -> Option<PacketId> {
        if !segment.packet().has_bytes() {
            let made = self.make(segment, side.other());
            let count = if made.is_some() { &mut self.built } else { &mut self.unbuilt };
            *count += 1;
            return made;
        }
        let layout = self.inventory.get(segment.packet())?.layout;
        if let Some(connection) = self.connections.get_mut(segment.flow.index()).and_then(Option::as_mut) {
            connection.tally.on_left(side.other(), segment);
        }
        rewrite(self.inventory.pool.bytes_mut(segment.packet())?, layout, segment);
        Some(segment.packet())
    }

    /// Makes the packet of a segment that a regulator made; it comes as if from the side `from`.
    fn make(&mut self, segment: &Segment, from: Side) -> Option<PacketId> {
        let ends = self.inventory.flows.ends(segment.flow)?;
        let connection = self.connections.get(segment.flow.index())?.as_ref()?;
        let length = connection.templates[from as usize].build(segment, &ends, from, &mut self.spare)?;
        let user = Some(connection.user);
        let packet = self.inventory.pool.claim(&mut self.spare, length)?;
        let (flow, bytes, arrived) = (segment.flow, length as u32, self.graph.now());
        self.inventory
            .enter(packet, Inside { flow, user, layout: Layout::Opaque, bytes, arrived, from: None });
        Some(packet)
    }
}
