//! Giving up: discard with MRW, and the reset of both ends.

use super::*;
use crate::umts_rlc_am::LossCause;

/// MaxDAT 3: a PDU is sent twice, and given up instead of a third time.
fn short(config: &mut RlcConfig) {
    config.max_dat = 3;
    config.mrw = Tries { timer: ms(150), most: 2 };
    config.reset = Tries { timer: ms(150), most: 2 };
}

/// The first PDU of the first of two packets is lost twice; a third packet arrives at 90.
fn given_up(change: impl FnOnce(&mut RlcConfig)) -> Pair {
    let mut pair = Pair::new(3, change).down(&[2, 1]).lose(0, [0]).lose(80, [0]).until(90);
    pair.put(0, 1);
    pair
}

/// PDUs of both ends until D0 is due for a third time, at 170: the STATUS that arrives at 165 lists it.
const BEFORE: [&str; 7] =
    ["0 > D0 lost", "0 > D1", "0 > D2p", "40 < ACK3-0", "80 > D0p lost", "90 > D3p", "130 < ACK4-0"];

#[test]
fn a_packet_whose_pdu_was_sent_often_enough_is_discarded_and_the_window_moved() {
    let pair = given_up(short).until(5000);
    assert_eq!(pair.sent()[..7], BEFORE);
    // The receiver keeps data from D2 on, and has all of it: its window begins at 4.
    assert_eq!(pair.sent()[7..], ["170 > MRW2", "210 < MRW_ACK4"]);
    assert_eq!((pair.discarded(), pair.delivered()), (vec![(205, 0)], vec![(205, 1), (205, 2)]));
    assert_eq!(pair.ends[0].transmitter.outstanding(), 0);
}

#[test]
fn a_packet_that_is_still_being_cut_is_given_up_whole() {
    // Of six PDUs two per TTI are sent; D0 is lost three times, with a window of four so that the others wait.
    let config = |config: &mut RlcConfig| {
        short(config);
        config.window = 4;
    };
    let pair = Pair::new(2, config).down(&[6, 1]).lose(0, [0]).lose(80, [0]).until(5000);
    assert_eq!(pair.discarded().iter().map(|&(_, number)| number).collect::<Vec<_>>(), [0]);
    assert_eq!(pair.delivered().iter().map(|&(_, number)| number).collect::<Vec<_>>(), [1]);
    // Its D4 and D5 are never sent: D4 carries the second packet.
    let numbers: Vec<_> = pair.sent().into_iter().filter(|line| line.contains("D4")).collect();
    assert_eq!(numbers.len(), 1, "{:?}", pair.sent());
}

#[test]
fn an_mrw_that_nobody_answers_is_repeated_and_then_both_ends_are_reset() {
    // MaxMRW 2: at 170 and 320; at 470 only a reset helps.
    let mut pair = given_up(short).lose(170, [0]).lose(320, [0]).until(600);
    assert_eq!(pair.sent()[7..], ["170 > MRW2 lost", "320 > MRW2 lost", "470 > RESET0", "510 < RESET_ACK0"]);
    // Undelivered data is lost when the answer arrives; both ends restart at 0.
    assert_eq!((pair.discarded(), pair.delivered()), (vec![(545, 0), (545, 1), (545, 2)], vec![]));
    pair.put(0, 1);
    let pair = pair.until(2000);
    assert_eq!(pair.sent()[11..], ["600 > D0p", "640 < ACK1"]);
    assert_eq!(pair.delivered(), [(635, 3)]);
}

#[test]
fn an_mrw_whose_answer_is_lost_is_repeated_and_answered_again() {
    let pair = given_up(short).lose_up(210).until(5000);
    assert_eq!(pair.sent()[7..], ["170 > MRW2", "210 < MRW_ACK4 lost", "320 > MRW2", "360 < MRW_ACK4"]);
    assert_eq!((pair.discarded(), pair.delivered()), (vec![(205, 0)], vec![(205, 1), (205, 2)]));
}

#[test]
fn a_reset_that_nobody_answers_is_given_up_after_max_rst() {
    let config = |config: &mut RlcConfig| {
        short(config);
        (config.on_max_dat, config.mrw) = (OnMaxDat::Reset, RlcConfig::default().mrw);
    };
    let pair = given_up(config).lose(170, [0]).lose(320, [0]).until(1000);
    assert_eq!(pair.sent()[7..], ["170 > RESET0 lost", "320 > RESET0 lost"]);
    // Timer_RST of the second expires at 470; then the bearer is set up again.
    let failed = |ms| pair.ends[0].resets.has_failed(at(ms));
    assert!(!failed(469) && failed(470));
}

