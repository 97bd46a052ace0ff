//! Optional measurements of packets between the endpoints.

use ackclock_core::results::{FlowResult, RunResult};
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};

/// A 1000-byte segment takes 0.08 ms (transmission) and 1 ms (delay) on the wired path, 40 ms and 200 ms on the radio.
const ONE_AT_A_TIME: &str = r#"
    version = 1
    preset = "cr02"
    duration = "600s"
    measure = ["transit", "ack-gaps"]
    [edge.down]
    rate = "200kbit/s"
    delay = "200ms"
    [edge.up]
    rate = "64kbit/s"
    delay = "200ms"
    [[flow]]
    sender = "reno"
    max_window = "1p"
"#;

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("probe.toml", text, &sets).expect("a scenario written here");
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).expect("it runs").result
}

fn flow(text: &str, sets: &[&str]) -> FlowResult {
    result(text, sets).flows.remove(0)
}

#[test]
fn a_segment_that_is_sent_again_travels_from_its_own_sending() {
    let flow = flow(ONE_AT_A_TIME, &["path.loss=0.1"]);
    assert!(flow.retransmits.unwrap() > 50, "{}", flow.retransmits.unwrap());
    let transit = flow.transit_ms.expect("it was asked for");
    // 0.08 + 1 + 40 + 200 ms for every transmission: with one segment at a time nothing is queued.
    assert_eq!(transit.mean, Some(241.08));
}

#[test]
fn transit_counts_the_wait_in_the_queue_and_copies_that_overtake() {
    let sets = [
        "flow.0.max_window=40p",
        "edge.down.delay=u(200ms, 100ms)",
        "edge.down.loss=0.02",
        "flow.0.sender=sack1",
    ];
    let flow = flow(ONE_AT_A_TIME, &sets);
    let transit = flow.transit_ms.expect("it was asked for");
    // The round trip is transit and the way back: 40 bytes at 64 kbit/s, 200 ms, 1 ms and 3 us.
    let back = 5.0 + 200.0 + 1.0;
    let rtt = flow.rtt_ms.mean.expect("there are samples");
    assert!((transit.mean.unwrap() + back - rtt).abs() < 25.0, "{transit:?} {rtt}");
}

#[test]
fn acks_come_as_the_link_serves_and_are_compressed_by_a_way_back_that_varies() {
    let even = flow(ONE_AT_A_TIME, &["flow.0.max_window=20p"]).ack_gap_ms.expect("it was asked for");
    // A packet every 40 ms, and so an ACK.
    assert!((even.edge.ms.mean.unwrap() - 40.0).abs() < 1.0, "{even:?}");
    assert!(even.edge.compressed.unwrap() < 0.01 && even.server.compressed.unwrap() < 0.01, "{even:?}");
    let quantiles = even.server.ms.cdf.expect("gaps are measured with their quantiles");
    assert!(quantiles.iter().filter(|gap| (**gap - 40.0).abs() < 1.0).count() > 190, "{quantiles:?}");
    let uneven = flow(ONE_AT_A_TIME, &["flow.0.max_window=20p", "edge.up.delay=u(200ms, 15ms)"]);
    let uneven = uneven.ack_gap_ms.expect("it was asked for");
    assert!(uneven.edge.compressed.unwrap() > 0.05, "{uneven:?}");
    assert!((uneven.edge.ms.mean.unwrap() - 40.0).abs() < 1.0, "{uneven:?}");
    // The wired path adds almost nothing: an ACK takes 3 us on it.
    assert!((uneven.edge.ms.mean.unwrap() - uneven.server.ms.mean.unwrap()).abs() < 0.01, "{uneven:?}");
}

#[test]
fn a_relay_has_a_transit_on_each_side() {
    let flow = flow(ONE_AT_A_TIME, &["relay.core.delay=10ms", "path.delay=100ms"]);
    assert_eq!(flow.transit_ms, None);
    let [far, near] = flow.relay.expect("there is one").legs;
    // 0.08 + 100 ms; 0.08 + 10 + 40 + 200 ms.
    assert_eq!(far.transit_ms.unwrap().mean, Some(100.08));
    assert_eq!(near.transit_ms.unwrap().mean, Some(250.08));
}

