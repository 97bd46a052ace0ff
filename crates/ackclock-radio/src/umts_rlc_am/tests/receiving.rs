//! Receiving side: triggers and timers of STATUS, reassembly, STATUS in place of padding.

use super::*;
use ackclock_link::Repetitions;

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
    let config = |config: &mut RlcConfig| config.status.missing_pdu = false;
    let pair = Pair::new(2, config).down(&[3]).lose(0, [0]).until(5000);
    assert_eq!(pair.sent()[3..], ["50 < ACK3-0", "90 > D0p", "130 < ACK3"]);
}

#[test]
fn timer_status_prohibit_holds_a_status_back_and_one_answers_all_that_came_meanwhile() {
    let config = |config: &mut RlcConfig| {
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
    let config = |config: &mut RlcConfig| {
        config.status.period = ms(100);
        config.status.missing_pdu = false;
        config.poll.last_pdu = false;
        config.poll.last_retransmission = false;
        config.poll.period = ms(1000);
    };
    // D1 is missing at 100; it is retransmitted at 140 and arrives at 175, as 200 reports. Then everything is quiet.
    let pair = Pair::new(3, config).down(&[3]).lose(0, [1]).until(900);
    let expected = ["0 > D0", "0 > D1 lost", "0 > D2", "100 < ACK3-1", "140 > D1", "200 < ACK3"];
    assert_eq!(pair.sent(), expected);
}

#[test]
fn timer_status_periodic_reports_again_what_is_still_missing() {
    let config = |config: &mut RlcConfig| {
        config.status.period = ms(100);
        config.status.missing_pdu = false;
        config.poll.last_pdu = false;
        config.poll.last_retransmission = false;
        config.poll.period = ms(1000);
    };
    let pair = Pair::new(3, config).down(&[3]).lose(0, [1]).lose_up(100).until(900);
    let expected = ["100 < ACK3-1 lost", "200 < ACK3-1", "240 > D1", "300 < ACK3"];
    assert_eq!(pair.sent()[3..], expected);
}

#[test]
fn packets_are_handed_on_in_sequence_or_as_soon_as_they_are_whole() {
    let delivered = |order| {
        let pair = Pair::new(4, |config| config.order = order).down(&[1, 1, 1, 1]).lose(0, [1]).until(5000);
        pair.delivered()
    };
    // D1 is requested at 40, retransmitted at 80, and arrives at 115.
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
        pair.sdus[1].put(at(40), &Segment::pure_ack(FlowId(0), Seq(0), 20), Place::Back).unwrap();
        let pair = pair.until(50);
        assert_eq!(pair.sent()[1..], *expected);
    }
}

#[test]
fn a_status_does_not_take_the_place_of_padding_that_is_too_small() {
    let mut pair = Pair::new(4, |_| {}).down(&[1]).until(40);
    // 37 octets and two indicators leave one octet of 40.
    pair.sdus[1].put(at(40), &Segment::data(FlowId(0), Seq(0), 17, 20), Place::Back).unwrap();
    assert_eq!(pair.until(50).sent()[1..], ["40 < ACK1", "40 < D0p"]);
}

/// PDUs of 12 octets; a packet of 12 of them, every second of which is lost.
fn every_second_lost(missing: MissingFormat) -> Pair {
    let mut pair = Pair::new(12, |config| {
        config.pdu = crate::umts_rlc_am::pdu_size::PduSize::Fixed(ackclock_core::Size::Bytes(12));
        config.window = 64;
        config.status.missing = missing;
    });
    pair.sdus[0].put(Time::ZERO, &Segment::data(FlowId(0), Seq(0), 123, 20), Place::Back).unwrap();
    pair.lose(0, [0, 2, 4, 6, 8, 10]).until(90)
}

#[test]
fn what_one_status_cannot_list_comes_in_further_ones() {
    // In PDUs of 12 and 2 octets: 4 bits of header, 16 of an ACK and 20 kept for an MRW_ACK leave 72, less 8 for the head of a list:
    // four pairs, and six gaps.
    let pair = every_second_lost(MissingFormat::List);
    assert_eq!(pair.sent()[12..14], ["40 < ACK8-0,2,4,6", "40 < ACK0-8,10"]);
    assert_eq!(pair.sent()[14..], ["80 > D0", "80 > D2", "80 > D4", "80 > D6", "80 > D8", "80 > D10p"]);
}

#[test]
fn a_bitmap_tells_of_scattered_gaps_in_one_status() {
    // 72 bits less 20 of a super-field: six octets, of 48 PDUs.
    for missing in [MissingFormat::Bitmap, MissingFormat::Shorter] {
        let pair = every_second_lost(missing);
        assert_eq!(pair.sent()[12], "40 < ACK12-0,2,4,6,8,10");
        assert_eq!(pair.sent()[13..], ["80 > D0", "80 > D2", "80 > D4", "80 > D6", "80 > D8", "80 > D10p"]);
    }
}

