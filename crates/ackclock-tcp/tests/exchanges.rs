//! Scripted exchanges as in packetdrill: incoming segments, and exactly the segments that must go out.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use ackclock_core::{Ecn, Flags, FlowId, SackBlock, Segment, Seq, Size, Span, SynOptions, Timestamps};
use ackclock_tcp::sender::SenderState;
use ackclock_tcp::{FlowParams, HeaderSize, SENDERS, Supply};
use serde_json::json;

use crate::script::{NOTHING, Script, at, params};

#[test]
fn slow_start_sends_two_segments_for_each_ack() {
    let mut script = Script::new(json!("reno"), 1);
    assert_eq!(script.sent(at(0)), [0]);
    assert_eq!(script.ack(at(100), 1), [1, 2]);
    assert_eq!(script.ack(at(200), 2), [3, 4]);
    assert_eq!(script.ack(at(200), 3), [5, 6]);
}

#[test]
fn reno_retransmits_at_the_third_duplicate_inflates_and_deflates() {
    let mut script = Script::new(json!("reno"), 8);
    assert_eq!(script.sent(at(0)), [0, 1, 2, 3, 4, 5, 6, 7]);
    // Segment 0 is lost.
    assert_eq!(script.ack(at(100), 0), NOTHING);
    assert_eq!(script.ack(at(101), 0), NOTHING);
    assert_eq!(script.ack(at(102), 0), [0]);
    assert_eq!((script.cwnd(), script.ssthresh()), (4, 4));
    // cwnd 4 + 3 duplicates < 8 in flight; the second further duplicate makes 9.
    assert_eq!(script.ack(at(103), 0), NOTHING);
    assert_eq!(script.ack(at(104), 0), [8]);
    assert_eq!(script.ack(at(105), 0), [9]);
    assert_eq!(script.ack(at(106), 0), [10]);
    // The retransmission acknowledges 0..8: deflated to 4 and grown by 1/4, with 3 in flight.
    assert_eq!(script.ack(at(200), 8), [11]);
    assert_eq!(script.sender.stats().fast_retransmits, 1);
    assert_eq!(script.sender.stats().retransmits, 1);
}

#[test]
fn a_second_loss_in_the_window_halves_reno_again_unless_guarded() {
    for (guard, expected) in [("off", 2), ("on", 1)] {
        let mut script = Script::new(json!({"kind": "reno", "recover_guard": guard}), 16);
        script.sent(at(0));
        // Segments 0 and 1 are lost.
        for ms in 100..114 {
            script.ack(at(ms), 0);
        }
        script.ack(at(200), 1);
        for ms in 201..206 {
            script.ack(at(ms), 1);
        }
        assert_eq!(script.sender.stats().fast_retransmits, expected, "guard {guard}");
    }
}

#[test]
fn newreno_repairs_one_loss_a_round_trip_and_reduces_once() {
    let mut script = Script::new(json!("newreno"), 10);
    script.sent(at(0));
    // Segments 0 and 4 are lost: eight duplicates.
    let mut out = Vec::new();
    for ms in 100..108 {
        out.extend(script.ack(at(ms), 0));
    }
    // cwnd = 5 + 8 = 13: three new segments.
    assert_eq!(out, [0, 10, 11, 12]);
    assert_eq!(script.ssthresh(), 5);
    // Partial: window 13 - 4 + 1 = 10 above 4: 4 again, then 13.
    assert_eq!(script.ack(at(200), 4), [4, 13]);
    for ms in 201..204 {
        script.ack(at(ms), 4);
    }
    // Full: cwnd = min(ssthresh, max(FlightSize, SMSS) + SMSS) = 5; 17 had been sent, 7 in flight above 10.
    assert_eq!(script.ack(at(300), 10), NOTHING);
    assert_eq!(script.cwnd(), 5);
    assert_eq!(script.sender.stats().fast_retransmits, 1);
}

#[test]
fn newreno_does_not_retransmit_until_more_than_recover_is_acknowledged() {
    let mut script = Script::new(json!("newreno"), 4);
    assert_eq!(script.sent(at(0)), [0, 1, 2, 3]);
    let (now, out) = script.timeout();
    assert_eq!(out, [0]);
    // All four had arrived: 4 acknowledges exactly the data in flight at the timeout.
    script.ack(now, 4);
    for _ in 0..5 {
        script.ack(now, 4);
    }
    assert_eq!(script.sender.stats().fast_retransmits, 0, "the ACK covers recover but not more");
    // cwnd 2 at the threshold of 2 grows to 2.5.
    assert_eq!(script.ack(now, 5), [6]);
    for _ in 0..3 {
        script.ack(now, 5);
    }
    assert_eq!(script.sender.stats().fast_retransmits, 1);
}

#[test]
fn the_timer_of_newreno_restarts_at_the_first_partial_ack_only_or_at_each() {
    for (timer, restarts) in [("impatient", [true, false]), ("slow", [true, true])] {
        let mut script = Script::new(json!({"kind": "newreno", "partial_ack_timer": timer}), 10);
        script.sent(at(0));
        for ms in 100..106 {
            script.ack(at(ms), 0);
        }
        let before = script.sender.poll_timeout();
        script.ack(at(200), 2);
        let first = script.sender.poll_timeout();
        script.ack(at(300), 4);
        let second = script.sender.poll_timeout();
        assert_eq!([first != before, second != first], restarts, "{timer}");
    }
}

