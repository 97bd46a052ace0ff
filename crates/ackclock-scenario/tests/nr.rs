//! The preset `nr`: the rate of a TDD cell, its idle round trip, PDCP's reordering, blockage, and wrong keys.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

fn load(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let text = format!("preset = \"nr\"\nduration = \"10s\"\n{text}");
    Scenario::load("case.toml", &text, &sets).map_err(|error| error.to_string())
}

fn of(text: &str, sets: &[&str]) -> RunResult {
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

const WITHOUT_ERRORS: [&str; 3] = [
    "edge.user=[{ mean_snr = 25.0, fading = \"none\" }]",
    "edge.bearer.air.down.harq={ error = 0, repetition_error = 0 }",
    "edge.bearer.air.up.harq={ error = 0, repetition_error = 0 }",
];

#[test]
fn one_user_at_the_best_rate_gets_its_downlink_slots_less_the_headers() {
    let result = of("", &[&WITHOUT_ERRORS[..], &["duration=20s"]].concat());
    // 25 021 octets in each of 1200 slots a second: a packet of 1500 bytes has 9 octets of headers, and its second segment 8.
    let expected = (25_021.0 - 8.0) / 1509.0 * 1460.0 * 8.0 * 1200.0;
    let goodput = result.flows[0].goodput_bps.unwrap();
    assert!((goodput / expected - 1.0).abs() < 0.03, "{goodput} and {expected}");
    let radio = result.bottleneck.radio.as_ref().unwrap();
    assert_eq!((radio.rlc.retransmitted, radio.rlc.resets), (0, 0));
}

#[test]
fn idle_round_trips_last_for_a_period_of_scheduling_requests() {
    let sets = ["flow.max_window=1500B", "flow.acks=\"every\""];
    let rtt = of("", &[&WITHOUT_ERRORS[..], &sets].concat()).flows[0].rtt_ms.mean.unwrap();
    // Without the wait for an opportunity: 10 ms of wired path; a slot, 2 ms and up to 2.5 ms down; 4 ms for the grant, up to
    // 3.5 ms for an uplink slot, the slot and 1 ms. That is below 20 ms, so that each ACK waits for the next opportunity.
    assert!((rtt - 20.0).abs() < 0.1, "{rtt}");
}

#[test]
fn pdcp_delivers_in_order_what_harq_and_rlc_deliver_out_of_order() {
    let of = |reordering: &str| {
        let harq = "edge.bearer.air.down.harq={ error = \"30%\", repetition_error = \"30%\", limit = 1, order = \"out-of-sequence\" }";
        let reordering = format!("edge.bearer.rlc.reordering={reordering}");
        let result = of("", &[harq, &reordering, "flow.sender=sack", "flow.max_window=512kB"]);
        (result.flows[0].retransmits.unwrap(), result.bottleneck.radio.unwrap())
    };
    let (retransmits, radio) = of("220ms");
    assert!(retransmits == 0 && radio.rlc.retransmitted > 1000, "{retransmits}, {:?}", radio.rlc);
    // With a timer below the time of a retransmission, PDCP discards what RLC retransmits.
    let (retransmits, radio) = of("10ms");
    assert!(retransmits > 10 && radio.lost_by.air > 10, "{retransmits}, {:?}", radio.lost_by);
}

#[test]
fn packets_age_in_a_blockage() {
    let blockage = "[[edge.at]]\ntime = \"5s\"\noutage = { for = \"300ms\", kind = \"fade\" }\n";
    let aged =
        |text: &str| of(text, &["edge.age_limit=50ms", "flow.max_window=256kB"]).bottleneck.aged.unwrap();
    assert!(aged(blockage) > aged(""), "{} and {}", aged(blockage), aged(""));
}

#[test]
fn a_class_without_acknowledgements_repeats_nothing_and_is_ordered() {
    let class = "[[edge.class]]\nname = \"video\"\npriority = 0\nrlc = { mode = \"unacknowledged\" }\n\
                 [[flow]]\nclass = \"video\"\n";
    let keys = "edge.bearer.air.down.harq={ error = \"20%\", repetition_error = \"20%\", limit = 1, order = \"out-of-sequence\" }";
    let result = of(class, &[keys]);
    let radio = result.bottleneck.radio.as_ref().unwrap();
    assert!(radio.rlc.retransmitted == 0 && radio.lost_by.air > 0, "{:?}", radio.lost_by);
}

#[test]
fn wrong_keys_are_named() {
    for (set, path) in [
        ("edge.bearer.rlc.order=in-sequence", "rlc.order"),
        ("edge.bearer.rlc={ pdu = \"grant\", order = \"in-sequence\" }", "rlc.reordering"),
        ("edge.bearer.rlc.reordering=0s", "rlc.reordering"),
        ("edge.bearer.rlc.status.reassembly=0s", "rlc.status.reassembly"),
        ("edge.bearer.rlc.status.missing_pdu=false", "rlc.status.missing_pdu"),
        ("edge.bearer.rlc.pdu=packets", "rlc.pdu"),
        ("edge.bearer.air.up.control=----------", "air.up.control"),
        ("edge.bearer.air.up.control=50%", "air.up.grants.period"),
        ("edge.bearer.air.up.control=--DDD--", "air.up.grants.period"),
        ("edge.bearer.air.up.tti=0.1ms", "air.up.tti"),
    ] {
        let error = load("", &[set]).expect_err(set);
        assert!(error.contains(path), "{set}: {error}");
    }
    let lte = |set: &str| {
        Scenario::load("case.toml", "preset = \"lte\"\n", &[set.to_owned()]).unwrap_err().to_string()
    };
    assert!(lte("edge.bearer.air.down.harq.order=out-of-sequence").contains("air.down.harq.order"));
    assert!(lte("edge.bearer.air.up.harq.order=out-of-sequence").contains("air.up.harq.order"));
}
