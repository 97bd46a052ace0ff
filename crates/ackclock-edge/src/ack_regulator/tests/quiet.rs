//! Held ACKs are released in time, even if other flows use the queue.

use super::*;

#[test]
fn the_safety_timer_releases_the_head_of_a_quiet_flow() {
    let mut bench = filled(10, 9, Config::default());
    bench.ack(1);
    bench.ack(2);
    assert_eq!(bench.sent(), [1]);
    bench.regulator.expected = 100;
    for number in 0..9 {
        bench.depart(number);
    }
    assert_eq!(bench.sent(), NOTHING);
    assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_secs(1)));
    bench.now = Time::ZERO + Span::from_millis(500);
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!(bench.sent(), NOTHING, "early calls change nothing");
    bench.now = Time::ZERO + Span::from_secs(1);
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!(bench.sent(), [2]);
}

/// A sender whose window fell below the held ACKs answers nothing: no departure triggers a release any more.
#[test]
fn an_idle_queue_without_an_answer_releases_all_that_it_has_room_for() {
    let mut bench = filled(10, 11, Config::default());
    (0..100).for_each(|_| bench.ack(1));
    (0..11).for_each(|number| bench.depart(number));
    // One ACK was released per free place, step by step; the last departure left the queue idle.
    bench.sent();
    let held = bench.regulator.held(FlowId(0));
    bench.now = Time::ZERO + Span::from_secs(1);
    bench.regulator.handle_timeout(bench.now, bench.view());
    // Of 10 places conservative mode reserves one; expected packets did not arrive.
    assert_eq!((bench.sent().len(), bench.regulator.held(FlowId(0))), (9, held - 9));
    assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_secs(2)));
}

#[test]
fn where_timestamps_tell_how_long_an_answer_takes_an_idle_queue_waits_twice_as_long_and_no_longer() {
    let mut bench = filled(10, 11, Config::default());
    let ack = |packets: u32| {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(packets * PAYLOAD), 52);
        ack.set_timestamps(Timestamps { value: packets, echo: 0 });
        ack
    };
    bench.depart(0);
    bench.depart(1);
    bench.regulator.handle_ack(bench.now, ack(1), bench.view());
    (2..20).for_each(|packets| bench.regulator.handle_ack(bench.now, ack(packets), bench.view()));
    assert_eq!(bench.sent(), [1]);
    bench.now = Time::ZERO + Span::from_millis(80);
    let mut answer = Bench::data(11);
    answer.set_timestamps(Timestamps { value: 0, echo: 1 });
    bench.arrive_segment(answer);
    (2..12).for_each(|number| bench.depart(number));
    assert!(bench.regulator.held(FlowId(0)) > 0);
    assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_millis(80 + 2 * 80)));
    // The next response takes slightly longer than those before: until it arrives it is expected.
    bench.now = Time::ZERO + Span::from_micros(80_000 + 80_100);
    bench.sent();
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!(bench.sent(), NOTHING);
}

/// A flow of 9 packets whose last ACK is held for packets that never arrive; a shared queue.
fn held_for_nothing() -> Bench {
    let mut bench = filled(10, 9, Config::default());
    bench.ack(1);
    bench.ack(2);
    assert_eq!(bench.sent(), [1]);
    bench.regulator.expected = 100;
    bench
}

#[test]
fn where_a_packet_of_another_flow_leaves_the_queue_last_what_is_held_goes_in_time() {
    let mut bench = held_for_nothing();
    bench.waiting += 1;
    (0..9).for_each(|number| bench.depart(number));
    assert!(!bench.view().is_idle(), "the other flow's packet is in transmission");
    assert_eq!(bench.sent(), NOTHING);
    // It departs, which this flow is not told.
    bench.serving = 0;
    bench.now = bench.regulator.poll_timeout().expect("an ACK is held");
    assert_eq!(bench.now, Time::ZERO + Span::from_secs(1));
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!(bench.sent(), [2]);
}