#[test]
fn limited_transmit_sends_one_new_segment_on_each_of_two_duplicates() {
    for kind in ["reno", "newreno", "sack1"] {
        let mut script = Script::new(json!({"kind": kind, "limited_transmit": "on"}), 4);
        script.sent(at(0));
        assert_eq!(script.sack(at(100), 0, &[(1, 2)]), [4], "{kind}");
        assert_eq!(script.sack(at(101), 0, &[(1, 3)]), [5], "{kind}");
        assert_eq!(script.sack(at(102), 0, &[(1, 4)])[0], 0, "{kind}");
    }
    let mut script = Script::new(json!({"kind": "sack", "limited_transmit": "on"}), 4);
    script.sent(at(0));
    assert_eq!(script.sack(at(100), 0, &[(1, 2)]), [4]);
}

#[test]
fn a_loss_is_told_by_as_many_duplicates_as_dup_thresh_says() {
    for kind in ["reno", "newreno", "sack", "sack1", "eifel", "westwood"] {
        for threshold in [1u32, 3, 5] {
            let mut script = Script::new(json!({"kind": kind, "dup_thresh": threshold}), 8);
            script.sent(at(0));
            for duplicate in 1..threshold {
                let sent = script.sack(at(100 + u64::from(duplicate)), 0, &[(1, 1 + duplicate)]);
                assert_eq!(sent, NOTHING, "{kind}: duplicate {duplicate} of {threshold}");
            }
            let sent = script.sack(at(120), 0, &[(1, 1 + threshold)]);
            assert_eq!(sent.first(), Some(&0), "{kind}, {threshold}");
            assert_eq!(script.sender.stats().fast_retransmits, 1, "{kind}, {threshold}");
        }
    }
}

#[test]
fn limited_transmit_goes_on_until_dup_thresh() {
    for kind in ["reno", "newreno", "sack1", "sack"] {
        let options = json!({"kind": kind, "limited_transmit": "on", "dup_thresh": 5});
        let mut script = Script::new(options, 6);
        script.sent(at(0));
        for duplicate in 1..5 {
            let sent = script.sack(at(100 + u64::from(duplicate)), 0, &[(1, 1 + duplicate)]);
            assert_eq!(sent, [5 + duplicate], "{kind}: duplicate {duplicate}");
        }
        assert_eq!(script.sack(at(110), 0, &[(1, 6)]).first(), Some(&0), "{kind}");
    }
}

#[test]
fn a_threshold_that_nobody_would_obey_is_refused() {
    for (options, why) in [
        (json!({"kind": "reno", "dup_thresh": 0}), "1 to 1000"),
        (json!({"kind": "cubic", "stack": "linux", "dup_thresh": 5}), "adapts its own"),
        (json!({"kind": "cubic", "stack": "linux", "dup_thresh": "careful"}), "adapts its own"),
        (json!({"kind": "sack", "dup_thresh": "bold"}), "1 to 1000, \"careful\" or \"aggressive\""),
        (json!({"kind": "sack", "dup_thresh": -1}), "1 to 1000"),
        (json!({"kind": "newreno", "dup_thresh": "careful"}), "use sack, westwood-plus, cubic, bbr"),
        (
            json!({"kind": "sack", "dup_thresh": "careful", "limited_transmit": "on"}),
            "limited_transmit \"off\"",
        ),
    ] {
        let error = SENDERS.resolve(&options).map(drop).unwrap_err().to_string();
        assert!(error.contains("dup_thresh") && error.contains(why), "{error}");
    }
}

#[test]
fn a_timeout_leaves_the_loss_window() {
    for kind in ["reno", "newreno", "sack", "sack1", "eifel", "westwood", "westwood-plus", "cubic"] {
        for packets in [1u32, 3] {
            let mut script = Script::new(json!({"kind": kind, "loss_window": format!("{packets}p")}), 8);
            script.sent(at(0));
            let (_, sent) = script.timeout();
            assert_eq!(sent, (0..packets).collect::<Vec<u32>>(), "{kind}");
            assert_eq!(script.cwnd(), packets, "{kind}");
            // The same segment times out again.
            assert_eq!(script.timeout().1.len(), packets as usize, "{kind}");
        }
    }
}

#[test]
fn a_loss_window_that_nobody_would_obey_is_refused() {
    for (options, why) in [
        (json!({"kind": "reno", "loss_window": "0p"}), "0p is not between"),
        (json!({"kind": "reno", "loss_window": "2bdp"}), "2bdp is not a window"),
        (json!({"kind": "cubic", "stack": "linux", "loss_window": "2p"}), "has its own"),
    ] {
        let error = SENDERS.resolve(&options).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("loss_window: ") && error.contains(why), "{error}");
    }
}

