//! Guarantees of the Window Regulators, with a sender that sends exactly up to the advertised right edge.

use ackclock_core::{FlowId, Message, Node, Outbox, Rate, Segment, Seq, Span, Time};
use ackclock_edge::{Edge, EdgeStatistics, RADIO, REGULATORS, WIRED};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{BufferMeaning, Capacity, Constant, PlainBearer, SerialLink};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::every_bearer::{edge_over, every_table};

const PAYLOAD: u32 = 1000;
/// Packets of a download, and below of a second one that follows when everything is idle.
const LENGTH: u32 = 150;
const MORE: u32 = 5;

/// Events of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    gap: Span,
    /// Maximum number of packets that the sender sends, and of ACKs that reach the edge.
    sends: usize,
    acks: usize,
    /// Whether the receiver gets the packets that leave the edge.
    lost: bool,
    /// Whether the sender retransmits all unacknowledged data.
    go_back: bool,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0u64..25, 0usize..8, 0usize..6, prop::bool::weighted(0.1), prop::bool::weighted(0.05));
    let step = step.prop_map(|(gap, sends, acks, lost, go_back)| Step {
        gap: Span::from_millis(gap),
        sends,
        acks,
        lost,
        go_back,
    });
    prop::collection::vec(step, 0..400)
}

/// An edge with a download through it. Packets are counted from 0; each takes 8 ms on the radio, without delay.
pub(crate) struct World {
    edge: Edge,
    out: Outbox,
    now: Time,
    scale: u8,
    /// The sender: data to send, unacknowledged data, next data, and right edge.
    length: u32,
    unacknowledged: u32,
    next: u32,
    right_edge: u32,
    /// The receiver: next expected packet, packets received ahead of it, ACKs owed, and ACKs in transit.
    expects: u32,
    ahead: BTreeSet<u32>,
    owes: usize,
    delayed: usize,
    acks: VecDeque<u32>,
    /// Arrival time at the edge of the first ACK with each number.
    acknowledged: BTreeMap<u32, Time>,
    /// Longest time for which the edge held an ACK.
    longest_held: Span,
    /// End of the data that has left the edge, bytes.
    left: u32,
}

/// Window advertised by one ACK, bytes.
pub(crate) struct Advertised {
    pub(crate) ack: u32,
    pub(crate) edge: u32,
    left: u32,
}

impl World {
    /// An edge over two links with a buffer of this many packets.
    fn new(regulator: &Value, buffer: u32, scale: u8, delayed: usize) -> Self {
        let link = |rate, capacity| {
            let medium = Constant::new(Rate::from_bps(rate), Span::ZERO);
            SerialLink::new(medium, DropTail::new(capacity).any(), BufferMeaning::Waiting)
        };
        let down = link(1_040_000, Capacity::Packets(buffer));
        let bearer = PlainBearer::new(down, link(1_000_000_000, Capacity::Unlimited));
        let regulator = REGULATORS.resolve(regulator).expect("a name of the registry");
        Self::over(Edge::new(bearer, regulator, 64), scale, delayed)
    }

    pub(crate) fn over(edge: Edge, scale: u8, delayed: usize) -> Self {
        Self {
            edge,
            out: Outbox::for_one_node(),
            now: Time::ZERO,
            scale,
            length: LENGTH,
            unacknowledged: 0,
            next: 0,
            right_edge: 2 * PAYLOAD,
            expects: 0,
            ahead: BTreeSet::new(),
            owes: 0,
            delayed,
            acks: VecDeque::new(),
            acknowledged: BTreeMap::new(),
            longest_held: Span::ZERO,
            left: 0,
        }
    }

    pub(crate) fn step(&mut self, step: Step) -> Vec<Advertised> {
        let until = self.now + step.gap;
        let mut told = Vec::new();
        while let Some(due) = self.edge.next_wake().filter(|&due| due <= until) {
            self.now = due;
            self.edge.wake(due, &mut self.out);
            self.collect(step.lost, &mut told);
        }
        self.now = until;
        if step.go_back {
            self.go_back();
        }
        for _ in 0..step.sends {
            if self.next < self.length && (self.next + 1) * PAYLOAD <= self.right_edge {
                let data = Segment::data(FlowId(0), Seq(self.next * PAYLOAD), PAYLOAD as u16, 40);
                self.next += 1;
                self.edge.receive(self.now, WIRED, &Message::Segment(data), &mut self.out);
                self.collect(step.lost, &mut told);
            }
        }
        for ack in self.acks.drain(..step.acks.min(self.acks.len())).collect::<Vec<_>>() {
            let mut ack = Segment::pure_ack(FlowId(0), Seq(ack * PAYLOAD), 40);
            ack.set_scale(Some(self.scale));
            ack.window = 60_000;
            self.acknowledged.entry(ack.ack.0).or_insert(self.now);
            self.edge.receive(self.now, RADIO, &Message::Segment(ack), &mut self.out);
            self.collect(step.lost, &mut told);
        }
        told
    }

