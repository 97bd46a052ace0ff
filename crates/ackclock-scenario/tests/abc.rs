//! ABC: the sender and the queue of Goyal and others (NSDI 2020).

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

/// A link of 12 Mbit/s with a base RTT of 100 ms, as in the authors' emulation.
const LINK: &str = r#"
preset = "linux"
duration = "60s"
[path]
delay = "40ms"
[edge]
buffer = "250p"
queue = "abc-router"
down = { kind = "constant", rate = "12Mbit/s", delay = "10ms" }
up = { kind = "constant", rate = "12Mbit/s", delay = "0ms" }
[[flow]]
sender = "abc"
packet = "1500B"
max_window = "4000p"
"#;

fn result(sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("abc.toml", LINK, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

fn queue_p95(result: &RunResult) -> f64 {
    result.bottleneck.queue_ms.p95.unwrap()
}

#[test]
fn abc_fills_steady_links_with_a_queue_near_its_target() {
    for rate in ["2Mbit/s", "12Mbit/s", "40Mbit/s"] {
        let result = result(&[&format!("edge.down.rate={rate}")]);
        assert!(result.bottleneck.utilisation.unwrap() > 0.95, "{rate}");
        // The additive increase of a segment per window of w is balanced where tr / cr = 1 - 1/w. At 2 Mbit/s and 150 ms,
        // w is 25: 0.98 - (x - 50 ms) / 133 ms = 0.96, so x = 53 ms.
        assert!(queue_p95(&result) < 60.0, "{rate}: {} ms", queue_p95(&result));
        assert_eq!(result.bottleneck.drops, 0, "{rate}");
    }
}

#[test]
fn flows_of_abc_share_a_link_about_equally() {
    let result = result(&["flow.0.count=4", "duration=120s"]);
    let rates: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |total, rate| (total.0 + rate, total.1 + rate * rate));
    // Jain's index
    assert!(sum * sum / (4.0 * squares) > 0.95, "{rates:?}");
}

#[test]
fn both_kinds_of_feedback_and_a_queue_without_abc_work() {
    let accurate = result(&[r#"flow.0.sender={ kind = "abc", ecn = "accurate" }"#]);
    assert!(accurate.bottleneck.utilisation.unwrap() > 0.95);
    assert!(queue_p95(&accurate) < 50.0, "{} ms", queue_p95(&accurate));
    // Without marks the window of CUBIC applies, which losses reduce.
    let plain = result(&["edge.queue=drop-tail"]);
    assert!(plain.bottleneck.utilisation.unwrap() > 0.95 && plain.bottleneck.drops > 0);
}