#[test]
fn sack_keeps_pipe_within_the_window_and_fills_the_holes_in_order() {
    let mut script = Script::new(json!("sack"), 10);
    script.sent(at(0));
    // Lost: 0, 2 and 4.
    assert_eq!(script.sack(at(100), 0, &[(1, 2)]), NOTHING);
    assert_eq!(script.sack(at(101), 0, &[(3, 4), (1, 2)]), NOTHING);
    // Three runs above 0 with (5, 6): the left edge is lost. FlightSize 10, cwnd 5.
    // Of 10 in flight 3 are SACKed and 0 is lost: pipe 6 + 1 for its retransmission = 7.
    assert_eq!(script.sack(at(102), 0, &[(5, 6), (3, 4), (1, 2)]), [0]);
    assert_eq!((script.cwnd(), script.ssthresh()), (5, 5));
    // pipe 6: 3000 bytes SACKed above 2 make it lost, pipe 5.
    assert_eq!(script.sack(at(103), 0, &[(5, 7), (3, 4), (1, 2)]), NOTHING);
    // pipe 4 with 7 SACKed: 2 is sent, pipe 5. 3000 bytes above 4 are SACKed: it is lost too, pipe 4, and is sent.
    assert_eq!(script.sack(at(104), 0, &[(5, 8), (3, 4), (1, 2)]), [2, 4]);
    assert_eq!(script.sack(at(105), 0, &[(5, 9), (3, 4), (1, 2)]), [10]);
    assert_eq!(script.sack(at(106), 0, &[(5, 10), (3, 4), (1, 2)]), [11]);
    // The retransmission of 0 arrives; 2, 4, 10, 11 are in flight.
    assert_eq!(script.sack(at(200), 2, &[(5, 10), (3, 4)]), [12]);
    assert_eq!(script.sack(at(201), 4, &[(5, 10)]), [13]);
    // All data in flight at the loss is acknowledged.
    assert_eq!(script.ack(at(202), 10), [14]);
    assert_eq!(script.sender.stats().fast_retransmits, 1);
    assert_eq!(script.sender.stats().retransmits, 3);
}

#[test]
fn sack_rescues_the_last_segment_when_nothing_else_may_be_sent() {
    // Eight segments, no more data. Lost: 0 and 7; no SACK covers 7.
    let mut script = Script::with(json!("sack"), params(8), Supply::Bytes(8_000));
    script.sent(at(0));
    script.sack(at(100), 0, &[(1, 2)]);
    script.sack(at(101), 0, &[(1, 3)]);
    assert_eq!(script.sack(at(102), 0, &[(1, 4)]), [0]);
    // cwnd 4; pipe counts 4, 5, 6, 7 with its FIN, and the retransmission: 5001, less 1000 with each SACK.
    assert_eq!(script.sack(at(103), 0, &[(1, 5)]), NOTHING);
    assert_eq!(script.sack(at(104), 0, &[(1, 6)]), NOTHING);
    assert_eq!(script.sack(at(105), 0, &[(1, 7)]), [7], "rule (4)");
    assert_eq!(script.sack(at(106), 0, &[(1, 7)]), NOTHING, "once");
    assert_eq!(script.ack(at(200), 7), NOTHING);
    let mut last = script.ack_segment(8);
    last.ack += 1;
    script.sender.on_segment(at(201), &last);
    assert_eq!(script.sender.state(), SenderState::Closed);
    assert_eq!(script.sender.finished_at(), Some(at(201)));
    assert_eq!(script.sender.acknowledged(), 8_000);
}

#[test]
fn sack1_counts_pipe_in_packets() {
    let mut script = Script::new(json!("sack1"), 10);
    script.sent(at(0));
    // Lost: 0 and 1. pipe = 10 - 3 = 7, cwnd 5.
    let mut out = Vec::new();
    for (i, ms) in (100..108).enumerate() {
        out.extend(script.sack(at(ms), 0, &[(2, 3 + i as u32)]));
    }
    // Duplicates 4 to 8 reduce pipe from 7 to 2, and at 4 and below each triggers one segment: 1, then 10 and 11.
    assert_eq!(out, [0, 1, 10, 11]);
    // A partial acknowledgement subtracts two.
    assert_eq!(script.sack(at(200), 1, &[(2, 10)]), [12, 13]);
    assert_eq!(script.ack(at(201), 10), [14]);
    assert_eq!(script.cwnd(), 5);
    assert_eq!(script.sender.stats().fast_retransmits, 1);
}

#[test]
fn after_a_timeout_reno_goes_back_and_skips_what_is_acknowledged() {
    let mut script = Script::new(json!("reno"), 8);
    script.sent(at(0));
    let (now, out) = script.timeout();
    assert_eq!((now, out), (at(1000), vec![0]));
    assert_eq!((script.cwnd(), script.ssthresh()), (1, 4));
    // Only 0 was lost: the ACK jumps to 8.
    assert_eq!(script.ack(at(1100), 8), [8, 9]);
}

#[test]
fn after_a_timeout_sack_sends_again_only_what_is_not_sacked() {
    for (memory, expected) in [("keep", vec![1, 4]), ("clear", vec![1, 2])] {
        let mut script = Script::new(json!({"kind": "sack", "sack_memory": memory}), 6);
        script.sent(at(0));
        script.sack(at(100), 0, &[(2, 4)]);
        let (now, out) = script.timeout();
        assert_eq!(out, [0], "{memory}");
        let again = if memory == "keep" { script.sack(now, 1, &[(2, 4)]) } else { script.ack(now, 1) };
        assert_eq!(again, expected, "{memory}");
        for _ in 0..4 {
            script.sack(now, 1, &[(2, 5)]);
        }
        assert_eq!(script.sender.stats().fast_retransmits, 0, "RFC 6675 section 5.1");
    }
}

