//! Totals of several flows: no total is above the capacity, and late flows are not unfair.

use ackclock_core::results::RunResult;
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};
use proptest::prelude::*;

const LINK: &str = r#"
    version = 1
    preset = "linux"
    duration = "30s"
    [edge]
    buffer = "100p"
    up_buffer = "100p"
    [edge.down]
    rate = "10Mbit/s"
    delay = "5ms"
    [edge.up]
    rate = "10Mbit/s"
    delay = "5ms"
"#;

fn result(flows: &str) -> RunResult {
    let scenario =
        Scenario::load("totals.toml", &format!("{LINK}{flows}"), &[]).expect("a scenario written here");
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).expect("it runs").result
}

#[test]
fn a_total_is_bytes_over_the_span_and_its_flows_are_compared_in_the_common_time() {
    let late = result("[[flow]]\nsender = \"cubic\"\n[[flow]]\nsender = \"cubic\"\nstart = \"10s\"\n");
    let own: f64 = late.flows.iter().filter_map(|flow| flow.goodput_bps).sum();
    let total = late.bottleneck.goodput_bps.unwrap();
    assert!(own > 10.1e6, "lives of 30 s and of 20 s overlap: {own}");
    let bytes: u64 = late.flows.iter().map(|flow| flow.delivered_bytes).sum();
    assert_eq!((total, late.bottleneck.active_s), (bytes as f64 * 8.0 / 30.0, Some(30.0)));
    // 1448 of 1500 bytes are payload.
    assert!(total < 9.66e6, "{total}");
    assert_eq!(late.uplink.goodput_bps, None);
    let shares: Vec<f64> = late.flows.iter().map(|flow| flow.delivered_bytes as f64).collect();
    let of_the_run = (shares[0] + shares[1]).powi(2) / (2.0 * (shares[0].powi(2) + shares[1].powi(2)));
    assert!(late.fairness.jain_flows.unwrap() > of_the_run + 0.02, "{:?} {of_the_run}", late.fairness);
}

#[test]
fn each_direction_has_its_own_total() {
    let both = result("[[flow]]\nsender = \"cubic\"\n[[flow]]\nsender = \"cubic\"\ntowards = \"server\"\n");
    for link in [&both.bottleneck, &both.uplink] {
        let total = link.goodput_bps.unwrap();
        assert!(total > 5e6 && total <= link.capacity_bps.unwrap(), "{total}");
    }
}

#[test]
fn a_single_flow_is_its_own_total_whenever_it_starts_and_ends() {
    for flow in ["start = \"7s\"", "workload = { kind = \"file\", size = \"2MB\" }\nstart = \"3s\""] {
        let result = result(&format!("[[flow]]\n{flow}\n"));
        let (total, own) = (result.bottleneck.goodput_bps.unwrap(), result.flows[0].goodput_bps.unwrap());
        assert!((total / own - 1.0).abs() < 1e-9, "{flow}: {total} {own}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_total_is_above_the_capacity(flows in prop::collection::vec((0u32..25, 0u32..3, 1u32..20), 1..6)) {
        let table = |&(start, kind, size): &(u32, u32, u32)| {
            let what = match kind {
                0 => String::new(),
                1 => format!("workload = {{ kind = \"file\", size = \"{size}MB\" }}\n"),
                _ => "towards = \"server\"\n".to_owned(),
            };
            format!("[[flow]]\nsender = \"cubic\"\nstart = \"{start}s\"\n{what}")
        };
        let result = result(&flows.iter().map(table).collect::<String>());
        for link in [&result.bottleneck, &result.uplink] {
            let (Some(total), Some(capacity)) = (link.goodput_bps, link.capacity_bps) else { continue };
            prop_assert!(total <= capacity, "{total} of {capacity}");
        }
    }
}
