//! What records of the kernel teach.

use ackclock_box::maps::Record;
use ackclock_box::observers::Observer;
use ackclock_core::{ConfigError, Size, Span, Time};
use ackclock_link::Side;
use ackclock_observe::ObservedConfig;

const PAYLOAD: u32 = 1448;
const EVERY: Span = Span::from_millis(10);

fn new(regulator: &str, buffer: Size) -> Result<Observer, ConfigError> {
    let observed = ObservedConfig { side: Side::Mobile, ..ObservedConfig::default() };
    Observer::new(&regulator.into(), &observed, buffer)
}

fn observer(regulator: &str) -> Observer {
    new(regulator, Size::Packets(20)).unwrap()
}

fn record(at: Time, kind: u32, arrived: u32, told: u32) -> Record {
    let passed = u64::from(arrived) - 1;
    let segment = if kind == Record::OPENED { 0 } else { PAYLOAD };
    Record {
        at_ns: at.as_nanos(),
        passed,
        kind,
        flow: 3,
        arrived,
        told,
        acked: arrived,
        segment,
        ..Record::default()
    }
}

/// A download of one packet every 10 ms, each called for by the ACK of 40 ms before, from the 50th on of 80 ms before, half of which is
/// queueing delay; gives its end.
fn download(observer: &mut Observer, packets: u32) -> Time {
    let begin = Time::from_nanos(5_000_000_000);
    observer.learn(&Record { value: 40_000, ..record(begin, Record::OPENED, 1, 4 * PAYLOAD) });
    let mut now = begin;
    for number in 1..=packets {
        now += EVERY;
        let end = 1 + number * PAYLOAD;
        observer.learn(&record(now, Record::DATA, end, 0));
        let ahead = if number < 50 { 4 } else { 8 };
        observer.learn(&record(now, Record::ACK, end, 1 + (number + ahead) * PAYLOAD));
    }
    now
}

#[test]
fn a_window_regulator_allows_its_buffer_in_packets_of_the_largest_size_seen() {
    for (regulator, base) in [("wrs", 0), ("wrd", 1)] {
        let mut observer = observer(regulator);
        let now = download(&mut observer, 20);
        let allowed = observer.allowed(now).unwrap();
        assert_eq!((allowed.base, allowed.least), (base, 2 * PAYLOAD), "{regulator}");
        assert!(allowed.bytes >= 20 * PAYLOAD, "{regulator}: {allowed:?}");
        assert!(regulator != "wrs" || allowed.bytes == 20 * PAYLOAD, "{allowed:?}");
    }
}

/// A packet leaves a busy queue every 10 ms, four in the least loop of 40 ms.
#[test]
fn a_buffer_follows_what_leaves_in_a_loop_and_a_fixed_one_below_it_is_told() {
    let after = |buffer| {
        let mut observer = new("wrs", buffer).unwrap();
        let now = download(&mut observer, 200);
        (observer.allowed(now).unwrap().bytes / PAYLOAD, observer.packets_missed(now))
    };
    let (packets, missed) = after(Size::Bdp(10.0));
    assert!((38..=42).contains(&packets) && missed.is_none(), "{packets} packets, {missed:?}");
    assert_eq!(after(Size::Bdp(3.0)), (20, None), "12 packets are below the least");
    assert_eq!(after(Size::Packets(20)), (20, None));
    for small in [Size::Packets(2), Size::Bytes(2 * u64::from(PAYLOAD))] {
        let missed = after(small).1;
        assert!(missed.is_some_and(|packets| (4..=5).contains(&packets)), "{small}: {missed:?}");
    }
}