#[test]
fn the_timeout_doubles_and_a_retransmission_is_not_timed() {
    let mut script = Script::new(json!("reno"), 1);
    script.sent(at(0));
    let mut now = at(0);
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let (next, out) = script.timeout();
        assert_eq!((next.since(now), out), (Span::from_secs(seconds), vec![0]));
        now = next;
    }
    script.ack(now + Span::from_millis(10), 1);
    assert_eq!(script.sender.srtt(), None, "Karn");
    assert_eq!(script.sender.rto(), Span::from_secs(60), "the backoff stays until a sample");
    script.ack(now + Span::from_millis(210), 2);
    assert_eq!(script.sender.srtt(), Some(Span::from_millis(200)));
    // 200 + 4 * 100 = 600, but not below a second
    assert_eq!(script.sender.rto(), Span::from_secs(1));
    assert_eq!(script.sender.stats().timeouts, 8);
}

#[test]
fn a_repeated_timeout_holds_the_threshold_of_newreno_and_halves_that_of_reno() {
    for (kind, expected) in [("newreno", 8), ("reno", 2)] {
        let mut script = Script::new(json!(kind), 16);
        script.sent(at(0));
        (0..3).for_each(|_| drop(script.timeout()));
        assert_eq!(script.ssthresh(), expected, "{kind}");
    }
}

#[test]
fn congestion_echo_halves_once_a_window_and_is_answered() {
    let mut script = Script::new(json!({"kind": "reno", "ecn": "on"}), 8);
    assert!(script.segments(at(0)).iter().all(|segment| segment.ecn == Ecn::Ect0));
    let mut echo = script.ack_segment(1);
    echo.flags |= Flags::ECE;
    script.sender.on_segment(at(100), &echo);
    assert!(script.segments(at(100)).is_empty());
    assert_eq!((script.cwnd(), script.ssthresh()), (4, 4));
    for thousands in 2..=4 {
        let mut echo = script.ack_segment(thousands);
        echo.flags |= Flags::ECE;
        script.sender.on_segment(at(100), &echo);
        assert!(script.segments(at(100)).is_empty());
    }
    assert_eq!(script.sender.stats().ecn_reductions, 1);
    assert_eq!(script.cwnd(), 4, "4 + 3/4");
    script.sender.on_segment(at(101), &script.ack_segment(5));
    let new = script.segments(at(101));
    assert!(new[0].flags.contains(Flags::CWR));
    // An echo beyond the window of the reaction is a new one.
    let mut echo = script.ack_segment(9);
    echo.flags |= Flags::ECE;
    script.sender.on_segment(at(200), &echo);
    assert_eq!(script.sender.stats().ecn_reductions, 2);
    assert!(
        script
            .segments(at(300))
            .iter()
            .all(|segment| !segment.flags.contains(Flags::CWR) || segment.seq == Seq(9000))
    );
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    let mut script = Script::new(json!({"kind": "reno", "ecn": "on"}), 1);
    script.sent(at(0));
    let now = script.sender.poll_timeout().unwrap();
    script.sender.on_timeout(now);
    assert_eq!(script.segments(now)[0].ecn, Ecn::NotEct);
}

#[test]
fn the_peers_window_is_kept_to_the_byte() {
    let mut script = Script::new(json!("reno"), 10);
    script.sent(at(0));
    // Unit of 16 bytes: 3504 bytes above 10000. The 504 after three full segments are less than half of the window.
    script.window = 219;
    assert_eq!(script.ack(at(100), 10), [10, 11, 12]);
    assert_eq!(script.ack(at(200), 13), [13, 14, 15]);
    // 800 bytes are less than a segment, but equal the largest window advertised.
    let mut script = Script::new(json!("reno"), 10);
    script.sent(at(0));
    script.window = 50;
    script.sender.on_segment(at(100), &script.ack_segment(10));
    let out = script.segments(at(100));
    assert_eq!(out.iter().map(|segment| segment.payload).collect::<Vec<_>>(), [800]);
}

#[test]
fn a_closed_window_is_probed_with_one_byte_and_growing_pauses() {
    let mut script = Script::new(json!("reno"), 2);
    script.sent(at(0));
    script.window = 0;
    assert_eq!(script.ack(at(100), 2), NOTHING);
    let mut now = at(100);
    for seconds in [1, 2, 4] {
        let due = script.sender.poll_timeout().unwrap();
        assert_eq!(due.since(now), Span::from_secs(seconds));
        now = due;
        script.sender.on_timeout(now);
        let probe = script.segments(now);
        assert_eq!(probe.len(), 1);
        assert_eq!((probe[0].seq, probe[0].payload), (Seq(2000), 1));
        // The peer does not accept it.
        assert_eq!(script.ack(now, 2), NOTHING);
    }
    assert_eq!(script.sender.stats().timeouts, 0, "a probe is no timeout");
    assert_eq!(script.sender.stats().fast_retransmits, 0, "its answers are no duplicates");
    // The window opens: the byte of the probe and the data after it.
    script.window = 1000;
    let mut ack = script.ack_segment(2);
    ack.ack = Seq(2001);
    script.sender.on_segment(now, &ack);
    let out = script.segments(now);
    assert_eq!(
        out.iter().map(|segment| (segment.seq, segment.payload)).collect::<Vec<_>>()[0],
        (Seq(2001), 1000)
    );
}

