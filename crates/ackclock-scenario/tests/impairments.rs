//! Rare impairments of a link leave the goodput of a flow as it is, also after timeouts.

use ackclock_core::results::FlowResult;
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};

const BUFFER_OVERFLOWS: &str = r#"
    version = 1
    preset = "cr02"
    duration = "900s"
    [edge]
    buffer = "4p"
    [[flow]]
    sender = "reno"
"#;

fn flow(set: &str) -> FlowResult {
    let scenario = Scenario::load("impairments.toml", BUFFER_OVERFLOWS, &[set.to_owned()])
        .expect("a scenario written here");
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default())
        .expect("it runs")
        .result
        .flows
        .remove(0)
}

#[test]
fn rare_impairments_do_not_stop_a_flow_that_has_timeouts() {
    let plain = flow("seed=1");
    assert!(plain.timeouts.is_some_and(|timeouts| timeouts > 0), "{:?} timeouts", plain.timeouts);
    let expected = goodput(&plain);
    let impaired = [
        "edge.down.duplicate=0.0001",
        "edge.down.corrupt=0.0001",
        "edge.down.reorder={ share = 0.0001, extra = '20ms' }",
        "edge.up.duplicate=0.0001",
    ];
    for set in impaired {
        let goodput = goodput(&flow(set));
        assert!(goodput > 0.9 * expected, "{set}: {goodput} of {expected}");
    }
}

fn goodput(flow: &FlowResult) -> f64 {
    flow.goodput_bps.expect("it lasts longer than an instant")
}
