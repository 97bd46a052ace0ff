//! What a hand-over does to TCP.

use ackclock_scenario::{DiskFiles, RunOptions, RunResult, Scenario, run};

/// The preset `hsdpa` for 16 seconds, with this hand-over at 8 s.
fn of(handover: &str, sets: &[&str]) -> RunResult {
    let text = format!(
        "preset = \"hsdpa\"\nduration = \"16s\"\n[[edge.at]]\ntime = \"8s\"\nhandover = {{ {handover} }}\n"
    );
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("case.toml", &text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).unwrap().result
}

fn lost(result: &RunResult) -> u64 {
    result.bottleneck.radio.as_ref().unwrap().lost_by.handover
}

#[test]
fn a_controller_that_forwards_causes_no_retransmission() {
    for sender in ["reno", "cubic"] {
        let result = of("to = \"controller\", for = \"300ms\"", &[&format!("flow.sender={sender}")]);
        let flow = &result.flows[0];
        // The timeout is above the hand-over and the queue.
        assert!(flow.rto_ms_mean.unwrap() > 300.0 + flow.rtt_ms.mean.unwrap(), "{flow:?}");
        assert_eq!((flow.retransmits, flow.timeouts, lost(&result)), (0, Some(0), 0), "{sender}");
    }
}

#[test]
fn a_controller_that_does_not_forward_loses_its_queue_and_sack_recovers_once() {
    let result = of("to = \"controller\", for = \"300ms\", forward = false", &["flow.sender=cubic"]);
    let flow = &result.flows[0];
    assert!(lost(&result) > 10 && lost(&result) == result.bottleneck.drops, "{result:?}");
    assert_eq!((flow.fast_retransmits, flow.timeouts), (Some(1), Some(0)));
    assert_eq!(flow.retransmits, lost(&result));
    // ACKs on their way in the uplink are lost too.
    assert!(result.uplink.radio.unwrap().lost_by.handover > 0);
}

#[test]
fn a_window_regulator_that_moves_drops_nothing_and_one_that_restarts_at_most_the_receivers_window() {
    let sets = ["edge.regulator=wrd", "edge.buffer=20p", "flow.max_window=64kB"];
    let drops = |regulator: &str| {
        of(&format!("to = \"controller\", for = \"300ms\", regulator = \"{regulator}\""), &sets)
            .bottleneck
            .drops
    };
    assert_eq!(drops("moves"), 0);
    let restarts = drops("restarts");
    assert!((1..=64_000 / 1460).contains(&restarts), "{restarts}");
}
