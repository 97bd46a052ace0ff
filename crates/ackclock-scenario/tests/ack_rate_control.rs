//! ACK rate control in complete scenarios.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

/// Four downloads to one mobile over 384 kbit/s and 50 packets.
const FOUR: &str = r#"
preset = "cr02"
duration = "120s"
[edge]
buffer = "50p"
[edge.down]
kind = "constant"
rate = "384kbit/s"
delay = "60ms"
[edge.up]
kind = "constant"
rate = "64kbit/s"
delay = "60ms"
[[flow]]
count = 4
sender = "reno"
"#;

fn with(regulator: &str) -> RunResult {
    let set = format!("edge.regulator={regulator}");
    let scenario = Scenario::load("four.toml", FOUR, &[set]).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

/// AC06 table 2: with four flows goodput is about equal, and the delay falls from 1.09 s to 0.56-0.72 s. Its link
/// repairs losses; ours loses nothing.
#[test]
fn four_flows_of_a_user_wait_less_and_carry_as_much() {
    let (none, controlled) = (with("none"), with("ack-rate-control"));
    let waits = |result: &RunResult| result.bottleneck.queue_ms.mean.unwrap();
    assert!(waits(&controlled) < 0.72 / 1.09 * waits(&none), "{} {}", waits(&controlled), waits(&none));
    let used = |result: &RunResult| result.bottleneck.utilisation.unwrap();
    assert!(used(&controlled) > 0.97 * used(&none), "{} {}", used(&controlled), used(&none));
    let shares: Vec<f64> = controlled.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect();
    assert!(shares.iter().all(|share| (70e3..120e3).contains(share)), "{shares:?}");
}

/// If the queue never reaches the control threshold, the edge behaves as without a regulator.
#[test]
fn a_threshold_that_is_never_reached_changes_nothing() {
    let (none, controlled) =
        (with("none"), with("{ kind = \"ack-rate-control\", min_threshold = 60, max_threshold = 61 }"));
    assert_eq!(none.bottleneck, controlled.bottleneck);
    for (none, controlled) in none.flows.iter().zip(&controlled.flows) {
        assert_eq!((none.goodput_bps, &none.rtt_ms), (controlled.goodput_bps, &controlled.rtt_ms));
    }
}
