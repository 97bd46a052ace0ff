//! Figure 8: modes, the target window, and the mark that replaces a drop.

use super::*;

#[test]
fn the_window_reaches_its_target_and_one_packet_is_let_drop() {
    // Target 2 * (4 + 1) = 10 packets. Eleven entered the queue, the first three departed, none is acknowledged.
    let mut bench = Bench::new(4, Config::default());
    bench.arrive(0);
    bench.ack(0);
    for number in 1..11 {
        if number > 4 {
            bench.depart(number - 5);
        }
        bench.arrive(number);
    }
    assert_eq!(bench.regulator.mode, Mode::Conservative);
    bench.ack(0);
    assert_eq!(bench.regulator.mode, Mode::LetOneDrop);
    bench.arrive(11);
    assert_eq!(bench.regulator.mode, Mode::Conservative, "the drop ends it");
}

#[test]
fn an_ecn_capable_flow_is_marked_once_a_window_instead() {
    let mut bench = Bench::new(4, Config::default());
    let ect = |number| {
        let mut segment = Bench::data(number);
        segment.ecn = Ecn::Ect0;
        segment
    };
    bench.arrive_segment(ect(0));
    bench.ack(0);
    for number in 1..11 {
        if number > 4 {
            bench.depart(number - 5);
        }
        bench.arrive_segment(ect(number));
    }
    bench.ack(0);
    assert_eq!(bench.regulator.mode, Mode::Conservative);
    bench.depart(6);
    assert_eq!(bench.arrive_segment(ect(11)), Verdict::MarkCe);
    bench.depart(7);
    bench.ack(0);
    assert_eq!(bench.arrive_segment(ect(12)), Verdict::Forward, "once a window");
}

/// A queue with room for four packets plus the one in transmission, so the target is `2 * (4 + 1)` = 10 packets, and a
/// sender's window of `window` packets, starting with packet 0.
fn with_window(window: u32, config: Config) -> Bench {
    let mut bench = Bench::new(4, config);
    bench.serving = 1;
    bench.regulator.accounts.on_arrival(&Bench::data(0), bench.view());
    bench.regulator.accounts.on_passed(Seq(0));
    bench.regulator.accounts.on_queued(&Bench::data(window - 1));
    bench
}

#[test]
fn figure_8_line_2_leaves_conservative_mode_above_the_target() {
    use Mode::{Conservative, LetOneDrop};
    // A window equal to the target has not passed it. Without the packet in transmission the target would be 8.
    for (window, next) in [(5, Conservative), (9, Conservative), (10, Conservative), (11, LetOneDrop)] {
        let mut bench = with_window(window, Config::default());
        bench.ack(0);
        assert_eq!(bench.regulator.mode, next, "window {window}");
    }
}

#[test]
fn figure_8_line_4_returns_to_it_when_the_window_was_halved_or_the_queue_is_idle() {
    use Mode::{Conservative, LetOneDrop};
    // Half the target is 5 packets; a window of 5 is not below it.
    for (window, packets_left, mode, next) in [
        (11, 3, LetOneDrop, LetOneDrop),
        (6, 3, LetOneDrop, LetOneDrop),
        (5, 3, LetOneDrop, LetOneDrop),
        (4, 3, LetOneDrop, Conservative),
        (11, 0, LetOneDrop, Conservative),
        (4, 0, LetOneDrop, Conservative),
        (11, 3, Conservative, Conservative),
        (4, 0, Conservative, Conservative),
    ] {
        let name = format!("window {window}, {packets_left} left, {mode:?}");
        let mut departs = with_window(window, Config::default());
        departs.regulator.mode = mode;
        departs.waiting = packets_left;
        departs.depart(0);
        departs.serving = packets_left.min(1);
        assert_eq!((departs.view().is_idle(), departs.regulator.mode), (packets_left == 0, next), "{name}");
        // After a packet enters, the queue is not idle; it is an old packet, so the window does not change.
        let mut enters = with_window(window, Config::default());
        enters.regulator.mode = mode;
        enters.arrive(0);
        let halved = window < 5 || mode == Conservative;
        assert_eq!(
            enters.regulator.mode,
            if halved { Conservative } else { LetOneDrop },
            "{name}, one enters"
        );
    }
}

fn ecn_capable(number: u32, ecn: Ecn) -> Segment {
    let mut segment = Bench::data(number);
    segment.ecn = ecn;
    segment
}

/// An ECN-capable flow with a window of 11 packets, one above the target.
fn with_mark(state: Mark, response: EcnResponse) -> Bench {
    let mut bench = with_window(11, Config { ecn: response, ..Config::default() });
    bench.regulator.accounts.on_arrival(&ecn_capable(0, Ecn::Ect0), bench.view());
    bench.regulator.accounts.mark_window();
    bench.regulator.mark = state;
    bench
}

