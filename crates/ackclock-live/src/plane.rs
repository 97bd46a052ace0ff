//! The data plane, which passes raw packets through the simulation's unchanged graph. The data plane has no clock and
//! no devices.
//!
//! Every arriving packet departs, is discarded by the graph, or is inside the graph. Every segment that a regulator
//! generates or retransmits also departs, is discarded or is inside the graph, unless its packet could not be built.
//! [`Plane::traffic`] counts packets by fate in each direction.

mod beside;
mod collect;
mod corrupt;
mod inventory;
mod pages;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use ackclock_core::{ConfigError, FlowId, PacketId, RadioReport, Segment, Stream, Streams, Time, name_of};
use ackclock_edge::{Edge, REGULATORS, RegulatorConfig};
use ackclock_link::{Change, Direction, Files, Load};

use crate::account::Totals;
use crate::faults::Faults;
use crate::flow::{Met, NO_FLOW};
use crate::fragments::Fragments;
use crate::graph::Graph;
use crate::log::LinkLog;
use crate::parse::{Layout, Parsed, Tuple, parse, payload, services};
use crate::port::Side;
use crate::quic::Observer;
use crate::rewrite::rewrite;
use crate::selection::Selection;
use crate::tally::{CopyKind, Tally};
use crate::template::Template;
use crate::traffic::Traffic;
use crate::users::Users;
use crate::{FlowReport, Hop, PlaneConfig, Pool};
use corrupt::Content;
use inventory::{Inside, Inventory};

/// Packet that leaves the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Departure time of the packet.
    pub at: Time,
    /// Side at which the packet leaves.
    pub side: Side,
    /// Id of the packet in the pool, to be released after writing.
    pub packet: PacketId,
    /// Whether the packet passed beside the link, if it did.
    pub beside: Option<Beside>,
}

/// Kind of a packet that leaves the data plane without crossing the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Packet of a flow that is not selected.
    Bypassed,
    /// Message of the hop to the sender of a packet that is too big.
    Message,
    /// RST to the sender of a segment whose connection a fault resets.
    Reset,
}

/// Graph with the packets inside it.
pub struct Plane {
    graph: Graph,
    inventory: Inventory,
    /// Flows that cross the link.
    selection: Selection,
    /// Datagrams whose first fragment was seen, by side of arrival.
    fragments: [Fragments; 2],
    /// Faults of single connections in front of the link.
    faults: Faults,
    /// Hop with a smaller MTU in front of the link.
    hop: Option<Hop>,
    /// Packets that leave without crossing the link.
    beside: VecDeque<Departure>,
    users: Users,
    /// Class of service of the flows whose first packet has a DSCP.
    classes: [u8; 64],
    /// State of each connection, by number; number 0 is unused.
    connections: Vec<Option<Connection>>,
    /// Receives the reports of connections whose numbers were reused.
    past: Sender<FlowReport>,
    past_room: usize,
    /// Totals of finished connections whose reports exceeded the limit.
    forgotten: Totals,
    /// Number of connections with ports so far.
    met: u32,
    /// Receiving end of `past`, until an account takes it.
    account: Option<Receiver<FlowReport>>,
    /// Unused buffer for generated packets.
    spare: Box<[u8]>,
    /// Positions of the wrong bits of corrupt packets.
    wrong_bits: Stream,
    regulator: String,
    logs: [Option<LinkLog>; 2],
    /// Packet counts by the side of arrival.
    traffic: [Traffic; 2],
    /// Delivered payload by the side of arrival, bytes.
    delivered: [u64; 2],
    /// Counters of packets that belong to no connection with a row in the results.
    other: Tally,
    /// Numbers of packets inside the plane when the first packet was refused.
    crowd: Option<Crowd>,
}

/// Numbers of packets inside a plane, by state. A queued packet may also be kept as a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Number of all packets inside the plane.
    pub inside: usize,
    /// Number of packets in queues, for the two directions together.
    pub waiting: usize,
    /// Number of ACKs held by regulators.
    pub held: usize,
    /// Number of packets of which regulators keep a copy.
    pub kept: usize,
}

