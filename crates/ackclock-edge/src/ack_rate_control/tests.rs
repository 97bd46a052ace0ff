use super::*;
use ackclock_core::{Config as _, Flags, Rate, Seq};
use ackclock_link::Capacity;

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// Step of 100 ms at 5 packets.
fn step() -> Config {
    Config { alpha: 0.0, min_threshold: 5, max_delay: ms(100), ..Config::default() }
}

/// A regulator with a queue whose occupancy the test sets.
struct Bench {
    regulator: AckRateControl,
    /// Unsent packets of 1000 bytes; three more are sent and unacknowledged.
    occupancy: u32,
    now: Time,
}

impl Bench {
    fn new(config: Config) -> Self {
        config.check().unwrap();
        Self { regulator: AckRateControl::new(config), occupancy: 0, now: Time::ZERO }
    }

    fn view(&self) -> LinkView {
        let load = |packets: u32| Load { packets, bytes: u64::from(packets) * 1000 };
        let inside = self.occupancy.min(1);
        LinkView {
            waiting: load(self.occupancy - inside),
            in_transmission: load(inside),
            unacknowledged: load(3),
            occupied: load(self.occupancy - inside),
            capacity: Capacity::Packets(50),
            rate: Rate::from_bps(384_000),
        }
    }

    fn ack(&mut self, flow: u32, number: u32) {
        let ack = Segment::pure_ack(FlowId(flow), Seq(number), 40);
        self.regulator.handle_ack(self.now, ack, self.view());
    }

    /// Runs to this instant, serving deadlines. Returns instant in ms and number of each ACK that left.
    fn until(&mut self, millis: u64) -> Vec<(u64, u32)> {
        let mut left = self.left();
        while let Some(due) = self.regulator.poll_timeout().filter(|&due| due <= at(millis)) {
            self.now = due;
            self.regulator.handle_timeout(due, self.view());
            left.extend(self.left());
        }
        self.now = at(millis);
        left
    }

