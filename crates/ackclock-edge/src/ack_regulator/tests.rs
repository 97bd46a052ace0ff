use super::*;
use ackclock_core::{Flags, FlowId, Rate, Seq, Timestamps};
use ackclock_link::{Capacity, Load};

const PAYLOAD: u32 = 960;
const NOTHING: [u32; 0] = [];

/// A regulator beside a queue that the test fills and empties by hand.
struct Bench {
    regulator: AckRegulator,
    waiting: u32,
    serving: u32,
    capacity: u32,
    now: Time,
}

impl Bench {
    fn new(capacity: u32, config: Config) -> Self {
        Self { regulator: AckRegulator::new(config), waiting: 0, serving: 0, capacity, now: Time::ZERO }
    }

    fn view(&self) -> LinkView {
        let load = |packets: u32| Load { packets, bytes: u64::from(packets) * 1000 };
        LinkView {
            waiting: load(self.waiting),
            in_transmission: load(self.serving),
            unacknowledged: Load::NONE,
            capacity: Capacity::Packets(self.capacity),
            rate: Rate::from_bps(200_000),
        }
    }

    fn data(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number * PAYLOAD), PAYLOAD as u16, 40)
    }

    /// Data packet `number` arrives; it is dropped where the queue is full.
    fn arrive(&mut self, number: u32) -> Verdict {
        self.arrive_segment(Self::data(number))
    }

    fn arrive_segment(&mut self, segment: Segment) -> Verdict {
        let verdict = self.regulator.on_data(self.now, &segment, self.view());
        if self.serving == 0 {
            self.serving = 1;
        } else if self.waiting < self.capacity {
            self.waiting += 1;
        } else {
            self.regulator.on_dropped(self.now, &segment, Cause::Full, self.view());
            return verdict;
        }
        self.regulator.on_queued(self.now, &segment, self.view());
        verdict
    }

    fn depart(&mut self, number: u32) {
        if self.waiting > 0 {
            self.waiting -= 1
        } else {
            self.serving = 0
        }
        self.regulator.on_departed(self.now, &Self::data(number), self.view());
    }

    /// An ACK for the first `packets` packets.
    fn ack(&mut self, packets: u32) {
        self.regulator.handle_ack(
            self.now,
            Segment::pure_ack(FlowId(0), Seq(packets * PAYLOAD), 40),
            self.view(),
        );
    }

    /// The ACK numbers that went to the sender, in packets.
    fn sent(&mut self) -> Vec<u32> {
        let sent = std::iter::from_fn(|| self.regulator.poll_output(self.now));
        sent.filter_map(|output| match output {
            Output::ToSender(ack) => Some(ack.ack.0 / PAYLOAD),
            Output::Discard(_) => None,
        })
        .collect()
    }
}

/// `count` packets in the queue and its transmitter, of which the first `acked` are acknowledged.
fn filled(capacity: u32, count: u32, config: Config) -> Bench {
    let mut bench = Bench::new(capacity, config);
    for number in 0..count {
        bench.arrive(number);
    }
    bench
}

#[test]
fn an_ack_waits_until_there_is_room_for_two_packets() {
    // 9 of 10 places taken: conservative mode keeps one, so nothing is available.
    let mut bench = filled(10, 10, Config::default());
    bench.ack(1);
    assert_eq!(bench.sent(), NOTHING);
    bench.depart(0);
    // 8 waiting: 10 - 8 - 1 = 1
    assert_eq!(bench.sent(), [1]);
    bench.ack(2);
    assert_eq!(bench.sent(), NOTHING, "the place is reserved for the packet that ACK 1 calls forth");
    bench.arrive(10);
    bench.depart(1);
    assert_eq!(bench.sent(), [2]);
}

