//! A small matrix of scenarios, each result compared with theory.

#![allow(clippy::print_stdout, reason = "a skipped test says why, a table is there to be read")]

use std::fmt::Write;

use ackclock_scenario::{Files, NoFiles, RunOptions, RunResult, Scenario, run};

fn result(sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario =
        Scenario::load("cr02.toml", "preset = \"cr02\"\n", &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

/// CR02 Table 1 item 1: a constant link of 25 packets/s, T = 0.40 + 0.04 + 0.005 + 0.002 s plus a little, B = 10. The
/// window of the saw-tooth falls from W = floor(mu T) + B + 1 = 22 to half, and an hour has 401 cycles.
#[test]
fn the_saw_tooth_of_a_constant_link_is_the_printed_one() {
    let result = result(&[]);
    let flow = &result.flows[0];
    // Slow start causes additional losses.
    assert_eq!(flow.fast_retransmits, Some(401));
    assert_eq!(flow.timeouts, Some(1));
    // Printed: 616.2 ms.
    assert!((flow.timed_rtt_ms.unwrap() - 616.2).abs() < 0.5, "{:?}", flow.timed_rtt_ms);
    let wf = flow.loss_cycles.as_ref().and_then(|cycles| cycles.wf).unwrap();
    assert!((wf - 22.0).abs() < 0.2, "{wf}");
}

/// A recording longer than the run and used only by it.
struct OneFile(&'static str);

impl Files for OneFile {
    fn read(&self, _: &str) -> Result<std::sync::Arc<[u8]>, String> {
        Ok(self.0.as_bytes().into())
    }
}

/// An outage of 40 s in 60 s at 1 Mbit/s, written in four ways, leaves a third of the capacity, and the link uses it.
#[test]
fn the_capacity_is_what_the_run_saw() {
    let recordings = "time_s,rate_kbps\n0,1000\n10,0\n50,1000\n60,100\n120,100\n";
    let opportunities = "1\n"; // 12 Mbit/s
    let steps = r#"edge.at = [{ time = "10s", set = { down.rate = "0bit/s" } }, { time = "50s", set = { down.rate = "1Mbit/s" } }]"#;
    let outages = r#"edge.down = { kind = "variable", rate = "1Mbit/s", delay = "10ms", outages = [{ at = "10s", for = "40s" }] }"#;
    let constant = r#"edge.down = { kind = "constant", rate = "1Mbit/s", delay = "10ms" }"#;
    let trace = r#"edge.down = { kind = "trace", file = "x", delay = "10ms" }"#;
    for (lines, file, capacity) in [
        (vec![outages], recordings, 1e6 / 3.0),
        (vec![constant, steps], recordings, 1e6 / 3.0),
        (vec![trace], recordings, 1e6 / 3.0),
        // 1504 bytes each millisecond, of which packets of 1000 bytes take 1004 each, as mm-link counts.
        (vec![trace], opportunities, 1504.0 * 8e3 / 1.004),
    ] {
        let text = format!("duration = \"60s\"\nedge.buffer = \"400p\"\n{}\n[[flow]]\n", lines.join("\n"));
        let scenario = Scenario::load("x.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let result = run(&scenario, 0, &OneFile(file), RunOptions::default()).unwrap().result;
        let got = result.bottleneck.capacity_bps.unwrap();
        assert!((got - capacity).abs() < 1e-3 * capacity, "{lines:?}: {got}");
        let used = result.bottleneck.utilisation.unwrap();
        assert!((0.85..=1.0).contains(&used), "{lines:?}: {used}");
    }
}

/// A saturated link delivers its capacity: 1 / E[1/R] with a rate per packet, E[R] with a rate per time.
#[test]
fn a_saturated_link_carries_what_theory_says() {
    // sqrt 3 x 50 = 86.6: 173.2 / (ln 286.6 - ln 113.4) = 186.8 kbit/s.
    let cases = [
        ("200kbit/s", "packet", 200_000.0),
        ("u(200kbit/s, 50kbit/s)", "packet", 186_800.0),
        ("u(200kbit/s, 50kbit/s)", "interval(100ms)", 200_000.0),
    ];
    for (rate, redraw, capacity) in cases {
        let sets = [format!("edge.down.rate={rate}"), format!("edge.down.redraw={redraw}")];
        let sets =
            [sets[0].as_str(), sets[1].as_str(), "edge.buffer=200p", "flow.max_window=60p", "duration=2000s"];
        let result = result(&sets);
        // Standard error of the mean rate over 46 000 packets, or 20 000 intervals: below 0.2 %; five of them.
        let got = result.bottleneck.capacity_bps.unwrap();
        assert!((got - capacity).abs() < 0.01 * capacity, "{rate} {redraw}");
        // A window of 60 packets fills 22 of the pipe and never the buffer: no loss, and all is used but for slow
        // start, which takes 6 round trips of 0.5 s in 2000.
        let used = result.bottleneck.utilisation.unwrap();
        assert!((0.998..=1.0).contains(&used), "{rate} {redraw}: {used}");
        assert_eq!((result.bottleneck.drops, result.flows[0].timeouts), (0, Some(0)));
        // The rest of the window is queued: 60 packets / rate - 447 ms of base RTT.
        let packets_per_s = got * used / 8000.0;
        let expected = 60.0 / packets_per_s * 1e3;
        let rtt = result.flows[0].rtt_ms.mean.unwrap();
        assert!(
            (rtt - expected).abs() < 0.02 * expected,
            "{rate} {redraw}: {rtt} ms, Little's law says {expected}"
        );
    }
}

/// A window that does not fill the pipe gives a goodput of window / RTT with any sender.
#[test]
fn a_small_window_gives_one_window_a_round_trip() {
    for sender in ["reno", "newreno", "sack", "sack1", "cubic"] {
        let sender = format!("flow.sender={sender}");
        let result = result(&["flow.max_window=4p", "duration=400s", &sender]);
        let flow = &result.flows[0];
        let expected = 4.0 * 8000.0 / (flow.rtt_ms.mean.unwrap() / 1e3);
        // Slow start takes two round trips of about 0.45 s in 400 s.
        assert!((flow.wire_goodput_bps.unwrap() - expected).abs() < 0.01 * expected, "{sender}");
        assert_eq!(flow.retransmits.unwrap(), 0);
    }
}

/// The printed table; the last column is the upper bound of each row.
#[test]
fn the_matrix_of_senders_and_regulators_stays_within_capacity() {
    let mut table = String::from("\nsender  regulator       B   kbit/s  TO   queue ms  bound kbit/s\n");
    for sender in ["reno", "sack1"] {
        for regulator in ["none", "ack-regulator"] {
            for buffer in ["4p", "10p"] {
                let sets = [
                    format!("flow.sender={sender}"),
                    format!("edge.regulator={regulator}"),
                    format!("edge.buffer={buffer}"),
                ];
                let mut sets: Vec<&str> = sets.iter().map(String::as_str).collect();
                sets.extend(["edge.down.delay=e(100ms)", "edge.up.delay=300ms", "duration=1200s"]);
                let result = result(&sets);
                let flow = &result.flows[0];
                let rate = flow.wire_goodput_bps.unwrap() / 1e3;
                let wait = result.bottleneck.queue_ms.mean.unwrap();
                writeln!(
                    table,
                    "{sender:7} {regulator:14} {buffer:>3} {rate:8.1} {:3} {wait:10.1}  200.0",
                    flow.timeouts.unwrap()
                )
                .unwrap();
                // No more than the capacity, and no packet waits behind more than B others and the one in transmission.
                let packets: f64 = buffer.trim_end_matches('p').parse().unwrap();
                assert!(rate < 200.0 && wait < (packets + 1.0) * 40.0, "{table}");
            }
        }
    }
    println!("{table}");
    // Purpose of the regulator: more goodput with the same buffer, fewer timeouts.
    let row = |name: &str| -> f64 {
        let line = table
            .lines()
            .find(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(name));
        line.unwrap().split_whitespace().nth(3).unwrap().parse().unwrap()
    };
    for buffer in ["4p", "10p"] {
        assert!(
            row(&format!("reno ack-regulator {buffer}")) > 1.15 * row(&format!("reno none {buffer}")),
            "{table}"
        );
    }
}
