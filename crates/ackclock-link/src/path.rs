//! # Wired path
//!
//! ## Source
//! CR02 figure 10: each server reaches the edge over a wire of its own, 100 Mbit/s and 1 ms.
//!
//! ## What it does
//! Each flow has its own wire in each direction: a fixed rate, a fixed delay, which may be longer than that of others, an unlimited queue, and optionally
//! random loss. Because nothing is ever refused or reordered, a packet's arrival is known when it enters:
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

use crate::serial::{Flight, Whole};

/// The port towards the servers.
pub const SERVER: Port = 0;
/// The port towards the edge.
pub const EDGE: Port = 1;

/// The wired part between servers and edge.
pub struct Path {
    /// The wires towards the servers.
    pub up: Wires,
    /// The wires towards the edge.
    pub down: Wires,
}

/// One direction of all wires.
pub struct Wires {
    pace: Pace,
    delay: Span,
    /// How much longer the wires of flows are; empty where none is.
    longer: Vec<Span>,
    loss: f64,
    /// When each flow's wire is free again.
    free: Vec<Time>,
    flight: Flight<Whole>,
    name: &'static str,
    streams: Streams,
    /// A random stream for the losses of each flow, so that one flow more changes no other's; filled only where packets are lost.
    chance: Vec<Stream>,
    lost: u64,
}

impl Path {
    /// Wires of this rate and one-way delay that lose each packet with probability `loss`.
    pub fn new(rate: Rate, delay: Span, loss: f64, streams: &Streams) -> Self {
        let wires = |name| Wires {
            pace: Pace::new(rate),
            delay,
            longer: Vec::new(),
            loss,
            free: Vec::new(),
            flight: Flight::default(),
            name,
            streams: streams.clone(),
            chance: Vec::new(),
            lost: 0,
        };
        Self { up: wires("path/up/loss"), down: wires("path/down/loss") }
    }

    /// The number of a flow goes to another connection, which has new wires and a loss stream of its own, chosen by `name`.
    pub fn renew(&mut self, flow: FlowId, name: &str) {
        self.up.renew(flow, name);
        self.down.renew(flow, name);
    }

    /// The wires of a flow have so much more delay, one way.
    pub fn lengthen(&mut self, flow: FlowId, by: Span) {
        self.up.lengthen(flow, by);
        self.down.lengthen(flow, by);
    }

    /// Packets lost in both directions.
    pub fn lost(&self) -> u64 {
        self.up.lost + self.down.lost
    }

    /// When the next segment leaves; [`Time::NEVER`] where none is under way.
    #[inline]
    pub fn due(&self) -> Time {
        self.up.due().min(self.down.due())
    }
}

impl Wires {
    /// Takes a segment in; false where it is lost.
    #[inline(always)]
    pub fn enter(&mut self, now: Time, segment: &Segment) -> bool {
        if self.loss > 0.0 && self.loses(segment.flow) {
            self.lost += 1;
            return false;
        }
        let transmission = self.pace.time_for(segment.wire_bytes());
        let begins = self.begins(now, segment.flow, transmission);
        let arrives = begins + transmission + self.delay;
        if let Some(longer) = self.longer.get(segment.flow.index()) {
            self.flight.put_late(arrives + *longer, segment);
        } else if begins == now {
            self.flight.put(arrives, segment);
        } else {
            // Packets of other flows, whose wires are free, come before one that waits for its own.
            self.flight.put_late(arrives, segment);
        }
        true
    }

    /// When the next segment leaves; [`Time::NEVER`] where none is under way.
    #[inline]
    pub fn due(&self) -> Time {
        self.flight.due()
    }

    /// The next segment that leaves; [`due`](Self::due) says that there is one.
    ///
    /// # Panics
    /// Where there is none.
    #[inline]
    pub fn front(&self) -> &Segment {
        self.flight.front()
    }

    /// Whose segment will leave when about so many others have.
    #[inline(always)]
    pub fn flow_after(&self, others: usize) -> Option<FlowId> {
        self.flight.flow_at(others)
    }

    /// Takes it away.
    #[inline]
    pub fn drop_front(&mut self) {
        self.flight.drop_front();
    }

    /// Lets go what is under way.
    pub fn let_go(&mut self) {
        self.flight = Flight::default();
    }

    /// As [`Path::renew`].
    pub fn renew(&mut self, flow: FlowId, name: &str) {
        self.reach(flow);
        self.free[flow.index()] = Time::ZERO;
        if self.loss > 0.0 {
            self.draw_for(flow);
            self.chance[flow.index()] = self.streams.stream(&format!("{}/{name}", self.name));
        }
    }

    /// As [`Path::lengthen`].
    pub fn lengthen(&mut self, flow: FlowId, by: Span) {
        if by > Span::ZERO || flow.index() < self.longer.len() {
            self.longer.resize(self.longer.len().max(flow.index() + 1), Span::ZERO);
            self.longer[flow.index()] = by;
        }
    }

    /// Whether a packet of `flow` is lost.
    #[inline(never)]
    fn loses(&mut self, flow: FlowId) -> bool {
        self.draw_for(flow);
        self.chance[flow.index()].chance(self.loss)
    }

    /// Creates the loss stream of `flow`, and of every flow below it.
    fn draw_for(&mut self, flow: FlowId) {
        for number in self.chance.len()..=flow.index() {
            self.chance.push(self.streams.stream(&format!("{}/{number}", self.name)));
        }
    }

    /// Creates the wire of `flow`, and of every flow below it.
    #[cold]
    fn reach(&mut self, flow: FlowId) {
        if self.free.len() <= flow.index() {
            self.free.resize(flow.index() + 1, Time::ZERO);
        }
    }

    /// When `flow`'s wire begins to take a packet that needs `transmission`, offered at `now`.
    #[inline]
    fn begins(&mut self, now: Time, flow: FlowId, transmission: Span) -> Time {
        let Some(free) = self.free.get_mut(flow.index()) else {
            self.reach(flow);
            return self.begins(now, flow, transmission);
        };
        let begins = now.max(*free);
        *free = begins + transmission;
        begins
    }
}

impl Node for Path {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        let Message::Segment(segment) = message else { return };
        let wires = if port == SERVER { &mut self.down } else { &mut self.up };
        if !wires.enter(now, segment) {
            out.discard(segment);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        for (port, wires) in [(SERVER, &mut self.up), (EDGE, &mut self.down)] {
            while wires.due() <= now {
                out.pass(port, wires.front());
                wires.drop_front();
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
    fn a_flow_with_a_longer_route_is_late_and_keeps_nobody() {
        let (mut path, mut out) = (path(0.0), Outbox::for_one_node());
        path.lengthen(FlowId(1), Span::from_millis(5));
        for message in [data(1, 0), data(1, 1), data(0, 2)] {
            path.receive(Time::ZERO, SERVER, &message, &mut out);
        }
        // As above, and 5 ms more.
        let expected = [(1_080_000, EDGE, 2), (6_080_000, EDGE, 0), (6_160_000, EDGE, 1)];
        assert_eq!(arrivals(&mut path, &mut out), expected);
        path.lengthen(FlowId(1), Span::ZERO);
        let now = Time::ZERO + Span::from_millis(10);
        path.receive(now, EDGE, &Message::Segment(Segment::pure_ack(FlowId(1), Seq(9), 40)), &mut out);
        assert_eq!(arrivals(&mut path, &mut out), [(11_003_200, SERVER, 0)]);
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