#[test]
fn a_delayed_ack_costs_what_it_covers() {
    // 6 waiting of 10: 10 - 6 - 1 = 3 available.
    let mut bench = filled(10, 7, Config::default());
    bench.ack(2);
    assert_eq!(bench.sent(), [2]);
    bench.ack(4);
    assert_eq!(bench.sent(), NOTHING, "3 - 2 = 1 is not enough for 2");
    let mut one = filled(10, 7, Config { cost: Cost::One, ..Config::default() });
    one.ack(2);
    one.ack(4);
    assert_eq!(one.sent(), [2, 4]);
}

#[test]
fn duplicates_wait_behind_the_gate_and_are_not_counted() {
    // 8 waiting of 10: 1 available, which ACK 1 takes.
    let mut bench = filled(10, 9, Config::default());
    for _ in 0..4 {
        bench.ack(1);
    }
    assert_eq!(bench.sent(), [1]);
    assert_eq!(bench.regulator.held(), 3);
    bench.depart(0);
    // 7 waiting, one expected: one place, so one duplicate goes.
    assert_eq!(bench.sent(), [1]);
    bench.depart(1);
    // 6 waiting and still one expected: the duplicate that went is not counted. Two places, two duplicates.
    assert_eq!(bench.sent(), [1, 1]);
    bench.ack(5);
    // The third duplicate has reserved a place for the resend: 10 - 6 - 2 - 1 = 1. The ACK covers 4 packets of which 3 are
    // paid for by the duplicates: it costs 1.
    assert_eq!(bench.sent(), [5]);
}

#[test]
fn where_two_packets_were_lost_the_advances_share_what_the_duplicates_paid() {
    // Of packets 0 to 9 the radio lost 0 and 4. Eight duplicates, then the repairs: the first advance covers 4 packets, the
    // second 6, of which the duplicates have paid for all but the resent ones.
    let mut bench = filled(20, 10, Config::default());
    for _ in 0..9 {
        bench.ack(0);
    }
    bench.sent();
    for covered in [4, 10] {
        let expected = bench.regulator.expected;
        bench.ack(covered);
        assert_eq!(bench.sent(), [covered]);
        assert_eq!(bench.regulator.expected, expected + 1, "ACK {covered} costs one packet");
    }
    // The recovery is over: what was paid and not used is forgotten.
    for number in 10..14 {
        bench.arrive(number);
    }
    assert_eq!(bench.regulator.expected, 0);
    bench.ack(14);
    assert_eq!(bench.regulator.expected, 4);
}

#[test]
fn duplicates_that_a_full_queue_held_up_do_not_go_all_at_once() {
    // The queue is full: nothing goes. The sender would answer the first two with a packet each (RFC 3042) and the third
    // with a retransmission, where one packet departed.
    let mut bench = filled(10, 11, Config::default());
    for _ in 0..21 {
        bench.ack(1);
    }
    assert_eq!(bench.sent(), NOTHING);
    bench.depart(0);
    assert_eq!(bench.sent(), NOTHING, "9 waiting: the place is the one that conservative mode keeps");
    bench.depart(1);
    // The ACK takes the one available place and is expected.
    assert_eq!(bench.sent(), [1]);
    bench.depart(2);
    assert_eq!(bench.sent(), [1]);
    bench.arrive(11);
    bench.arrive(12);
    // What the ACK called forth, and a packet of limited transmit: the gate is closed again.
    bench.depart(3);
    assert_eq!(bench.sent(), [1]);
    assert_eq!(bench.waiting, 8);
}

#[test]
fn a_place_set_aside_for_limited_transmit_is_gone_in_the_same_step() {
    let config = Config { limited_transmit_reserve: 2, ..Config::default() };
    let mut bench = Bench::new(10, config);
    bench.arrive(0);
    bench.ack(0);
    for number in 1..10 {
        bench.arrive(number);
    }
    assert_eq!(bench.sent(), [0]);
    (0..5).for_each(|_| bench.ack(1));
    (0..4).for_each(|number| bench.depart(number));
    // 10 - 5 - 1 = 4 places: for the packet of the ACK, those of limited transmit, and the retransmission.
    assert_eq!(bench.sent(), [1, 1, 1, 1]);
    assert_eq!(bench.regulator.expected, 4);
    assert_eq!(bench.regulator.held(), 1);
}