#[test]
fn measuring_changes_nothing_else() {
    let sets = ["flow.0.max_window=40p", "edge.down.delay=e(50ms)", "edge.down.loss=0.01", "path.loss=0.01"];
    let with = result(ONE_AT_A_TIME, &sets);
    let without = result(ONE_AT_A_TIME, &[&sets[..], &["measure=[]"]].concat());
    let rows = |result: RunResult| -> Vec<FlowResult> {
        let bare = |row| FlowResult { transit_ms: None, ack_gap_ms: None, ..row };
        result.flows.into_iter().map(bare).collect()
    };
    assert_eq!((&with.bottleneck, &with.uplink), (&without.bottleneck, &without.uplink));
    assert_eq!(rows(with), rows(without));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refusal = Scenario::load("probe.toml", "measure = [\"jitter\"]", &[]).unwrap_err().to_string();
    assert!(
        refusal.contains("measure") && refusal.contains("jitter") && refusal.contains("transit"),
        "{refusal}"
    );
}

/// Twenty packets of 1000 bytes at 2 Mbit/s with an RTT of 200 ms.
const WINDOW: &str = r#"
    version = 1
    preset = "cr02"
    duration = "60s"
    measure = ["spurious"]
    [edge]
    buffer = "100p"
    [edge.down]
    kind = "variable"
    rate = "2Mbit/s"
    delay = "100ms"
    [edge.up]
    rate = "1Mbit/s"
    delay = "100ms"
    [[flow]]
    sender = "reno"
    max_window = "20p"
"#;

/// Number of timeouts and fast retransmits, and how many of them were spurious.
fn reductions(flow: &FlowResult) -> [[u64; 2]; 2] {
    let spurious = flow.spurious.expect("it was asked for");
    let all = [flow.timeouts.unwrap(), flow.fast_retransmits.unwrap()];
    [all, [spurious.timeouts, spurious.fast_retransmits]]
}

#[test]
fn a_link_that_stands_still_makes_one_spurious_timeout() {
    // Standing still for 2 s, between the first timer of 1 s and the second of 2 s behind it. What is then sent again
    // though it has arrived makes duplicates, which a sender with the guard does not take for a loss.
    let still = "edge.down.outages=[{ at = \"20s\", for = \"2s\" }]";
    let flow = flow(WINDOW, &[still, "flow.0.sender.recover_guard=on"]);
    assert_eq!(reductions(&flow)[1], [1, 0], "{flow:?}");
    assert_eq!(reductions(&flow)[0][0], 1, "{flow:?}");
}

#[test]
fn what_is_sent_again_for_a_loss_is_not_spurious() {
    let sets = ["path.loss=0", "edge.down.loss=0.01", "duration=600s", "flow.0.sender=sack"];
    let flow = flow(WINDOW, &sets);
    let [all, spurious] = reductions(&flow);
    assert!(all[1] > 100, "{all:?}");
    // SACK retransmits only lost segments, and nothing is reordered.
    assert_eq!(spurious[1], 0, "{all:?} {spurious:?}");
}

#[test]
fn over_a_link_that_reorders_and_loses_nothing_every_reduction_is_spurious() {
    let rlc = "edge.down={ kind = \"umts-rlc\", rate = \"384kbit/s\", bler = 0.1, order = \"out-of-sequence\", pdus = 24 }";
    for sender in ["reno", "eifel", "newreno"] {
        let sender = format!("flow.0.sender={sender}");
        let flow = flow(WINDOW, &[rlc, &sender, "duration=300s", "flow.0.packet=576B"]);
        let [all, spurious] = reductions(&flow);
        assert!(all[1] > 10, "{sender} {all:?}");
        assert_eq!(all, spurious, "{sender}");
    }
}

#[test]
fn over_a_relay_the_reductions_of_both_connections_count() {
    let still = "edge.down.outages=[{ at = \"20s\", for = \"2s\" }]";
    let flow = flow(WINDOW, &["relay={}", still]);
    let [all, spurious] = reductions(&flow);
    assert_eq!((all, all[0]), (spurious, 1), "nothing is lost");
}

/// A block of 960 bytes that fails once is 80 ms late, at 384 kbit/s with at most 7 packets of 576 bytes in that time;
/// a block that fails twice, with 14. One in a thousand fails three times, and even so counts as a loss.
#[test]
fn a_threshold_beyond_the_reordering_takes_none_for_a_loss() {
    let rlc =
        "edge.down={ kind = \"umts-rlc\", rate = \"384kbit/s\", bler = 0.1, order = \"out-of-sequence\" }";
    let with = |threshold: u32| {
        let threshold = format!("flow.0.sender.dup_thresh={threshold}");
        flow(WINDOW, &[rlc, &threshold, "duration=300s", "flow.0.packet=576B", "flow.0.max_window=25p"])
    };
    let [usual, beyond] = [3, 15].map(|threshold| with(threshold).fast_retransmits.unwrap());
    assert!(usual > 100 && beyond < usual / 10, "{usual} {beyond}");
}
