//! Transmitting side: triggers and timers of polls, the window, retransmissions.

use super::*;

#[test]
fn the_last_pdu_of_the_buffer_polls_and_the_answer_ends_it() {
    let pair = Pair::new(2, |_| {}).down(&[3]).until(5000);
    assert_eq!(pair.sent(), ["0 > D0", "0 > D1", "10 > D2p", "50 < ACK3"]);
    assert_eq!(pair.delivered(), [(45, 0)]);
}

#[test]
fn a_packet_takes_the_rest_of_a_pdu_behind_the_end_of_another() {
    // 39 octets and an indicator fill a PDU; 60 and an indicator leave 19 of two for the next packet.
    let mut pair = Pair::new(4, |_| {});
    for bytes in [60u16, 58] {
        pair.sdus[0].put(Time::ZERO, &Segment::data(FlowId(0), Seq(0), bytes - 20, 20), Place::Back).unwrap();
    }
    // 60 + 1 + 58 + 1 octets are three PDUs.
    assert_eq!(pair.until(40).sent(), ["0 > D0", "0 > D1", "0 > D2p"]);
}

#[test]
fn the_end_of_a_packet_without_room_for_its_indicator_is_told_in_the_next_pdu() {
    let mut pair = Pair::new(4, |_| {});
    pair.sdus[0].put(Time::ZERO, &Segment::data(FlowId(0), Seq(0), 60, 20), Place::Back).unwrap();
    let pair = pair.lose(0, [2]).until(5000);
    // 80 octets fill two PDUs; the third has only the indicator, without which the packet has no end.
    assert_eq!(pair.sent()[..3], ["0 > D0", "0 > D1", "0 > D2p lost"]);
    assert_eq!(pair.delivered(), [(235, 0)], "once Timer_Poll has ended, at 200");
}

#[test]
fn timer_poll_repeats_a_poll_that_nobody_answers() {
    // Both polls are lost: nothing else would report the PDU. At 200 and 400 the newest PDU is retransmitted with a
    // poll.
    let pair = Pair::new(2, |_| {}).down(&[2]).lose(0, [1]).lose(200, [0]).until(5000);
    let expected = ["0 > D0", "0 > D1p lost", "200 > D1p lost", "400 > D1p", "440 < ACK2"];
    assert_eq!(pair.sent(), expected);
    assert_eq!(pair.delivered(), [(435, 0)]);
}

#[test]
fn timer_poll_repeats_it_too_where_the_answer_is_lost() {
    let pair = Pair::new(2, |_| {}).down(&[2]).lose_up(40).until(5000);
    assert_eq!(pair.sent(), ["0 > D0", "0 > D1p", "40 < ACK2 lost", "200 > D1p", "240 < ACK2"]);
    assert_eq!(pair.delivered(), [(35, 0)], "once");
}

#[test]
fn where_there_is_something_to_send_timer_poll_lets_that_poll() {
    let mut pair = Pair::new(1, |_| {}).down(&[1]).lose(0, [0]).until(190);
    pair.put(0, 4);
    // The timer of 0 expires at 200.
    assert_eq!(pair.until(220).sent(), ["0 > D0p lost", "190 > D1", "200 > D2p", "210 > D3"]);
}

#[test]
fn an_answer_that_lists_the_last_pdu_as_missing_stops_timer_poll() {
    // D1p is lost at 10, and D2, which needs no poll, shows it. A running timer would expire at 210 and make D20 poll.
    let mut pair = Pair::new(1, |config| {
        config.window = 64;
        (config.poll.last_retransmission, config.poll.period) = (false, ms(10_000));
    })
    .down(&[2])
    .lose(10, [0])
    .until(20);
    pair.put(0, 30);
    let pair = pair.until(340);
    assert_eq!(pair.sent()[..3], ["0 > D0", "10 > D1p lost", "20 > D2"]);
    assert!(pair.sent().contains(&"60 < ACK3-1") && pair.sent().contains(&"100 > D1"));
    let polls: Vec<_> = pair.sent().into_iter().filter(|line| line.contains('p')).collect();
    assert_eq!(polls, ["10 > D1p lost", "320 > D31p"]);
}

#[test]
fn the_last_pdu_that_is_sent_again_polls() {
    let pair = Pair::new(4, |_| {}).down(&[4]).lose(0, [1, 2]).until(5000);
    let expected = [
        "0 > D0",
        "0 > D1 lost",
        "0 > D2 lost",
        "0 > D3p",
        "40 < ACK4-1,2",
        "80 > D1",
        "80 > D2p",
        "120 < ACK4",
    ];
    assert_eq!(pair.sent(), expected);
}

#[test]
fn what_is_sent_again_goes_before_what_is_new_the_lowest_number_first() {
    let mut pair = Pair::new(3, |_| {}).down(&[3]).lose(0, [0, 1]).until(80);
    pair.put(0, 3);
    let pair = pair.until(100);
    let expected = [
        "0 > D0 lost",
        "0 > D1 lost",
        "0 > D2p",
        "40 < ACK3-0,1",
        "80 > D0",
        "80 > D1p",
        "80 > D3",
        "90 > D4",
        "90 > D5p",
    ];
    assert_eq!(pair.sent(), expected);
}

#[test]
fn every_so_many_pdus_poll_those_sent_again_too() {
    let config = |config: &mut RlcConfig| config.poll.every_pdus = 3;
    let pair = Pair::new(8, config).down(&[7]).lose(0, [0]).until(85);
    let expected = [
        "0 > D0 lost",
        "0 > D1",
        "0 > D2p",
        "0 > D3",
        "0 > D4",
        "0 > D5p",
        "0 > D6p",
        "40 < ACK7-0",
        "80 > D0p",
    ];
    assert_eq!(pair.sent(), expected);
}

