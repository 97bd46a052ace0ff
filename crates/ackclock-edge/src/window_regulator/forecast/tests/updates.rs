//! Copies of the last ACK that advertise a right edge when no ACK does.

use super::*;

#[test]
fn a_copy_of_the_last_ack_tells_an_edge_that_no_ack_tells() {
    // Copies of as many bytes as 20 ACKs are allowed, the maximum.
    let mut bench = bench(Config { updates: 20.0, ..quiet() });
    bench.arrive_all(0..5);
    bench.ack(0);
    bench.depart();
    // One of six is less than a quarter, two are more.
    assert_eq!(bench.sent(), [(0, 6)]);
    bench.depart();
    assert_eq!(bench.sent(), [(0, 8)]);
}

#[test]
fn the_fewer_copies_may_be_made_the_more_each_must_tell() {
    // Ten of 20: five eighths of six are 3.75 packets.
    let mut bench = bench(Config { updates: 10.0, ..quiet() });
    bench.arrive_all(0..5);
    bench.ack(0);
    (0..3).for_each(|_| bench.depart());
    assert_eq!(bench.sent(), [(0, 6)]);
    bench.depart();
    assert_eq!(bench.sent(), [(0, 10)]);
}

#[test]
fn no_copy_is_made_beyond_what_the_acks_allow() {
    let mut bench = bench(Config { updates: 0.9, ..quiet() });
    bench.arrive_all(0..6);
    bench.ack(0);
    (0..6).for_each(|_| bench.depart());
    assert_eq!(bench.sent(), [(0, 6)]);
}

#[test]
fn the_budget_makes_up_for_what_stays_untold() {
    let mut bench = bench(Config { packets: 40, ..quiet() });
    bench.arrive_all(0..20);
    bench.ack(0);
    assert_eq!(bench.sent(), [(0, 40)]);
    (0..15).for_each(|_| bench.depart());
    // A lag of 1 to 15 packets plus the earlier one, of which a 64th counts: 120 / 64 = 1.9 packets.
    bench.ack(15);
    assert_eq!(bench.sent(), [(15, 41)]);
}

#[test]
fn what_duplicates_may_not_tell_counts_as_told() {
    let mut bench = bench(Config { packets: 40, ..quiet() });
    bench.arrive_all(0..20);
    bench.ack(0);
    bench.ack(0);
    (0..15).for_each(|_| bench.depart());
    bench.ack(15);
    assert_eq!(bench.sent(), [(0, 40), (0, 40), (15, 40)]);
}

#[test]
fn no_copy_is_made_where_the_receiver_offers_no_more() {
    let mut bench = bench(Config { updates: 20.0, ..quiet() });
    bench.arrive_all(0..5);
    let mut ack = Bench::pure_ack(0);
    ack.window = 6500;
    bench.handle(ack);
    (0..5).for_each(|_| bench.depart());
    assert_eq!(bench.sent(), [(0, 6)]);
}

#[test]
fn no_copy_is_made_of_an_ack_that_sacks() {
    let mut bench = bench(Config { updates: 20.0, ..quiet() });
    bench.arrive_all(0..5);
    let mut ack = Bench::pure_ack(0);
    ack.push_sack(SackBlock { left: Seq(2000), right: Seq(3000) });
    bench.handle(ack);
    (0..5).for_each(|_| bench.depart());
    assert_eq!(bench.sent(), [(0, 6)]);
}

#[test]
fn a_copy_repeats_the_ecn_feedback_of_its_ack_and_none_of_its_other_flags() {
    let feedback = [Flags(0), Flags::ECE, Flags::CWR, Flags::ECE | Flags::CWR];
    for (flags, accurate) in feedback.into_iter().flat_map(|flags| [(flags, false), (flags, true)]) {
        let mut bench = bench(Config { updates: 20.0, ..quiet() });
        bench.arrive_all(0..5);
        let mut ack = Bench::pure_ack(0);
        ack.flags = ack.flags | flags | Flags::PSH;
        ack.set_ae(accurate);
        bench.handle(ack);
        bench.sent();
        bench.depart();
        bench.depart();
        let update = match bench.regulator.poll_output(bench.now) {
            Some(Output::ToSender(update)) => update,
            other => panic!("{other:?}"),
        };
        assert!(update.is_made());
        assert_eq!((update.flags, update.ae()), (Flags::ACK | flags, accurate));
    }
}