#[test]
fn the_last_segment_of_a_file_carries_the_fin() {
    let mut script = Script::with(json!("reno"), params(4), Supply::Bytes(2_500));
    let out = script.segments(at(0));
    assert_eq!(out.iter().map(|segment| segment.payload).collect::<Vec<_>>(), [1000, 1000, 500]);
    let fins: Vec<_> = out.iter().map(|segment| segment.flags.contains(Flags::FIN)).collect();
    assert_eq!(fins, [false, false, true]);
    let (now, _) = script.timeout();
    script.sender.on_segment(now, &script.ack_segment(2));
    let again = script.segments(now);
    assert_eq!(
        (again[0].payload, again[0].flags.contains(Flags::FIN)),
        (500, true),
        "and so does its repetition"
    );
    let mut ack = script.ack_segment(2);
    ack.ack = Seq(2501);
    script.sender.on_segment(now, &ack);
    assert_eq!(script.sender.state(), SenderState::Closed);
    assert_eq!((script.sender.acknowledged(), script.sender.poll_timeout()), (2500, None));
}

fn syn() -> Segment {
    let mut syn = Segment::data(FlowId(0), Seq(700), 0, 60);
    syn.flags = Flags::SYN | Flags::ECE | Flags::CWR;
    syn.window = 5000;
    syn.set_timestamps(Timestamps { value: 77, echo: 0 });
    let offer = SynOptions { mss: Some(500), window_scale: Some(3), sack_permitted: true };
    syn.set_syn_options(offer);
    syn
}

#[test]
fn the_handshake_agrees_on_what_both_offer() {
    let config = json!({"kind": "sack", "handshake": "on", "timestamps": "on", "ecn": "on"});
    let flow = FlowParams { header: HeaderSize::Real, first: Seq(1), ..params(2) };
    let mut script = Script::with(config, flow, Supply::Endless);
    assert_eq!(script.sender.poll_timeout(), None, "it waits for the peer");
    script.sender.on_segment(at(5), &syn());
    let out = script.segments(at(5));
    assert_eq!(out.len(), 1);
    let answer = out[0];
    assert_eq!(
        (answer.seq, answer.ack, answer.flags),
        (Seq(0), Seq(701), Flags::SYN | Flags::ACK | Flags::ECE)
    );
    assert_eq!(answer.timestamps(), Some(Timestamps { value: 5, echo: 77 }));
    assert_eq!(answer.header, 60);
    assert!(answer.syn_options().unwrap().sack_permitted);
    let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 52);
    (ack.seq, ack.window) = (Seq(701), 1000);
    ack.set_timestamps(Timestamps { value: 177, echo: 5 });
    script.sender.on_segment(at(105), &ack);
    assert_eq!(script.sender.state(), SenderState::Established);
    assert_eq!(script.sender.srtt(), Some(Span::from_millis(100)));
    let data = script.segments(at(105));
    assert_eq!(
        data.iter().map(|segment| (segment.seq, segment.payload)).collect::<Vec<_>>(),
        [(Seq(1), 488), (Seq(489), 488)],
        "RFC 6691: timestamps take 12 of the 500"
    );
    assert_eq!((data[0].timestamps(), data[0].header), (Some(Timestamps { value: 105, echo: 177 }), 52));
}

#[test]
fn an_answer_to_a_syn_that_is_lost_is_repeated_and_costs_the_initial_window() {
    let mut script = Script::with(
        json!({"kind": "reno", "handshake": "on"}),
        FlowParams { first: Seq(1), ..params(4) },
        Supply::Endless,
    );
    script.sender.on_segment(at(0), &syn());
    assert_eq!(script.segments(at(0)).len(), 1);
    let (now, _) = script.timeout();
    assert_eq!(now, at(1000));
    let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 40);
    (ack.seq, ack.window) = (Seq(701), 60_000);
    script.sender.on_segment(at(1100), &ack);
    assert_eq!(script.segments(at(1100)).len(), 1);
    assert_eq!(script.sender.rto(), Span::from_secs(3), "RFC 6298 (5.7)");
    assert_eq!(script.sender.stats().timeouts, 0);
}

#[test]
fn a_syn_that_comes_again_tells_no_round_trip_time() {
    let flow = FlowParams { first: Seq(1), ..params(4) };
    let mut script = Script::with(json!({"kind": "reno", "handshake": "on"}), flow, Supply::Endless);
    for ms in [0, 900] {
        script.sender.on_segment(at(ms), &syn());
        assert_eq!(script.segments(at(ms)).len(), 1);
    }
    let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 40);
    (ack.seq, ack.window) = (Seq(701), 60_000);
    script.sender.on_segment(at(1000), &ack);
    assert_eq!(script.sender.srtt(), None, "Karn");
    assert_eq!(script.segments(at(1000)).len(), 1, "RFC 5681 section 3.1");
}