#[test]
fn every_so_many_packets_poll_in_the_pdu_that_ends_the_last_of_them() {
    let config = |config: &mut RlcConfig| config.poll.every_sdus = 2;
    let pair = Pair::new(8, config).down(&[1, 2, 1, 1, 2]).until(10);
    assert_eq!(pair.sent(), ["0 > D0", "0 > D1", "0 > D2p", "0 > D3", "0 > D4p", "0 > D5", "0 > D6p"]);
}

#[test]
fn every_pdu_polls_from_a_share_of_the_window_on() {
    let config = |config: &mut RlcConfig| {
        (config.window, config.poll.window_percent) = (24, 50);
    };
    // D11 is the twelfth of 24. The answer to it arrives at 185 and moves VT(A) to 12, so D23 is the twelfth again.
    let pair = Pair::new(1, config).down(&[40]).until(250);
    let polls: Vec<_> = pair.sent().into_iter().filter(|line| line.contains('p')).collect();
    let expected: Vec<_> = (11..19).chain([23, 24]).map(|n| format!("{} > D{n}p", 10 * n)).collect();
    assert_eq!(polls, expected);
    // The second covers D16 and those before, which had no room in the first: 150 + 60.
    let reports: Vec<_> = pair.sent().into_iter().filter(|line| line.contains("ACK")).collect();
    assert_eq!(reports, ["150 < ACK12", "210 < ACK18"]);
}

#[test]
fn the_first_pdu_alone_polls_each_time_that_a_share_of_the_window_is_reached() {
    let config = |config: &mut RlcConfig| {
        (config.window, config.poll.window_percent) = (24, 50);
        config.poll.window_polls = WindowPolls::First;
    };
    let pair = Pair::new(1, config).down(&[40]).until(250);
    let polls: Vec<_> = pair.sent().into_iter().filter(|line| line.contains('p')).collect();
    assert_eq!(polls, ["110 > D11p", "230 > D23p"]);
    assert!(pair.sent().contains(&"150 < ACK12"));
}

#[test]
fn the_last_pdu_that_the_window_allows_polls_and_beyond_it_nothing_is_sent() {
    let pair = Pair::new(12, |_| {}).down(&[20]).until(90);
    let first: Vec<_> =
        (0..7).map(|n| format!("0 > D{n}")).chain(["0 > D7p".to_owned(), "40 < ACK8".to_owned()]).collect();
    assert_eq!(pair.sent()[..9], first);
    assert_eq!(pair.sent()[9], "80 > D8");
}

#[test]
fn timer_poll_prohibit_keeps_polls_apart_and_forgets_none() {
    let config = |config: &mut RlcConfig| {
        config.poll.every_pdus = 1;
        config.poll.prohibit = ms(30);
    };
    let pair = Pair::new(1, config).down(&[6]).until(70);
    let downwards: Vec<_> = pair.sent().into_iter().filter(|line| line.contains('>')).collect();
    // The poll triggered by D5 at 50 may be sent at 60, and there is no new PDU to carry it: the newest PDU does.
    let expected = ["0 > D0p", "10 > D1", "20 > D2", "30 > D3p", "40 > D4", "50 > D5", "60 > D5p"];
    assert_eq!(downwards, expected);
}

#[test]
fn timer_poll_periodic_polls_as_long_as_something_is_unacknowledged() {
    let config = |config: &mut RlcConfig| {
        (config.poll.last_pdu, config.poll.last_retransmission) = (false, false);
        config.poll.period = ms(100);
    };
    let pair = Pair::new(2, config).down(&[2]).until(5000);
    // Polls at 100, answered at 140, and no more.
    assert_eq!(pair.sent(), ["0 > D0", "0 > D1", "100 > D1p", "140 < ACK2"]);
}

#[test]
fn a_pdu_that_is_on_its_way_again_is_not_sent_a_third_time() {
    // The STATUS of 100 still lists D0, in flight since 80. Without the guard it would be retransmitted at 140.
    let pair = |guard| Pair::new(2, |config| config.guard = guard).down(&[2]).lose(0, [0]).until(10);
    let sent = |guard| {
        let mut pair = pair(guard).until(50);
        pair.put(0, 1);
        pair.until(400).log
    };
    let expected =
        ["0 > D0 lost", "0 > D1p", "40 < ACK2-0", "50 > D2p", "80 > D0p", "100 < ACK3-0", "160 < ACK3"];
    assert_eq!(sent(None), expected);
    assert!(sent(Some(Span::ZERO)).contains(&"140 > D0p".to_owned()));
}

#[test]
fn numbers_go_round_and_the_window_with_them() {
    // 5000 PDUs of 12 a TTI, with a window wide enough for the round trip.
    let mut pair = Pair::new(12, |config| config.window = 512);
    for _ in 0..500 {
        pair.put(0, 10);
    }
    pair.lost = (0..60).map(|n| (n * 70, 0, (n as usize * 5) % 12)).collect();
    let pair = pair.until(20_000);
    assert_eq!(pair.delivered().len(), 500);
    assert!(pair.delivered().is_sorted_by_key(|&(_, number)| number));
    assert!(pair.sent().iter().any(|line| line.contains("> D4095")));
    assert_eq!(pair.ends[0].transmitter.outstanding(), 0);
}
