//! Laws that every queue discipline keeps, whatever it drops.

use std::collections::BTreeMap;

use ackclock_core::{Ecn, Flags, FlowId, Segment, Seq, Size, Span, Streams, Time};
use proptest::prelude::*;

use super::*;

/// Every discipline, with several tables.
fn every_discipline(capacity: Capacity, mut judge: impl FnMut(&str, AnyQueue)) {
    let streams = Streams::new(1, 0);
    let context = QueueContext { capacity, streams: &streams, name: "queue" };
    let red = RedConfig {
        min_threshold: Size::Packets(1),
        max_threshold: Size::Packets(2),
        ..RedConfig::default()
    };
    let short = ShortFirstConfig { bytes: Size::Bytes(3_000), ..ShortFirstConfig::default() };
    let disciplines: [(&str, &dyn QueueConfig); 12] = [
        ("drop-tail", &DropTailConfig::default()),
        ("drop-tail per user", &DropTailConfig { per: Per::User }),
        ("drop-head", &DropHeadConfig::default()),
        ("drop-head per flow", &DropHeadConfig { per: Per::Flow }),
        ("codel", &CodelConfig::default()),
        ("fq-codel", &FqCodelConfig { flows: 2, ..FqCodelConfig::default() }),
        ("pie", &PieConfig::default()),
        ("red", &red),
        ("cake", &CakeConfig::default()),
        ("dualpi2", &DualPi2Config::default()),
        ("short-first", &short),
        ("abc-router", &AbcConfig::default()),
    ];
    for (name, config) in disciplines {
        judge(name, config.build(&context));
        judge(
            &format!("{name}, 20 ms"),
            AgeLimited::new(config.build(&context), Span::from_millis(20)).any(),
        );
        judge(
            &format!("{name}, filtered"),
            Filtered::new(config.build(&context), AckFilter::Aggressive).any(),
        );
    }
}

/// What is done with a queue, 1 ms later each time.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Put { flow: u32, payload: u16, place: Place, unqueued: u32 },
    Dequeue,
    RemoveOldest,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let place = prop_oneof![4 => Just(Place::Back), 1 => Just(Place::Front)];
    let put = (0u32..3, prop_oneof![Just(0u16), 1u16..1400], place, 0u32..3)
        .prop_map(|(flow, payload, place, unqueued)| Operation::Put { flow, payload, place, unqueued });
    let operation = prop_oneof![6 => put, 3 => Just(Operation::Dequeue), 1 => Just(Operation::RemoveOldest)];
    prop::collection::vec(operation, 1..120)
}

/// A packet whose numbers are its arrival time in ms.
fn packet(now: u32, flow: u32, payload: u16) -> Segment {
    let mut packet = Segment::data(FlowId(flow), Seq(now), payload, 40);
    (packet.flags, packet.ack) = (Flags::ACK, Seq(now));
    if payload % 2 == 1 {
        packet.ecn = Ecn::Ect1;
    }
    packet
}

/// A queue, and the packets that must be in it by their arrival time in ms.
struct Pair<'a> {
    name: &'a str,
    queue: AnyQueue,
    queued: BTreeMap<u32, Segment>,
}

impl Pair<'_> {
    fn apply(&mut self, millis: u32, operation: Operation, capacity: Capacity) {
        let (name, now) = (self.name, ms(millis));
        match operation {
            Operation::Put { flow, payload, place, unqueued } => {
                let packet = packet(millis, flow, payload);
                let unqueued = Load { packets: unqueued, bytes: u64::from(unqueued) * 1500 };
                if self.queue.put(now, &packet, unqueued, place).is_ok() {
                    self.queued.insert(millis, packet);
                    let alone = name.contains(" per ");
                    let load = if alone { self.queue.waiting(FlowId(flow)) } else { self.queue.load() };
                    assert!(capacity.holds(load + unqueued), "{name}: `put` does not count the load outside");
                }
            }
            Operation::Dequeue => {
                if let Some((arrived, packet)) = self.queue.dequeue(now) {
                    assert_eq!(arrived, ms(packet.seq.0), "{name}: `dequeue` tells another arrival");
                    assert!(
                        self.queued.remove(&packet.seq.0).is_some(),
                        "{name}: `dequeue` repeats a packet"
                    );
                }
            }
            Operation::RemoveOldest => {
                let oldest = self.queue.oldest();
                let removed = self.queue.remove_oldest(now).map(|packet| packet.seq.0);
                assert_eq!(
                    removed.map_or(Time::NEVER, ms),
                    oldest,
                    "{name}: `remove_oldest` removes another packet"
                );
                removed.map(|number| self.queued.remove(&number).expect("it was queued"));
            }
        }
        while let Some((packet, _)) = self.queue.poll_dropped() {
            assert!(self.queued.remove(&packet.seq.0).is_some(), "{name}: `poll_dropped` repeats a packet");
        }
        let load = self.queued.values().fold(Load::NONE, |sum, packet| sum + Load::of(packet));
        assert_eq!(self.queue.load(), load, "{name}: `load`");
        assert_eq!(self.queue.is_empty(), load.is_none(), "{name}: `is_empty`");
    }
}

fn ms(millis: u32) -> Time {
    Time::ZERO + Span::from_millis(millis.into())
}

proptest! {
    #[test]
    fn a_queue_counts_what_is_in_it_and_beside_it(operations in operations(), packets in 2u32..8) {
        let capacity = Capacity::Packets(packets);
        every_discipline(capacity, |name, queue| {
            let mut pair = Pair { name, queue, queued: BTreeMap::new() };
            for (millis, operation) in (1..).zip(&operations) {
                pair.apply(millis, *operation, capacity);
            }
        });
    }
}
