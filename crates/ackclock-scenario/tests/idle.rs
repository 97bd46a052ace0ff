//! Connections that are open and send nothing, or next to nothing, take nothing from a download.

use ackclock_core::results::RunResult;
use ackclock_scenario::{NoFiles, RunOptions, Scenario, run};

/// Regulator and bearer of an edge: beside the queue, observing it from either side, or reporting it to a relay whose
/// windows `rnf` sets.
const EDGES: [&str; 12] = [
    "regulator = \"wrs\"",
    "regulator = \"wrd\"",
    "regulator = \"wrb\"",
    "regulator = \"forecast\"",
    "regulator = \"wrs\"\nbearer = { kind = \"observed\", side = \"network\" }",
    "regulator = \"wrs\"\nbearer = { kind = \"observed\", side = \"mobile\" }",
    "regulator = \"wrd\"\nbearer = { kind = \"observed\", side = \"network\" }",
    "regulator = \"wrd\"\nbearer = { kind = \"observed\", side = \"mobile\" }",
    "regulator = \"wrb\"\nbearer = { kind = \"observed\", side = \"network\" }",
    "regulator = \"forecast\"\nbearer = { kind = \"observed\", side = \"network\" }",
    "regulator = \"forecast\"\nbearer = { kind = \"observed\", side = \"mobile\", record_interval = \"1ms\" }",
    "report = { every = \"100ms\", delay = \"20ms\" }",
];

/// Connections that have fetched something and stay open, at most 100 kB in total.
fn fetched(count: u32) -> String {
    let bytes = (100_000 / count).min(5000);
    client(count, &format!("{bytes}B"), "1000s")
}

/// Connections that fetch files of this size at this interval over one connection.
fn client(count: u32, size: &str, interval: &str) -> String {
    format!(
        "[[flow]]\nsender = \"cubic\"\ncount = {count}\nstart = \"0ms\"\nstagger = \"1ms\"\n\
         workload = {{ kind = \"ftp\", size = \"{size}\", interval = \"{interval}\", connection_per = \"client\" }}\n"
    )
}

/// A link of 4 Mbit/s with a base RTT of 22 ms, one download, and other flows.
fn with(edge: &str, others: &str, seconds: u32) -> RunResult {
    let radio = "down = { kind = \"constant\", rate = \"4Mbit/s\", delay = \"4ms\" }\n\
                 up = { kind = \"constant\", rate = \"4Mbit/s\", delay = \"8ms\" }\n";
    let radio = match edge.contains("bearer") {
        true => format!("buffer = \"20p\"\n[edge.behind]\nbuffer = \"200p\"\n{radio}"),
        false => format!("buffer = \"{}\"\n{radio}", if is_deep(edge) { "200p" } else { "20p" }),
    };
    let relay = match edge.contains("report") {
        true => "[relay]\ncore = { rate = \"1Gbit/s\", delay = \"0ms\" }\nsteering = \"rnf\"\n",
        false => "",
    };
    let text = format!(
        "version = 1\npreset = \"linux\"\nduration = \"{seconds}s\"\n[path]\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\n\
         {relay}[edge]\n{edge}\n{radio}[[flow]]\nsender = \"cubic\"\n{others}"
    );
    let scenario = Scenario::load("idle.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

/// Whether an edge has a deep queue, which its regulator keeps short.
fn is_deep(edge: &str) -> bool {
    ["forecast", "report"].iter().any(|name| edge.contains(name))
}

fn bytes(result: &RunResult, flow: usize) -> f64 {
    result.flows[flow].delivered_bytes as f64
}

/// Requires that a download beside `idle` connections gets 95 % of what it gets alone.
fn takes_nothing(edge: &str, idle: &str) {
    let (alone, beside) = (bytes(&with(edge, "", 30), 0), bytes(&with(edge, idle, 30), 0));
    // What the connections themselves fetched is not lost.
    let fetched = if idle.contains("1000s") { 100_000.0 } else { 0.0 };
    assert!(beside + fetched >= 0.95 * alone, "{edge}\n{idle}{beside} of {alone} bytes");
}

#[test]
fn connections_that_fetched_something_and_stay_open_take_nothing() {
    for edge in EDGES {
        [1, 6, 20, 200].into_iter().for_each(|count| takes_nothing(edge, &fetched(count)));
    }
}

#[test]
fn connections_that_send_a_byte_now_and_then_take_nothing() {
    for edge in EDGES {
        [1, 6, 20, 200].into_iter().for_each(|count| takes_nothing(edge, &client(count, "1B", "1s")));
        takes_nothing(edge, &client(6, "100B", "130ms"));
    }
}

#[test]
fn a_second_download_beside_idle_connections_has_its_half_after_two_seconds() {
    let second = "[[flow]]\nsender = \"cubic\"\nstart = \"10s\"\n";
    // Beside a queue, `wrs`, `wrd` and `wrb` give each flow a buffer: what two flows get depends on the drops, also
    // without idle connections.
    for edge in EDGES.iter().filter(|edge| edge.contains("bearer") || is_deep(edge)) {
        for count in [1, 20, 200] {
            let flows = format!("{second}{}", fetched(count));
            let [before, after] = [12, 14].map(|seconds| bytes(&with(edge, &flows, seconds), 1));
            // Half of 4 Mbit/s for two seconds, less headers.
            let half = 480_000.0;
            assert!(after - before >= 0.85 * half, "{edge}, {count}: {} of {half} bytes", after - before);
        }
    }
}