#[test]
fn the_window_reaches_its_target_and_one_packet_is_let_drop() {
    // Target 2 * (4 + 1) = 10 packets. Eleven were queued, the first three have departed, none is acknowledged.
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

/// A sender whose window fell below what is held answers nothing: no departure opens the gate again.
#[test]
fn an_idle_queue_without_an_answer_releases_all_that_it_has_room_for() {
    let mut bench = filled(10, 11, Config::default());
    (0..100).for_each(|_| bench.ack(1));
    (0..11).for_each(|number| bench.depart(number));
    // As many went as places became free, step by step; the last departure left the queue idle.
    bench.sent();
    let held = bench.regulator.held();
    bench.now = Time::ZERO + Span::from_secs(1);
    bench.regulator.handle_timeout(bench.now, bench.view());
    // 10 places, of which conservative mode keeps one; what had been expected has not come.
    assert_eq!((bench.sent().len(), bench.regulator.held()), (9, held - 9));
    assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_secs(2)));
}

#[test]
fn where_timestamps_tell_how_long_an_answer_takes_an_idle_queue_waits_no_longer() {
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
    assert!(bench.regulator.held() > 0);
    assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_millis(80 + 80)));
}

/// A flow of 9 packets whose last ACK is held for packets that never come; a queue that others share.
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
    // It leaves, of which this flow is told nothing.
    bench.serving = 0;
    bench.now = bench.regulator.poll_timeout().expect("an ACK is held");
    assert_eq!(bench.now, Time::ZERO + Span::from_secs(1));
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!(bench.sent(), [2]);
}

#[test]
fn a_queue_that_others_keep_busy_releases_what_there_is_room_for_and_asks_again() {
    let mut bench = held_for_nothing();
    // The others' packets come as those of the flow leave. Of 10 places conservative mode keeps one.
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
    // Others fill the queue: the packet that comes is dropped, and nothing of the flow is in the queue.
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
    // One that is sent again while it waits is counted apart.
    bench.arrive(8);
    bench.depart(8);
    assert_eq!(bench.regulator.poll_timeout(), None);
    bench.depart(8);
    assert!(bench.regulator.poll_timeout().is_some());
}

#[test]
fn an_ack_that_asks_for_more_than_the_whole_queue_is_not_held_for_ever() {
    let mut bench = filled(2, 3, Config::default());
    bench.ack(0);
    for number in 0..3 {
        bench.depart(number);
    }
    bench.sent();
    bench.ack(3);
    assert_eq!(bench.sent(), [3]);
}

#[test]
fn data_from_the_mobile_passes_and_outdates_held_acks() {
    let mut bench = filled(10, 10, Config::default());
    bench.ack(1);
    bench.ack(1);
    let mut reply = Segment::data(FlowId(0), Seq(0), 100, 40);
    reply.ack = Seq(2 * PAYLOAD);
    bench.regulator.handle_ack(bench.now, reply, bench.view());
    assert_eq!(bench.sent(), [2]);
    assert_eq!(bench.regulator.held(), 1, "the true duplicate stays");
}

#[test]
fn held_acks_are_bounded_by_merging_the_oldest_that_advance() {
    let mut bench = filled(1, 2, Config { alpha: 1.0, ..Config::default() });
    for number in 2..40 {
        bench.regulator.accounts.on_queued(&Bench::data(number));
    }
    for packets in 1..40 {
        bench.ack(packets);
    }
    assert!(bench.regulator.held() <= 16, "{} held", bench.regulator.held());
}

