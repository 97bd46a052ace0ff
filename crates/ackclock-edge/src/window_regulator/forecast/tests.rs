//! Sequences of segments. Packets have 1000 bytes; before a rate is known the budget is `packets`, six in most tests.

use ackclock_core::{Flags, Rate, SackBlock, Seq};
use ackclock_link::{Capacity, Load};

use super::*;
use crate::window_regulator::bench::{Bench, syn};

mod kept;
mod observed;
mod updates;

const NOTHING: [(u32, u32); 0] = [];

/// Without updates and reserve: a right edge is advertised by an ACK or not at all.
fn quiet() -> Config {
    Config { packets: 6, updates: 0.0, reserve: 0, ..Config::default() }
}

fn bench(config: Config) -> Bench {
    Bench::with_buffer(Box::new(Forecast::new(config)), Capacity::Packets(100))
}

/// Packet `number` of a flow arrives after `millis`, and leaves at once.
fn pass(bench: &mut Bench, number: u32, millis: u64) {
    bench.now += Span::from_millis(millis);
    assert!(bench.arrive(number));
    bench.depart();
}

#[test]
fn the_edge_is_what_left_the_queue_and_the_budget() {
    let mut bench = bench(quiet());
    bench.arrive_all(0..5);
    bench.ack(0);
    assert_eq!(bench.sent(), [(0, 6)]);
    bench.depart();
    bench.depart();
    bench.ack(1);
    // 2 + 6, seen from 1; within one instant no rate is known.
    assert_eq!(bench.sent(), [(1, 7)]);
}

#[test]
fn a_buffer_smaller_than_the_budget_is_not_overrun() {
    let mut bench = Bench::new(Box::new(Forecast::new(Config { delay: Span::from_secs(1), ..quiet() })), 30);
    bench.arrive(0);
    for number in 1..101 {
        bench.now += Span::from_millis(10);
        assert!(bench.arrive(number));
        bench.depart();
        bench.ack(number);
    }
    // 1.75 * 100 000 * 1 s and more are 175 packets, of which the buffer holds 30; one of them is in it.
    assert_eq!(bench.sent().last(), Some(&(100, 30)));
}

#[test]
fn the_first_packets_of_a_source_are_not_held_back() {
    let mut bench = bench(quiet());
    bench.take(syn(Some(1000)));
    bench.depart();
    bench.ack(0);
    assert_eq!(bench.sent(), [(0, 10)]);
    bench.arrive(0);
    bench.depart();
    bench.ack(1);
    // The right edge does not move.
    assert_eq!(bench.sent(), [(1, 9)]);
}

#[test]
fn first_packets_of_many_are_no_more_than_a_slow_link_serves_in_a_second() {
    let mut bench = bench(quiet());
    for flow in 0..8 {
        let mut syn = syn(Some(1000));
        syn.flow = FlowId(flow);
        bench.take(syn);
        bench.depart();
    }
    for flow in 0..8 {
        let mut ack = Bench::pure_ack(0);
        ack.flow = FlowId(flow);
        bench.handle(ack);
    }
    // Forty in total.
    assert_eq!(bench.sent(), [(0, 5); 8]);
}

#[test]
fn what_the_source_could_not_have_heard_of_is_discarded_when_it_comes_again() {
    let mut bench = bench(quiet());
    bench.arrive_all(0..3);
    (0..3).for_each(|_| bench.depart());
    bench.ack(3);
    let verdict = |bench: &mut Bench| bench.regulator.on_data(bench.now, &Bench::data(2), bench.view());
    bench.now += Span::from_millis(50);
    assert_eq!(verdict(&mut bench), Verdict::Drop, "the ACK is on its way, over a wire of 100 ms");
    bench.now += Span::from_millis(100);
    assert_eq!(verdict(&mut bench), Verdict::Forward, "it was lost");
}

