//! An upload at an edge whose regulators are not told that it is one, as with real packets.

use ackclock_core::{FlowId, Message, Node, Outbox, Port, Rate, Segment, Seq, Span, Time};
use ackclock_edge::{Edge, RADIO, WIRED};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{BufferMeaning, Capacity, Constant, PlainBearer, SerialLink};
use serde_json::Value;

use crate::every_regulator::{build, every_regulator};

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn edge(regulator: &Value) -> Edge {
    let link = || {
        let medium = Constant::new(Rate::from_bps(8_000_000), Span::from_millis(10));
        SerialLink::new(medium, DropTail::new(Capacity::Packets(50)).any(), BufferMeaning::Waiting)
    };
    Edge::new(PlainBearer::new(link(), link()), build(regulator), 64)
}

/// Output of the edge within a second from now: when, where, and the segment.
fn out(edge: &mut Edge, sends: &[(u64, Port, Segment)]) -> Vec<(Time, Port, Segment)> {
    let (mut seen, mut outbox, mut sends) = (Vec::new(), Outbox::for_one_node(), sends.iter().peekable());
    loop {
        let arrives = sends.peek().map_or(Time::NEVER, |(ms, ..)| at(*ms));
        let now = edge.next_wake().unwrap_or(Time::NEVER).min(arrives);
        if now > at(1000) {
            return seen;
        }
        edge.wake(now, &mut outbox);
        while let Some((_, port, segment)) = sends.next_if(|(ms, ..)| at(*ms) == now) {
            edge.receive(now, *port, &Message::Segment(*segment), &mut outbox);
        }
        while let Some((port, Message::Segment(segment))) = outbox.take() {
            seen.push((now, port, segment));
        }
    }
}

#[test]
fn no_regulator_holds_data_of_the_mobile_or_the_acks_for_it() {
    // A packet every 10 ms, taking 1 ms and 10 ms on the radio, and an ACK of the server for each.
    let data = |number: u32| Segment::data(FlowId(0), Seq(960 * number), 960, 40);
    let ack = |number: u32| Segment::pure_ack(FlowId(0), Seq(960 * number + 960), 40);
    let mut sends = Vec::new();
    for number in 0..20 {
        let ms = 10 * u64::from(number);
        sends.push((ms, RADIO, data(number)));
        sends.push((ms + 30, WIRED, ack(number)));
    }
    sends.sort_by_key(|(ms, ..)| *ms);
    for regulator in every_regulator() {
        let seen = out(&mut edge(&regulator), &sends);
        let of = |port: Port| seen.iter().filter(move |(_, to, _)| *to == port);
        let up: Vec<_> = of(WIRED).map(|(now, _, segment)| (*now, segment.seq, segment.payload)).collect();
        let expected: Vec<_> = (0..20).map(|n| (at(10 * u64::from(n) + 11), Seq(960 * n), 960)).collect();
        assert_eq!(up, expected, "{regulator}");
        let down: Vec<_> = of(RADIO).map(|(_, _, segment)| (segment.ack, segment.payload)).collect();
        let expected: Vec<_> = (0..20).map(|n| (Seq(960 * n + 960), 0)).collect();
        assert_eq!(down, expected, "{regulator}");
        assert_eq!((edge(&regulator).held(FlowId(0)), seen.len()), (0, 40), "{regulator}");
    }
}