#[test]
fn where_reset_is_chosen_both_ends_are_reset_at_once() {
    let config = |config: &mut RlcConfig| {
        short(config);
        (config.on_max_dat, config.mrw) = (OnMaxDat::Reset, RlcConfig::default().mrw);
    };
    let pair = given_up(config).until(5000);
    assert_eq!(pair.sent()[7..], ["170 > RESET0", "210 < RESET_ACK0"]);
    assert_eq!(pair.discarded(), [(245, 0), (245, 1), (245, 2)]);
}

#[test]
fn a_reset_is_asked_for_again_and_done_once() {
    // The first RESET_ACK is lost: the RESET is repeated at 320, and the peer, which knows the number, only answers.
    let config = |config: &mut RlcConfig| {
        short(config);
        (config.on_max_dat, config.mrw) = (OnMaxDat::Reset, RlcConfig::default().mrw);
    };
    let mut pair = given_up(config).lose_up(210).until(300);
    // In between the peer may send: its numbers restart at 0, and are ignored until the reset is complete here too.
    pair.put(1, 1);
    let pair = pair.until(5000);
    let expected = [
        "170 > RESET0",
        "210 < RESET_ACK0 lost",
        "300 < D0p",
        "320 > RESET0",
        "360 < RESET_ACK0",
        "500 < D0p",
        "540 > ACK1",
    ];
    assert_eq!(pair.sent()[7..], expected);
    assert_eq!(pair.delivered(), [(535, 3)]);
}

#[test]
fn a_status_of_a_pdu_that_was_never_sent_resets_both_ends() {
    let sn = |steps| sn::Sn::ZERO.plus(steps);
    let room = missing::Room::of(300);
    let format = missing::MissingFormat::default();
    let (missing, _) = missing::Missing::describe(&sn::SnSet::default(), sn(0), [sn(3), sn(5)], room, format);
    assert!(missing.iter().eq([sn(3), sn(4)]));
    // TS 25.322 section 10: an "erroneous sequence number", of the ACK or of a PDU that is listed as missing.
    for (lsn, missing) in [(sn(9), missing::Missing::NONE), (sn(1), missing)] {
        let mut pair = Pair::new(2, short).down(&[1]).until(20);
        let report = Some(status::Report { lsn, missing });
        let status = pair.ends[1].statuses.send(status::Status { report, ..status::Status::default() });
        pair.air.push_back((35, 1, Pdu::Status(status)));
        let pair = pair.until(90);
        assert_eq!(pair.sent(), ["0 > D0p", "40 > RESET0", "40 < ACK1", "80 < RESET_ACK0"]);
    }
}

#[test]
fn an_mrw_ack_counts_discarded_sdus_only_where_the_window_begins_at_the_pdu_of_the_mrw() {
    // D1 and D2 arrived, or D2 alone: the window moves to D3, or stays at D1.
    for (lost, expected) in [(&[0][..], (3, 0)), (&[0, 1], (1, 1))] {
        let mut pair = Pair::new(3, short).down(&[2, 1]);
        pair.lost.extend(lost.iter().map(|&place| (0, 0, place)));
        let mut pair = pair.until(50);
        let mrw = status::Mrw { sn: sn::Sn::ZERO.plus(1), ends: 1, keep: 1, cause: LossCause::MaxDat };
        pair.ends[1].receiver.on_mrw(at(50), mrw, &mut pair.sdus[0]);
        let ack = pair.ends[1].receiver.mrw_ack.unwrap();
        assert_eq!((number(ack.sn), ack.ends), expected, "{lost:?}");
    }
}

#[test]
fn an_mrw_is_not_repeated_once_a_status_shows_that_the_window_has_passed_it() {
    let mut pair = given_up(short).lose_up(210).until(250);
    let report = Some(status::Report { lsn: sn::Sn::ZERO.plus(4), missing: missing::Missing::NONE });
    let status = pair.ends[1].statuses.send(status::Status { report, ..status::Status::default() });
    pair.air.push_back((260, 1, Pdu::Status(status)));
    let pair = pair.until(5000);
    // Its answer was lost; TS 25.322 section 11.6.4 ends the procedure by a window that begins behind its PDU too.
    assert_eq!(pair.sent()[7..], ["170 > MRW2", "210 < MRW_ACK4 lost"]);
}