#[test]
fn a_queue_that_others_keep_busy_releases_what_there_is_room_for_and_asks_again() {
    let mut bench = held_for_nothing();
    // Packets of other flows arrive as those of this flow depart. Of 10 places conservative mode reserves one.
    for number in 0..9 {
        bench.waiting += 1;
        bench.depart(number);
    }
    for (seconds, others, released) in [(1, 9, &[][..]), (2, 8, &[2])] {
        bench.waiting = others;
        assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_secs(seconds)));
        bench.now = Time::ZERO + Span::from_secs(seconds);
        bench.regulator.handle_timeout(bench.now, bench.view());
        assert_eq!(bench.sent(), released, "{others} wait");
    }
    assert_eq!(bench.regulator.poll_timeout(), None, "nothing is held");
}

#[test]
fn an_ack_that_finds_a_queue_full_of_others_before_any_data_has_a_deadline() {
    let mut bench = Bench { waiting: 10, serving: 1, ..Bench::new(10, Config::default()) };
    bench.now = Time::ZERO + Span::from_millis(300);
    bench.ack(1);
    assert_eq!(bench.sent(), NOTHING);
    assert_eq!(bench.regulator.poll_timeout(), Some(bench.now + Span::from_secs(1)));
}

#[test]
fn where_the_last_packet_was_dropped_what_is_held_goes_in_time() {
    let mut bench = held_for_nothing();
    (0..9).for_each(|number| bench.depart(number));
    // Other flows fill the queue: the arriving packet is dropped, and no data of the flow is in the queue.
    (bench.waiting, bench.serving) = (10, 1);
    bench.now = Time::ZERO + Span::from_millis(700);
    bench.arrive(9);
    assert_eq!(bench.regulator.poll_timeout(), Some(bench.now + Span::from_secs(1)));
}

#[test]
fn an_answer_that_takes_no_time_leaves_the_next_deadline_ahead() {
    let mut bench = held_for_nothing();
    let mut ack = Segment::pure_ack(FlowId(0), Seq(0), 52);
    ack.set_timestamps(Timestamps { value: 1, echo: 0 });
    bench.regulator.answer.on_released(bench.now, &ack);
    let mut answer = Bench::data(9);
    answer.set_timestamps(Timestamps { value: 0, echo: 1 });
    bench.arrive_segment(answer);
    assert_eq!(bench.regulator.answer.longest(), Some(Span::ZERO));
    (0..10).for_each(|number| bench.depart(number));
    assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_millis(1)));
}

#[test]
fn while_data_of_the_flow_is_in_the_queue_there_is_no_deadline() {
    let mut bench = held_for_nothing();
    for number in 0..8 {
        bench.depart(number);
        assert_eq!(bench.regulator.poll_timeout(), None, "packet {number} has left");
    }
    // A packet that is retransmitted while it waits counts twice.
    bench.arrive(8);
    bench.depart(8);
    assert_eq!(bench.regulator.poll_timeout(), None);
    bench.depart(8);
    assert!(bench.regulator.poll_timeout().is_some());
}

/// The queue ran empty before the ACKs arrived, so no departure resets the expected packets.
#[test]
fn an_idle_queue_expects_nothing_more_when_the_safety_timer_expires() {
    let mut bench = filled(10, 0, Config::default());
    bench.regulator.accounts.on_arrival(&Bench::data(0), bench.view());
    // A window of 20 packets, equal to the target.
    (0..20).for_each(|number| bench.regulator.accounts.on_queued(&Bench::data(number)));
    (0..=20).for_each(|packets| bench.ack(packets));
    // 10 places less the reserved one; the first ACK covers no known packet and still costs one.
    assert_eq!((bench.sent().len(), bench.regulator.held(FlowId(0))), (9, 12));
    bench.now = Time::ZERO + Span::from_secs(1);
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!((bench.sent().len(), bench.regulator.held(FlowId(0))), (9, 3));
}
