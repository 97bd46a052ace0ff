//! Properties of complete runs: equal seeds give equal bytes, sampling changes nothing, flows on dedicated channels are
//! independent, and every packet sent is accounted for.

use ackclock_core::Span;
use ackclock_scenario::{NoFiles, Outcome, RunOptions, RunResult, Scenario, Series, json_line, run};

/// Random rate, delay and loss; senders and regulators of several kinds.
const VARIED: &str = r#"
preset = "cr02"
duration = "40s"
[path]
loss = 0.002
[edge]
regulator = "ack-regulator"
[edge.down]
rate = "u(800kbit/s, 200kbit/s)"
delay = "100ms + e(20ms)"
loss = 0.003
[edge.up]
rate = "64kbit/s"
delay = "e(30ms)"
[[flow]]
sender = "reno"
[[flow]]
sender = "cubic"
start = "2s"
acks = "delayed"
[[flow]]
sender = { kind = "sack", timestamps = "on", handshake = "on" }
workload = { kind = "file", size = "300kB" }
"#;

fn scenario(sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load("varied.toml", VARIED, &sets).unwrap_or_else(|error| panic!("{error}"))
}

fn outcome(sets: &[&str], number: u32, options: RunOptions) -> Outcome {
    run(&scenario(sets), number, &NoFiles, options).unwrap_or_else(|error| panic!("{error}"))
}

fn result(sets: &[&str]) -> RunResult {
    outcome(sets, 0, RunOptions::default()).result
}

fn series(sets: &[&str], interval: Span) -> Outcome {
    outcome(sets, 0, RunOptions { series_interval: Some(interval), ..RunOptions::default() })
}

#[test]
fn equal_seeds_print_equal_bytes_and_other_seeds_or_runs_do_not() {
    let line = |sets: &[&str], number| json_line(&outcome(sets, number, RunOptions::default()).result, &[]);
    assert_eq!(line(&[], 0), line(&[], 0));
    let measured = |line: String| {
        line.split("\"flows\"").nth(1).unwrap().split("\"provenance\"").next().unwrap().to_owned()
    };
    assert_ne!(measured(line(&[], 0)), measured(line(&[], 1)));
    assert_ne!(measured(line(&[], 0)), measured(line(&["seed=2"], 0)));
}

#[test]
fn sampling_a_run_at_any_interval_changes_nothing_in_it() {
    for channel in ["edge.channel=shared", "edge.channel=dedicated"] {
        let plain = result(&[channel]);
        for interval in [Span::from_millis(1), Span::from_micros(777_777)] {
            assert_eq!(series(&[channel], interval).result, plain, "{channel} {interval}");
        }
    }
}

#[test]
fn samples_at_equal_instants_are_equal_whatever_lies_between() {
    let coarse = series(&[], Span::from_millis(500)).series.unwrap();
    let fine = series(&[], Span::from_millis(50)).series.unwrap();
    for name in ["t_s", "flow1.cwnd_bytes", "flow2.delivered_bytes", "edge.queue_packets", "edge.held_acks"] {
        let every_tenth: Vec<_> = fine.column(name).unwrap().iter().copied().step_by(10).collect();
        assert_eq!(coarse.column(name).unwrap(), every_tenth, "{name}");
    }
}

#[test]
fn a_capture_changes_nothing() {
    for channel in ["edge.channel=shared", "edge.channel=dedicated"] {
        let captured = outcome(
            &[channel],
            0,
            RunOptions { capture: Some(Box::new(std::io::sink())), ..RunOptions::default() },
        );
        assert_eq!(captured.result.flows, result(&[channel]).flows, "{channel}");
    }
}

#[test]
fn a_flow_on_a_channel_of_its_own_does_not_notice_the_others() {
    let three = result(&["edge.channel=dedicated"]);
    let other = result(&["edge.channel=dedicated", "flow.1.sender=bbr", "flow.2.max_window=4p"]);
    assert_eq!(three.flows[0], other.flows[0]);
    assert_ne!(three.flows[1], other.flows[1]);
    let many = result(&["edge.channel=dedicated", "flow.2.count=7"]);
    assert_eq!(three.flows, many.flows[..3]);
}

#[test]
fn what_was_sent_is_delivered_lost_or_under_way() {
    let result = result(&["path.loss=0", "flow.2.workload=bulk", "flow.2.sender.handshake=off"]);
    let sent: u64 = result.flows.iter().map(|flow| flow.segments_sent).sum();
    let gone = result.engine.packets + result.bottleneck.drops;
    // At the end a packet is in the queue, on the wire (1 ms) or on the radio (about 120 ms): 10 waiting, 1 in
    // transmission, and at most 800 kbit/s x 0.5 s / 1000 B = 50 in flight.
    assert!(gone <= sent && sent - gone <= 61, "{sent} sent, {gone} delivered or lost");
    for flow in &result.flows {
        assert!(flow.delivered_bytes <= flow.segments_sent * 960);
        assert!(flow.wire_goodput_bps.unwrap() > flow.goodput_bps.unwrap());
    }
}

#[test]
fn a_finished_file_has_a_completion_time_and_an_endless_one_has_none() {
    let result = result(&[]);
    assert_eq!(result.flows[2].delivered_bytes, 300_000);
    let completion = result.flows[2].completion_s.unwrap();
    // At least the time that 300 kB take at the mean rate alone.
    assert!(completion > 300_000.0 * 8.0 / 1.2e6 && completion < 40.0, "{completion}");
    assert_eq!(result.flows[0].completion_s, None);
    let seconds = result.flows[2].delivered_bytes as f64 * 8.0 / result.flows[2].goodput_bps.unwrap();
    assert!((seconds - completion).abs() < 1e-9);
}

#[test]
fn a_flow_that_never_begins_has_no_rates() {
    let result = result(&["flow.0.start=40s"]);
    assert_eq!((result.flows[0].goodput_bps, result.flows[0].delivered_bytes), (None, 0));
    assert_eq!(result.flows[0].rtt_ms.mean, None);
}

#[test]
fn the_queue_of_a_series_is_all_that_waits() {
    for queue in [
        &["edge.queue.kind=drop-tail", "edge.queue.per=flow"][..],
        &["edge.queue.kind=drop-tail", "edge.queue.per=user"],
        &["edge.queue=fq-codel"],
    ] {
        // The first flow never starts, so its queue stays empty.
        let sets = [&["flow.0.start=60s", "flow.1.user=1", "flow.2.user=2"], queue].concat();
        let series = series(&sets, Span::from_millis(100)).series.unwrap();
        let most = |name: &str| series.column(name).unwrap().iter().copied().fold(0.0, f64::max);
        assert!(most("edge.queue_packets") >= 2.0 && most("edge.queue_bytes") >= 1000.0, "{queue:?}");
    }
}

#[test]
fn the_series_ends_where_the_results_do() {
    let Outcome { result, series } = series(&[], Span::from_millis(100));
    let series: Series = series.unwrap();
    let last = |name: &str| *series.column(name).unwrap().last().unwrap();
    assert_eq!(last("t_s"), 40.0);
    assert_eq!(last("flow0.delivered_bytes"), result.flows[0].delivered_bytes as f64);
    assert!(series.column("edge.queue_packets").unwrap().iter().all(|&packets| packets <= 10.0));
    let mut csv = Vec::new();
    series.write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    // 401 samples and the header; a flow has no RTT before it starts.
    assert_eq!(csv.lines().count(), 402);
    assert!(csv.lines().nth(1).unwrap().contains(",,"));
    let fields = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == fields));
}