#[test]
fn the_first_ack_of_a_burst_tells_how_far_the_mobile_is() {
    let mut bench = Bench::new(Box::new(Forecast::new(quiet())), 1000);
    bench.arrive_all(0..10);
    for _ in 0..10 {
        bench.now += Span::from_millis(10);
        bench.depart();
    }
    bench.now += Span::from_millis(200);
    bench.ack(1);
    // Ten in 100 ms, doubled, over the wired RTT (100 ms if unknown), the delay of 10 and the air of 290: the
    // receiver's window. Without the air it would be 28.
    assert_eq!(bench.sent(), [(1, 60)]);
}

#[test]
fn a_source_is_let_go_where_the_buffer_does_not_hold_two_round_trips() {
    // Six packets are allowed at any rate.
    let mut bench = Bench::new(Box::new(Forecast::new(quiet())), 5);
    bench.arrive_all(0..2);
    bench.ack(0);
    assert_eq!(bench.sent(), [(0, 60)], "the window that the receiver offers");
}

#[test]
fn the_rate_and_the_wire_make_the_budget() {
    let mut bench = Bench::new(Box::new(Forecast::new(Config { learning: 0.0, ..quiet() })), 1000);
    // A packet every 10 ms for 1.2 s, each of which is in the queue for those 10 ms: 100 000 bytes per second.
    bench.arrive(0);
    for number in 1..121 {
        bench.now += Span::from_millis(10);
        assert!(bench.arrive(number));
        bench.depart();
    }
    bench.ack(120);
    // The wired RTT is unknown: 100 ms is assumed. 1.75 * 100 000 * 110 ms = 19.2 packets plus 6, beyond the 120 that
    // left.
    assert_eq!(bench.sent(), [(120, 25)]);
}

/// Whether a copy of packet 2 is queued while the buffer of `capacity` holds packets 1 to 3.
fn queues_a_copy(capacity: u32) -> bool {
    let mut bench = Bench::new(Box::new(Forecast::new(quiet())), capacity);
    bench.arrive_all(0..4);
    bench.depart();
    let verdict = bench.regulator.on_data(bench.now, &Bench::data(2), bench.view());
    verdict == Verdict::Forward
}

#[test]
fn a_copy_of_what_waits_in_the_queue_is_not_queued() {
    assert!(!queues_a_copy(100));
    assert!(queues_a_copy(4), "its source is let go");
    let mut bench = bench(quiet());
    bench.arrive_all(0..4);
    bench.depart();
    bench.depart();
    let view = bench.view();
    let verdict = bench.regulator.on_data(bench.now, &Bench::data(0), view);
    assert_eq!(verdict, Verdict::Forward, "it left, and may be lost on the air");
}

#[test]
fn where_few_packets_a_flow_have_room_all_are_let_go_by_and_by() {
    let mut bench = Bench::new(Box::new(Forecast::new(quiet())), 10);
    bench.arrive_all(0..4);
    bench.depart();
    bench.ack(1);
    assert_eq!(bench.sent(), [(1, 6)], "room for ten, and one flow has six");
    let mut other = Bench::data(0);
    other.flow = FlowId(1);
    bench.take(other);
    // Six for each of two do not fit. From 7 on the right edge grows by 1.5 times what is acknowledged.
    bench.ack(2);
    assert_eq!(bench.sent(), [(2, 5)]);
    bench.ack(4);
    assert_eq!(bench.sent(), [(4, 6)]);
    (0..4).for_each(|_| bench.depart());
    bench.ack(5);
    assert_eq!(bench.sent(), [(5, 60)], "an empty queue has room for what the receiver offers");
}

/// Relative gain after a pause of 100 ms ended by a sender that is not window-limited; another one was at `window_limited_at`.
fn taught(window_limited_at: Time) -> f64 {
    let mut forecast = Forecast::new(quiet());
    for millis in (0..5000).step_by(10) {
        forecast.shared.link.on_served(Time::from_nanos(millis * 1_000_000), 1000);
    }
    let second = |forecast: &mut Forecast| {
        forecast.shared.link.forecast(Time::from_nanos(5_000_000_000), Span::from_secs(1), Span::ZERO)
    };
    let before = second(&mut forecast);
    forecast.shared.link.on_empty(Time::from_nanos(5_000_000_000));
    forecast.shared.window_limited_at = window_limited_at;
    let view = LinkView {
        waiting: Load::NONE,
        in_transmission: Load::NONE,
        unacknowledged: Load::NONE,
        occupied: Load::NONE,
        capacity: Capacity::Packets(100),
        rate: Rate::from_bps(800_000),
    };
    let now = Time::from_nanos(5_100_000_000);
    forecast.on_data(now, &Bench::data(0), view);
    forecast.on_queued(now, &Bench::data(0), view);
    second(&mut forecast) / before
}

