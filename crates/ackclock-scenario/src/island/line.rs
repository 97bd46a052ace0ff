//! One island of the plainest shape, servers - wires - edge - clients, in direct calls.
//!
//! What passes between the boxes is the same and in the same order as in an engine; but here each hands its segments
//! straight to the next, where an engine carries them as messages ([why](../../../../docs/adr/0018-one-island-two-executors.md)).

use ackclock_core::{Port, Segment, Sink, Time};
use ackclock_edge::{Edge, RADIO, WIRED};
use ackclock_link::Path;
use ackclock_link::path::Wires;
use ackclock_tcp::Host;

use super::build::IN_LINE;
use super::{Boxes, Executor, Island, Station};
use crate::traffic::Traffic;

/// An island whose boxes stand in a line.
pub(crate) struct Line {
    servers: Host,
    path: Path,
    edge: Edge,
    clients: Host,
    traffic: Traffic,
    /// What the clients have sent and the edge has not taken yet.
    uplink: Vec<Segment>,
    /// What the edge is taking from the clients.
    taken: Vec<Segment>,
    /// Instants at which a box had something to do, and segments handed on.
    events: u64,
    now: Time,
}

impl TryFrom<Island> for Line {
    type Error = Box<Island>;

    /// The island itself where it has another shape.
    fn try_from(island: Island) -> Result<Self, Self::Error> {
        let Island { boxes, wires, places, traffic } = island;
        if wires != IN_LINE {
            return Err(Box::new(Island { boxes, wires, places, traffic }));
        }
        match <[Station; 4]>::try_from(boxes) {
            Ok(
                [Station::Host(servers), Station::Path(path), Station::Edge(edge), Station::Host(clients)],
            ) => {
                let (uplink, taken) = (Vec::new(), Vec::new());
                Ok(Self { servers, path, edge, clients, traffic, uplink, taken, events: 0, now: Time::ZERO })
            }
            Ok(boxes) => Err(Box::new(Island { boxes: boxes.into(), wires, places, traffic })),
            Err(boxes) => Err(Box::new(Island { boxes, wires, places, traffic })),
        }
    }
}

impl Executor for Line {
    fn advance(&mut self, until: Time) {
        loop {
            self.run(until.min(self.traffic.due()));
            let Self { servers, path, edge, clients, traffic, now, .. } = self;
            let served = traffic.serve(*now, &mut Boxes { servers, path, edge, clients });
            if !served && *now == until {
                return;
            }
        }
    }

    fn island(&mut self, _: usize) -> (Boxes<'_>, &Traffic) {
        self.settle();
        let Self { servers, path, edge, clients, traffic, .. } = self;
        (Boxes { servers, path, edge, clients }, traffic)
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn close(&mut self) {
        self.settle();
        self.edge.let_go();
        self.path.let_go();
    }
}

impl Line {
    /// Does everything that is due up to and at `until`, or at the instant at which a host has news.
    fn run(&mut self, mut until: Time) {
        loop {
            let (servers, edge) = (self.servers.due(), self.edge.due());
            let wires = self.path.due();
            let now = servers.min(wires).min(edge).min(self.clients.due());
            if now > until {
                self.now = until;
                return;
            }
            self.events += 1;
            // Ties go to the box that stands first, as they do to the lowest node of an engine.
            if servers == now {
                let Self { servers, path, events, .. } = self;
                servers.run(now, &mut Down { now, wires: &mut path.down, events });
                if servers.has_news() {
                    until = now;
                }
            } else if wires == now {
                self.arrive(now);
            } else if edge == now {
                self.run_edge(now);
            } else {
                let Self { clients, uplink, .. } = self;
                clients.run(now, &mut Uplink(uplink));
                if clients.has_news() {
                    until = now;
                }
                self.carry_up(now);
            }
        }
    }

    #[inline(always)]
    fn run_edge(&mut self, now: Time) {
        let Self { path, edge, clients, uplink, events, .. } = self;
        edge.run(now, &mut Radio { now, up: &mut path.up, clients, uplink, events });
        self.carry_up(now);
    }

    /// Departures since the edge was last woken have happened too.
    fn settle(&mut self) {
        self.run_edge(self.now);
    }

    /// What has come through the wires.
    #[inline(always)]
    fn arrive(&mut self, now: Time) {
        let Self { servers, path: Path { up, down }, events, .. } = self;
        while up.due() <= now {
            *events += 1;
            servers.take(now, up.front(), &mut Down { now, wires: down, events });
            up.drop_front();
        }
        look_ahead(servers, up);
        while self.path.down.due() <= now {
            let Self { path: Path { up, down }, edge, clients, uplink, events, .. } = self;
            *events += 1;
            edge.take(now, WIRED, down.front(), &mut Radio { now, up, clients, uplink, events });
            down.drop_front();
            self.carry_up(now);
        }
    }

    /// What the clients have sent, if anything.
    #[inline(always)]
    fn carry_up(&mut self, now: Time) {
        if !self.uplink.is_empty() {
            self.carry_all_up(now);
        }
    }

    #[inline(always)]
    fn carry_all_up(&mut self, now: Time) {
        // What its passing calls forth stands behind it.
        while !self.uplink.is_empty() {
            let Self { path, edge, clients, uplink, taken, events, .. } = self;
            std::mem::swap(uplink, taken);
            for segment in taken.iter() {
                *events += 1;
                edge.take(now, RADIO, segment, &mut Radio { now, up: &mut path.up, clients, uplink, events });
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

/// From the servers into the wires.
struct Down<'a> {
    now: Time,
    wires: &'a mut Wires,
    events: &'a mut u64,
}

impl Sink for Down<'_> {
    #[inline]
    fn pass(&mut self, _: Port, segment: &Segment) {
        *self.events += 1;
        self.wires.enter(self.now, segment);
    }

    fn discard(&mut self, _: &Segment) {}
}

/// From the edge to the clients and into the wires.
struct Radio<'a> {
    now: Time,
    /// From the edge to the servers.
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
            self.clients.take(self.now, segment, &mut Uplink(self.uplink));
        } else {
            self.up.enter(self.now, segment);
        }
    }

    fn discard(&mut self, _: &Segment) {}
}

/// From the clients towards the edge.
struct Uplink<'a>(&'a mut Vec<Segment>);

impl Sink for Uplink<'_> {
    #[inline]
    fn pass(&mut self, _: Port, segment: &Segment) {
        self.0.push(*segment);
    }

    fn discard(&mut self, _: &Segment) {}
}
