//! One island as a whole: servers - wires - edge - clients, in direct calls.
//!
//! The parts are the nodes of the graph, and what passes between them is the same and in the same order; but here each
//! hands its segments straight to the next, where an engine would carry them as messages. That halves the cost of a
//! packet. `tests/line.rs` runs both.

use ackclock_core::{Port, Segment, Sink, Time};
use ackclock_edge::{Edge, RADIO, WIRED};
use ackclock_link::Path;
use ackclock_link::path::{EDGE, SERVER};
use ackclock_tcp::Host;

use crate::network::{Graph, Parts};
use crate::traffic::{Boxes, Traffic};

/// The parts of an island.
pub(crate) struct Line {
    pub(crate) servers: Host,
    pub(crate) edge: Edge,
    pub(crate) around: Around,
    pub(crate) traffic: Traffic,
    now: Time,
}

/// What the edge passes segments on to.
pub(crate) struct Around {
    pub(crate) path: Path,
    pub(crate) clients: Host,
    /// What the clients have sent and the edge has not taken yet.
    uplink: Vec<Segment>,
    /// Instants at which a part had something to do, and segments handed on.
    events: u64,
}

impl Line {
    pub(crate) fn new(servers: Host, path: Path, edge: Edge, clients: Host, traffic: Traffic) -> Self {
        let around = Around { path, clients, uplink: Vec::new(), events: 0 };
        Self { servers, edge, around, traffic, now: Time::ZERO }
    }
}

impl Graph for Line {
    fn advance(&mut self, until: Time) {
        loop {
            self.run(until.min(self.traffic.due()));
            let Self { servers, edge, around: Around { path, clients, .. }, traffic, now } = self;
            let served = traffic.serve(*now, &mut Apart { servers, path, edge, clients });
            if !served && *now == until {
                return;
            }
        }
    }

    fn parts(&mut self, _: usize) -> Parts<'_> {
        // Departures since the edge was last woken have happened too.
        self.run_edge(self.now);
        let Self { servers, edge, around, traffic, .. } = self;
        Parts { servers, edge, clients: &mut around.clients, traffic }
    }

    fn events(&self) -> u64 {
        self.around.events
    }
}

impl Line {
    /// Does everything that is due up to and at `until`, or at the instant at which a host has news.
    fn run(&mut self, mut until: Time) {
        loop {
            let Around { path, clients, .. } = &self.around;
            let (servers, path, edge) = (self.servers.due(), path.due(), self.edge.due());
            let now = servers.min(path).min(edge).min(clients.due());
            if now > until {
                self.now = until;
                return;
            }
            self.around.events += 1;
            // Ties go to the part that stands first, as they do to the lowest node of an engine.
            if servers == now {
                self.servers.run(now, &mut Wire { now, around: &mut self.around });
                if self.servers.has_news() {
                    until = now;
                }
            } else if path == now {
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

    fn run_edge(&mut self, now: Time) {
        self.edge.run(now, &mut Radio { now, around: &mut self.around });
        self.carry_up(now);
    }

    /// What has come through the wires.
    fn arrive(&mut self, now: Time) {
        while self.around.path.due_at(SERVER) <= now {
            let segment = self.around.path.leave(SERVER);
            self.around.events += 1;
            self.servers.take(now, &segment, &mut Wire { now, around: &mut self.around });
        }
        while self.around.path.due_at(EDGE) <= now {
            let segment = self.around.path.leave(EDGE);
            self.around.events += 1;
            self.edge.take(now, WIRED, &segment, &mut Radio { now, around: &mut self.around });
            self.carry_up(now);
        }
    }

    /// What the clients have sent.
    #[inline]
    fn carry_up(&mut self, now: Time) {
        // Nearly always there is at most one; what its passing calls forth stands behind the others.
        let mut next = 0;
        while let Some(&segment) = self.around.uplink.get(next) {
            next += 1;
            self.around.events += 1;
            if next == self.around.uplink.len() {
                self.around.uplink.clear();
                next = 0;
            }
            self.edge.take(now, RADIO, &segment, &mut Radio { now, around: &mut self.around });
        }
    }
}

/// The boxes beside the traffic.
struct Apart<'a> {
    servers: &'a mut Host,
    path: &'a mut Path,
    edge: &'a mut Edge,
    clients: &'a mut Host,
}

impl Boxes for Apart<'_> {
    fn servers(&mut self) -> &mut Host {
        self.servers
    }

    fn path(&mut self) -> &mut Path {
        self.path
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
    around: &'a mut Around,
}

impl Sink for Wire<'_> {
    #[inline]
    fn pass(&mut self, _: Port, segment: &Segment) {
        self.around.events += 1;
        self.around.path.enter(self.now, SERVER, segment);
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
        let Around { path, clients, uplink, events } = &mut *self.around;
        *events += 1;
        if port == RADIO {
            clients.take(self.now, segment, &mut Up(uplink));
        } else {
            path.enter(self.now, EDGE, segment);
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
