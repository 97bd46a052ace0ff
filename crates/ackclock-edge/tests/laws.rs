//! Laws that every regulator of the registry keeps, whatever the traffic.

use ackclock_core::{
    Ecn, Flags, FlowId, Message, Node, Outbox, Port, Rate, SackBlock, Segment, Seq, Span, Streams, Time,
};
use ackclock_edge::{Edge, EdgeConfig, RADIO, REGULATORS, Surroundings, WIRED};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{BufferMeaning, Capacity, Constant, NoFiles, PlainBearer, SerialLink};
use proptest::prelude::*;
use serde_json::json;

const PAYLOAD: u32 = 960;

/// One thing that happens to an edge.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// The next data packet, or an earlier one again.
    Data { flow: u8, back: u8, fin: bool, ect: bool },
    /// An ACK for what was sent, less some packets.
    Ack { flow: u8, behind: u8, sack: bool },
    /// Data from the mobile, with an ACK.
    Reply { flow: u8, behind: u8 },
    /// A packet that is not TCP.
    Opaque { flow: u8 },
}

fn operations() -> impl Strategy<Value = Vec<(u32, Operation)>> {
    let operation = prop_oneof![
        6 => (0u8..2, 0u8..4, prop::bool::weighted(0.02), any::<bool>())
            .prop_map(|(flow, back, fin, ect)| Operation::Data { flow, back: back / 3, fin, ect }),
        6 => (0u8..2, 0u8..6, any::<bool>()).prop_map(|(flow, behind, sack)| Operation::Ack { flow, behind, sack }),
        1 => (0u8..2, 0u8..6).prop_map(|(flow, behind)| Operation::Reply { flow, behind }),
        1 => (0u8..2).prop_map(|flow| Operation::Opaque { flow }),
    ];
    prop::collection::vec((0u32..60_000, operation), 1..150)
}

fn edge(regulator: &str, rate: Rate, delay: Span) -> Edge {
    let link = |rate, capacity| {
        SerialLink::new(Constant::new(rate, delay), DropTail::new(capacity).any(), BufferMeaning::Waiting)
    };
    let bearer = PlainBearer::new(link(rate, Capacity::Packets(4)), link(rate, Capacity::Unlimited));
    Edge::new(bearer, REGULATORS.resolve(&regulator.into()).expect("a name of the registry"), 64)
}

/// An edge over a cell of two users, one flow each.
fn cell_edge(regulator: &str) -> Edge {
    let config = json!({
        "buffer": "4p", "regulator": regulator,
        "down": {"kind": "cell", "scheduler": "pf-rp", "delay": "2ms + e(3ms)", "loss": 0.05},
        "up": {"kind": "variable", "rate": "64kbit/s", "delay": "e(5ms)"},
        "user": [{"doppler": 60.0}, {"mean_snr": 6.0, "fading": "jakes"}],
    });
    let config: EdgeConfig = serde_json::from_value(config).expect("the keys of the table");
    let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
    let mut edge =
        config.build(&Streams::new(3, 0), &NoFiles, around).expect("what was written above is right");
    (0..2).for_each(|flow| edge.assign(FlowId(flow), flow));
    edge
}

/// The number of the next packet of each flow, and the messages that operations make of it.
#[derive(Default)]
struct Traffic {
    next: [u32; 2],
}

impl Traffic {
    fn message(&mut self, operation: Operation) -> (Port, Segment) {
        match operation {
            Operation::Data { flow, back, fin, ect } => {
                let next = &mut self.next[usize::from(flow)];
                let number = next.saturating_sub(back.into());
                *next = (*next).max(number + 1);
                let mut segment =
                    Segment::data(FlowId(flow.into()), Seq(number * PAYLOAD), PAYLOAD as u16, 40);
                if fin {
                    segment.flags |= Flags::FIN;
                }
                if ect {
                    segment.ecn = Ecn::Ect0;
                }
                (WIRED, segment)
            }
            Operation::Ack { flow, behind, sack } => {
                let mut ack = Segment::pure_ack(FlowId(flow.into()), self.acked(flow, behind), 40);
                ack.window = 500;
                ack.set_scale(Some(7));
                if sack {
                    let left = ack.ack + PAYLOAD;
                    ack.push_sack(SackBlock { left, right: left + PAYLOAD });
                }
                (RADIO, ack)
            }
            Operation::Reply { flow, behind } => {
                let mut reply = Segment::data(FlowId(flow.into()), Seq(0), 100, 40);
                reply.ack = self.acked(flow, behind);
                (RADIO, reply)
            }
            Operation::Opaque { flow } => (WIRED, Segment::opaque(FlowId(flow.into()), 500)),
        }
    }

    fn acked(&self, flow: u8, behind: u8) -> Seq {
        Seq(self.next[usize::from(flow)].saturating_sub(behind.into()) * PAYLOAD)
    }
}