/// The subscriber's buffer is shared by the connections that had data within two seconds.
#[test]
fn four_connections_share_one_buffer() {
    let mut observer = observer("wrs");
    let begin = Time::from_nanos(5_000_000_000);
    for flow in 0..4 {
        observer.learn(&Record { flow, ..record(begin, Record::OPENED, 1, 4 * PAYLOAD) });
    }
    let mut now = begin;
    for packet in 1..=60u32 {
        now += EVERY;
        for flow in 0..4 {
            let end = 1 + packet * PAYLOAD;
            observer.learn(&Record { flow, ..record(now, Record::DATA, end, 0) });
            observer.learn(&Record { flow, ..record(now, Record::ACK, end, end + 4 * PAYLOAD) });
        }
    }
    assert_eq!(observer.allowed(now).map(|allowed| allowed.bytes), Some(5 * PAYLOAD));
    // One of them goes on alone.
    for packet in 61..=400u32 {
        now += EVERY;
        let end = 1 + packet * PAYLOAD;
        observer.learn(&Record { flow: 2, ..record(now, Record::DATA, end, 0) });
    }
    assert_eq!(observer.allowed(now).map(|allowed| allowed.bytes), Some(20 * PAYLOAD));
}

/// Connections that fetched 5 kB, or had only a handshake, and stay open.
fn open_idle(observer: &mut Observer, count: u32) {
    for flow in 100..100 + count {
        let begin = Time::from_nanos(3_000_000_000);
        observer.learn(&Record { flow, value: 40_000, ..record(begin, Record::OPENED, 1, 4 * PAYLOAD) });
        if flow % 2 == 0 {
            observer.learn(&Record { flow, ..record(begin + EVERY, Record::DATA, 5001, 0) });
            observer.learn(&Record { flow, ..record(begin + EVERY, Record::ACK, 5001, 9 * PAYLOAD) });
        }
    }
}

#[test]
fn idle_connections_take_nothing_of_the_allowance() {
    for regulator in ["wrs", "wrd", "forecast"] {
        let mut alone = observer(regulator);
        let now = download(&mut alone, 500);
        let alone = alone.allowed(now).unwrap().bytes;
        for count in [1, 6, 20, 200] {
            let mut observer = observer(regulator);
            open_idle(&mut observer, count);
            let now = download(&mut observer, 500);
            let bytes = observer.allowed(now).unwrap().bytes;
            assert!(bytes * 100 >= alone * 95, "{regulator}, {count}: {bytes} of {alone} bytes");
        }
    }
}

#[test]
fn a_forecast_allows_less_than_the_buffer_where_less_fills_the_link() {
    let mut observer = observer("forecast");
    let now = download(&mut observer, 500);
    let allowed = observer.allowed(now).unwrap();
    // Four packets leave in the least loop, and what arrived has left.
    assert!(allowed.base == 1 && allowed.bytes < 20 * PAYLOAD, "{allowed:?}");
    assert!(allowed.bytes > 2 * PAYLOAD, "{allowed:?}");
}

/// The kernel numbers connections since it was loaded; the estimators' memory must not grow with these numbers.
#[test]
fn a_connection_may_have_any_number() {
    let mut observer = observer("wrd");
    for round in 0..100u32 {
        let begin = Time::from_nanos(5_000_000_000) + Span::from_secs(u64::from(round) * 20);
        observer.forget_quiet(begin);
        assert_eq!(observer.connections(), 0);
        for flow in [u32::MAX - round, u32::MAX / 2 + round] {
            observer.learn(&Record { flow, ..record(begin, Record::OPENED, 1, 4 * PAYLOAD) });
            observer.learn(&Record { flow, ..record(begin + EVERY, Record::DATA, 1 + PAYLOAD, 0) });
        }
        assert_eq!(observer.connections(), 2);
        assert!(observer.allowed(begin + EVERY).is_some());
    }
}

/// The estimators know connections by small numbers: one that comes after another was forgotten has a number that no open
/// connection has, so what is learnt of the others stays the same.
#[test]
fn a_connection_that_comes_after_a_forgotten_one_is_not_mistaken_for_another() {
    for regulator in ["wrs", "wrd", "forecast"] {
        for others in 1..4 {
            let learnt = |forgets: bool| {
                let mut observer = observer(regulator);
                open_idle(&mut observer, others);
                let now = download(&mut observer, 1_200);
                if forgets {
                    observer.forget_quiet(now);
                    assert_eq!(observer.connections(), 1);
                }
                let new = Record { flow: 500, value: 40_000, ..record(now, Record::OPENED, 1, 4 * PAYLOAD) };
                observer.learn(&new);
                observer.learn(&Record { flow: 500, ..record(now, Record::DATA, 1 + PAYLOAD, 0) });
                let end = 1 + 1_201 * PAYLOAD;
                let delay = observer.learn(&record(now + EVERY, Record::DATA, end, 0));
                (delay, observer.allowed(now + EVERY).map(|allowed| allowed.bytes))
            };
            assert_eq!(learnt(true), learnt(false), "{regulator} beside {others}");
        }
    }
}

