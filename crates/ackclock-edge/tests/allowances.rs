//! An edge whose bearer only observes, and a box without an edge that sees the same packets, tell the same windows.

use std::collections::{BTreeSet, VecDeque};

use ackclock_core::{Flags, FlowId, Message, Node, Outbox, Segment, Seq, Size, Span, Time, Timestamps};
use ackclock_edge::{Allowances, Clip, Edge, RADIO, REGULATORS, WIRED};
use ackclock_link::Side;
use ackclock_observe::{ObservedConfig, Record};
use serde_json::json;

use crate::every_bearer::edge_over;

const FLOWS: usize = 2;
const PAYLOAD: u16 = 1000;
const SCALE: u8 = 4;
const BUFFER: u32 = 12;
const TICK: Span = Span::from_millis(1);
/// Ticks that a packet takes in the queue, and that all takes from the queue over the air and from the box to the source and back.
const SERVICE: u64 = 4;
const AIR: u64 = 15;
const WIRE: u64 = 20;

/// The box both ways: as an edge, and as records, allowances and clips.
struct Twin {
    edge: Edge,
    out: Outbox,
    allowances: Allowances,
    records: Vec<Record>,
    clips: Vec<Clip>,
    /// ACKs, and those of them whose window was lowered.
    acks: usize,
    lowered: usize,
}

impl Twin {
    fn new(regulator: &str, side: Side) -> Self {
        let observed = ObservedConfig { side, probe: Some(Span::from_secs(1)), ..ObservedConfig::default() };
        let allowances = Allowances::new(&json!(regulator), &observed, Size::Packets(BUFFER)).unwrap();
        let table = json!({"bearer": {"kind": "observed", "side": side, "probe": "1s"}});
        let edge = edge_over(&table, BUFFER, REGULATORS.resolve(&json!(regulator)).unwrap()).unwrap();
        let flows = || (0..FLOWS).map(|flow| FlowId(flow as u32));
        let mut twin = Self {
            edge,
            out: Outbox::for_one_node(),
            allowances,
            records: flows().map(Record::new).collect(),
            clips: flows().map(|_| Clip::new(None)).collect(),
            acks: 0,
            lowered: 0,
        };
        // Both flows are of one user.
        flows().for_each(|flow| twin.edge.assign(flow, 0));
        twin
    }

    fn through_edge(&mut self, now: Time, port: ackclock_core::Port, segment: &Segment) -> Segment {
        self.edge.receive(now, port, &Message::Segment(*segment), &mut self.out);
        while self.edge.next_wake().is_some_and(|due| due <= now) {
            self.edge.wake(now, &mut self.out);
        }
        let passed = self.out.take();
        assert!(self.out.take().is_none(), "what comes in goes out, and nothing else");
        let Some((_, Message::Segment(segment))) = passed else { panic!("{segment:?} was kept") };
        segment
    }

    fn down(&mut self, now: Time, segment: &Segment) {
        let flow = segment.flow.index();
        self.through_edge(now, WIRED, segment);
        self.clips[flow].on_data(segment);
        self.records[flow].on_down(now, segment);
        self.allowances.on_record(&self.records[flow]);
    }

    fn up(&mut self, now: Time, segment: &Segment) -> Segment {
        let flow = segment.flow.index();
        let told = self.through_edge(now, RADIO, segment);
        self.records[flow].on_up(now, segment);
        self.allowances.on_record(&self.records[flow]);
        let mut clipped = *segment;
        self.clips[flow].on_ack(&mut clipped, self.allowances.allowance(now, segment.flow));
        assert_eq!(clipped.window, told.window, "{:?} of {} at {now:?}", told.ack, told.flow.0);
        self.records[flow].on_told(now, &clipped);
        self.allowances.on_record(&self.records[flow]);
        self.acks += 1;
        self.lowered += usize::from(clipped.window < segment.window);
        told
    }
}

/// A source and its mobile.
#[derive(Default)]
struct End {
    next: u32,
    edge: u32,
    acked: u32,
    repeated: u32,
    expected: u32,
    ahead: BTreeSet<u32>,
    echo: u32,
}

/// Two downloads through a queue of two packets that stands on that side of the box, one packet of 97 lost behind it.
struct World {
    twin: Twin,
    side: Side,
    ends: Vec<End>,
    /// What is on its way, with the tick at which it comes: to the queue, in it, to the mobile, to the box, to the source.
    queue: VecDeque<Segment>,
    served: u64,
    packets: u64,
    air: VecDeque<(u64, Segment)>,
    back: VecDeque<(u64, Segment)>,
    wire: VecDeque<(u64, Segment)>,
}

fn time(tick: u64) -> Time {
    Time::ZERO + TICK * tick
}

impl World {
    fn new(regulator: &str, side: Side) -> Self {
        let ends = (0..FLOWS).map(|_| End { edge: 10 * u32::from(PAYLOAD), ..End::default() }).collect();
        let queue = VecDeque::new();
        let (air, back, wire) = Default::default();
        Self { twin: Twin::new(regulator, side), side, ends, queue, served: 0, packets: 0, air, back, wire }
    }