#[test]
fn the_answer_to_a_plain_syn_offers_no_scale_and_takes_no_room_for_it() {
    let flow = FlowParams { header: HeaderSize::Real, first: Seq(1), ..params(4) };
    let mut script = Script::with(json!({"kind": "reno", "handshake": "on"}), flow, Supply::Endless);
    let mut plain = syn();
    plain.set_syn_options(SynOptions { mss: Some(500), ..SynOptions::default() });
    script.sender.on_segment(at(0), &plain);
    let answer = script.segments(at(0))[0];
    assert_eq!(answer.syn_options().unwrap().window_scale, None);
    assert_eq!(answer.header, 44, "20 + 20 + MSS");
}

#[test]
fn after_a_silence_the_window_is_the_initial_one() {
    for (silence, expected) in [(900, 5), (1500, 2)] {
        let mut script = Script::with(json!("newreno"), params(2), Supply::Open(8000));
        script.sent(at(0));
        assert_eq!(script.ack(at(100), 2), [2, 3, 4]);
        assert_eq!(script.ack(at(200), 5), [5, 6, 7]);
        script.ack(at(300), 8);
        script.sender.supply(Supply::Open(100_000));
        // The last segment was sent at 200 ms; the timeout is one second.
        assert_eq!(script.sent(at(200 + silence)).len(), expected, "{silence} ms");
    }
}

fn stamped(script: &Script, thousands: u32, value: u32, echo: u32) -> Segment {
    let mut ack = script.ack_segment(thousands);
    ack.set_timestamps(Timestamps { value, echo });
    ack
}

#[test]
fn eifel_takes_a_spurious_timeout_back() {
    // restore: window 8 + 1 with 7 in flight. rfc4015: FlightSize 7 + min(1, IW 8) = 8, including the acknowledgement.
    for (response, cwnd, expected) in [("restore", 9, &[8, 9][..]), ("rfc4015", 8, &[8])] {
        let mut script = Script::new(json!({"kind": "eifel", "response": response}), 8);
        assert_eq!(script.sent(at(0)).len(), 8);
        let (now, out) = script.timeout();
        assert_eq!(out, [0]);
        // The ACK of the original arrives late: its echo is 0, older than the retransmission at 1000.
        let late = stamped(&script, 1, 1, 0);
        script.sender.on_segment(now, &late);
        let out = script.sent(now);
        assert_eq!(out, expected, "{response}: goes on with new data");
        assert_eq!((script.cwnd(), script.ssthresh()), (cwnd, 500), "{response}");
        assert_eq!(script.sender.stats().spurious_timeouts, Some(1));
    }
}

#[test]
fn after_a_spurious_timeout_newreno_takes_no_duplicates_for_a_loss_until_more_than_recover_is_acknowledged() {
    for (kind, repaired) in [("newreno", false), ("sack", true)] {
        let config = json!({"kind": kind, "undo": "eifel", "timestamps": "on", "response": "restore"});
        let mut script = Script::new(config, 8);
        script.sent(at(0));
        let (now, _) = script.timeout();
        let late = stamped(&script, 1, 1, 0);
        script.sender.on_segment(now, &late);
        script.sent(now);
        for value in 2..5 {
            let duplicate = stamped(&script, 1, value, 0);
            script.sender.on_segment(now, &duplicate);
        }
        assert_eq!(script.sent(now).first() == Some(&1), repaired, "{kind}");
    }
}

#[test]
fn eifel_leaves_a_true_timeout_alone() {
    let mut script = Script::new(json!("eifel"), 8);
    script.sent(at(0));
    let (now, _) = script.timeout();
    let true_ack = stamped(&script, 1, 1, 1000);
    script.sender.on_segment(now, &true_ack);
    assert_eq!(script.sent(now), [1, 2], "goes back and starts slowly");
    assert_eq!(script.sender.stats().spurious_timeouts, Some(0));
}

#[test]
fn a_spurious_fast_retransmit_is_given_back() {
    let mut script = Script::new(json!({"kind": "eifel", "response": "restore"}), 8);
    script.sent(at(0));
    for ms in 100..103 {
        let duplicate = stamped(&script, 0, 1, 0);
        script.sender.on_segment(at(ms), &duplicate);
    }
    assert_eq!(script.sent(at(102)), [0]);
    assert_eq!(script.cwnd(), 4);
    // Reordering: the original arrives after all.
    let late = stamped(&script, 4, 2, 0);
    script.sender.on_segment(at(110), &late);
    assert_eq!(script.cwnd(), 9);
    assert_eq!(script.sender.stats().spurious_fast_retransmits, Some(1));
}

#[test]
fn a_spurious_fast_retransmit_does_not_end_what_a_timeout_has_still_to_send_again() {
    let config = json!({"kind": "reno", "undo": "eifel", "timestamps": "on", "recover_guard": "off"});
    let mut script = Script::new(config, 8);
    script.sent(at(0));
    // All but the first segment are lost.
    let (timeout, _) = script.timeout();
    let after = |ms| timeout + Span::from_millis(ms);
    let repaired = stamped(&script, 1, 1, 1000);
    script.sender.on_segment(after(100), &repaired);
    assert_eq!(script.sent(after(100)), [1, 2]);
    // The acknowledgement arrives three more times, then one triggered by the segment of the timeout. The fast
    // retransmit was spurious; 2 was retransmitted after the timeout.
    for ms in 150..153 {
        let duplicate = stamped(&script, 1, 1, 1000);
        script.sender.on_segment(after(ms), &duplicate);
    }
    let mut out = script.sent(after(152));
    assert_eq!(out.remove(0), 1);
    let late = stamped(&script, 2, 2, 1100);
    script.sender.on_segment(after(200), &late);
    assert_eq!(script.sender.stats().spurious_fast_retransmits, Some(1));
    out.extend(script.sent(after(200)));
    let expected: Vec<u32> = (3..).take(out.len()).collect();
    assert!(!out.is_empty() && out == expected, "{out:?}");
}