/// The handshake is the first sample of the loop, and each packet that an ACK called for is one more.
#[test]
fn before_three_samples_of_the_loop_nothing_is_allowed() {
    for regulator in ["wrs", "wrd", "forecast"] {
        for (packets, is_allowed) in [(0, false), (1, false), (2, true)] {
            let mut observer = observer(regulator);
            let now = download(&mut observer, packets);
            assert_eq!(observer.allowed(now).is_some(), is_allowed, "{regulator}: {packets} packets");
        }
    }
}

#[test]
fn without_data_nothing_new_is_allowed() {
    let mut observer = observer("wrs");
    assert_eq!(observer.allowed(Time::ZERO), None);
    let now = download(&mut observer, 20) + Span::from_secs(3);
    assert_eq!(observer.allowed(now), None);
}

#[test]
fn regulators_that_need_the_queue_itself_are_refused_with_the_reason() {
    for (regulator, path, reason) in [
        ("snoop", "regulator", "`snoop`: "),
        ("ack-regulator", "regulator", "`ack-regulator`: "),
        ("wrb", "regulator", "`wrb`: "),
        ("none", "regulator", "`none`: "),
        ("nosuch", "regulator", "nosuch"),
    ] {
        let error = new(regulator, Size::Packets(20)).map(|_| ()).unwrap_err();
        assert!(error.path == path && error.message.contains(reason), "{error:?}");
    }
    let error = new("wrs", Size::Time(Span::from_secs(1))).map(|_| ()).unwrap_err();
    assert_eq!(error.path, "buffer");
}

/// Behind a hole, the record of new data also counts data that passed before. Its time is then that of the last packet.
#[test]
fn new_data_in_the_record_of_a_repetition_gives_no_queueing_delay() {
    let delay = |repeated| {
        let mut observer = observer("forecast");
        let now = download(&mut observer, 40) + Span::from_millis(600);
        let late = Record { repeated, ..record(now, Record::DATA, 1 + 41 * PAYLOAD, 0) };
        observer.learn(&late).map(|(delay, _)| delay)
    };
    assert!(delay(0).is_some_and(|delay| delay > Span::from_millis(500)), "{:?}", delay(0));
    assert!(delay(1).is_none_or(|delay| delay < Span::from_millis(50)), "{:?}", delay(1));
}

/// ACKs of one burst have one record. Data that a later one of them calls for needs the edge of that ACK, not the edge that
/// the next record tells 35 ms later.
#[test]
fn an_edge_without_a_record_of_its_own_makes_no_loop_short() {
    let mut observer = observer("forecast");
    let now = download(&mut observer, 40);
    let (at, edge) = (|millis| now + Span::from_millis(millis), |packets| 1 + packets * PAYLOAD);
    let mut learn = |millis, kind, arrived, told_before, told| {
        let record = record(at(millis), kind, edge(arrived), edge(told));
        observer.learn(&Record { told_before: edge(told_before), ..record }).map(|(delay, _)| delay)
    };
    learn(10, Record::ACK, 40, 44, 45);
    (41..46).for_each(|packet| _ = learn(10 * (packet - 40), Record::DATA, packet as u32, 0, 0));
    learn(51, Record::ACK, 45, 48, 49);
    learn(52, Record::DATA, 46, 0, 0);
    let delay = learn(91, Record::DATA, 49, 0, 0).unwrap();
    assert!(delay < Span::from_millis(5), "{delay:?} in a loop of 40 ms");
}