#[derive(Clone, Debug)]
struct Connection {
    tally: Tally,
    quic: Observer,
    user: u32,
    /// Header fields of the connection's packets, by the side of arrival.
    templates: [Template; 2],
}

impl Connection {
    /// Shows a packet that passes the wired end of the link to the observer of QUIC.
    fn observe(&mut self, now: Time, from: Side, bytes: &[u8]) {
        if self.tally.report().ends.is_some_and(|ends| ends.is_udp()) {
            self.quic.on_datagram(now, from, bytes.get(payload(bytes)).unwrap_or_default());
        }
    }
}

/// Maximum number of finished connections with rows.
const MOST_PAST: usize = 1 << 16;

impl Plane {
    /// Builds a data plane from its configuration.
    ///
    /// # Errors
    /// Fails if a key of the `[edge]` table is invalid; the error names the key.
    pub fn new(config: &PlaneConfig<'_>, files: &dyn Files) -> Result<Self, ConfigError> {
        let regulator =
            config.edge.regulator.config(&REGULATORS).map_err(|error| error.under("regulator"))?;
        Self::with_regulator(config, Arc::clone(regulator), files)
    }

    /// Builds a data plane with a given regulator, which need not be registered, regardless of the `[edge]` table.
    ///
    /// # Errors
    /// Fails under the same conditions as [`new`](Self::new).
    pub fn with_regulator(
        config: &PlaneConfig<'_>,
        regulator: Arc<dyn RegulatorConfig>,
        files: &dyn Files,
    ) -> Result<Self, ConfigError> {
        let inventory = Inventory::new(config);
        let (past, account) = mpsc::channel();
        let mut graph = Graph::new(config, regulator, files)?;
        // Arriving packets can use only three quarters of a side's buffers, so the number of copies is limited.
        graph.edge_mut().keep_at_most(config.packets / 8);
        Ok(Self {
            graph,
            selection: Selection::default(),
            fragments: Default::default(),
            faults: Faults::default(),
            hop: None,
            beside: VecDeque::new(),
            users: Users::default(),
            classes: std::array::from_fn(|dscp| config.edge.class_of_dscp(dscp as u8)),
            connections: Vec::new(),
            past,
            past_room: MOST_PAST,
            forgotten: Totals::default(),
            met: 0,
            account: Some(account),
            spare: inventory.pool.buffer(),
            wrong_bits: Streams::new(config.seed, 0).stream("wrong-bits"),
            inventory,
            regulator: name_of(&config.edge.regulator),
            logs: [None, None],
            traffic: [Traffic::default(); 2],
            delivered: [0; 2],
            other: Tally::default(),
            crowd: None,
        })
    }

    /// Accepts a packet that arrives from side `from`. The plane now owns the pool's packet.
    pub fn arrive(&mut self, now: Time, from: Side, packet: PacketId) {
        if self.is_beside(now, from, packet) {
            return;
        }
        if let Some(packet) = self.meets_faults(now, from, packet)
            && !self.meets_hop(now, from, packet)
        {
            self.enter(now, from, packet);
        }
    }

    /// Accepts a packet at the link.
    fn enter(&mut self, now: Time, from: Side, packet: PacketId) {
        let Some(bytes) = self.inventory.pool.bytes(packet) else { return };
        self.traffic[from as usize].arrived += 1;
        if self.inventory.is_crowded(from) {
            return self.refuse(from, packet);
        }
        let (parsed, length) = (parse(bytes), bytes.len());
        let Parsed { segment, tuple, layout, .. } = parsed;
        let class = self.classes[usize::from(services(bytes))];
        let flow = self.flow(from, tuple.as_ref(), &segment, class);
        let user =
            self.connections.get(flow.index()).and_then(Option::as_ref).map(|connection| connection.user);
        if self.inventory.has_its_share(from, flow, user) {
            return self.refuse(from, packet);
        }
        // Packets without a flow number are not regulated.
        let (mut segment, layout) = match flow {
            NO_FLOW => (Segment::opaque(NO_FLOW, u16::try_from(length).unwrap_or(u16::MAX)), Layout::Opaque),
            _ => (segment, layout),
        };
        self.learn(now, from, flow, packet, layout, &segment);
        if flow != NO_FLOW && self.inventory.flows.protects(flow, &parsed) {
            // Regulators do not see protected segments. Queues may still mark them, in the IP header.
            segment = Segment::opaque(flow, u16::try_from(length).unwrap_or(u16::MAX));
            segment.ecn = parsed.segment.ecn;
        }
        segment.set_scale(self.inventory.flows.scale(flow, from));
        segment.identify(flow, packet);
        let bytes = segment.wire_bytes();
        let inside =
            Inside { flow, user, layout, bytes, arrived: now, from: Some(from), ..Inside::default() };
        self.inventory.enter(packet, inside);
        self.graph.inject(now, from, segment);
        self.collect();
    }

