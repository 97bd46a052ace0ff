//! Runs one island of the simplest shape (servers - wired paths - edge - clients) with direct function calls.
//!
//! Segments have the same order as in the engine, but each box passes a segment directly to the next box. The engine
//! passes segments by queued messages instead (`docs/adr/0018-one-island-two-executors.md`).

use ackclock_core::{Copied, Port, Segment, Sink, Time};
use ackclock_edge::{Edge, RADIO, WIRED};
use ackclock_link::Path;
use ackclock_link::path::Wires;
use ackclock_tcp::Host;

use super::boxes::Boxes;
use super::build::IN_LINE;
use super::{AnyNode, Executor, Island};
use crate::traffic::Traffic;

/// An island of the simplest shape, whose boxes form a line.
// The alignment of `Line` in memory changes the speed by 2 % (decision 18).
#[repr(align(64))]
pub(crate) struct Line {
    servers: Host,
    /// Wired links from the servers to the edge.
    down: Wires,
    edge: Edge,
    beyond: Beyond,
    traffic: Traffic,
    /// Segments from the clients that the edge is currently processing.
    taken: Vec<Segment>,
    now: Time,
}

/// Boxes to which the edge passes segments: the wired uplink and the clients.
struct Beyond {
    /// Wired links from the edge to the servers.
    up: Wires,
    clients: Host,
    /// Segments sent by the clients and not yet processed by the edge.
    uplink: Vec<Segment>,
    /// Events so far: wake-ups of boxes, and segments passed between boxes.
    events: u64,
}

impl TryFrom<Island> for Line {
    type Error = Box<Island>;

    /// Converts an island whose boxes form a line; returns any other island unchanged as the error.
    fn try_from(island: Island) -> Result<Self, Self::Error> {
        let Island { boxes, wires, places, traffic } = island;
        if wires != IN_LINE {
            return Err(Box::new(Island { boxes, wires, places, traffic }));
        }
        match <[AnyNode; 4]>::try_from(boxes) {
            Ok(
                [AnyNode::Host(servers), AnyNode::Path(path), AnyNode::Edge(edge), AnyNode::Host(clients)],
            ) => {
                let Path { up, down } = path;
                let beyond = Beyond { up, clients, uplink: Vec::new(), events: 0 };
                Ok(Self { servers, down, edge, beyond, traffic, taken: Vec::new(), now: Time::ZERO })
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
            let now = self.now;
            let (mut boxes, traffic) = self.boxes();
            if !traffic.serve(now, &mut boxes) && now == until {
                return;
            }
        }
    }

    fn island(&mut self, _: usize) -> (Boxes<'_>, &Traffic) {
        self.catch_up();
        let (boxes, traffic) = self.boxes();
        (boxes, traffic)
    }

    fn events(&self) -> u64 {
        self.beyond.events
    }

    fn close(&mut self) {
        self.catch_up();
        self.edge.let_go();
        self.down.let_go();
        self.beyond.up.let_go();
    }
}

impl Line {
    fn boxes(&mut self) -> (Boxes<'_>, &mut Traffic) {
        let Self { servers, down, edge, beyond: Beyond { up, clients, .. }, traffic, .. } = self;
        (Boxes { servers, wires: [up, down], relay: None, edge, behind: None, clients }, traffic)
    }

    /// Runs events up to and including `until`, but stops when a host has an event to report.
    fn run(&mut self, mut until: Time) {
        loop {
            let Beyond { up, clients, .. } = &self.beyond;
            let (servers, edge) = (self.servers.due(), self.edge.due());
            let wires = up.due().min(self.down.due());
            let now = servers.min(wires).min(edge).min(clients.due());
            if now > until {
                self.now = until;
                return;
            }
            self.beyond.events += 1;
            // If several boxes are due at once, the first box of the line runs first, as in the engine.
            if servers == now {
                let Self { servers, down, beyond, .. } = self;
                servers.run(now, &mut Down { now, wires: down, events: &mut beyond.events });
                if servers.has_events() {
                    until = now;
                }
            } else if wires == now {
                self.arrive(now);
            } else if edge == now {
                self.run_edge(now);
            } else {
                let Beyond { clients, uplink, .. } = &mut self.beyond;
                clients.run(now, &mut Uplink(uplink));
                if clients.has_events() {
                    until = now;
                }
                self.carry_up(now);
            }
        }
    }

