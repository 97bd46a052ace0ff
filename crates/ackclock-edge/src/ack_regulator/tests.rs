mod figure_8;
mod quiet;

use super::*;
use ackclock_core::{Flags, FlowId, Rate, Seq, Timestamps};
use ackclock_link::{Capacity, Load};

const PAYLOAD: u32 = 960;
const NOTHING: [u32; 0] = [];

/// A regulator with a queue that the test fills and empties by hand.
struct Bench {
    regulator: AckRegulator,
    waiting: u32,
    serving: u32,
    capacity: u32,
    now: Time,
}

impl Bench {
    fn new(capacity: u32, config: Config) -> Self {
        Self { regulator: AckRegulator::new(config), waiting: 0, serving: 0, capacity, now: Time::ZERO }
    }

    fn view(&self) -> LinkView {
        let load = |packets: u32| Load { packets, bytes: u64::from(packets) * 1000 };
        LinkView {
            waiting: load(self.waiting),
            in_transmission: load(self.serving),
            unacknowledged: Load::NONE,
            occupied: load(self.waiting),
            capacity: Capacity::Packets(self.capacity),
            rate: Rate::from_bps(200_000),
        }
    }

    fn data(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number * PAYLOAD), PAYLOAD as u16, 40)
    }

    /// Data packet `number` arrives; it is dropped if the queue is full.
    fn arrive(&mut self, number: u32) -> Verdict {
        self.arrive_segment(Self::data(number))
    }

    fn arrive_segment(&mut self, segment: Segment) -> Verdict {
        let verdict = self.regulator.on_data(self.now, &segment, self.view());
        if self.serving == 0 {
            self.serving = 1;
        } else if self.waiting < self.capacity {
            self.waiting += 1;
        } else {
            self.regulator.on_dropped(self.now, &segment, Cause::Full, self.view());
            return verdict;
        }
        self.regulator.on_queued(self.now, &segment, self.view());
        verdict
    }

    fn depart(&mut self, number: u32) {
        if self.waiting > 0 {
            self.waiting -= 1
        } else {
            self.serving = 0
        }
        self.regulator.on_departed(self.now, &Self::data(number), self.view());
    }

    /// An ACK for the first `packets` packets arrives.
    fn ack(&mut self, packets: u32) {
        self.regulator.handle_ack(
            self.now,
            Segment::pure_ack(FlowId(0), Seq(packets * PAYLOAD), 40),
            self.view(),
        );
    }

    /// ACK numbers released to the sender, in packets.
    fn sent(&mut self) -> Vec<u32> {
        let sent = std::iter::from_fn(|| self.regulator.poll_output(self.now));
        sent.filter_map(|output| match output {
            Output::ToSender(ack) => Some(ack.ack.0 / PAYLOAD),
            _ => None,
        })
        .collect()
    }
}

/// `count` packets waiting and in transmission, of which the first `acked` are acknowledged.
fn filled(capacity: u32, count: u32, config: Config) -> Bench {
    let mut bench = Bench::new(capacity, config);
    for number in 0..count {
        bench.arrive(number);
    }
    bench
}

#[test]
fn an_ack_waits_until_there_is_room_for_two_packets() {
    // 9 of 10 places taken; conservative mode reserves the last, so nothing is available.
    let mut bench = filled(10, 10, Config::default());
    bench.ack(1);
    assert_eq!(bench.sent(), NOTHING);
    bench.depart(0);
    // 8 waiting: 10 - 8 - 1 = 1
    assert_eq!(bench.sent(), [1]);
    bench.ack(2);
    assert_eq!(bench.sent(), NOTHING, "the place is reserved for the packet that ACK 1 triggers");
    bench.arrive(10);
    bench.depart(1);
    assert_eq!(bench.sent(), [2]);
}

