//! One island as a whole: servers - wires - edge - clients, in direct calls.
//!
//! The parts are the nodes of the graph, and what passes between them is the same and in the same order; but here each
//! hands its segments straight to the next, where an engine would carry them as messages. That halves the cost of a
//! packet. `tests/line.rs` runs both.

use ackclock_core::{FlowId, Port, Segment, Sink, Time};
use ackclock_edge::{Edge, RADIO, WIRED};
use ackclock_link::Path;
use ackclock_link::path::Wires;
use ackclock_tcp::Host;

use crate::network::{Graph, Parts};
use crate::traffic::{Boxes, Traffic};

/// The parts of an island.
pub(crate) struct Line {
    pub(crate) servers: Host,
    /// From the servers to the edge.
    pub(crate) down: Wires,
    pub(crate) edge: Edge,
    pub(crate) around: Around,
    pub(crate) traffic: Traffic,
    /// What the edge is taking from the clients.
    taken: Vec<Segment>,
    now: Time,
}

/// What the edge passes segments on to.
pub(crate) struct Around {
    /// From the edge to the servers.
    pub(crate) up: Wires,
    pub(crate) clients: Host,
    /// What the clients have sent and the edge has not taken yet.
    uplink: Vec<Segment>,
    /// Instants at which a part had something to do, and segments handed on.
    events: u64,
}

impl Line {
    pub(crate) fn new(servers: Host, path: Path, edge: Edge, clients: Host, traffic: Traffic) -> Self {
        let Path { up, down } = path;
        let around = Around { up, clients, uplink: Vec::new(), events: 0 };
        Self { servers, down, edge, around, traffic, taken: Vec::new(), now: Time::ZERO }
    }
}

impl Graph for Line {
    fn advance(&mut self, until: Time) {
        loop {
            self.run(until.min(self.traffic.due()));
            let Self { servers, down, edge, around: Around { up, clients, .. }, traffic, now, .. } = self;
            let served = traffic.serve(*now, &mut Apart { servers, down, edge, up, clients });
            if !served && *now == until {
                return;
            }
        }
    }

    fn parts(&mut self, _: usize) -> Parts<'_> {
        self.settle();
        let Self { servers, edge, around: Around { clients, .. }, traffic, .. } = self;
        Parts { servers, edge, clients, traffic }
    }

    fn edge(&mut self, _: usize) -> &mut Edge {
        &mut self.edge
    }

    fn events(&self) -> u64 {
        self.around.events
    }

    fn close(&mut self) {
        self.settle();
        self.edge.let_go();
        self.down.let_go();
        self.around.up.let_go();
    }
}

impl Line {
    /// Does everything that is due up to and at `until`, or at the instant at which a host has news.
    fn run(&mut self, mut until: Time) {
        loop {
            let Around { up, clients, .. } = &self.around;
            let (servers, edge) = (self.servers.due(), self.edge.due());
            let wires = up.due().min(self.down.due());
            let now = servers.min(wires).min(edge).min(clients.due());
            if now > until {
                self.now = until;
                return;
            }
            self.around.events += 1;
            // Ties go to the part that stands first, as they do to the lowest node of an engine.
            if servers == now {
                let Self { servers, down, around, .. } = self;
                servers.run(now, &mut Wire { now, down, events: &mut around.events });
                if servers.has_news() {
                    until = now;
                }
            } else if wires == now {
                self.arrive(now);
            } else if edge == now {
                self.run_edge(now);
            } else {
                let Around { clients, uplink, .. } = &mut self.around;
                clients.run(now, &mut Up(uplink));
                if clients.has_news() {
                    until = now;
                }
                self.carry_up(now);
            }
        }
    }

    #[inline(always)]
    fn run_edge(&mut self, now: Time) {
        self.edge.run(now, &mut Radio { now, around: &mut self.around });
        self.carry_up(now);
    }

    /// Departures since the edge was last woken have happened too.
    fn settle(&mut self) {
        self.run_edge(self.now);
    }

    /// What has come through the wires.
    #[inline(always)]
    fn arrive(&mut self, now: Time) {
        let Self { servers, down, around: Around { up, events, .. }, .. } = self;
        while up.due() <= now {
            *events += 1;
            servers.take(now, up.front(), &mut Wire { now, down, events });
            up.drop_front();
        }
        look_ahead(servers, up);
        while self.down.due() <= now {
            let Self { down, edge, around, .. } = self;
            around.events += 1;
            edge.take(now, WIRED, down.front(), &mut Radio { now, around });
            down.drop_front();
            self.carry_up(now);
        }
    }

    /// What the clients have sent, if anything.
    #[inline(always)]
    fn carry_up(&mut self, now: Time) {
        if !self.around.uplink.is_empty() {
            self.carry_all_up(now);
        }
    }

    #[inline(always)]
    fn carry_all_up(&mut self, now: Time) {
        // What its passing calls forth stands behind it.
        while !self.around.uplink.is_empty() {
            let Self { edge, around, taken, .. } = self;
            std::mem::swap(&mut around.uplink, taken);
            for segment in taken.iter() {
                around.events += 1;
                edge.take(now, RADIO, segment, &mut Radio { now, around });
            }
            taken.clear();
        }
    }
}

/// Has the state of the senders fetched to which the next ACKs go: what it points to once it is there.
#[inline(always)]
fn look_ahead(servers: &Host, up: &Wires) {
    if let Some(flow) = up.flow_after(8) {
        servers.prefetch(flow);
    }
    if let Some(flow) = up.flow_after(2) {
        servers.prefetch_more(flow);
    }
}

/// The boxes beside the traffic.
struct Apart<'a> {
    servers: &'a mut Host,
    down: &'a mut Wires,
    edge: &'a mut Edge,
    up: &'a mut Wires,
    clients: &'a mut Host,
}

impl Boxes for Apart<'_> {
    fn servers(&mut self) -> &mut Host {
        self.servers
    }

    fn renew(&mut self, flow: FlowId, name: &str) {
        self.up.renew(flow, name);
        self.down.renew(flow, name);
    }

    fn edge(&mut self) -> &mut Edge {
        self.edge
    }

    fn clients(&mut self) -> &mut Host {
        self.clients
    }
}

/// From the servers into the wires.
struct Wire<'a> {
    now: Time,
    down: &'a mut Wires,
    events: &'a mut u64,
}

impl Sink for Wire<'_> {
    #[inline]
    fn pass(&mut self, _: Port, segment: &Segment) {
        *self.events += 1;
        self.down.enter(self.now, segment);
    }

    fn discard(&mut self, _: &Segment) {}
}

/// From the edge to the clients and into the wires.
struct Radio<'a> {
    now: Time,
    around: &'a mut Around,
}

impl Sink for Radio<'_> {
    #[inline(always)]
    fn pass(&mut self, port: Port, segment: &Segment) {
        let Around { up, clients, uplink, events } = &mut *self.around;
        *events += 1;
        if port == RADIO {
            clients.take(self.now, segment, &mut Up(uplink));
        } else {
            up.enter(self.now, segment);
        }
    }

    fn discard(&mut self, _: &Segment) {}
}

/// From the clients towards the edge.
struct Up<'a>(&'a mut Vec<Segment>);

impl Sink for Up<'_> {
    #[inline]
    fn pass(&mut self, _: Port, segment: &Segment) {
        self.0.push(*segment);
    }

    fn discard(&mut self, _: &Segment) {}
}
