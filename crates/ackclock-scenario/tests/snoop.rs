//! Snoop over a radio that loses packets independently.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

/// At most 8 packets are in flight, so usually only one of them is lost. The queue never drops.
const LOSSY: &str = r#"
preset = "cr02"
duration = "2000s"
[edge]
buffer = "100p"
[edge.down]
kind = "constant"
rate = "2Mbit/s"
delay = "20ms"
loss = 0.01
[edge.up]
kind = "constant"
rate = "1Mbit/s"
delay = "20ms"
[[flow]]
sender = "reno"
max_window = "8p"
"#;

fn with(sets: &[&str]) -> RunResult {
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("lossy.toml", LOSSY, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

fn reductions(result: &RunResult) -> u64 {
    result.flows[0].fast_retransmits.unwrap() + result.flows[0].timeouts.unwrap()
}

#[test]
fn of_a_thousand_losses_none_halves_the_window() {
    let none = with(&["edge.regulator=none"]);
    assert!(reductions(&none) > 1000, "the losses are there: {}", reductions(&none));
    let snoop = with(&["edge.regulator=snoop"]);
    assert!(snoop.bottleneck.drops >= 1000, "{}", snoop.bottleneck.drops);
    assert_eq!(
        (reductions(&snoop), snoop.flows[0].retransmits.unwrap()),
        (0, 0),
        "{} losses",
        snoop.bottleneck.drops
    );
    // Each loss is retransmitted once; the last may not have been detected yet.
    let waited_for = snoop.bottleneck.drops - snoop.bottleneck.resent;
    assert!(waited_for <= 1, "{} losses, {} sent again", snoop.bottleneck.drops, snoop.bottleneck.resent);
    // Nothing else differs, so goodput is higher.
    assert!(snoop.flows[0].goodput_bps > none.flows[0].goodput_bps);
}

/// A mobile that sends over an uplink with 2 % loss, 70 ms from the server. Its queue never drops.
const UPLOAD: &str = r#"
preset = "linux"
duration = "300s"
[path]
delay = "50ms"
[edge]
regulator = { kind = "snoop", nacks = true }
buffer = "1000p"
down = { kind = "constant", rate = "2Mbit/s", delay = "20ms" }
up = { kind = "constant", rate = "1Mbit/s", delay = "20ms", loss = "2%" }
[[flow]]
towards = "server"
sender = { kind = "sack", nacks = "on" }
max_window = "30p"
"#;

#[test]
fn a_mobile_that_is_asked_repairs_its_losses_without_a_reduction() {
    let run = |text: &str| {
        let scenario = Scenario::load("upload.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
        run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
    };
    let asked = run(UPLOAD);
    let plain = run(&UPLOAD.replace(r#"{ kind = "snoop", nacks = true }"#, r#""none""#));
    assert_eq!(
        (asked.flows[0].regulator.as_deref(), plain.flows[0].regulator.as_deref()),
        (Some("snoop"), None)
    );
    assert!(asked.uplink.drops > 400, "{}", asked.uplink.drops);
    // Each loss is repaired once; the last may be under way.
    assert!(
        asked.uplink.drops.abs_diff(asked.flows[0].retransmits.unwrap()) <= 1,
        "{}",
        asked.flows[0].retransmits.unwrap()
    );
    // Only a lost retransmission, 2 % of them, may appear as a loss at the server.
    assert!(reductions(&asked) * 20 < asked.uplink.drops, "{} of {}", reductions(&asked), asked.uplink.drops);
    assert!(reductions(&plain) * 2 > plain.uplink.drops, "{} of {}", reductions(&plain), plain.uplink.drops);
    assert!(asked.flows[0].goodput_bps.unwrap() > 1.3 * plain.flows[0].goodput_bps.unwrap());
}