#[test]
fn a_delayed_ack_costs_what_it_covers() {
    // 6 waiting of 10: 10 - 6 - 1 = 3 available.
    let mut bench = filled(10, 7, Config::default());
    bench.ack(2);
    assert_eq!(bench.sent(), [2]);
    bench.ack(4);
    assert_eq!(bench.sent(), NOTHING, "3 - 2 = 1 is not enough for 2");
    let mut one = filled(10, 7, Config { cost: Cost::One, ..Config::default() });
    one.ack(2);
    one.ack(4);
    assert_eq!(one.sent(), [2, 4]);
}

#[test]
fn duplicates_wait_behind_the_gate_and_are_not_counted() {
    // 8 waiting of 10: 1 available, which ACK 1 takes.
    let mut bench = filled(10, 9, Config::default());
    for _ in 0..4 {
        bench.ack(1);
    }
    assert_eq!(bench.sent(), [1]);
    assert_eq!(bench.regulator.held(FlowId(0)), 3);
    bench.depart(0);
    // 7 waiting, one expected: one place, so one duplicate goes.
    assert_eq!(bench.sent(), [1]);
    bench.depart(1);
    // 6 waiting and still one expected: released duplicates are not counted. Two places, two duplicates.
    assert_eq!(bench.sent(), [1, 1]);
    bench.ack(5);
    // The third duplicate reserved a place for the retransmission: 10 - 6 - 2 - 1 = 1. The ACK covers 4 packets, of
    // which the duplicates paid for 3: it costs 1.
    assert_eq!(bench.sent(), [5]);
}

#[test]
fn where_two_packets_were_lost_the_advances_share_what_the_duplicates_paid() {
    // Of packets 0 to 9 the radio lost 0 and 4. Eight duplicates, then the retransmissions: the first advance covers 4
    // packets, the second 6; the duplicates paid for all but the retransmitted ones.
    let mut bench = filled(20, 10, Config::default());
    for _ in 0..9 {
        bench.ack(0);
    }
    bench.sent();
    for covered in [4, 10] {
        let expected = bench.regulator.expected;
        bench.ack(covered);
        assert_eq!(bench.sent(), [covered]);
        assert_eq!(bench.regulator.expected, expected + 1, "ACK {covered} costs one packet");
    }
    // The recovery is over: unused payments are forgotten.
    for number in 10..14 {
        bench.arrive(number);
    }
    assert_eq!(bench.regulator.expected, 0);
    bench.ack(14);
    assert_eq!(bench.regulator.expected, 4);
}

#[test]
fn duplicates_that_a_full_queue_held_up_do_not_go_all_at_once() {
    // The queue is full: no ACK is released. The sender would answer the first two duplicates with a packet each (RFC
    // 3042) and the third with a retransmission, though only one packet departed.
    let mut bench = filled(10, 11, Config::default());
    for _ in 0..21 {
        bench.ack(1);
    }
    assert_eq!(bench.sent(), NOTHING);
    bench.depart(0);
    assert_eq!(bench.sent(), NOTHING, "9 waiting: conservative mode reserves the last place");
    bench.depart(1);
    // The ACK takes the only available place and its packet is expected.
    assert_eq!(bench.sent(), [1]);
    bench.depart(2);
    assert_eq!(bench.sent(), [1]);
    bench.arrive(11);
    bench.arrive(12);
    // The packet that the ACK triggered, and one of limited transmit: no more room.
    bench.depart(3);
    assert_eq!(bench.sent(), [1]);
    assert_eq!(bench.waiting, 8);
}

#[test]
fn a_place_set_aside_for_limited_transmit_is_gone_in_the_same_step() {
    let config = Config { limited_transmit_reserve: 2, ..Config::default() };
    let mut bench = Bench::new(10, config);
    bench.arrive(0);
    bench.ack(0);
    for number in 1..10 {
        bench.arrive(number);
    }
    assert_eq!(bench.sent(), [0]);
    (0..5).for_each(|_| bench.ack(1));
    (0..4).for_each(|number| bench.depart(number));
    // 10 - 5 - 1 = 4 places: the packet of the ACK, two of limited transmit, and the retransmission.
    assert_eq!(bench.sent(), [1, 1, 1, 1]);
    assert_eq!(bench.regulator.expected, 4);
    assert_eq!(bench.regulator.held(FlowId(0)), 1);
}

