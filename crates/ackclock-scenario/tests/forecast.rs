//! The forecasting Window Regulator in complete scenarios, compared with a queue alone.

use std::path::PathBuf;
use std::sync::Arc;

use ackclock_scenario::{Files, RunOptions, RunResult, Scenario, run};

/// The shipped recordings.
struct Shipped;

impl Files for Shipped {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/recordings");
        std::fs::read(folder.join(path)).map(Into::into).map_err(|error| format!("{path}: {error}"))
    }
}

const DRIVING: &str = r#"
preset = "linux"
duration = "300s"
[path]
delay = "20ms"
[edge]
buffer = "2000p"
[edge.down]
kind = "trace"
file = "synthetic-evdo-driving.down"
[edge.up]
rate = "1Mbit/s"
[[flow]]
sender = "cubic"
"#;

fn with(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("forecast.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &Shipped, RunOptions::default()).unwrap().result
}

fn used(result: &RunResult) -> f64 {
    result.bottleneck.utilisation.unwrap()
}

fn p95(result: &RunResult) -> f64 {
    result.bottleneck.queue_ms.p95.unwrap()
}

#[test]
fn nearly_all_of_the_capacity_at_an_eighth_of_the_delay() {
    let queue = with(DRIVING, &["edge.buffer=200p"]);
    for wire in ["1ms", "20ms", "50ms"] {
        let delay = format!("path.delay={wire}");
        let result = with(DRIVING, &["edge.regulator=forecast", &delay]);
        assert!(used(&result) > 0.96, "{wire}: {}", used(&result));
        assert!(p95(&result) < p95(&queue) / 8.0, "{wire}: {} of {}", p95(&result), p95(&queue));
        assert_eq!(result.bottleneck.drops, 0, "{wire}");
    }
}

/// A Reno sender of the RFCs takes no timeout back. Files that come and go take more than half of the link, and the held
/// ACKs of the download cost it nothing.
#[test]
fn held_acks_cause_no_timeout_beside_files_that_come_and_go() {
    let text = r#"
        preset = "linux"
        duration = "60s"
        path = { delay = "20ms" }
        [edge]
        buffer = "1000p"
        down = { kind = "constant", rate = "500kbit/s", delay = "10ms" }
        up = { kind = "constant", rate = "10Mbit/s", delay = "10ms" }
        [[flow]]
        sender = { kind = "reno", stack = "rfc" }
        [[flow]]
        sender = { kind = "reno", stack = "rfc" }
        workload = { kind = "ftp", size = "600kB", interval = "2s", interval_from = "end" }
    "#;
    for start in ["flow.1.start=3s", "flow.1.start=5s", "flow.1.start=11s"] {
        let run = |reserve: u32| {
            let set = format!("edge.regulator={{ kind = \"forecast\", reserve = {reserve} }}");
            with(text, &[start, &set])
        };
        let (held, none) = (run(6), run(0));
        assert_eq!((held.flows[0].timeouts, none.flows[0].timeouts), (Some(0), Some(0)), "{start}");
        let share = held.flows[0].goodput_bps.unwrap() / none.flows[0].goodput_bps.unwrap();
        assert!(share > 0.95, "{start}: {share} of the goodput without held ACKs");
    }
}

/// A constant 10 Mbit/s link with an RTT of 100 ms: the forecast is right, so only 10 ms and five packets are queued.
#[test]
fn where_the_link_is_even_little_waits() {
    let steady =
        DRIVING.replace("file = \"synthetic-evdo-driving.down\"", "rate = \"10Mbit/s\"\ndelay = \"20ms\"");
    let steady = steady.replace("kind = \"trace\"", "kind = \"constant\"");
    let result = with(&steady, &["edge.regulator=forecast", "path.delay=40ms", "duration=60s"]);
    let half = result.bottleneck.queue_ms.p50.unwrap();
    assert!(used(&result) > 0.97 && half < 25.0, "{} at {half} ms", used(&result));
}

#[test]
fn window_updates_take_a_twentieth_of_the_acks_at_most() {
    for reserve in [0, 6] {
        let regulator = format!("edge.regulator={{ kind = \"forecast\", reserve = {reserve} }}");
        let result = with(DRIVING, &[&regulator, "path.delay=1ms"]);
        // Every ACK of the mobile and every copy has 52 bytes, including timestamps.
        let acks = result.uplink.utilisation.unwrap() * 1e6 * 300.0 / 8.0 / 52.0;
        let made = result.uplink.made as f64;
        assert!(made > 0.0 && made <= 0.05 * acks + 20.0, "{reserve}: {made} beside {acks}");
    }
}

/// A link of 500 kbit/s with four outages of four seconds.
#[test]
fn what_is_kept_back_brings_a_source_through_outages() {
    let timeouts = |reserve: u32| {
        let mut text = DRIVING.replace("duration = \"300s\"", "duration = \"60s\"");
        for outage in [10, 20, 30, 40] {
            for (time, rate) in [(outage, "0bit/s"), (outage + 4, "500kbit/s")] {
                text += &format!("[[edge.at]]\ntime = \"{time}s\"\nset = {{ down.rate = \"{rate}\" }}\n");
            }
        }
        let regulator = format!("edge.regulator={{ kind = \"forecast\", reserve = {reserve} }}");
        let link = "edge.down={ kind = \"constant\", rate = \"500kbit/s\" }";
        with(&text, &[&regulator, link]).flows[0].timeouts.unwrap()
    };
    let (without, with) = (timeouts(0), timeouts(6));
    assert!(without >= 4 && with == 0, "{with} of {without}");
}

#[test]
fn flows_share_alike() {
    let result = with(DRIVING, &["edge.regulator=forecast", "flow.count=4"]);
    assert!(result.fairness.jain_flows.unwrap() > 0.95, "{:?}", result.fairness);
    assert!(used(&result) > 0.96, "{}", used(&result));
    let alone = p95(&with(DRIVING, &["edge.regulator=forecast"]));
    assert!(p95(&result) < 2.0 * alone, "{} and {alone}", p95(&result));
}

/// Two packets of each of 16 flows take a third of a second at the mean rate, and several seconds during a fade.
#[test]
fn many_flows_take_turns_and_wait_little_longer_than_one() {
    for wire in ["1ms", "20ms", "50ms"] {
        let sets = ["edge.regulator=forecast", &format!("path.delay={wire}"), "duration=120s"];
        let (alone, many) = (with(DRIVING, &sets), with(DRIVING, &[&sets[..], &["flow.count=16"]].concat()));
        assert!(many.fairness.jain_flows.unwrap() > 0.98, "{wire}: {:?}", many.fairness);
        assert!(used(&many) > 0.98, "{wire}: {}", used(&many));
        assert!(p95(&many) < 2.0 * p95(&alone), "{wire}: {} and {}", p95(&many), p95(&alone));
    }
}

/// 2 Mbit/s and 20 ms of radio each way: the queue is short and the link full. The longest queueing delay of BBR, 10 to
/// 20 packets, depends on when it probes, so it is averaged over several base RTTs.
#[test]
fn a_steady_link_is_full_with_few_packets_waiting() {
    let link = "edge.down={ kind = \"constant\", rate = \"2Mbit/s\", delay = \"20ms\" }";
    let wires = ["10ms", "15ms", "20ms", "30ms"];
    for sender in ["reno", "sack", "cubic", "bbr"] {
        let waits = wires.map(|wire| {
            let sets = [&format!("flow.sender={sender}"), &format!("path.delay={wire}")];
            let result = with(DRIVING, &["edge.regulator=forecast", link, sets[0], sets[1], "duration=60s"]);
            assert!(used(&result) > 0.96, "{sender}, {wire}: {}", used(&result));
            p95(&result)
        });
        // The transmission time of a 1500-byte packet is 6 ms.
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!(mean < 20.0 * 6.0, "{sender}: {waits:?}");
    }
}

/// A cell with fast fading, two flows of one user, and UMTS radio link control, which retransmits PDUs.
#[test]
fn in_a_cell_and_over_radio_link_control_it_carries_what_a_queue_alone_does_and_drops_nothing() {
    let cell = "preset = \"cr04\"\nduration = \"60s\"\n[edge]\nbuffer = \"41p\"\n[[flow]]\nsender = \"sack\"\ncount = 2\n";
    let link_control =
        "preset = \"ac06\"\nduration = \"120s\"\n[[flow]]\nsender = \"reno\"\nworkload = \"bulk\"\n";
    for text in [cell, link_control] {
        let (alone, regulated) =
            (with(text, &["edge.regulator=none"]), with(text, &["edge.regulator=forecast"]));
        assert_eq!(regulated.bottleneck.drops, 0, "{text}");
        let goodput =
            |result: &RunResult| result.flows.iter().map(|flow| flow.goodput_bps.unwrap()).sum::<f64>();
        assert!(
            goodput(&regulated) >= goodput(&alone),
            "{text}: {} of {}",
            goodput(&regulated),
            goodput(&alone)
        );
        assert!(p95(&regulated) < p95(&alone) / 2.0, "{text}: {} of {}", p95(&regulated), p95(&alone));
    }
}

/// BBR paces itself: limiting its window or delaying its ACKs would cost up to 5 points of goodput.
#[test]
fn a_source_that_paces_carries_what_it_does_alone() {
    for wire in ["1ms", "20ms", "50ms"] {
        let sets = |regulator: &str| {
            with(
                DRIVING,
                &[
                    &format!("path.delay={wire}"),
                    "flow.sender=bbr",
                    "edge.buffer=1000p",
                    &format!("edge.regulator={regulator}"),
                ],
            )
        };
        let (alone, regulated) = (sets("none"), sets("forecast"));
        assert!(used(&regulated) > used(&alone) - 0.02, "{wire}: {} of {}", used(&regulated), used(&alone));
    }
}

/// Goodput and p95 queueing delay relative to a queue alone, averaged over four seeds.
fn beside_the_queue_alone(text: &str) -> (f64, f64) {
    let sums = |regulator: &str| {
        (1..=4).fold((0.0, 0.0), |(goodput, wait), seed| {
            let result = with(
                text,
                &[&format!("edge.regulator={regulator}"), &format!("seed={seed}"), "duration=60s"],
            );
            let flows = result.flows.iter().map(|flow| flow.goodput_bps.unwrap()).sum::<f64>();
            (goodput + flows, wait + p95(&result))
        })
    };
    let ((alone, long), (regulated, short)) = (sums("none"), sums("forecast"));
    (regulated / alone, short / long)
}

/// 5.6 Mbit/s, 2 ms of wired path, 80 ms of radio, half of it random for each packet: bandwidth x delay is 40 packets.
#[test]
fn a_buffer_of_bandwidth_x_delay_is_let_go_before_it_overflows() {
    let text = r#"
preset = "linux"
[path]
delay = "1ms"
[edge]
buffer = "47p"
[edge.down]
kind = "variable"
rate = "5.6Mbit/s"
delay = "e(40ms)"
redraw = "packet"
[edge.up]
rate = "190kbit/s"
delay = "40ms"
[[flow]]
sender = "newreno"
"#;
    let (goodput, _) = beside_the_queue_alone(text);
    assert!(goodput > 0.95, "{goodput}");
}

/// A link of 5 Mbit/s whose radio sometimes delays packets by up to 300 ms, during which no ACK arrives.
#[test]
fn copies_are_left_for_when_no_ack_comes() {
    let text = r#"
preset = "linux"
[path]
delay = "35ms"
[edge]
buffer = "650p"
[edge.down]
kind = "variable"
rate = "5Mbit/s"
delay = "ln(39ms, 39ms)"
redraw = "packet"
[edge.up]
rate = "300kbit/s"
delay = "39ms"
[[flow]]
sender = "sack"
"#;
    let (goodput, wait) = beside_the_queue_alone(text);
    assert!(goodput > 0.985 && wait < 0.2, "{goodput} {wait}");
}

/// 12 downloads that start within 2 s. Their radio delay is 25 times the delay of the wired path.
#[test]
fn downloads_that_begin_together_fill_the_link_from_the_first_seconds() {
    let text = r#"
preset = "linux"
duration = "4s"
[path]
delay = "4ms"
[edge]
buffer = "500p"
[edge.down]
rate = "15Mbit/s"
delay = "50ms"
[edge.up]
rate = "1Mbit/s"
delay = "50ms"
[[flow]]
sender = "cubic"
count = 12
stagger = "150ms"
"#;
    let (queue, forecast) = (with(text, &[]), with(text, &["edge.regulator=forecast"]));
    assert!(used(&forecast) > 0.95 * used(&queue), "{} of {}", used(&forecast), used(&queue));
}

/// 18 downloads that start within 5 s over 120 kbit/s: their initial windows alone are queued for 18 s, so all
/// retransmission timers expire.
#[test]
fn what_timers_send_again_for_nothing_is_not_queued_again() {
    let text = r#"
preset = "linux"
[path]
delay = "1ms"
[edge]
buffer = "900p"
[edge.down]
rate = "120kbit/s"
delay = "50ms"
[edge.up]
rate = "30kbit/s"
delay = "50ms"
[[flow]]
sender = "reno"
count = 18
stagger = "280ms"
"#;
    let (goodput, wait) = beside_the_queue_alone(text);
    assert!(goodput > 1.02 && wait < 0.5, "{goodput} {wait}");
    let result = with(text, &["edge.regulator=forecast", "duration=60s"]);
    assert!(result.bottleneck.discarded > 20, "{}", result.bottleneck.discarded);
}

/// A buffer too small for two flows, but not for one: the window of a released sender grows gradually.
#[test]
fn a_source_that_is_let_go_does_not_overflow_the_buffer() {
    let text = r#"
preset = "linux"
[path]
delay = "60ms"
[edge]
buffer = "11p"
[edge.down]
kind = "variable"
rate = "110kbit/s"
delay = "10ms"
outages = [{ at = "2.9s", for = "1.2s", every = "5.8s" }]
[edge.up]
rate = "5kbit/s"
delay = "10ms"
[[flow]]
sender = "newreno"
count = 2
stagger = "2500ms"
"#;
    let (goodput, _) = beside_the_queue_alone(text);
    assert!(goodput > 0.95, "{goodput}");
}

/// Median and p95 load time of consecutive 60 kB pages alongside a download, ms, averaged over six runs. A single run
/// has only about sixty pages.
fn page_times(sets: &[&str]) -> [f64; 2] {
    const RUNS: u32 = 6;
    let page = "[[flow]]\nsender = \"cubic\"\n\
        workload = { kind = \"ftp\", size = \"60kB\", interval = \"e(3s)\", interval_from = \"end\" }\n";
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("forecast.toml", &format!("{DRIVING}{page}"), &sets).unwrap();
    let mut mean = [0.0; 2];
    for index in 0..RUNS {
        let result = run(&scenario, index, &Shipped, RunOptions::default()).unwrap().result;
        let times = &result.transfers[0].latency_ms;
        mean[0] += times.p50.unwrap() / f64::from(RUNS);
        mean[1] += times.p95.unwrap() / f64::from(RUNS);
    }
    mean
}

#[test]
fn a_page_beside_a_download_takes_no_longer_than_before_codel_or_drop_tail() {
    for wire in ["1ms", "20ms"] {
        let delay = format!("path.delay={wire}");
        let forecast = page_times(&[&delay, "edge.regulator=forecast"]);
        let codel = page_times(&[&delay, "edge.queue=codel", "edge.buffer=1000p"]);
        let drop_tail = page_times(&[&delay, "edge.buffer=200p"]);
        assert!(
            forecast[0] <= codel[0].min(drop_tail[0]),
            "{wire}: {forecast:?} of {codel:?}, {drop_tail:?}"
        );
        assert!(forecast[1] < drop_tail[1] / 2.0, "{wire}: {forecast:?} of {drop_tail:?}");
    }
}
