//! mm-link's log of a data plane: every packet arrives, and then leaves or is dropped, at the link and not at the ports.

use std::time::Duration;

use ackclock_core::{Size, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::NoFiles;
use ackclock_live::log::{LinkLog, LogHeader};
use ackclock_live::{Plane, PlaneConfig, Side};
use ackclock_testkit::Written;
use serde_json::json;

/// Wakes the plane whenever it wants to be, as the driver does.
fn drive(plane: &mut Plane, until_millis: u64) {
    let until = Time::ZERO + Span::from_millis(until_millis);
    while let Some(wake) = plane.next_wake().filter(|&wake| wake < until) {
        plane.advance(wake);
        while let Some(departure) = plane.poll_departure() {
            plane.release(departure.packet);
        }
    }
}

/// The lines behind the header of the log of a burst of four packets of 1000 bytes at 0, one at 500 ms.
fn log_of(from: Side) -> String {
    let way = json!({ "kind": "constant", "rate": "1Mbit/s", "delay": "0ms" });
    let edge = EdgeConfig {
        down: way.clone().into(),
        up: way.into(),
        buffer: Size::Packets(2),
        ..EdgeConfig::default()
    };
    let config = PlaneConfig { delay: Span::from_millis(100), ..PlaneConfig::new(&edge) };
    let mut plane = Plane::new(&config, &NoFiles).unwrap();
    let out = Written::default();
    let header = LogHeader {
        link: "link",
        recording: "",
        log: "",
        command_line: "",
        queue: "",
        began_ms: 0,
        shell_prefix: None,
    };
    let (log, ending) = LinkLog::begin(out.clone(), &header, None).unwrap();
    plane.log(from.other(), log);
    for millis in [0, 0, 0, 0, 500] {
        drive(&mut plane, millis);
        let mut buffer = plane.pool().buffer();
        let packet = plane.pool_mut().claim(&mut buffer, 1000).unwrap();
        plane.arrive(Time::ZERO + Span::from_millis(millis), from, packet);
    }
    drive(&mut plane, 1000);
    plane.finish_logs();
    assert_eq!(ending.wait(Duration::from_secs(60)).unwrap(), 0);
    let text = String::from_utf8(out.bytes()).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[test]
fn downwards_the_extra_delay_lies_before_the_link() {
    // 8 ms a packet; one is in transmission, two wait, the fourth finds the queue full.
    let expected = "\
100 + 1004
100 + 1004
100 + 1004
100 + 1004
100 d 1 1004
108 - 1004 8
116 - 1004 16
124 - 1004 24
600 + 1004
608 - 1004 8
";
    assert_eq!(log_of(Side::Wired), expected);
}

#[test]
fn upwards_it_lies_behind_it() {
    // The queue upwards has no limit.
    let expected = "\
0 + 1004
0 + 1004
0 + 1004
0 + 1004
8 - 1004 8
16 - 1004 16
24 - 1004 24
32 - 1004 32
500 + 1004
508 - 1004 8
";
    assert_eq!(log_of(Side::Radio), expected);
}