#[test]
fn the_mark_is_set_on_the_next_packet_that_can_bear_it() {
    for (ecn, verdict, mark) in [
        (Ecn::NotEct, Verdict::Forward, Mark::Due),
        (Ecn::Ce, Verdict::Forward, Mark::Due),
        (Ecn::Ect0, Verdict::MarkCe, Mark::Set),
        (Ecn::Ect1, Verdict::MarkCe, Mark::Set),
    ] {
        let mut bench = with_mark(Mark::Due, EcnResponse::MarkData);
        assert_eq!(bench.arrive_segment(ecn_capable(3, ecn)), verdict, "{ecn:?}");
        assert_eq!(bench.regulator.mark, mark, "{ecn:?}");
    }
    let mut echoed = with_mark(Mark::Due, EcnResponse::EchoAck);
    assert_eq!(echoed.arrive_segment(ecn_capable(3, Ecn::Ect0)), Verdict::Forward);
    assert_eq!(echoed.regulator.mark, Mark::Due, "an ACK will carry it");
}

#[test]
fn one_ack_echoes_the_mark_and_no_other() {
    let mut bench = with_mark(Mark::Due, EcnResponse::EchoAck);
    bench.waiting = 0;
    bench.ack(1);
    bench.ack(2);
    let echoes: Vec<_> = std::iter::from_fn(|| bench.regulator.poll_output(bench.now))
        .map(|output| matches!(output, Output::ToSender(ack) if ack.flags.intersects(Flags::ECE)))
        .collect();
    assert_eq!(echoes, [true, false]);
    let mut marks_data = with_mark(Mark::Due, EcnResponse::MarkData);
    marks_data.ack(1);
    let Some(Output::ToSender(ack)) = marks_data.regulator.poll_output(marks_data.now) else {
        panic!("there is room for two packets")
    };
    assert!(!ack.flags.intersects(Flags::ECE), "a packet will carry it");
}

/// The ECE bit of an AccECN ACK is part of a counter, so the next packet is marked instead (RFC 9768 section 3.2.2).
#[test]
fn an_ack_that_counts_marks_is_not_changed() {
    let mut bench = with_mark(Mark::Due, EcnResponse::EchoAck);
    bench.waiting = 0;
    let mut ack = Segment::pure_ack(FlowId(0), Seq(PAYLOAD), 40);
    ack.set_ace(0b110);
    bench.regulator.handle_ack(bench.now, ack, bench.view());
    let Some(Output::ToSender(ack)) = bench.regulator.poll_output(bench.now) else { panic!("there is room") };
    assert_eq!((ack.ace(), bench.regulator.mark), (0b110, Mark::Due));
    assert_eq!(bench.arrive_segment(ecn_capable(3, Ecn::Ect0)), Verdict::MarkCe);
}

#[test]
fn the_mark_is_armed_again_when_the_window_was_halved_or_the_marked_one_is_acknowledged() {
    // The marked window ends with packet 11. Packets before `acked` are acknowledged; packets before `queued` have
    // entered.
    for (acked, queued, mark) in [
        (0, 11, Mark::Set),
        // 15 - 10 = 5: neither. One packet of the marked window is unacknowledged, and 5 is half the target.
        (10, 15, Mark::Set),
        // 14 - 10 = 4: halved, though the marked window is not acknowledged.
        (10, 14, Mark::Armed),
        // 17 - 11 = 6: acknowledged, though not halved.
        (11, 17, Mark::Armed),
    ] {
        let mut bench = with_mark(Mark::Set, EcnResponse::MarkData);
        bench.waiting = 3;
        bench.regulator.accounts.on_passed(Seq(acked * PAYLOAD));
        bench.regulator.accounts.on_queued(&Bench::data(queued - 1));
        bench.depart(0);
        assert_eq!(bench.regulator.mark, mark, "{acked} to {queued}");
    }
}

#[test]
fn a_mark_that_was_set_is_not_due_before_it_is_armed_again() {
    for (mark, next) in [(Mark::Armed, Mark::Due), (Mark::Due, Mark::Due), (Mark::Set, Mark::Set)] {
        let mut bench = with_mark(mark, EcnResponse::MarkData);
        bench.ack(0);
        assert_eq!((bench.regulator.mark, bench.regulator.mode), (next, Mode::Conservative));
    }
    let mut ignored = with_mark(Mark::Armed, EcnResponse::Ignore);
    ignored.ack(0);
    assert_eq!((ignored.regulator.mark, ignored.regulator.mode), (Mark::Armed, Mode::LetOneDrop));
}