#[test]
fn closing_gives_everything_back_in_order() {
    let mut bench = filled(10, 11, Config::default());
    bench.ack(1);
    bench.ack(2);
    bench.regulator.close(bench.now);
    assert_eq!(bench.sent(), [1, 2]);
    let mut fin = Segment::pure_ack(FlowId(0), Seq(3 * PAYLOAD), 40);
    fin.flags |= Flags::FIN;
    bench.regulator.handle_ack(bench.now, fin, bench.view());
    assert_eq!(bench.sent(), [3], "a FIN is never held");
}

/// Room for four packets beside the one in transmission, so that the target is `2 * (4 + 1)` = 10 packets, and a sender's
/// window of `window` packets, beginning with packet 0.
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
    // A window that is as large as the target has not passed it. Without the packet in transmission the target would be 8.
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
        // A packet that enters leaves the queue not idle; it is an old one, so that the window stays.
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

/// A window of 11 packets, one above the target, of a flow that is ECN-capable.
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

#[test]
fn the_mark_is_armed_again_when_the_window_was_halved_or_the_marked_one_is_acknowledged() {
    // The marked window ends with packet 11. `acked` are acknowledged, and packets before `queued` have entered.
    for (acked, queued, mark) in [
        (0, 11, Mark::Set),
        // 15 - 10: neither, for one packet of the marked window is out, and 5 is half the target.
        (10, 15, Mark::Set),
        // 14 - 10: halved, while the marked window is not acknowledged.
        (10, 14, Mark::Armed),
        // 17 - 11: acknowledged, and not halved.
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

#[test]
fn what_duplicates_paid_beyond_their_recovery_is_forgotten() {
    let mut bench = filled(30, 10, Config::default());
    // Ten packets, of which ACK 10 covers all; eleven duplicates pay for nine of them, and two for nothing.
    (0..12).for_each(|_| bench.ack(0));
    bench.ack(10);
    (10..14).for_each(|number| _ = bench.arrive(number));
    let expected = bench.regulator.expected;
    bench.ack(14);
    assert_eq!(bench.regulator.expected, expected + 4);
}

#[test]
fn an_ack_that_was_overtaken_pays_for_nothing() {
    let mut bench = filled(30, 10, Config::default());
    bench.ack(4);
    (0..3).for_each(|_| bench.ack(2));
    let expected = bench.regulator.expected;
    bench.ack(8);
    assert_eq!(bench.regulator.expected, expected + 4);
}

#[test]
fn what_passes_with_data_of_the_mobile_is_acknowledged_and_released() {
    let mut bench = filled(30, 10, Config::default());
    bench.ack(0);
    let mut reply = Segment::data(FlowId(0), Seq(0), 100, 40);
    reply.ack = Seq(4 * PAYLOAD);
    bench.regulator.handle_ack(bench.now, reply, bench.view());
    assert_eq!(bench.regulator.accounts.window(), 6 * PAYLOAD);
    let expected = bench.regulator.expected;
    bench.ack(4);
    assert_eq!(bench.regulator.expected, expected, "it repeats what the reply said");
    bench.ack(6);
    assert_eq!(
        bench.regulator.expected,
        expected + 1,
        "of the two that it covers that duplicate paid for one"
    );
}

/// The queue ran empty before the ACKs came, so that no departure forgets what they are expected to call forth.
#[test]
fn an_idle_queue_expects_nothing_more_when_the_safety_timer_expires() {
    let mut bench = filled(10, 0, Config::default());
    bench.regulator.accounts.on_arrival(&Bench::data(0), bench.view());
    // A window of 20 packets, which is the target.
    (0..20).for_each(|number| bench.regulator.accounts.on_queued(&Bench::data(number)));
    (0..=20).for_each(|packets| bench.ack(packets));
    // 10 places less the one that is kept; the first ACK covers nothing known and costs one all the same.
    assert_eq!((bench.sent().len(), bench.regulator.held()), (9, 12));
    bench.now = Time::ZERO + Span::from_secs(1);
    bench.regulator.handle_timeout(bench.now, bench.view());
    assert_eq!((bench.sent().len(), bench.regulator.held()), (9, 3));
}