/// Runs operations through an edge until it is quiet, waking it `extra` more times between them than it asks.
fn run(edge: &mut Edge, operations: &[(u32, Operation)], extra: u64) -> Vec<(Time, Port, Segment)> {
    let (mut now, mut out, mut seen) = (Time::ZERO, Outbox::for_one_node(), Vec::new());
    let mut traffic = Traffic::default();
    for &(gap, operation) in operations {
        let next = now + Span::from_micros(gap.into());
        advance(edge, now, next, extra, &mut out, &mut seen);
        now = next;
        let (port, segment) = traffic.message(operation);
        edge.receive(now, port, &Message::Segment(segment), &mut out);
        collect(now, &mut out, &mut seen);
    }
    advance(edge, now, now + Span::from_secs(1000), extra, &mut out, &mut seen);
    seen
}

fn advance(
    edge: &mut Edge,
    from: Time,
    to: Time,
    extra: u64,
    out: &mut Outbox,
    seen: &mut Vec<(Time, Port, Segment)>,
) {
    let mut extras = (1..=extra).map(|i| from + (to.since(from) / (extra + 1)) * i).peekable();
    loop {
        let due = edge.next_wake().filter(|&due| due <= to);
        let early = extras.peek().copied();
        let Some(now) = due.into_iter().chain(early).min() else { return };
        if early == Some(now) {
            extras.next();
        }
        edge.wake(now, out);
        collect(now, out, seen);
    }
}

fn collect(now: Time, out: &mut Outbox, seen: &mut Vec<(Time, Port, Segment)>) {
    while let Some((port, message)) = out.take() {
        if let Message::Segment(segment) = message {
            seen.push((now, port, segment));
        }
    }
}

proptest! {
    #[test]
    fn extra_wakes_change_nothing(operations in operations()) {
        for entry in REGULATORS.entries {
            let build = || edge(entry.name, Rate::from_bps(1_000_000), Span::from_millis(20));
            let (mut once, mut often) = (build(), build());
            prop_assert_eq!(run(&mut once, &operations, 0), run(&mut often, &operations, 7), "{}", entry.name);
            let (mut once, mut often) = (cell_edge(entry.name), cell_edge(entry.name));
            prop_assert_eq!(run(&mut once, &operations, 0), run(&mut often, &operations, 7), "{} in a cell", entry.name);
        }
    }

    #[test]
    fn every_segment_is_delivered_dropped_discarded_or_held(operations in operations()) {
        for entry in REGULATORS.entries {
            let plain = edge(entry.name, Rate::from_bps(1_000_000), Span::from_millis(20));
            for mut edge in [plain, cell_edge(entry.name)] {
                let seen = run(&mut edge, &operations, 0);
                let came = |port| {
                    let mut traffic = Traffic::default();
                    operations.iter().filter(|(_, operation)| traffic.message(*operation).0 == port).count()
                };
                let left = |port| seen.iter().filter(|(_, p, _)| *p == port).count();
                let counts = edge.statistics();
                prop_assert_eq!(came(WIRED), left(RADIO) + counts.dropped as usize, "{} downwards", entry.name);
                let held: usize = (0..2).map(|flow| edge.held(FlowId(flow))).sum();
                prop_assert_eq!(came(RADIO), left(WIRED) + held + counts.discarded as usize, "{} upwards", entry.name);
            }
        }
    }

    #[test]
    fn acks_of_a_flow_reach_the_sender_in_the_order_in_which_they_came(operations in operations()) {
        for entry in REGULATORS.entries {
            let seen = run(&mut edge(entry.name, Rate::from_bps(1_000_000), Span::from_millis(20)), &operations, 0);
            // A reply with data may pass held ACKs, which are then taken out.
            if operations.iter().any(|(_, operation)| matches!(operation, Operation::Reply { .. })) {
                continue;
            }
            let mut traffic = Traffic::default();
            let sent: Vec<_> = operations.iter().map(|&(_, o)| traffic.message(o)).filter(|(port, _)| *port == RADIO).collect();
            for flow in 0..2 {
                let came = sent.iter().map(|(_, s)| s.ack).zip(sent.iter().map(|(_, s)| s.flow));
                let mut came = came.filter(|(_, f)| *f == FlowId(flow)).map(|(ack, _)| ack);
                for (_, _, segment) in seen.iter().filter(|(_, port, s)| *port == WIRED && s.flow == FlowId(flow)) {
                    prop_assert!(came.any(|ack| ack == segment.ack), "{} reordered {:?}", entry.name, segment.ack);
                }
            }
        }
    }
}

#[test]
fn without_a_regulator_and_without_delay_an_edge_is_the_identity() {
    let mut edge = edge("none", Rate::from_bps(1_000_000_000_000_000), Span::ZERO);
    let operations: Vec<_> = (0..50)
        .map(|i| {
            (
                1,
                if i % 2 == 0 {
                    Operation::Data { flow: 0, back: 0, fin: false, ect: false }
                } else {
                    Operation::Ack { flow: 0, behind: 0, sack: false }
                },
            )
        })
        .collect();
    let seen = run(&mut edge, &operations, 0);
    let mut traffic = Traffic::default();
    let (mut now, mut expected) = (Time::ZERO, Vec::new());
    for &(gap, operation) in &operations {
        now += Span::from_micros(gap.into());
        let (port, segment) = traffic.message(operation);
        expected.push((now, if port == WIRED { RADIO } else { WIRED }, segment));
    }
    // 1000 B at 1e15 bit/s take 8 ps, which round to nothing.
    assert_eq!(seen, expected);
}