#[test]
fn an_older_timestamp_is_not_taken() {
    let mut script = Script::new(json!({"kind": "reno", "timestamps": "on"}), 2);
    script.sent(at(0));
    let new = stamped(&script, 1, 50, 0);
    script.sender.on_segment(at(100), &new);
    let old = stamped(&script, 2, 49, 0);
    script.sender.on_segment(at(101), &old);
    assert_eq!(script.sender.acknowledged(), 1000, "PAWS");
}

#[test]
fn a_reset_ends_the_connection_if_its_number_lies_in_the_window() {
    // The next number expected is 1, and the sender advertises 65 535 bytes.
    let cases = [
        (0, SenderState::Established),
        (1, SenderState::Closed),
        (65_535, SenderState::Closed),
        (65_536, SenderState::Established),
    ];
    for (seq, state) in cases {
        let mut script = Script::new(json!("reno"), 2);
        script.sent(at(0));
        let mut reset = script.ack_segment(0);
        reset.flags = Flags::RST;
        reset.seq = Seq(seq);
        script.sender.on_segment(at(1), &reset);
        assert_eq!(script.sender.state(), state);
    }
}

#[test]
fn a_window_update_is_no_duplicate() {
    for kind in ["reno", "newreno", "sack", "sack1"] {
        let mut script = Script::new(json!(kind), 10);
        script.sent(at(0));
        // The peer's application drains its buffer: each window is larger than the one before.
        for (ms, window) in [(100, 20_000), (101, 22_000), (102, 24_000), (103, 26_000)] {
            script.window = window;
            script.ack(at(ms), 5);
        }
        assert_eq!(script.sender.stats().fast_retransmits, 0, "{kind}");
        let duplicates: Vec<_> = (104..107).flat_map(|ms| script.ack(at(ms), 5)).collect();
        assert_eq!((duplicates.contains(&5), script.sender.stats().fast_retransmits), (true, 1), "{kind}");
    }
}

#[test]
fn what_is_sacked_beside_a_new_window_tells_a_loss() {
    for kind in ["sack", "sack1"] {
        let mut script = Script::new(json!(kind), 10);
        script.sent(at(0));
        for (end, window) in [(2, 20_000), (3, 22_000), (4, 24_000)] {
            script.window = window;
            script.sack(at(100), 0, &[(1, end)]);
        }
        assert_eq!(script.sender.stats().fast_retransmits, 1, "{kind}");
    }
}

#[test]
fn an_acknowledgement_of_a_tenth_of_a_segment_counts_a_tenth() {
    // RFC 5681 equation (2): min(N, SMSS)
    for kind in ["reno", "newreno", "sack"] {
        let mut script = Script::new(json!(kind), 4);
        script.sent(at(0));
        for tenth in 1..=10 {
            let mut ack = script.ack_segment(0);
            ack.ack = Seq(100 * tenth);
            script.sender.on_segment(at(100), &ack);
        }
        assert_eq!(script.sender.cwnd().div_ceil(100), 50, "{kind}");
    }
}

#[test]
fn what_acknowledges_unsent_data_leaves_no_timestamp() {
    let mut script = Script::new(json!({"kind": "reno", "timestamps": "on"}), 2);
    script.sent(at(0));
    let forged = stamped(&script, 7, 1 << 30, 0);
    script.sender.on_segment(at(50), &forged);
    let new = stamped(&script, 1, 50, 0);
    script.sender.on_segment(at(100), &new);
    assert_eq!(script.sender.acknowledged(), 1000);
    assert_eq!(script.segments(at(100))[0].timestamps().unwrap().echo, 50);
}

#[test]
fn an_overtaken_acknowledgement_still_tells_sack_window_and_end() {
    let mut script = Script::new(json!("sack"), 8);
    script.sent(at(0));
    script.window = 250;
    // 250 * 16 = 4000 bytes above 2: nothing new.
    assert_eq!(script.ack(at(100), 2), NOTHING);
    // Sent before the previous one: three segments above 2 have arrived, and the window was larger.
    script.window = 1000;
    let mut late = script.ack_segment(1);
    late.flags |= Flags::FIN;
    late.push_sack(SackBlock { left: Seq(3000), right: Seq(6000) });
    script.sender.on_segment(at(101), &late);
    let out = script.segments(at(101));
    // The FIN uses number 1 and is acknowledged; three segments above make 2 lost.
    assert_eq!(out.iter().map(|segment| (segment.seq.0, segment.ack.0)).next(), Some((8000, 2)));
    assert!(out.iter().any(|segment| segment.seq == Seq(2000)), "{out:?}");
    assert_eq!(script.sender.acknowledged(), 2000);
}