    /// Runs without losses. Returns the windows advertised.
    pub(crate) fn run_for(&mut self, span: Span) -> Vec<Advertised> {
        let step = Step { gap: Span::from_millis(10), sends: 8, acks: 8, lost: false, go_back: false };
        (0..span.as_nanos() / step.gap.as_nanos()).flat_map(|_| self.step(step)).collect()
    }

    /// The sender retransmits all unacknowledged data.
    pub(crate) fn go_back(&mut self) {
        self.next = self.unacknowledged;
    }

    /// Number of ACKs that the edge holds.
    pub(crate) fn held(&self) -> usize {
        self.edge.held(FlowId(0))
    }

    /// Output of the edge at one instant: first data to the receiver, which left before its ACKs were released.
    fn collect(&mut self, lost: bool, told: &mut Vec<Advertised>) {
        let mut acks = Vec::new();
        while let Some((port, message)) = self.out.take() {
            let Message::Segment(segment) = message else { continue };
            if port == WIRED {
                acks.push(segment);
                continue;
            }
            self.left = self.left.max(segment.end().0);
            if !lost {
                self.arrives(segment.seq.0 / PAYLOAD);
            }
        }
        for ack in acks {
            let edge = ack.ack.0 + (u32::from(ack.window) << self.scale);
            assert!((1..=60_000).contains(&ack.window), "{} is no window of the receiver's", ack.window);
            told.push(Advertised { ack: ack.ack.0, edge, left: self.left });
            // An ACK that the regulator generates was not held.
            let came = self.acknowledged.get(&ack.ack.0).copied().unwrap_or(self.now);
            self.longest_held = self.longest_held.max(self.now.since(came));
            self.unacknowledged = self.unacknowledged.max(ack.ack.0 / PAYLOAD);
            self.next = self.next.max(self.unacknowledged);
            self.right_edge = self.right_edge.max(edge);
        }
    }

    fn arrives(&mut self, number: u32) {
        let in_order = number == self.expects;
        if number >= self.expects {
            self.ahead.insert(number);
        }
        while self.ahead.remove(&self.expects) {
            self.expects += 1;
        }
        self.owes += 1;
        if !in_order || self.owes >= self.delayed || self.expects == self.length {
            self.acks.push_back(self.expects);
            self.owes = 0;
        }
    }

    /// Runs without further losses; after a second without progress the sender goes back, and the receiver's delayed
    /// ACK is sent.
    pub(crate) fn finish(&mut self) -> bool {
        let (mut before, mut still) = (self.unacknowledged, 0);
        for round in 0..400 * self.length {
            if self.unacknowledged == self.length {
                return true;
            }
            if round % 10 == 0 && self.owes > 0 {
                self.acks.push_back(self.expects);
                self.owes = 0;
            }
            still = if before == self.unacknowledged { still + 1 } else { 0 };
            before = self.unacknowledged;
            let gap = Span::from_millis(10);
            self.step(Step { gap, sends: 8, acks: 8, lost: false, go_back: still % 100 == 99 });
        }
        false
    }

    /// Finishes, waits until everything is idle, then sends more.
    fn finish_twice(&mut self) -> bool {
        let finished = self.finish();
        for _ in 0..2 {
            self.step(Step { gap: Span::from_secs(10), sends: 0, acks: 100, lost: false, go_back: false });
        }
        self.length += MORE;
        finished && self.finish()
    }
}

/// Bearers that deliver in order everything their buffer accepts.
fn lossless() -> Vec<Value> {
    let loses = [
        "loss",
        "duplicate",
        "bler",
        "power-controlled",
        "observed",
        "autorate",
        "max_dat",
        "unacknowledged",
        "out-of-sequence",
    ];
    every_table()
        .into_iter()
        .filter(|table| !loses.iter().any(|key| table.to_string().contains(key)))
        .map(without_residual_loss)
        .collect()
}

/// The table with HARQ that never gives a block up.
fn without_residual_loss(mut table: Value) -> Value {
    if let Some(harq) = table.pointer_mut("/down/harq") {
        harq["repetition_error"] = 0.into();
    }
    table
}

const NAMES: [&str; 3] = ["wrs", "wrd", "wrb"];

