//! The Window Regulators alone, beside a queue in front of a link that serves a packet a millisecond: what one costs a packet.
//!
//! The source sends whatever it is told it may, the mobile acknowledges each packet 20 ms after it left the queue; criterion
//! reports elements (packets) a second. All that is beside the regulator, the queue and the two wires, is the same for each.
#![allow(missing_docs, reason = "the macros of criterion make public items")]

use std::collections::VecDeque;
use std::hint::black_box;

use ackclock_core::{FlowId, Rate, Segment, Seq, Span, Time};
use ackclock_edge::{FlowContext, Output, REGULATORS, Regulator};
use ackclock_link::{Capacity, LinkView, Load};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const PAYLOAD: u32 = 1000;
const PACKETS: u32 = 20_000;
const BUFFER: u32 = 100;
const AIR: Span = Span::from_millis(20);

/// One flow, its queue and the wires beside it.
struct Flow {
    regulator: Box<dyn Regulator>,
    now: Time,
    queue: VecDeque<Segment>,
    /// ACKs on their way to the edge.
    acks: VecDeque<(Time, Segment)>,
    next: Seq,
    edge: Seq,
}

impl Flow {
    fn new(name: &str) -> Self {
        let config = REGULATORS.resolve(&name.into()).expect("a name of the registry");
        let context = FlowContext { flow: FlowId(0), user: 0 };
        let regulator = config.build(context).expect("none leaves flows alone");
        let (next, edge) = (Seq(0), Seq(10 * PAYLOAD));
        Self { regulator, now: Time::ZERO, queue: VecDeque::new(), acks: VecDeque::new(), next, edge }
    }

    fn view(&self) -> LinkView {
        let load = |packets: usize| Load { packets: packets as u32, bytes: packets as u64 * 1040 };
        LinkView {
            waiting: load(self.queue.len().saturating_sub(1)),
            in_transmission: load(self.queue.len().min(1)),
            unacknowledged: Load::NONE,
            occupied: load(self.queue.len().saturating_sub(1)),
            capacity: Capacity::Packets(BUFFER),
            rate: Rate::from_bps(8_320_000),
        }
    }

    /// A millisecond: a packet leaves, an ACK comes, and the source sends what it may.
    fn step(&mut self) {
        self.now += Span::from_millis(1);
        if let Some(segment) = self.queue.pop_front() {
            self.regulator.on_departed(self.now, &segment, self.view());
            let mut ack = Segment::pure_ack(FlowId(0), segment.end(), 40);
            (ack.window, ack.ack) = (u16::MAX, segment.end());
            ack.set_scale(Some(7));
            self.acks.push_back((self.now + AIR, ack));
        }
        while let Some((_, ack)) = self.acks.pop_front_if(|(due, _)| *due <= self.now) {
            self.regulator.handle_ack(self.now, ack, self.view());
        }
        if self.regulator.poll_timeout().is_some_and(|due| due <= self.now) {
            self.regulator.handle_timeout(self.now, self.view());
        }
        while let Some(output) = self.regulator.poll_output(self.now) {
            if let Output::ToSender(ack) = output {
                self.edge = self.edge.max(ack.ack + (u32::from(ack.window) << 7));
            }
        }
        while (self.next + PAYLOAD).at_or_before(self.edge) && self.queue.len() <= BUFFER as usize {
            let segment = Segment::data(FlowId(0), self.next, PAYLOAD as u16, 40);
            self.regulator.on_data(self.now, &segment, self.view());
            self.queue.push_back(segment);
            self.regulator.on_queued(self.now, &segment, self.view());
            self.next = segment.end();
        }
    }
}

fn alone(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a regulator alone");
    group.throughput(Throughput::Elements(PACKETS.into())).sample_size(20);
    for name in ["wrs", "wrd", "wrb", "forecast"] {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                let mut flow = Flow::new(name);
                while flow.next.before(Seq(PACKETS * PAYLOAD)) {
                    flow.step();
                }
                black_box(flow.edge)
            });
        });
    }
}

criterion_group!(benches, alone);
criterion_main!(benches);
