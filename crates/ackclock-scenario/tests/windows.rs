//! The Window Regulators in complete scenarios, each result compared with theory.

#![allow(clippy::print_stdout, reason = "a skipped test says why")]

use std::path::PathBuf;
use std::sync::Arc;

use ackclock_scenario::{Files, RunOptions, RunResult, Scenario, run};

/// The recordings, if available.
struct Recordings(Option<PathBuf>);

impl Files for Recordings {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let folder = self.0.as_ref().ok_or("there are no files here")?;
        std::fs::read(folder.join(path)).map(Into::into).map_err(|error| format!("{path}: {error}"))
    }
}

/// Senders and wired path of Chan and Ramjee, with a rate that is redrawn every 50 ms.
const FADING: &str = r#"
preset = "cr02"
duration = "300s"
[edge.down]
rate = "ln(700kbit/s, 600kbit/s)"
redraw = "interval(50ms)"
delay = "u(75ms, 30ms)"
[edge.up]
rate = "64kbit/s"
delay = "u(125ms, 15ms)"
[[flow]]
sender = "reno"
"#;

const STEADY: &str = "preset = \"cr02\"\nduration = \"1000s\"\n[[flow]]\nsender = \"reno\"\n";

fn result(text: &str, sets: &[String], files: &Recordings) -> RunResult {
    let scenario = Scenario::load("windows.toml", text, sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, files, RunOptions::default()).unwrap().result
}

fn with(text: &str, regulator: &str, buffer: &str, more: &[&str]) -> RunResult {
    let mut sets = vec![format!("edge.regulator={regulator}"), format!("edge.buffer={buffer}")];
    sets.extend(more.iter().map(|&set| set.to_owned()));
    result(text, &sets, &Recordings(None))
}

/// Share of the capacity, headers included.
fn used(result: &RunResult) -> f64 {
    result.bottleneck.utilisation.unwrap()
}

/// 200 + 200 ms of radio, 2 ms of wired path, 40 ms for 1000 B at 200 kbit/s and 5 ms for 40 B at 64: an RTT of 447
/// ms, in which the link can deliver 11 packets.
#[test]
fn the_static_window_carries_one_buffer_a_round_trip() {
    for buffer in [2.0, 5.0, 10.0] {
        let result = with(STEADY, "wrs", &format!("{buffer}p"), &[]);
        let expected = buffer * 8000.0 / 0.447;
        let rate = result.flows[0].wire_goodput_bps.unwrap();
        assert!((rate - expected).abs() < 0.01 * expected, "{buffer}: {rate} of {expected}");
    }
}

/// On a link of constant rate packets leave as fast as ACKs arrive, and a few packets of buffer are enough. The queue
/// holds at most B packets: B times 40 ms. A drop-tail queue runs empty after every loss of its saw-tooth, which falls
/// from 11 + 5 + 1 packets to half.
#[test]
fn the_dynamic_window_fills_a_steady_link_with_few_packets() {
    let none = with(STEADY, "none", "5p", &[]);
    for regulator in ["wrd", "wrb"] {
        let result = with(STEADY, regulator, "5p", &[]);
        let queue = result.bottleneck.queue_ms.p95.unwrap();
        assert!(used(&result) > 0.99 && queue < 1.02 * 200.0, "{regulator}: {} {queue}", used(&result));
        assert_eq!((result.bottleneck.drops, result.flows[0].retransmits.unwrap()), (0, 0), "{regulator}");
        assert!(used(&none) < used(&result) - 0.01, "{}", used(&none));
    }
}

#[test]
fn nothing_is_dropped_however_the_rate_changes() {
    for regulator in ["wrs", "wrd", "wrb"] {
        for sender in ["reno", "sack1", "cubic", "bbr"] {
            for buffer in ["3p", "20p"] {
                let sender = format!("flow.sender={sender}");
                let result = with(FADING, regulator, buffer, &[&sender, "duration=100s"]);
                assert_eq!(result.bottleneck.drops, 0, "{regulator} {sender} {buffer}");
            }
        }
    }
}

/// CR04 figure 7: small buffers. The source claims only an order.
#[test]
fn small_buffers_are_used_best_by_the_one_that_holds_acks() {
    for seed in ["seed=1", "seed=2", "seed=3"] {
        for buffer in ["5p", "10p"] {
            let used = |regulator| used(&with(FADING, regulator, buffer, &[seed]));
            let [none, ack, fixed, dynamic, held] = ["none", "ack-regulator", "wrs", "wrd", "wrb"].map(used);
            let text = format!("{seed} {buffer}: {none} {ack} {fixed} {dynamic} {held}");
            assert!(held > dynamic && dynamic > ack && ack > none && ack > fixed, "{text}");
            assert!(held > 0.97, "{text}");
        }
    }
}

