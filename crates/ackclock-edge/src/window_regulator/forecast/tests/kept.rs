//! Held ACKs: those that advertise a right edge, those released in an outage, and cases without any.

use super::*;

/// A window-limited sender: 3 ms after a right edge everything it allows arrives. Everything before the first returned
/// packet has left the queue and is acknowledged; the queue ends at the second.
fn ruled() -> (Bench, u32, u32) {
    ruled_before(100)
}

/// The same with a buffer of this many packets.
fn ruled_before(buffer: u32) -> (Bench, u32, u32) {
    let config = Config { packets: 14, learning: 0.0, updates: 0.0, ..Config::default() };
    let mut bench = Bench::with_buffer(Box::new(Forecast::new(config)), Capacity::Packets(buffer));
    bench.arrive(0);
    let (mut acked, mut end) = (0, 1);
    for _ in 0..10 {
        bench.now += Span::from_millis(57);
        (acked..end).for_each(|_| bench.depart());
        acked = end;
        bench.ack(acked);
        let (ack, window) = bench.sent()[0];
        bench.now += Span::from_millis(3);
        bench.arrive_all(end..ack + window);
        end = ack + window;
    }
    assert!(end - acked >= 20, "{}", end - acked);
    (bench, acked, end)
}

#[test]
fn acks_of_a_ruled_source_are_kept_and_carry_the_edge() {
    let (mut bench, acked, end) = ruled();
    bench.depart();
    bench.ack(acked + 1);
    assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (NOTHING.to_vec(), 1));
    // When the sender lacks a quarter of its budget, the ACK is released.
    let mut left = acked + 1;
    while bench.regulator.held(FlowId(0)) > 0 && left + 1 < end {
        bench.depart();
        left += 1;
    }
    let sent = bench.sent();
    assert_eq!((sent.len(), sent[0].0), (1, acked + 1));
    let short = f64::from(left - acked);
    assert!((10.0..20.0).contains(&short), "{short} packets of some 60");
    assert!(sent[0].1 > 24, "{sent:?}");
    assert_eq!(bench.regulator.held(FlowId(0)), 0);
}

#[test]
fn the_oldest_ack_goes_when_the_newest_is_the_reserve_ahead() {
    let (mut bench, acked, _) = ruled();
    (0..4).for_each(|_| bench.depart());
    (1..4).for_each(|more| bench.ack(acked + more));
    assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (NOTHING.to_vec(), 3));
    // Six packets.
    bench.ack(acked + 7);
    assert_eq!(bench.sent().len(), 1);
    assert_eq!(bench.regulator.held(FlowId(0)), 3);
}

#[test]
fn no_more_is_kept_than_the_buffer_has_room_for_beside_the_budget() {
    // 14 packets, 1.75 times the service in 3 + 10 ms and the mean lag leave room for three of these.
    let (mut bench, acked, _) = ruled_before(47);
    (0..4).for_each(|_| bench.depart());
    bench.ack(acked + 1);
    assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (NOTHING.to_vec(), 1));
    bench.ack(acked + 5);
    assert_eq!(bench.sent().first().map(|(ack, _)| *ack), Some(acked + 1));
}

#[test]
fn in_an_outage_what_is_kept_goes_a_packet_at_a_time() {
    let (mut bench, acked, _) = ruled();
    (0..3).for_each(|_| bench.depart());
    bench.ack(acked + 3);
    assert_eq!(bench.sent(), NOTHING);
    let mut gone = Vec::new();
    while let Some(due) = bench.regulator.poll_timeout() {
        assert!(due > bench.now);
        bench.now = due;
        bench.expire();
        gone.extend(bench.sent().into_iter().map(|(ack, _)| ack - acked));
    }
    // One ACK for three packets is split.
    assert_eq!(gone, [1, 2, 3]);
}

#[test]
fn while_a_loss_is_repaired_nothing_is_kept() {
    let (mut bench, acked, end) = ruled();
    let mut sack = Bench::pure_ack(acked);
    sack.push_sack(SackBlock { left: Seq(1000 * (acked + 1)), right: Seq(1000 * (acked + 2)) });
    bench.handle(sack);
    bench.ack(acked + 5);
    assert_eq!(bench.regulator.held(FlowId(0)), 0);
    // Until all data then in flight is acknowledged.
    (acked..end).for_each(|_| bench.depart());
    bench.now += Span::from_millis(20);
    bench.ack(end - 1);
    let (ack, window) = bench.sent()[2];
    bench.arrive_all(end..ack + window);
    bench.ack(end);
    assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (NOTHING.to_vec(), 1));
}

#[test]
fn a_source_that_leaves_its_window_unused_has_nothing_kept() {
    let mut bench = bench(Config { packets: 12, ..Config::default() });
    bench.arrive(0);
    bench.ack(0);
    for number in 1..30 {
        // Ten more might have arrived with each.
        pass(&mut bench, number, 300);
        bench.ack(number);
    }
    bench.arrive_all(30..35);
    bench.ack(31);
    assert_eq!(bench.regulator.held(FlowId(0)), 0);
}

#[test]
fn over_an_idle_link_nothing_is_kept_however_many_packets_each_ack_acknowledges() {
    for step in 1..=4 {
        let (mut bench, acked, end) = ruled();
        (acked..end).for_each(|_| bench.depart());
        for ack in (acked + 1..end).step_by(step) {
            bench.ack(ack);
            assert_eq!(bench.regulator.held(FlowId(0)), 0, "ACK {ack} of {acked} to {end}, step {step}");
            assert_eq!(bench.sent().last().map(|(sent, _)| *sent), Some(ack));
        }
    }
}
