//! # Wired path
//!
//! ## Source
//! CR02 figure 10: each server reaches the edge over a wire of its own, 100 Mbit/s and 1 ms.
//!
//! ## What it does
//! Each flow has its own wire in each direction: a fixed rate, a fixed delay, an unlimited queue, and optionally random
//! loss. Because nothing is ever refused or reordered, a packet's arrival is known when it enters:
//! `max(now, wire free) + size/rate + delay`. No transmitter needs to be modelled.
//!
//! ## Differences from the source
//! The simulator of the source has a queue of 10 000 packets there, which never fills.
//!
//! ## Validation
//! Arrival times by hand (unit tests); conservation and poll invariance.

use ackclock_core::{
    FlowId, Message, Node, Outbox, Pace, Port, Rate, Segment, Sink, Span, Stream, Streams, Time,
};

use crate::flight::Flight;

/// The port towards the servers.
pub const SERVER: Port = 0;
/// The port towards the edge.
pub const EDGE: Port = 1;

/// The wired part between servers and edge.
pub struct Path {
    delay: Span,
    loss: f64,
    streams: Streams,
    /// Indexed by the port at which packets leave.
    ways: [Way; 2],
}

/// One direction of all wires.
struct Way {
    pace: Pace,
    /// When each flow's wire is free again.
    free: Vec<Time>,
    flight: Flight,
    name: &'static str,
    /// Each flow's luck, so that one flow more changes no other's; filled only where packets are lost.
    chance: Vec<Stream>,
    lost: u64,
}

impl Path {
    /// Wires of this rate and one-way delay that lose each packet with probability `loss`.
    pub fn new(rate: Rate, delay: Span, loss: f64, streams: &Streams) -> Self {
        let way = |name| Way {
            pace: Pace::new(rate),
            free: Vec::new(),
            flight: Flight::default(),
            name,
            chance: Vec::new(),
            lost: 0,
        };
        Self { delay, loss, streams: streams.clone(), ways: [way("path/up/loss"), way("path/down/loss")] }
    }

    /// The number of a flow goes to another connection, which has new wires and luck of its own, chosen by `name`.
    pub fn renew(&mut self, flow: FlowId, name: &str) {
        let Self { loss, streams, ways, .. } = self;
        for way in ways {
            way.reach(flow);
            way.free[flow.index()] = Time::ZERO;
            if *loss > 0.0 {
                way.draw_for(flow, streams);
                way.chance[flow.index()] = streams.stream(&format!("{}/{name}", way.name));
            }
        }
    }

    /// Packets lost in both directions.
    pub fn lost(&self) -> u64 {
        self.ways.iter().map(|way| way.lost).sum()
    }

    /// Packets under way.
    pub fn in_flight(&self) -> usize {
        self.ways.iter().map(|way| way.flight.len()).sum()
    }

    /// Takes a segment that comes in at `port`; false where it is lost.
    #[inline]
    pub fn enter(&mut self, now: Time, port: Port, segment: &Segment) -> bool {
        let way = &mut self.ways[usize::from(port == SERVER)];
        if self.loss > 0.0 && way.loses(segment.flow, self.loss, &self.streams) {
            way.lost += 1;
            return false;
        }
        let transmission = way.pace.time_for(segment.wire_bytes());
        let leaves = way.leaves(now, segment.flow, transmission);
        way.flight.put(leaves + self.delay, segment);
        true
    }

    /// Takes out the next segment that leaves at `port`; [`due_at`](Self::due_at) says that there is one.
    ///
    /// # Panics
    /// Where there is none.
    #[inline]
    pub fn leave(&mut self, port: Port) -> Segment {
        self.ways[usize::from(port)].flight.pop()
    }

    /// When the next segment leaves at `port`; [`Time::NEVER`] where none is under way.
    #[inline]
    pub fn due_at(&self, port: Port) -> Time {
        self.ways[usize::from(port)].flight.due()
    }

    /// When the next segment leaves; [`Time::NEVER`] where none is under way.
    #[inline]
    pub fn due(&self) -> Time {
        self.due_at(SERVER).min(self.due_at(EDGE))
    }
}

impl Way {
    /// Whether a packet of `flow` is lost.
    fn loses(&mut self, flow: FlowId, probability: f64, streams: &Streams) -> bool {
        self.draw_for(flow, streams);
        self.chance[flow.index()].chance(probability)
    }