#[test]
fn an_ack_that_asks_for_more_than_the_whole_queue_is_not_held_for_ever() {
    let mut bench = filled(2, 3, Config::default());
    bench.ack(0);
    for number in 0..3 {
        bench.depart(number);
    }
    bench.sent();
    bench.ack(3);
    assert_eq!(bench.sent(), [3]);
}

#[test]
fn data_from_the_mobile_passes_and_outdates_held_acks() {
    let mut bench = filled(10, 10, Config::default());
    bench.ack(1);
    bench.ack(1);
    let mut reply = Segment::data(FlowId(0), Seq(0), 100, 40);
    reply.ack = Seq(2 * PAYLOAD);
    bench.regulator.handle_ack(bench.now, reply, bench.view());
    assert_eq!(bench.sent(), [2]);
    assert_eq!(bench.regulator.held(FlowId(0)), 1, "the true duplicate stays");
}

#[test]
fn held_acks_are_bounded_by_merging_the_oldest_that_advance() {
    let mut bench = filled(1, 2, Config { alpha: 1.0, ..Config::default() });
    for number in 2..40 {
        bench.regulator.accounts.on_queued(&Bench::data(number));
    }
    for packets in 1..40 {
        bench.ack(packets);
    }
    assert!(bench.regulator.held(FlowId(0)) <= 16, "{} held", bench.regulator.held(FlowId(0)));
}

#[test]
fn closing_gives_everything_back_in_order() {
    let mut bench = filled(10, 11, Config::default());
    bench.ack(1);
    bench.ack(2);
    bench.regulator.close(bench.now, FlowId(0));
    assert_eq!(bench.sent(), [1, 2]);
    let mut fin = Segment::pure_ack(FlowId(0), Seq(3 * PAYLOAD), 40);
    fin.flags |= Flags::FIN;
    bench.regulator.handle_ack(bench.now, fin, bench.view());
    assert_eq!(bench.sent(), [3], "a FIN is never held");
}

#[test]
fn what_duplicates_paid_beyond_their_recovery_is_forgotten() {
    let mut bench = filled(30, 10, Config::default());
    // Ten packets, all covered by ACK 10; of eleven duplicates nine pay for packets, two for nothing.
    (0..12).for_each(|_| bench.ack(0));
    bench.ack(10);
    (10..14).for_each(|number| _ = bench.arrive(number));
    let expected = bench.regulator.expected;
    bench.ack(14);
    assert_eq!(bench.regulator.expected, expected + 4);
}

#[test]
fn an_ack_that_was_overtaken_pays_for_nothing() {
    let mut bench = filled(30, 10, Config::default());
    bench.ack(4);
    (0..3).for_each(|_| bench.ack(2));
    let expected = bench.regulator.expected;
    bench.ack(8);
    assert_eq!(bench.regulator.expected, expected + 4);
}

#[test]
fn what_passes_with_data_of_the_mobile_is_acknowledged_and_released() {
    let mut bench = filled(30, 10, Config::default());
    bench.ack(0);
    let mut reply = Segment::data(FlowId(0), Seq(0), 100, 40);
    reply.ack = Seq(4 * PAYLOAD);
    bench.regulator.handle_ack(bench.now, reply, bench.view());
    assert_eq!(bench.regulator.accounts.window(), 6 * PAYLOAD);
    let expected = bench.regulator.expected;
    bench.ack(4);
    assert_eq!(bench.regulator.expected, expected, "it repeats the ACK number of the reply");
    bench.ack(6);
    assert_eq!(
        bench.regulator.expected,
        expected + 1,
        "it covers two packets, and that duplicate paid for one"
    );
}
