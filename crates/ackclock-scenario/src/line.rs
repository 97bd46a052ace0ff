//! One island as a whole: servers - wires - edge - clients, in direct calls.
//!
//! The parts are the nodes of the graph, and what passes between them is the same and in the same order; but here each
//! hands its segments straight to the next, where an engine would carry them as messages. That halves the cost of a
//! packet. `tests/line.rs` runs both.

use ackclock_core::{Port, Segment, Sink, Time};
use ackclock_edge::{Edge, RADIO, WIRED};
use ackclock_link::Path;
use ackclock_link::path::Wires;
use ackclock_tcp::Host;

use crate::network::{Graph, Parts};
use crate::traffic::{Boxes, Traffic};

/// The parts of an island.
pub(crate) struct Line {
    pub(crate) servers: Host,
    pub(crate) path: Path,
    pub(crate) edge: Edge,
    pub(crate) clients: Host,
    pub(crate) traffic: Traffic,
    /// What the clients have sent and the edge has not taken yet.
    uplink: Vec<Segment>,
    /// What the edge is taking.
    taken: Vec<Segment>,
    now: Time,
    /// Instants at which a part had something to do, and segments handed on.
    events: u64,
}

impl Line {
    pub(crate) fn new(servers: Host, path: Path, edge: Edge, clients: Host, traffic: Traffic) -> Self {
        let (uplink, taken) = (Vec::new(), Vec::new());
        Self { servers, path, edge, clients, traffic, uplink, taken, now: Time::ZERO, events: 0 }
    }
}

impl Graph for Line {
    fn advance(&mut self, until: Time) {
        loop {
            self.run(until.min(self.traffic.due()));
            let Self { servers, path, edge, clients, traffic, now, .. } = self;
            let served = traffic.serve(*now, &mut Apart { servers, path, edge, clients });
            if !served && *now == until {
                return;
            }
        }
    }

    fn parts(&mut self, _: usize) -> Parts<'_> {
        // Departures since the edge was last woken have happened too.
        self.run_edge(self.now);
        let Self { servers, edge, clients, traffic, .. } = self;
        Parts { servers, edge, clients, traffic }
    }

    fn events(&self) -> u64 {
        self.events
    }
}

impl Line {
    /// Does everything that is due up to and at `until`, or at the instant at which a host has news.
    fn run(&mut self, mut until: Time) {
        loop {
            let (servers, path) = (self.servers.due(), self.path.due());
            let (edge, clients) = (self.edge.due(), self.clients.due());
            let now = servers.min(path).min(edge).min(clients);
            if now > until {
                self.now = until;
                return;
            }
            self.events += 1;
            // Ties go to the part that stands first, as they do to the lowest node of an engine.
            if servers == now {
                let Self { servers, path, events, .. } = self;
                servers.run(now, &mut Wire { now, down: &mut path.down, events });
                if servers.has_news() {
                    until = now;
                }
            } else if path == now {
                self.arrive(now);
            } else if edge == now {
                self.run_edge(now);
            } else {
                self.clients.run(now, &mut Up(&mut self.uplink));
                if self.clients.has_news() {
                    until = now;
                }
                self.carry_up(now);
            }
        }
    }

    fn run_edge(&mut self, now: Time) {
        let Self { edge, path: Path { up, .. }, clients, uplink, events, .. } = self;
        edge.run(now, &mut Radio { now, up, clients, uplink, events });
        self.carry_up(now);
    }

    /// What has come through the wires.
    fn arrive(&mut self, now: Time) {
        let Self { servers, path: Path { up, down }, events, .. } = self;
        while up.due() <= now {
            *events += 1;
            servers.take(now, up.front(), &mut Wire { now, down, events });
            up.drop_front();
        }
        while self.path.down.due() <= now {
            let Self { edge, path: Path { up, down }, clients, uplink, events, .. } = self;
            *events += 1;
            edge.take(now, WIRED, down.front(), &mut Radio { now, up, clients, uplink, events });
            down.drop_front();
            self.carry_up(now);
        }
    }

    /// What the clients have sent.
    #[inline]
    fn carry_up(&mut self, now: Time) {
        // What its passing calls forth stands behind it.
        while !self.uplink.is_empty() {
            std::mem::swap(&mut self.uplink, &mut self.taken);
            let Self { edge, path: Path { up, .. }, clients, uplink, taken, events, .. } = self;
            for segment in taken.iter() {
                *events += 1;
                edge.take(now, RADIO, segment, &mut Radio { now, up, clients, uplink, events });
            }
            taken.clear();
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
    up: &'a mut Wires,
    clients: &'a mut Host,
    uplink: &'a mut Vec<Segment>,
    events: &'a mut u64,
}

impl Sink for Radio<'_> {
    #[inline(always)]
    fn pass(&mut self, port: Port, segment: &Segment) {
        *self.events += 1;
        if port == RADIO {
            self.clients.take(self.now, segment, &mut Up(self.uplink));
        } else {
            self.up.enter(self.now, segment);
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
