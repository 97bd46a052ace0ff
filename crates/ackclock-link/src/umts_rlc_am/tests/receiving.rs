//! The receiving side: triggers and timers of STATUS, reassembly, STATUS in place of padding.

use super::*;

#[test]
fn a_gap_in_the_numbers_triggers_a_status() {
    // D0 is lost: D1 shows it at 35. D2p polls at 45, which must wait for Timer_Status_Prohibit: 40 + 60.
    let pair = Pair::new(2, |_| {}).down(&[3]).lose(0, [0]).until(5000);
    let expected =
        ["0 > D0 lost", "0 > D1", "10 > D2p", "40 < ACK2-0", "80 > D0p", "100 < ACK3-0", "160 < ACK3"];
    assert_eq!(pair.sent(), expected);
}

#[test]
fn without_the_detection_of_gaps_only_a_poll_does() {
    let config = |config: &mut UmtsRlcAmConfig| config.status.missing_pdu = false;
    let pair = Pair::new(2, config).down(&[3]).lose(0, [0]).until(5000);
    assert_eq!(pair.sent()[3..], ["50 < ACK3-0", "90 > D0p", "130 < ACK3"]);
}

#[test]
fn timer_status_prohibit_holds_a_status_back_and_one_answers_all_that_came_meanwhile() {
    let config = |config: &mut UmtsRlcAmConfig| {
        config.poll.every_pdus = 1;
        config.status.prohibit = ms(100);
    };
    let pair = Pair::new(1, config).down(&[8]).until(400);
    let upwards: Vec<_> = pair.sent().into_iter().filter(|line| line.contains('<')).collect();
    // D0 arrives at 35, D7 at 105.
    assert_eq!(upwards, ["40 < ACK1", "140 < ACK8"]);
}

#[test]
fn timer_status_periodic_reports_as_long_as_something_comes_or_is_missing() {
    let config = |config: &mut UmtsRlcAmConfig| {
        config.status.period = ms(100);
        config.status.missing_pdu = false;
        config.poll.last_pdu = false;
        config.poll.last_retransmission = false;
        config.poll.period = ms(1000);
    };
    // D1 is missing at 100; it is sent again at 140 and there at 175, which 200 reports. Then all is quiet.
    let pair = Pair::new(3, config).down(&[3]).lose(0, [1]).until(900);
    let expected = ["0 > D0", "0 > D1 lost", "0 > D2", "100 < ACK3-1", "140 > D1", "200 < ACK3"];
    assert_eq!(pair.sent(), expected);
}

#[test]
fn packets_are_handed_on_in_sequence_or_as_soon_as_they_are_whole() {
    let delivered = |order| {
        let pair = Pair::new(4, |config| config.order = order).down(&[1, 1, 1, 1]).lose(0, [1]).until(5000);
        pair.delivered()
    };
    // D1 is asked for at 40, sent again at 80, there at 115.
    assert_eq!(delivered(DeliveryOrder::InSequence), [(35, 0), (115, 1), (115, 2), (115, 3)]);
    assert_eq!(delivered(DeliveryOrder::OutOfSequence), [(35, 0), (35, 2), (35, 3), (115, 1)]);
}

#[test]
fn a_pdu_that_comes_twice_is_handed_on_once_and_its_poll_answered() {
    let pair = Pair::new(1, |_| {}).down(&[1]).lose_up(40).until(5000);
    assert_eq!(pair.sent(), ["0 > D0p", "40 < ACK1 lost", "200 > D0p", "240 < ACK1"]);
    assert_eq!(pair.delivered(), [(35, 0)]);
}

#[test]
fn a_status_takes_the_place_of_padding_where_it_has_room() {
    for (piggyback, expected) in [(true, &["40 < D0p+ACK1"][..]), (false, &["40 < ACK1", "40 < D0p"])] {
        let mut pair = Pair::new(4, |config| config.status.piggyback = piggyback).down(&[1]).until(40);
        // 20 octets and an indicator leave 18 of 40 behind the indicator of the padding; a STATUS with an ACK takes 3.
        pair.sdus[1].enqueue(at(40), &Segment::pure_ack(FlowId(0), Seq(0), 20)).unwrap();
        let pair = pair.until(50);
        assert_eq!(pair.sent()[1..], *expected);
    }
}

#[test]
fn a_status_does_not_take_the_place_of_padding_that_is_too_small() {
    let mut pair = Pair::new(4, |_| {}).down(&[1]).until(40);
    // 37 octets and two indicators leave one octet of 40.
    pair.sdus[1].enqueue(at(40), &Segment::data(FlowId(0), Seq(0), 17, 20)).unwrap();
    assert_eq!(pair.until(50).sent()[1..], ["40 < ACK1", "40 < D0p"]);
}

#[test]
fn what_one_status_cannot_list_comes_in_further_ones() {
    // In PDUs of 12 and 2 octets: 4 bits of header, 16 of an ACK and 20 kept for an MRW_ACK leave 72, less 8 for the head of a list:
    // four pairs. Every second of 12 is lost: six gaps.
    let mut pair = Pair::new(12, |config| {
        (config.pdu, config.rate) = (ackclock_core::Size::Bytes(12), ackclock_core::Rate::from_bps(96_000));
        config.up_rate = ackclock_core::Rate::from_bps(96_000);
        config.window = 64;
    });
    pair.sdus[0].enqueue(Time::ZERO, &Segment::data(FlowId(0), Seq(0), 123, 20)).unwrap();
    let pair = pair.lose(0, [0, 2, 4, 6, 8, 10]).until(90);
    let expected = [
        "40 < ACK8-0,2,4,6",
        "40 < ACK0-8,10",
        "80 > D0",
        "80 > D2",
        "80 > D4",
        "80 > D6",
        "80 > D8",
        "80 > D10p",
    ];
    assert_eq!(pair.sent()[12..], expected);
}