    /// Processes all events due up to and including `now`.
    pub fn advance(&mut self, now: Time) {
        self.graph.advance(now);
        self.collect();
    }

    /// Time of the plane's next event; `None` if no event is pending.
    pub fn next_wake(&self) -> Option<Time> {
        self.graph.next_wake()
    }

    /// Returns the next departing packet, with its bytes ready to write.
    pub fn poll_departure(&mut self) -> Option<Departure> {
        if let Some(departure) = self.beside.pop_front() {
            return Some(departure);
        }
        while let Some((at, side, segment)) = self.graph.poll_left() {
            if let Some(packet) = self.finish(at, &segment, side) {
                if self.graph.ends_with_link(side) {
                    self.log_left(at, packet);
                }
                return Some(Departure { at, side, packet, beside: None });
            }
        }
        None
    }

    /// Bytes of a packet in the pool.
    pub fn bytes(&self, packet: PacketId) -> &[u8] {
        self.inventory.pool.bytes(packet).unwrap_or_default()
    }

    /// Frees the packet of a departure after it was written.
    pub fn release(&mut self, packet: PacketId) {
        self.inventory.leave(packet);
    }

    /// Pool into which packets are read.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.inventory.pool
    }

    /// Pool of the packets inside the plane.
    pub fn pool(&self) -> &Pool {
        &self.inventory.pool
    }

    /// Number of packets that arrived and have neither departed nor been discarded.
    pub fn inside(&self) -> usize {
        self.inventory.pool.in_use()
    }

    /// Counts packets that could not be read from the device of side `from`.
    pub fn count_unread(&mut self, from: Side, packets: u32) {
        self.traffic[from as usize].lost.unread += u64::from(packets);
    }

    /// Frees the packet of a departure that the device refused.
    pub fn refused(&mut self, departure: Departure) {
        if let Some(beside) = departure.beside {
            self.refused_beside(departure.side, beside);
        }
        self.traffic[departure.side.other() as usize].lost.refused += 1;
        self.release(departure.packet);
    }

    /// Packet counts of a direction, by fate.
    pub fn traffic(&self, direction: Direction) -> Traffic {
        let from = Side::BOTH[direction as usize];
        let (edge, queue) = (self.graph.edge().statistics(), self.graph.queue().statistics());
        let drops = match direction {
            Direction::Down => queue.dropped,
            Direction::Up => queue.dropped_up,
        };
        let traffic = self.traffic[from as usize];
        // Removed segments without a packet were generated by a regulator.
        let made_removed = (drops + edge.discarded[direction as usize]).saturating_sub(traffic.removed);
        let made_gone = traffic.built + traffic.lost.unbuilt + made_removed;
        // Copies of generated segments have no packets either.
        let duplicated = queue.impaired[direction as usize].as_ref().map_or(0, |counts| counts.duplicated);
        let made = edge.made[direction as usize] + duplicated.saturating_sub(traffic.duplicated);
        let made_inside = made.saturating_sub(made_gone);
        Traffic { inside: self.inventory.under_way(from), made_inside, ..traffic }
    }

    /// Numbers of packets inside the plane when the first packet was refused.
    pub fn crowd(&self) -> Option<Crowd> {
        self.crowd
    }

    /// Total load of all downlink queues.
    pub fn waiting(&mut self) -> Load {
        let now = self.graph.now();
        self.graph.queue_mut().waiting(now, Direction::Down)
    }

    /// Edge of the plane, for reading its statistics.
    pub fn edge(&self) -> &Edge {
        self.graph.edge()
    }

    /// Edge of the plane, for changing it between packets.
    pub fn edge_mut(&mut self) -> &mut Edge {
        self.graph.edge_mut()
    }

    /// Sends the radio reports of the edge, `[edge.report]`, to this channel. Without a channel, reports are discarded.
    pub fn report_to(&mut self, reports: mpsc::Sender<RadioReport>) {
        self.graph.reports = Some(reports);
    }

    /// Changes a direction of the link.
    pub fn change(&mut self, direction: Direction, change: Change) {
        self.graph.change(direction, change);
        self.collect();
    }

    /// Refuses a packet from a side because the plane has no room for it.
    #[cold]
    fn refuse(&mut self, from: Side, packet: PacketId) {
        self.inventory.pool.release(packet);
        self.traffic[from as usize].lost.no_room += 1;
        if self.crowd.is_none() {
            self.crowd = Some(self.count());
        }
    }

    fn count(&mut self) -> Crowd {
        let now = self.graph.now();
        let queue = self.graph.queue_mut();
        let waiting =
            Direction::BOTH.map(|direction| queue.waiting(now, direction).packets as usize).iter().sum();
        let held = (0..self.connections.len()).map(|flow| self.edge().held(FlowId(flow as u32))).sum();
        Crowd { inside: self.inside(), waiting, held, kept: self.edge().copies() }
    }

    /// Number of engine events so far.
    pub(crate) fn events(&self) -> u64 {
        self.graph.events()
    }

    /// Connection number of a packet; opens a new connection of this class of service if necessary.
    fn flow(&mut self, from: Side, tuple: Option<&Tuple>, segment: &Segment, class: u8) -> FlowId {
        match self.inventory.flows.meet(from, tuple) {
            Met::None => NO_FLOW,
            Met::New(flow) => {
                self.open(flow, class);
                flow
            }
            Met::Known(flow) => {
                let connection = self.connections[flow.index()].as_ref();
                if connection.is_some_and(|connection| connection.tally.is_over_with(from, segment)) {
                    self.open(flow, class);
                }
                flow
            }
        }
    }

    /// Opens a connection with number `flow`, and closes the connection that had this number.
    fn open(&mut self, flow: FlowId, class: u8) {
        self.connections.resize(self.connections.len().max(flow.index() + 1), None);
        let old = self.connections[flow.index()].take();
        if let Some(old) = &old {
            self.archive(flow, old);
            // The last packets of an earlier connection between the same ends may still be inside the plane; in this
            // case the edge keeps the earlier state for the new connection.
            if self.inventory.flows.inside(flow) == 0 {
                self.graph.forget(flow);
            }
        }
        let ends = self.inventory.flows.ends(flow);
        let tally = ends.map(|ends| Tally::new(self.met, ends));
        self.met = self.met.saturating_add(u32::from(ends.is_some_and(|ends| ends.have_row())));
        // The new user gets a number before the old user frees a number, because the old and the new user may be the
        // same.
        let user = ends.map(|ends| self.users.enter(ends.radio.address));
        if let Some(user) = user {
            self.graph.assign(flow, user, class);
        }
        if let Some(ends) = old.and_then(|old| old.tally.report().ends) {
            self.users.leave(ends.radio.address);
        }
        self.connections[flow.index()] = tally.zip(user).map(|(tally, user)| Connection {
            tally,
            quic: Observer::default(),
            user,
            templates: [Template::default(); 2],
        });
    }

    /// Updates a connection's state from a packet.
    fn learn(
        &mut self,
        now: Time,
        from: Side,
        flow: FlowId,
        packet: PacketId,
        layout: Layout,
        segment: &Segment,
    ) {
        if let Some(connection) = self.connections.get_mut(flow.index()).and_then(Option::as_mut) {
            let bytes = self.inventory.pool.bytes(packet).unwrap_or_default();
            connection.templates[from as usize].learn(bytes, layout);
            if self.inventory.flows.inside(flow) == 0 {
                connection.quic.on_silence(now.since(connection.tally.report().last));
            }
            if from == Side::Wired {
                connection.observe(now, from, bytes);
            }
        }
        let tally = self.tally(flow, segment);
        let delivered = tally.on_packet(now, from, segment);
        if tally.is_proven() {
            self.inventory.flows.prove(flow);
        }
        self.delivered[from.other() as usize] += delivered;
        self.inventory.flows.learn(flow, from, segment);
    }

    /// Counters for a segment of a connection; the common counters for a segment that no row counts.
    fn tally(&mut self, flow: FlowId, segment: &Segment) -> &mut Tally {
        match self.connections.get_mut(flow.index()) {
            Some(Some(connection)) if connection.tally.counts(segment) => &mut connection.tally,
            _ => &mut self.other,
        }
    }

    /// Writes a departing segment's changes into its packet. Returns `None` if the segment has no packet and none can
    /// be built.
    fn finish(&mut self, at: Time, segment: &Segment, side: Side) -> Option<PacketId> {
        let (from, counted) = (side.other(), self.counted(segment));
        let (packet, state) = if segment.packet().has_bytes() {
            let layout = self.inventory.get(segment.packet())?.layout;
            rewrite(self.inventory.pool.bytes_mut(segment.packet())?, layout, segment);
            if segment.is_corrupt() {
                self.corrupt(from, segment.packet())
            } else {
                (segment.packet(), Content::Intact)
            }
        } else {
            let made = self.make(segment, from);
            let Traffic { built, lost, .. } = &mut self.traffic[from as usize];
            *(if made.is_some() { built } else { &mut lost.unbuilt }) += 1;
            (made?, Content::Intact)
        };
        let bytes = self.bytes(packet).len() as u64;
        self.traffic[from as usize].left += 1;
        self.traffic[from as usize].left_bytes += bytes;
        let copy = self.copy_of(packet, state);
        self.delivered[from as usize] +=
            self.tally(segment.flow, &counted).on_left(at, from, &counted, bytes, copy);
        if (from, copy) == (Side::Radio, CopyKind::First)
            && let Some(Some(connection)) = self.connections.get_mut(segment.flow.index())
        {
            connection.observe(at, from, self.inventory.pool.bytes(packet).unwrap_or_default());
        }
        Some(packet)
    }

    /// A departing segment as its connection counts it. The graph does not see the contents of a protected segment.
    fn counted(&self, segment: &Segment) -> Segment {
        let packet = segment.packet();
        let is_protected = !segment.is_tcp()
            && packet.has_bytes()
            && self.inventory.get(packet).is_some_and(|inside| inside.layout != Layout::Opaque);
        if is_protected { parse(self.bytes(packet)).segment } else { *segment }
    }

    /// Whether a departing packet is the first intact copy of what arrived.
    fn copy_of(&mut self, packet: PacketId, content: Content) -> CopyKind {
        let Some(inside) = self.inventory.get_mut(packet).filter(|_| content == Content::Intact) else {
            return CopyKind::Extra;
        };
        if std::mem::replace(&mut inside.delivered, true) { CopyKind::Extra } else { CopyKind::First }
    }

    /// Builds the packet of a generated segment, as if it came from the side `from`.
    fn make(&mut self, segment: &Segment, from: Side) -> Option<PacketId> {
        let ends = self.inventory.flows.ends(segment.flow)?;
        let connection = self.connections.get(segment.flow.index())?.as_ref()?;
        let length = connection.templates[from as usize].build(segment, &ends, from, &mut self.spare)?;
        let user = Some(connection.user);
        let packet = self.inventory.pool.claim(&mut self.spare, length)?;
        let (flow, bytes, arrived) = (segment.flow, length as u32, self.graph.now());
        self.inventory.enter(packet, Inside { flow, user, bytes, arrived, ..Inside::default() });
        Some(packet)
    }
}