    #[inline(always)]
    fn run_edge(&mut self, now: Time) {
        self.edge.run(now, &mut Radio { now, beyond: &mut self.beyond });
        self.carry_up(now);
    }

    /// Processes packets that left the edge since it was last woken.
    fn catch_up(&mut self) {
        self.run_edge(self.now);
    }

    /// Delivers segments that arrive over the wired links at `now`.
    #[inline(always)]
    fn arrive(&mut self, now: Time) {
        let Self { servers, down, beyond: Beyond { up, events, .. }, .. } = self;
        while up.due() <= now {
            *events += 1;
            servers.take(now, up.front(), &mut Down { now, wires: down, events });
            up.drop_front();
        }
        look_ahead(servers, up);
        while self.down.due() <= now {
            let Self { down, edge, beyond, .. } = self;
            beyond.events += 1;
            edge.take(now, WIRED, down.front(), &mut Radio { now, beyond });
            down.drop_front();
            self.carry_up(now);
        }
    }

    /// Passes segments sent by the clients to the edge, if there are any.
    #[inline(always)]
    fn carry_up(&mut self, now: Time) {
        if !self.beyond.uplink.is_empty() {
            self.carry_all_up(now);
        }
    }

    #[inline(always)]
    fn carry_all_up(&mut self, now: Time) {
        let Self { edge, beyond, taken, .. } = self;
        loop {
            std::mem::swap(&mut beyond.uplink, taken);
            for segment in taken.iter() {
                beyond.events += 1;
                edge.take(now, RADIO, segment, &mut Radio { now, beyond });
            }
            taken.clear();
            // Segments that the clients sent in response are processed next.
            if beyond.uplink.is_empty() {
                return;
            }
        }
    }
}

/// Prefetches the state of the senders that will receive the next ACKs. The state of a sender is prefetched eight
/// arrivals ahead, and the data that the state points to two arrivals ahead.
#[inline(always)]
fn look_ahead(servers: &Host, up: &Wires) {
    if let Some(flow) = up.flow_after(8) {
        servers.prefetch(flow);
    }
    if let Some(flow) = up.flow_after(2) {
        servers.prefetch_more(flow);
    }
}

/// Sink that passes segments from the servers into the wired downlink.
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

    fn copied(&mut self, _: &Segment, _: Copied) {}
}

/// Sink that passes segments from the edge to the clients or into the wired uplink.
struct Radio<'a> {
    now: Time,
    beyond: &'a mut Beyond,
}

impl Sink for Radio<'_> {
    #[inline(always)]
    fn pass(&mut self, port: Port, segment: &Segment) {
        let Beyond { up, clients, uplink, events } = &mut *self.beyond;
        *events += 1;
        if port == RADIO {
            clients.take(self.now, segment, &mut Uplink(uplink));
        } else {
            up.enter(self.now, segment);
        }
    }

    fn discard(&mut self, _: &Segment) {}

    fn copied(&mut self, _: &Segment, _: Copied) {}
}

/// Sink that collects segments from the clients for the edge.
struct Uplink<'a>(&'a mut Vec<Segment>);

impl Sink for Uplink<'_> {
    #[inline]
    fn pass(&mut self, _: Port, segment: &Segment) {
        self.0.push(*segment);
    }

    fn discard(&mut self, _: &Segment) {}

    fn copied(&mut self, _: &Segment, _: Copied) {}
}