    /// ACKs that have left so far, with the instant in ms.
    fn left(&mut self) -> Vec<(u64, u32)> {
        let now = self.now.as_nanos() / 1_000_000;
        let outputs = std::iter::from_fn(|| self.regulator.poll_output(self.now));
        outputs
            .map(|output| match output {
                Output::ToSender(ack) => (now, ack.ack.0),
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

/// `ack-rate-control.md` section 1: `alpha`, `minth`, `maxd` in ms, and expected delays in ms at the occupancies
/// below.
#[test]
fn the_delays_are_those_of_the_table() {
    let occupancies = [5, 10, 11, 15, 20, 25, 30, 40, 50];
    for (alpha, min_threshold, max_delay, delays) in [
        (0.0, 20, 500, [0, 0, 0, 0, 500, 500, 500, 500, 500]),
        (0.2, 10, 500, [0, 0, 239, 330, 379, 411, 435, 472, 500]),
        (0.5, 10, 700, [0, 0, 111, 247, 350, 429, 495, 606, 700]),
        (1.0, 0, 1000, [100, 200, 220, 300, 400, 500, 600, 800, 1000]),
    ] {
        for occupancy in [Occupancy::Packets, Occupancy::Bytes] {
            let config =
                Config { alpha, min_threshold, max_delay: ms(max_delay), occupancy, ..Config::default() };
            let mut bench = Bench::new(config);
            bench.regulator.packet_bytes = 1000;
            for (packets, delay) in occupancies.into_iter().zip(delays) {
                bench.occupancy = packets;
                let ours = bench.regulator.delay(bench.view()).as_millis_f64();
                assert_eq!(ours.round(), f64::from(delay), "alpha {alpha}, {packets} packets, {occupancy:?}");
            }
        }
    }
}

#[test]
fn the_delay_begins_at_its_least_and_stays_at_its_largest() {
    let config = Config { min_delay: ms(20), max_delay: ms(100), alpha: 1.0, ..Config::default() };
    assert_eq!(
        [9.0, 10.0, 30.0, 50.0, 80.0].map(|packets| config.delay(packets)),
        [0, 20, 60, 100, 100].map(ms)
    );
}

#[test]
fn small_packets_count_for_less_where_bytes_are_counted() {
    let mut bench = Bench::new(Config { occupancy: Occupancy::Bytes, ..step() });
    for payload in [1960, 60] {
        bench.regulator.on_data(Time::ZERO, &Segment::data(FlowId(0), Seq(0), payload, 40), bench.view());
    }
    // 9 packets of 1000 bytes are 4.5 of the largest.
    let delays = [9, 10].map(|packets| {
        bench.occupancy = packets;
        bench.regulator.delay(bench.view())
    });
    assert_eq!(delays, [ms(0), ms(100)]);
}

#[test]
fn what_was_sent_and_not_acknowledged_counts_only_where_that_is_said() {
    for (counts, delay) in [(Counts::Unsent, ms(0)), (Counts::Unacknowledged, ms(100))] {
        let mut bench = Bench::new(Config { counts, ..step() });
        bench.occupancy = 2;
        assert_eq!(bench.regulator.delay(bench.view()), delay, "{counts:?}");
    }
}

#[test]
fn below_the_threshold_acks_pass_as_they_come() {
    let mut bench = Bench::new(step());
    bench.occupancy = 4;
    (0..3).for_each(|number| bench.ack(0, number));
    assert_eq!(bench.left(), [(0, 0), (0, 1), (0, 2)]);
}

#[test]
fn above_it_they_leave_apart_in_the_order_in_which_they_came_whatever_their_flow() {
    let mut bench = Bench::new(step());
    bench.occupancy = 5;
    for (flow, number) in [(0, 1), (1, 2), (0, 3), (0, 3)] {
        bench.ack(flow, number);
    }
    assert_eq!((bench.regulator.held(FlowId(0)), bench.regulator.held(FlowId(1))), (2, 1));
    // None overtakes the first, and duplicates are delayed like other ACKs.
    assert_eq!(bench.until(1000), [(0, 1), (100, 2), (200, 3), (300, 3)]);
    bench.ack(1, 4);
    assert_eq!(bench.left(), [(1000, 4)], "the one before it left long ago");
}

/// The printed step releases one ACK per event: it would strand three here after the occupancy fell.
#[test]
fn all_that_wait_leave_when_the_occupancy_has_fallen_below_the_threshold() {
    let mut bench = Bench::new(step());
    bench.occupancy = 5;
    (0..5).for_each(|number| bench.ack(0, number));
    assert_eq!(bench.until(50), [(0, 0)]);
    bench.occupancy = 4;
    // The running delay is not recalculated.
    bench.ack(0, 5);
    assert_eq!(bench.until(99), []);
    assert_eq!(bench.until(100), [(100, 1), (100, 2), (100, 3), (100, 4), (100, 5)]);
}

/// Printed step: the end of the delay releases one ACK and one undelayed one; the others stay.
#[test]
fn the_printed_step_leaves_acks_behind_until_others_come() {
    let mut bench = Bench::new(Config { step: Step::Single, ..step() });
    bench.occupancy = 5;
    (0..5).for_each(|number| bench.ack(0, number));
    bench.occupancy = 4;
    assert_eq!(bench.until(1000), [(0, 0), (100, 1), (100, 2)]);
    bench.ack(0, 5);
    assert_eq!(bench.until(2000), [(1000, 3)], "one arrival releases one ACK");
}

#[test]
fn the_printed_step_of_each_tti_lets_one_leave() {
    let mut bench = Bench::new(Config { step: Step::Single, tti: ms(10), ..step() });
    bench.occupancy = 5;
    (0..6).for_each(|number| bench.ack(0, number));
    bench.occupancy = 4;
    // The delay ends at 100; TTIs start at 110 and 120; another ACK arrives at 115.
    let mut left = bench.until(115);
    bench.ack(0, 6);
    left.extend(bench.until(130));
    assert_eq!(left, [(0, 0), (100, 1), (100, 2), (110, 3), (115, 4), (120, 5), (130, 6)]);
    assert_eq!(bench.regulator.poll_timeout(), None, "none waits");
    // Above the threshold the step in a TTI starts a delay.
    bench.occupancy = 5;
    (7..10).for_each(|number| bench.ack(0, number));
    assert_eq!(bench.until(1000), [(230, 7), (330, 8), (430, 9)]);
}

#[test]
fn a_delay_that_has_begun_can_be_worked_out_anew_when_the_occupancy_changes() {
    let mut bench = Bench::new(Config { alpha: 1.0, min_threshold: 0, retime: true, ..step() });
    bench.occupancy = 25;
    (0..3).for_each(|number| bench.ack(0, number));
    assert_eq!(bench.left(), [(0, 0)]);
    assert_eq!(bench.regulator.poll_timeout(), Some(at(50)));
    let packet = Segment::data(FlowId(0), Seq(0), 960, 40);
    bench.occupancy = 30;
    bench.regulator.on_queued(bench.now, &packet, bench.view());
    assert_eq!(bench.regulator.poll_timeout(), Some(at(60)));
    bench.now = at(40);
    bench.occupancy = 15;
    bench.regulator.on_departed(bench.now, &packet, bench.view());
    // 30 ms after the previous ACK had already passed.
    assert_eq!(bench.left(), [(40, 1)]);
    assert_eq!(bench.regulator.poll_timeout(), Some(at(70)));
}

#[test]
fn acks_that_have_waited_leave_at_the_end_of_a_tti() {
    let mut bench = Bench::new(Config { tti: ms(30), ..step() });
    bench.occupancy = 5;
    (0..3).for_each(|number| bench.ack(0, number));
    // 100 and then 220 fall within a TTI; the TTIs end at 120 and 240.
    assert_eq!(bench.until(1000), [(0, 0), (120, 1), (240, 2)]);
    bench.now = at(1010);
    bench.ack(0, 3);
    assert_eq!(bench.left(), [(1010, 3)], "an undelayed ACK leaves on arrival");
}

#[test]
fn data_of_the_mobile_passes_and_takes_with_it_what_waits_of_its_flow() {
    for flags in [Flags::ACK, Flags::ACK | Flags::FIN, Flags::ACK | Flags::RST] {
        let mut bench = Bench::new(step());
        bench.occupancy = 5;
        for (flow, number) in [(0, 1), (0, 2), (1, 3), (0, 4)] {
            bench.ack(flow, number);
        }
        let mut reply = Segment::pure_ack(FlowId(0), Seq(5), 40);
        (reply.payload, reply.flags) = (100, flags);
        bench.regulator.handle_ack(bench.now, reply, bench.view());
        assert_eq!(bench.until(1000), [(0, 1), (0, 2), (0, 4), (0, 5), (100, 3)]);
    }
}

#[test]
fn a_flow_that_ends_takes_its_acks_with_it_and_the_others_wait_on() {
    let mut bench = Bench::new(step());
    bench.occupancy = 5;
    for (flow, number) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
        bench.ack(flow, number);
    }
    bench.regulator.close(bench.now, FlowId(1));
    assert_eq!(bench.left(), [(0, 1), (0, 2), (0, 4)]);
    bench.regulator.close(bench.now, FlowId(0));
    assert_eq!((bench.left(), bench.regulator.poll_timeout()), (vec![(0, 3)], None));
}

#[test]
fn a_receiver_that_acknowledges_byte_by_byte_has_so_many_acks_waiting_and_no_more() {
    let mut bench = Bench::new(step());
    bench.occupancy = 5;
    (0..=MOST_WAITING as u32 + 10).for_each(|number| bench.ack(0, number));
    assert_eq!((bench.left().len(), bench.regulator.held(FlowId(0))), (11, MOST_WAITING));
    assert!(bench.regulator.poll_timeout().is_some());
}

#[test]
fn what_makes_no_sense_is_named() {
    let wrong = [
        (Config { alpha: -0.1, ..Config::default() }, "alpha"),
        (Config { alpha: f64::NAN, ..Config::default() }, "alpha"),
        (Config { min_threshold: 50, ..Config::default() }, "min_threshold"),
        (Config { max_threshold: 1_000_000, ..Config::default() }, "max_threshold"),
        (Config { min_delay: ms(501), ..Config::default() }, "min_delay"),
        (Config { max_delay: Span::from_secs(61), ..Config::default() }, "max_delay"),
        (Config { tti: Span::from_secs(61), ..Config::default() }, "tti"),
    ];
    for (config, path) in wrong {
        assert_eq!(config.check().unwrap_err().path, path);
    }
}