    /// Sees to it that `flow` has luck.
    fn draw_for(&mut self, flow: FlowId, streams: &Streams) {
        for number in self.chance.len()..=flow.index() {
            self.chance.push(streams.stream(&format!("{}/{number}", self.name)));
        }
    }

    /// Sees to it that `flow` has a wire.
    #[cold]
    fn reach(&mut self, flow: FlowId) {
        if self.free.len() <= flow.index() {
            self.free.resize(flow.index() + 1, Time::ZERO);
        }
    }

    /// When `flow`'s wire has taken a packet that needs `transmission`, offered at `now`.
    #[inline]
    fn leaves(&mut self, now: Time, flow: FlowId, transmission: Span) -> Time {
        let Some(free) = self.free.get_mut(flow.index()) else {
            self.reach(flow);
            return self.leaves(now, flow, transmission);
        };
        *free = now.max(*free) + transmission;
        *free
    }
}

impl Node for Path {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        let Message::Segment(segment) = message else { return };
        if !self.enter(now, port, segment) {
            out.discard(segment);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        for port in [SERVER, EDGE] {
            while self.due_at(port) <= now {
                out.pass(port, &self.leave(port));
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        Some(self.due()).filter(|&time| time != Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn path(loss: f64) -> Path {
        Path::new(Rate::from_bps(100_000_000), Span::from_millis(1), loss, &Streams::new(1, 0))
    }

    fn data(flow: u32, seq: u32) -> Message {
        Message::Segment(Segment::data(FlowId(flow), Seq(seq), 960, 40))
    }

    /// Drains the path at each of its own wakes.
    fn arrivals(path: &mut Path, out: &mut Outbox) -> Vec<(u64, Port, u32)> {
        let mut seen = Vec::new();
        while let Some(now) = path.next_wake() {
            path.wake(now, out);
            while let Some((port, Message::Segment(segment))) = out.take() {
                seen.push((now.as_nanos(), port, segment.seq.0));
            }
        }
        seen
    }

    #[test]
    fn packets_of_one_flow_follow_each_other_and_other_flows_do_not_wait() {
        let (mut path, mut out) = (path(0.0), Outbox::for_one_node());
        for message in [data(0, 0), data(0, 1), data(1, 2)] {
            path.receive(Time::ZERO, SERVER, &message, &mut out);
        }
        // 1000 B at 100 Mbit/s take 80 us, then 1 ms: 1.08 ms and 1.16 ms for flow 0, 1.08 ms for flow 1.
        let expected = [(1_080_000, EDGE, 0), (1_080_000, EDGE, 2), (1_160_000, EDGE, 1)];
        assert_eq!(arrivals(&mut path, &mut out), expected);
    }

    #[test]
    fn the_directions_do_not_disturb_each_other() {
        let (mut path, mut out) = (path(0.0), Outbox::for_one_node());
        path.receive(Time::ZERO, EDGE, &Message::Segment(Segment::pure_ack(FlowId(0), Seq(9), 40)), &mut out);
        path.receive(Time::ZERO, SERVER, &data(0, 1), &mut out);
        // 40 B take 3.2 us.
        assert_eq!(arrivals(&mut path, &mut out), [(1_003_200, SERVER, 0), (1_080_000, EDGE, 1)]);
    }

    #[test]
    fn one_flow_more_does_not_change_the_luck_of_another() {
        let run = |others: bool| {
            let (mut path, mut out) = (path(0.3), Outbox::for_one_node());
            for seq in 0..200 {
                path.receive(Time::ZERO, SERVER, &data(0, seq), &mut out);
                if others {
                    path.receive(Time::ZERO, SERVER, &data(1, 1000), &mut out);
                }
            }
            arrivals(&mut path, &mut out).into_iter().filter(|&(_, _, seq)| seq < 1000).collect::<Vec<_>>()
        };
        assert_eq!(run(false), run(true));
    }

    #[test]
    fn lost_and_delivered_add_up_to_what_was_sent() {
        let (mut path, mut out) = (path(0.3), Outbox::for_one_node());
        for seq in 0..10_000 {
            path.receive(Time::ZERO, SERVER, &data(0, seq), &mut out);
        }
        let delivered = arrivals(&mut path, &mut out).len() as u64;
        assert_eq!(path.lost() + delivered, 10_000);
        // 3000 expected, standard deviation sqrt(10000 * 0.3 * 0.7) = 46; five of them
        assert!(path.lost().abs_diff(3000) < 230, "{}", path.lost());
    }
}
