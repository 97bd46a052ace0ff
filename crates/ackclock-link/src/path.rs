//! # Wired path
//!
//! ## Source
//! Source: CR02 figure 10: each server reaches the edge over its own link of 100 Mbit/s and 1 ms.
//!
//! ## What it does
//! Each flow has its own wired path in each direction, with a fixed rate, a fixed delay with an optional extra delay
//! for each flow, an unlimited queue, and optional random loss. No packet is refused or reordered, so the arrival time
//! of a packet is known on entry: `max(now, path free) + size/rate + delay`.
//!
//! ## Differences from the source
//! The simulator of the source has a queue of 10 000 packets on the wired path, which never fills.
//!
//! ## Validation
//! Unit tests compare arrival times worked out by hand, and check the conservation of packets and the independence of
//! polling times.

use ackclock_core::{
    FlowId, Message, Node, Outbox, Pace, Port, Rate, Segment, Sink, Span, Stream, Streams, Time,
};

use crate::serial::{Flight, Whole};

/// Port towards the servers.
pub const SERVER: Port = 0;
/// Port towards the edge.
pub const EDGE: Port = 1;

/// The wired paths between servers and edge.
pub struct Path {
    /// Paths towards the servers.
    pub up: Wires,
    /// Paths towards the edge.
    pub down: Wires,
}

/// One direction of the wired paths of all flows.
pub struct Wires {
    pace: Pace,
    delay: Span,
    /// Extra delay of each flow; empty if no flow has an extra delay.
    longer: Vec<Span>,
    loss: f64,
    /// Time at which the path of each flow is free again.
    free: Vec<Time>,
    flight: Flight<Whole>,
    name: &'static str,
    streams: Streams,
    /// Random stream of each flow for losses, so that adding a flow does not change the losses of other flows; empty
    /// without loss.
    chance: Vec<Stream>,
    lost: u64,
}

impl Path {
    /// Creates paths with the given rate and one-way delay that lose each packet with probability `loss`.
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

    /// Resets the path of a flow whose number is reused; the path gets a new loss stream named `name`.
    pub fn renew(&mut self, flow: FlowId, name: &str) {
        self.up.renew(flow, name);
        self.down.renew(flow, name);
    }

    /// Adds an extra one-way delay to the path of a flow.
    pub fn lengthen(&mut self, flow: FlowId, by: Span) {
        self.up.lengthen(flow, by);
        self.down.lengthen(flow, by);
    }

    /// Number of packets lost in both directions.
    pub fn lost(&self) -> u64 {
        self.up.lost + self.down.lost
    }

    /// Time at which the next segment leaves the paths; [`Time::NEVER`] if no segment is in transit.
    #[inline]
    pub fn due(&self) -> Time {
        self.up.due().min(self.down.due())
    }
}

impl Wires {
    /// Accepts a segment at `now`; returns false if the segment is lost.
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
            // The segment is queued on its own path. Packets of other flows, whose paths are free, may enter later and
            // still arrive earlier.
            self.flight.put_late(arrives, segment);
        }
        true
    }

    /// Time at which the next segment leaves the paths; [`Time::NEVER`] if no segment is in transit.
    #[inline]
    pub fn due(&self) -> Time {
        self.flight.due()
    }

    /// Returns the next segment to leave; check [`due`](Self::due) first.
    ///
    /// # Panics
    /// Panics if no segment is in transit.
    #[inline]
    pub fn front(&self) -> &Segment {
        self.flight.front()
    }

    /// Flow of the segment that leaves after about `others` other segments, for prefetching.
    #[inline(always)]
    pub fn flow_after(&self, others: usize) -> Option<FlowId> {
        self.flight.flow_at(others)
    }

    /// Removes the next segment to leave.
    #[inline]
    pub fn drop_front(&mut self) {
        self.flight.drop_front();
    }

    /// Frees all segments in transit.
    pub fn let_go(&mut self) {
        self.flight = Flight::default();
    }

    /// Resets the path of a flow; see [`Path::renew`].
    pub fn renew(&mut self, flow: FlowId, name: &str) {
        self.reach(flow);
        self.free[flow.index()] = Time::ZERO;
        if self.loss > 0.0 {
            self.draw_for(flow);
            self.chance[flow.index()] = self.streams.stream(&format!("{}/{name}", self.name));
        }
    }

    /// Adds a delay to the path of a flow; see [`Path::lengthen`].
    pub fn lengthen(&mut self, flow: FlowId, by: Span) {
        if by > Span::ZERO || flow.index() < self.longer.len() {
            self.longer.resize(self.longer.len().max(flow.index() + 1), Span::ZERO);
            self.longer[flow.index()] = by;
        }
    }

    /// Draws whether a packet of `flow` is lost.
    #[inline(never)]
    fn loses(&mut self, flow: FlowId) -> bool {
        self.draw_for(flow);
        self.chance[flow.index()].chance(self.loss)
    }

    /// Creates the loss streams of all flows up to `flow`.
    fn draw_for(&mut self, flow: FlowId) {
        for number in self.chance.len()..=flow.index() {
            self.chance.push(self.streams.stream(&format!("{}/{number}", self.name)));
        }
    }

    /// Creates the paths of all flows up to `flow`.
    #[cold]
    fn reach(&mut self, flow: FlowId) {
        if self.free.len() <= flow.index() {
            self.free.resize(flow.index() + 1, Time::ZERO);
        }
    }

    /// Time at which the path of `flow` starts to transmit a packet offered at `now`. The packet occupies the path for
    /// `transmission`.
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

    /// Drains the path, waking it only when it asks.
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