/// The packets that a dynamic window releases are in the queue or on the wired path: at most B packets per wired RTT. A
/// source whose queue may overflow has as many packets on the wired path as its window allows.
#[test]
fn a_long_wire_takes_the_dynamic_windows_more_than_the_others() {
    for (delay, seconds) in [("path.delay=200ms", 0.4), ("path.delay=400ms", 0.8)] {
        for regulator in ["wrd", "wrb"] {
            let result = with(FADING, regulator, "20p", &[delay]);
            let most = 20.0 * 8000.0 / seconds;
            let rate = result.flows[0].wire_goodput_bps.unwrap();
            assert!(rate < most, "{regulator} {delay}: {rate} of {most}");
            let none = with(FADING, "none", "20p", &[delay]);
            assert!(seconds < 0.8 || used(&none) > used(&result), "{regulator} {delay}");
        }
    }
}

/// The radio link control keeps a packet until the far end has acknowledged it. Without a regulator, 20 packets of
/// buffer overflow and fill half of the bearer. One that sees what the buffer keeps drops less and delivers more;
/// Window Regulators drop nothing unless a timer expires.
#[test]
fn over_a_radio_link_control_packets_that_it_keeps_take_room() {
    let over = |regulator: &str, number| {
        let sets = [format!("edge.regulator={regulator}"), "edge.buffer=20p".into()];
        let text = "preset = \"ac06\"\n[[flow]]\nsender = \"reno\"\n";
        let scenario = Scenario::load("rlc.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"));
        let result = run(&scenario, number, &Recordings(None), RunOptions::default()).unwrap().result;
        (used(&result), result.bottleneck.drops, result.flows[0].timeouts.unwrap())
    };
    for number in 0..2 {
        let none = over("none", number);
        let ack = over("ack-regulator", number);
        assert!(ack.1 < none.1 && ack.0 > none.0, "run {number}: {ack:?}, {none:?} without a regulator");
        for regulator in ["wrs", "wrd", "wrb"] {
            let window = over(regulator, number);
            assert!(window.0 > none.0 + 0.1, "run {number}, {regulator}: {window:?} {none:?}");
            assert_eq!((window.1, window.2), (0, 0), "run {number}, {regulator}");
        }
    }
}

/// A packet lost in the air must not change the window: otherwise the flow would slow down over time, or overflow the
/// queue. In a run of five parts of 1000 losses each, every part has the goodput of the first, within three times the
/// random variation of a flow with independent losses (about 1 / sqrt(1000)).
#[test]
fn losses_leave_nothing_behind_in_the_window() {
    for regulator in ["wrs", "wrd", "wrb"] {
        for sender in ["reno", "cubic"] {
            let sender = format!("flow.sender={sender}");
            let lasting = |duration| {
                with(
                    STEADY,
                    regulator,
                    "10p",
                    &["edge.down.loss=0.02", "flow.acks=delayed", &sender, duration],
                )
            };
            let (first, whole) = (lasting("duration=3000s"), lasting("duration=15000s"));
            let rate = |result: &RunResult| result.flows[0].wire_goodput_bps.unwrap();
            let change = rate(&whole) / rate(&first) - 1.0;
            assert!(change.abs() < 0.1, "{regulator} {sender}: {change}");
            // No more are lost than the air loses, five standard deviations apart.
            let sent = whole.flows[0].segments_sent as f64;
            let (lost, chance) = (whole.bottleneck.drops as f64, (0.02 * sent).sqrt());
            assert!((lost - 0.02 * sent).abs() < 5.0 * chance, "{regulator} {sender}: {lost} of {sent}");
        }
    }
}

/// A recording with outages of up to 11 s and spurious timeouts, which a count of the packets in the air does not
/// survive.
#[test]
fn outages_of_seconds_leave_nothing_behind_either() {
    let Some(shared) = std::env::var_os("ACKCLOCK_SHARED") else {
        println!("skipped: ACKCLOCK_SHARED is not set");
        return;
    };
    let files = Recordings(Some(PathBuf::from(shared).join("traces/mahimahi-3g-lte")));
    let run = |regulator: &str, acks: &str| {
        let sets = [
            format!("edge.regulator={regulator}"),
            format!("flow.acks={acks}"),
            "flow.packet=1500B".into(),
            "edge.buffer=20p".into(),
            "path.delay=50ms".into(),
            "duration=1062s".into(),
            r#"edge.down={ kind = "trace", file = "Verizon-EVDO-driving.down" }"#.into(),
            r#"edge.up={ kind = "trace", file = "Verizon-EVDO-driving.up" }"#.into(),
        ];
        used(&result(STEADY, &sets, &files))
    };
    for acks in ["every", "delayed"] {
        let [none, fixed, dynamic, held] = ["none", "wrs", "wrd", "wrb"].map(|name| run(name, acks));
        let text = format!("{acks}: {none} {fixed} {dynamic} {held}");
        assert!(held > 0.8 && held > dynamic && held > fixed && held > none, "{text}");
        println!("{text}");
    }
    // Where an ACK covers two packets, the count as printed never comes down, and regulates nothing any more.
    let printed = run(r#"{ kind = "wrb", count = "printed" }"#, "delayed");
    assert!(printed < run("wrb", "delayed") - 0.05, "{printed}");
}