#[test]
fn the_shorter_form_fits_padding_that_a_list_does_not() {
    // 18 octets of padding. Eight gaps: a list and an ACK take 4 + 8 + 128 + 16 bits, a bitmap 4 + 20 + 24 + 16.
    let told = "ACK24-0,3,6,9,12,15,18,21";
    for (missing, expected) in [
        (MissingFormat::List, vec![format!("40 < {told}"), "40 < D0p".to_owned()]),
        (MissingFormat::Shorter, vec![format!("40 < D0p+{told}")]),
    ] {
        let mut pair = Pair::new(24, |config| {
            (config.window, config.status.missing) = (64, missing);
        })
        .down(&[24])
        .lose(0, [0, 3, 6, 9, 12, 15, 18, 21])
        .until(40);
        pair.sdus[1].put(at(40), &Segment::pure_ack(FlowId(0), Seq(0), 20), Place::Back).unwrap();
        let pair = pair.until(50);
        assert_eq!(pair.sent()[24..], expected);
    }
}

#[test]
fn a_pdu_outside_the_window_is_discarded() {
    let mut pair = Pair::new(2, |_| {}).down(&[1]).until(20);
    // VR(R) is 1 when it arrives, and the window is 8: 1 to 8. Inside the window it would be a gap.
    let data = pdu::Data { sn: sn::Sn::ZERO.plus(9), count: 1, ..Default::default() };
    pair.air.push_back((36, 0, Pdu::Data(data)));
    assert_eq!(pair.until(1000).sent(), ["0 > D0p", "40 < ACK1"]);
}

/// From 100 ms on two PDUs may be unacknowledged, at both ends.
fn two_allowed(config: &mut RlcConfig) {
    config.status.windows = vec![WindowChange { at: ms(100), pdus: 2 }];
}

#[test]
fn a_receiver_changes_the_window_of_its_peer() {
    let mut pair = Pair::new(4, two_allowed).until(200);
    assert_eq!(pair.sent(), ["100 > ACK0 WINDOW2", "100 < ACK0 WINDOW2"]);
    pair.put(0, 4);
    let expected =
        ["200 > D0", "200 > D1p", "240 < ACK2 WINDOW2", "280 > D2", "280 > D3p", "320 < ACK4 WINDOW2"];
    assert_eq!(pair.until(1000).sent()[2..], expected);
}

#[test]
fn a_window_whose_status_is_lost_is_told_in_the_next() {
    let mut pair = Pair::new(4, two_allowed).lose_up(100).until(200);
    pair.put(0, 4);
    let mut pair = pair.until(280);
    assert_eq!(pair.sent()[2..], ["200 > D0", "200 > D1", "200 > D2", "200 > D3p", "240 < ACK4 WINDOW2"]);
    pair.put(0, 3);
    assert_eq!(pair.until(290).sent()[7..], ["280 > D4", "280 > D5p"]);
}

#[test]
fn a_window_smaller_than_what_is_outstanding_lets_nothing_new_out() {
    let mut pair = Pair::new(4, two_allowed).until(110);
    pair.put(0, 4);
    let mut pair = pair.until(140);
    // The WINDOW came at 135.
    pair.put(0, 2);
    // Timer_Status_Prohibit expires at 160; the answer arrives at 195.
    let expected =
        ["110 > D0", "110 > D1", "110 > D2", "110 > D3p", "160 < ACK4 WINDOW2", "200 > D4", "200 > D5p"];
    assert_eq!(pair.until(210).sent()[2..], expected);
}

#[test]
fn a_delivery_tells_what_was_sent_again_of_the_packet_and_how_much_later_it_was_whole() {
    // One PDU per TTI. The first of packet 0 is lost and retransmitted in the TTI at 90 ms, before the last of packet
    // 2, which would have been sent then.
    let pair = Pair::new(1, |config| config.window = 16).down(&[2, 1, 7]).lose(0, [0]).until(300);
    assert_eq!(pair.sent()[10], "90 > D0p");
    let delivered = |times, delay| LinkEvent::Delivered(Repetitions { times, delay: ms(delay) });
    // 0 would have arrived at 45 ms. 1 was complete at 55 and waited for it; 2 is complete a TTI later.
    assert_eq!(
        pair.ended,
        [(125, 0, delivered(1, 80)), (125, 1, LinkEvent::DELIVERED), (135, 2, delivered(0, 10))],
        "{:?}",
        pair.sent()
    );
}