#[test]
fn without_timestamps_their_room_is_payload() {
    let config = json!({"kind": "sack", "handshake": "on", "timestamps": "on"});
    let flow = FlowParams { packet: 1500, header: HeaderSize::Real, first: Seq(1), ..params(2) };
    let mut script = Script::with(config, flow, Supply::Endless);
    let mut syn = Segment::data(FlowId(0), Seq(700), 0, 60);
    (syn.flags, syn.window) = (Flags::SYN, 60_000);
    syn.set_syn_options(SynOptions { mss: Some(1460), window_scale: Some(3), sack_permitted: true });
    script.sender.on_segment(at(0), &syn);
    script.segments(at(0));
    let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 40);
    (ack.seq, ack.window) = (Seq(701), 60_000);
    script.sender.on_segment(at(100), &ack);
    let out = script.segments(at(100));
    assert_eq!(out.iter().map(|segment| segment.payload).collect::<Vec<_>>(), [1460, 1460]);
}

#[test]
fn one_acknowledgement_that_sacks_three_segments_begins_recovery() {
    let mut script = Script::new(json!("sack"), 10);
    script.sent(at(0));
    // RFC 6675 section 5 step (2): IsLost of the left edge, with a single duplicate.
    assert_eq!(script.sack(at(100), 0, &[(1, 4)]), [0]);
}

#[test]
fn duplicates_that_sack_nothing_new_do_not_count_once_the_peer_sacks() {
    let mut script = Script::new(json!("sack"), 10);
    script.sent(at(0));
    for ms in 100..106 {
        assert_eq!(script.sack(at(ms), 0, &[(1, 2)]), NOTHING);
    }
    assert_eq!(script.sender.stats().fast_retransmits, 0);
}

#[test]
fn without_new_data_sack_sends_again_what_is_not_lost_yet_but_nothing_above_the_highest() {
    let mut script = Script::with(json!("sack"), params(6), Supply::Open(6_000));
    script.sent(at(0));
    // cwnd 3; pipe: 4, 5 and the retransmission of 0.
    assert_eq!(script.sack(at(100), 0, &[(1, 4)]), [0]);
    // 4 is acknowledged: pipe counts 4 and 5. No segment is between the left edge and the highest SACKed one, so rule
    // (4) rescues the highest, not the lowest.
    assert_eq!(script.ack(at(200), 4), [5]);

    let mut script = Script::with(json!("sack"), params(8), Supply::Open(8_000));
    script.sent(at(0));
    assert_eq!(script.sack(at(100), 0, &[(1, 4)]), [0]);
    // cwnd 4. pipe: 4, 6, 7 and 0.
    assert_eq!(script.sack(at(101), 0, &[(5, 6), (1, 4)]), NOTHING);
    // One more leaves the network: 3000 + 1000 <= 4000. 4 is not lost with two SACKed above it, so rule (3) applies.
    assert_eq!(script.sack(at(102), 0, &[(5, 7), (1, 4)]), [4]);
}

#[test]
fn sack_keeps_to_the_peers_window_while_it_repairs() {
    let mut script = Script::new(json!("sack"), 10);
    // 625 * 16 = 10 000 bytes above 0.
    script.window = 625;
    script.sent(at(0));
    let mut out = script.sack(at(100), 0, &[(1, 4)]);
    for end in 5..=10 {
        out.extend(script.sack(at(100), 0, &[(1, end)]));
    }
    assert_eq!(out, [0, 9], "new data would begin at 10 000; rule (4) rescues the last");
}

#[test]
fn sack_keeps_to_the_largest_window_while_it_repairs() {
    let params = FlowParams { max_window: Size::Packets(10), ..params(10) };
    let mut script = Script::with(json!("sack"), params, Supply::Endless);
    script.sent(at(0));
    let mut out = Vec::new();
    for end in 4..=10 {
        out.extend(script.sack(at(100), 0, &[(1, end)]));
    }
    assert_eq!(out, [0, 9], "new data would begin at 10 000; rule (4) rescues the last");
}

#[test]
fn after_a_timeout_sack_rescues_nothing() {
    let mut script = Script::with(json!("sack"), params(6), Supply::Bytes(6_000));
    script.sent(at(0));
    let (now, out) = script.timeout();
    assert_eq!(out, [0]);
    // Slow start from 1: each segment is retransmitted exactly once.
    let mut again = Vec::new();
    for acked in 1..6 {
        again.extend(script.ack(now, acked));
    }
    again.sort_unstable();
    assert_eq!(again, [1, 2, 3, 4, 5]);
}

#[test]
fn what_this_recovery_has_sent_again_is_not_rescued() {
    let mut script = Script::with(json!("sack"), params(6), Supply::Open(6_000));
    script.sent(at(0));
    // All but 0 and 5 arrive; 5 is the last.
    assert_eq!(script.sack(at(100), 0, &[(1, 4)]), [0]);
    assert_eq!(script.sack(at(101), 0, &[(1, 5)]), [5], "rule (4)");
    assert_eq!(script.sack(at(102), 0, &[(1, 5)]), NOTHING);
    assert_eq!(script.ack(at(200), 5), NOTHING, "it is on its way");
}