    fn open(&mut self) {
        for flow in 0..FLOWS as u32 {
            let mut syn = Segment::pure_ack(FlowId(flow), Seq(0), 40);
            (syn.flags, syn.window, syn.seq) = (Flags::SYN, 60_000, Seq(0));
            self.twin.through_edge(time(0), RADIO, &syn);
            self.twin.records[flow as usize].on_up(time(0), &syn);
            let mut answer = Segment::pure_ack(FlowId(flow), Seq(1), 40);
            (answer.flags, answer.seq) = (Flags::SYN | Flags::ACK, Seq(0u32.wrapping_sub(1)));
            self.twin.allowances.on_record(&self.twin.records[flow as usize]);
            self.twin.down(time(WIRE), &answer);
        }
    }

    fn tick(&mut self, tick: u64) {
        while let Some((_, ack)) = self.wire.pop_front_if(|(due, _)| *due <= tick) {
            self.acknowledged(tick, &ack);
        }
        (0..FLOWS).for_each(|flow| self.send(tick, flow));
        if tick >= self.served + SERVICE && !self.queue.is_empty() {
            self.served = tick;
            let segment = self.queue.pop_front().unwrap();
            self.packets += 1;
            if self.side == Side::Mobile {
                self.twin.down(time(tick), &segment);
            }
            if !self.packets.is_multiple_of(97) {
                self.air.push_back((tick + AIR, segment));
            }
        }
        while let Some((_, segment)) = self.air.pop_front_if(|(due, _)| *due <= tick) {
            let ack = self.arrives(tick, &segment);
            self.back.push_back((tick + AIR, ack));
        }
        while let Some((_, ack)) = self.back.pop_front_if(|(due, _)| *due <= tick) {
            let told = self.twin.up(time(tick), &ack);
            self.wire.push_back((tick + WIRE, told));
        }
    }

    fn send(&mut self, tick: u64, flow: usize) {
        // The second begins later and pauses now and then.
        if flow == 1 && (tick < 500 || tick % 3000 > 2000) {
            return;
        }
        while self.ends[flow].next + u32::from(PAYLOAD) <= self.ends[flow].edge {
            let seq = self.ends[flow].next;
            self.ends[flow].next += u32::from(PAYLOAD);
            self.emit(tick, flow, seq);
        }
    }

    fn emit(&mut self, tick: u64, flow: usize, seq: u32) {
        let mut data = Segment::data(FlowId(flow as u32), Seq(seq), PAYLOAD, 40);
        data.set_timestamps(Timestamps { value: tick as u32, echo: self.ends[flow].echo });
        if self.side == Side::Network {
            self.twin.down(time(tick), &data);
        }
        self.queue.push_back(data);
    }

    fn acknowledged(&mut self, tick: u64, ack: &Segment) {
        let flow = ack.flow.index();
        let end = &mut self.ends[flow];
        end.echo = ack.timestamps().unwrap().value;
        end.edge = end.edge.max(ack.ack.0 + ack.window_bytes().unwrap());
        end.repeated = if ack.ack.0 == end.acked { end.repeated + 1 } else { 0 };
        end.acked = end.acked.max(ack.ack.0);
        if end.repeated == 3 {
            let lost = end.acked;
            self.emit(tick, flow, lost);
        }
    }

    fn arrives(&mut self, tick: u64, data: &Segment) -> Segment {
        let end = &mut self.ends[data.flow.index()];
        if data.seq.0 >= end.expected {
            end.ahead.insert(data.seq.0);
        }
        while end.ahead.remove(&end.expected) {
            end.expected += u32::from(PAYLOAD);
        }
        let mut ack = Segment::pure_ack(data.flow, Seq(end.expected), 40);
        ack.set_scale(Some(SCALE));
        ack.window = 60_000 >> SCALE;
        ack.set_timestamps(Timestamps { value: tick as u32, echo: data.timestamps().unwrap().value });
        ack
    }
}

#[test]
fn a_box_without_an_edge_tells_the_windows_of_one_that_observes() {
    let mobile = ["wrs", "wrd", "forecast"].map(|regulator| (regulator, Side::Mobile));
    for (regulator, side) in mobile.into_iter().chain([("wrs", Side::Network)]) {
        let mut world = World::new(regulator, side);
        world.open();
        (WIRE..20_000).for_each(|tick| world.tick(tick));
        let Twin { acks, lowered, .. } = world.twin;
        assert!(acks > 3000 && lowered > acks / 2, "{regulator}: {lowered} of {acks} windows were lowered");
    }
}

#[test]
fn a_regulator_without_allowances_is_refused_with_the_reason() {
    let observed = |side| ObservedConfig { side, ..ObservedConfig::default() };
    let refused = |regulator, side| {
        Allowances::new(&regulator, &observed(side), Size::Packets(20)).err().unwrap().to_string()
    };
    for (name, side) in [("wrb", Side::Mobile), ("snoop", Side::Mobile), ("ack-regulator", Side::Network)] {
        let reason = REGULATORS.resolve(&json!(name)).unwrap().observes(side).unwrap_err();
        assert_eq!(refused(json!(name), side), format!("regulator: `{name}`: {reason}"));
    }
    for regulator in [json!("wrb"), json!("none"), json!({"kind": "wrd", "count": "printed"})] {
        let reason = refused(regulator, Side::Network);
        assert!(reason.starts_with("regulator: ") && reason.contains("no allowance"), "{reason}");
    }
}