proptest! {
    #[test]
    fn the_right_edge_is_what_left_the_queue_and_the_buffer(
        steps in steps(), buffer in 1u32..12, delayed in 1usize..3,
    ) {
        for name in NAMES {
            let mut world = World::new(&name.into(), buffer, 0, delayed);
            let room = buffer * PAYLOAD;
            for step in &steps {
                for told in world.step(Step { lost: false, go_back: false, ..*step }) {
                    // Two packets are the least window.
                    let from = if name == "wrs" { told.ack } else { told.left };
                    let most = (from + room).max(told.ack + 2 * PAYLOAD);
                    prop_assert!(told.edge <= most, "{name}: {} of {most}", told.edge);
                    prop_assert!(told.edge >= told.ack + room.min(2 * PAYLOAD), "{name}");
                }
                prop_assert_eq!(world.edge.statistics().dropped, 0, "{}", name);
            }
            prop_assert!(world.finish_twice(), "{} stalls", name);
            prop_assert_eq!((world.edge.statistics().dropped, world.edge.held(FlowId(0))), (0, 0), "{}", name);
            // Everything has left the queue: the right edge is exact, to the byte.
            prop_assert_eq!(world.right_edge, (LENGTH + MORE) * PAYLOAD + room.max(2 * PAYLOAD), "{}", name);
        }
    }

    #[test]
    fn new_data_overflows_no_buffer_of_a_bearer_that_loses_nothing(
        steps in steps(), buffer in 4u32..30, delayed in 1usize..3, table in select(lossless()),
    ) {
        for name in NAMES {
            let regulator = REGULATORS.resolve(&name.into()).expect("a name of the registry");
            let Some(edge) = edge_over(&table, buffer, regulator) else { continue };
            let mut world = World::over(edge, 0, delayed);
            for step in &steps {
                world.step(Step { lost: false, go_back: false, ..*step });
                let EdgeStatistics { dropped, aged, .. } = *world.edge.statistics();
                let dropped = dropped - aged[0].unwrap_or_default();
                // An ACK waits at most a second for room; the minimum window of a later ACK may overflow the buffer.
                let waited = world.longest_held >= Span::from_secs(1);
                prop_assert!(dropped == 0 || waited, "{name} drops {dropped} of {}, {table}", world.next);
            }
        }
    }

    #[test]
    fn losses_and_timeouts_for_nothing_neither_move_it_left_nor_leave_anything_behind(
        steps in steps(), buffer in 1u32..12, delayed in 1usize..3, scale in 0u8..12,
        options in prop::sample::select(vec![json!({}), json!({ "empty": "hold" }), json!({ "release": "all" })]),
    ) {
        for name in NAMES {
            let mut regulator = json!({ "kind": name });
            if let (true, Some(table), Some(more)) = (name == "wrb", regulator.as_object_mut(), options.as_object()) {
                table.extend(more.clone());
            }
            let mut world = World::new(&regulator, buffer, scale, delayed);
            let mut edge = 0;
            for step in &steps {
                for told in world.step(*step) {
                    prop_assert!(told.edge >= edge, "{regulator}: {} after {edge}", told.edge);
                    edge = told.edge;
                }
            }
            prop_assert!(world.finish_twice(), "{} stalls", regulator);
            prop_assert_eq!(world.edge.held(FlowId(0)), 0, "{}", regulator);
            // Rounding may lose one unit of 2^s, and add one for each ACK of a window without departures.
            let expected = (LENGTH + MORE) * PAYLOAD + (buffer * PAYLOAD).max(2 * PAYLOAD);
            let slack = (buffer + 12) << scale;
            prop_assert!(world.right_edge.abs_diff(expected) <= slack, "{regulator}: {} of {expected}", world.right_edge);
        }
    }

    #[test]
    fn a_forecast_neither_moves_it_left_nor_leaves_anything_behind(
        steps in steps(), buffer in 1u32..40, delayed in 1usize..3, scale in 0u8..12, reserve in 0u32..8,
    ) {
        let regulator = json!({ "kind": "forecast", "reserve": reserve, "updates": 1.0 });
        let mut world = World::new(&regulator, buffer, scale, delayed);
        let (mut edge, mut ack) = (0, 0);
        for step in &steps {
            for told in world.step(*step) {
                prop_assert!(told.edge >= edge, "{} after {edge}", told.edge);
                prop_assert!(told.ack >= ack, "{} after {ack}", told.ack);
                (edge, ack) = (told.edge, told.ack);
            }
        }
        prop_assert!(world.finish_twice(), "it stalls");
        prop_assert_eq!(world.edge.held(FlowId(0)), 0);
    }
}