#[test]
fn a_pause_teaches_while_the_window_rules_any_source() {
    assert!(taught(Time::ZERO) <= 1.0);
    assert!(taught(Time::from_nanos(4_500_000_000)) > 1.05);
}

#[test]
fn flows_share_the_budget() {
    let mut bench = bench(quiet());
    bench.arrive_all(0..1);
    bench.ack(0);
    assert_eq!(bench.sent(), [(0, 6)]);
    let mut other = Bench::data(0);
    other.flow = FlowId(1);
    bench.take(other);
    let mut ack = Bench::pure_ack(0);
    ack.flow = FlowId(1);
    bench.handle(ack);
    assert_eq!(bench.sent(), [(0, 3)], "half of six, and a quarter of that");
    bench.regulator.close(bench.now, FlowId(0));
    bench.handle(ack);
    assert_eq!(bench.sent(), [(0, 3)], "a duplicate repeats what was told");
    ack.window -= 1;
    bench.handle(ack);
    assert_eq!(bench.sent(), [(0, 6)], "the other has ended");
}

#[test]
fn a_syn_tells_how_far_the_source_is() {
    let mut bench = Bench::new(Box::new(Forecast::new(Config { learning: 0.0, ..quiet() })), 1000);
    let mut syn = Bench::pure_ack(0);
    syn.flags = Flags::SYN;
    bench.regulator.on_syn(bench.now, &syn, LinkView { capacity: Capacity::Packets(100), ..view() });
    bench.now += Span::from_millis(10);
    let mut answer = Bench::pure_ack(0);
    (answer.seq, answer.flags) = (Seq(u32::MAX), Flags::SYN | Flags::ACK);
    bench.take(answer);
    bench.depart();
    bench.arrive(0);
    for number in 1..101 {
        bench.now += Span::from_millis(10);
        assert!(bench.arrive(number));
        bench.depart();
    }
    bench.ack(100);
    // 1.75 * 100 000 * 20 ms = 3.5 packets and 6.
    assert_eq!(bench.sent(), [(100, 9)]);
}

#[test]
fn of_a_connection_that_begins_anew_nothing_of_before_counts_as_in_the_queue() {
    let (mut forecast, now) = (Forecast::new(quiet()), Time::ZERO);
    for data in [Bench::data(0), Bench::data(1)] {
        forecast.on_data(now, &data, view());
        forecast.on_queued(now, &data, view());
    }
    assert_eq!(forecast.shared.inside, 2);
    forecast.on_data(now, &syn(Some(1000)), view());
    assert_eq!(forecast.shared.inside, 0);
}

fn view() -> LinkView {
    use ackclock_core::Rate;
    use ackclock_link::Load;
    LinkView {
        waiting: Load::NONE,
        in_transmission: Load::NONE,
        unacknowledged: Load::NONE,
        occupied: Load::NONE,
        capacity: Capacity::Unlimited,
        rate: Rate::ZERO,
    }
}

#[test]
fn values_that_make_no_sense_are_named() {
    let wrong = |config: Config| ackclock_core::Config::check(&config).unwrap_err().path;
    assert_eq!(wrong(Config { idle: 0.0, ..Config::default() }), "idle");
    assert_eq!(wrong(Config { packets: 0, ..Config::default() }), "packets");
    assert_eq!(wrong(Config { learning: f64::NAN, ..Config::default() }), "learning");
    assert_eq!(wrong(Config { reserve: 1001, ..Config::default() }), "reserve");
    assert_eq!(wrong(Config { updates: -1.0, ..Config::default() }), "updates");
    assert_eq!(wrong(Config { delay: Span::from_secs(11), ..Config::default() }), "delay");
    assert_eq!(wrong(Config { min_window: 0, ..Config::default() }), "min_window");
}
