//! Bearers in complete scenarios: their configuration, and TCP over radio link control.

use ackclock_core::Span;
use ackclock_edge::BEARERS;
use ackclock_scenario::{NoFiles, Outcome, RunOptions, RunResult, Scenario, run};

/// A download over a lossless bearer of 384 kbit/s.
const OVER_RLC: &str = r#"
version = 1
duration = "120s"
[path]
delay = "50ms"
[edge]
buffer = "50p"
[edge.bearer]
kind = "radio-access"
air.down = { kind = "dedicated", delay = "25ms", errors = 0 }
air.up = { kind = "dedicated", rate = "64kbit/s", delay = "25ms", errors = 0 }
[[flow]]
packet = "1500B"
max_window = "40p"
"#;

fn load(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load("rlc.toml", text, &sets).map_err(|error| error.to_string())
}

fn outcome(sets: &[&str]) -> Outcome {
    let scenario = load(OVER_RLC, sets).unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { series_interval: Some(Span::from_millis(50)), ..RunOptions::default() };
    run(&scenario, 0, &NoFiles, options).unwrap()
}

fn result(sets: &[&str]) -> RunResult {
    outcome(sets).result
}

#[test]
fn a_bearer_without_links_refuses_every_key_of_them() {
    for (set, key) in [
        ("edge.down.rate=1Mbit/s", "edge.down"),
        ("edge.up.delay=1ms", "edge.up"),
        ("edge.cells=2", "edge.cells"),
        ("edge.buffer_counts=with-transmission", "edge.buffer_counts"),
        ("edge.buffer=0p", "edge.buffer"),
        ("edge.at=[{ time = \"1s\", set = { down.rate = \"1Mbit/s\" } }]", "edge.at.0.set.down"),
        ("edge.bearer.air.down.rate=100kbit/s", "edge.bearer.air.down.rate"),
        ("edge.bearer.rlc.window=2048", "edge.bearer.rlc.window"),
        ("edge.bearer.rlc={ mode = \"unacknowledged\", window = 9 }", "edge.bearer.rlc.window"),
        ("edge.bearer.rlc={ on_max_dat = \"reset\", mrw = { most = 9 } }", "edge.bearer.rlc.mrw"),
        ("edge.bearer.rlc.poll={ last_pdu = false }", "edge.bearer.rlc.poll.last_pdu"),
    ] {
        let error = load(OVER_RLC, &[set]).map(drop).expect_err(set);
        assert!(error.contains(key), "{set}: {error}");
    }
}

#[test]
fn what_a_preset_says_of_links_does_not_stand_in_the_way_of_a_bearer() {
    let text = "preset = \"l02\"\n[edge.bearer]\nkind = \"radio-access\"\n";
    let scenario = load(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let edge = &scenario.configuration()["edge"];
    assert_eq!(edge["bearer"]["kind"], "radio-access");
    assert!(edge.get("down").is_none() && edge.get("up").is_none(), "{edge}");
}

#[test]
fn two_links_are_the_bearer_that_nobody_names() {
    let text = "preset = \"cr02\"\nduration = \"20s\"\n";
    let of = |sets: &[&str]| {
        let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
        run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
    };
    let (usual, named) = (of(&[]), of(&["edge.bearer=links"]));
    assert_eq!((usual.flows, usual.bottleneck, usual.uplink), (named.flows, named.bottleneck, named.uplink));
}

/// Every 1500 octets take 1501 of 384 kbit/s: 383 744 bit/s.
#[test]
fn tcp_fills_a_bearer_that_loses_nothing() {
    let result = result(&[]);
    let flow = &result.flows[0];
    assert_eq!((flow.retransmits.unwrap(), result.bottleneck.drops), (0, 0));
    // The initial window is one packet.
    let rate = flow.wire_goodput_bps.unwrap();
    assert!((378_000.0..=383_745.0).contains(&rate), "{rate}");
}

/// 40 packets are in flight. The radio loses PDUs, but TCP sees only their delay.
#[test]
fn tcp_sees_delay_where_the_radio_loses() {
    let lossy =
        result(&["edge.bearer.air.down.errors=10%", "edge.bearer.air.up.errors=10%", "duration=600s"]);
    assert_eq!(lossy.bottleneck.drops, 0);
    let rate = lossy.flows[0].wire_goodput_bps.unwrap();
    // 345.6 kbit/s could pass; a TTI that is lost takes all PDUs of one instant, and the queue of 40 packets runs dry
    // seldom.
    assert!((330_000.0..345_600.0).contains(&rate), "{rate}");
    let clean = result(&["duration=600s"]);
    let [late, straight] = [&lossy, &clean].map(|result| result.flows[0].rtt_ms.p95.unwrap());
    assert!(late > straight, "{late} {straight}");
}

#[test]
fn a_series_shows_the_state_of_the_link_layer() {
    let outcome = outcome(&["edge.bearer.rlc.window=64"]);
    let series = outcome.series.unwrap();
    let gauges = BEARERS.resolve(&"radio-access".into()).unwrap().gauges();
    for direction in ["down", "up"] {
        for gauge in &gauges {
            let name = format!("edge.{direction}.{gauge}");
            assert_eq!(series.column(&name).unwrap().len(), 2401, "{name}");
        }
    }
    let outstanding = series.column("edge.down.outstanding_pdus").unwrap();
    // A queue of 40 packets of 38 PDUs exhausts the window of 64.
    assert_eq!(outstanding.iter().copied().fold(0.0, f64::max), 64.0);
}

#[test]
fn uploads_and_relays_pass_over_a_bearer() {
    let up = ["flow.0.towards=server", "edge.up_buffer=50p", "edge.bearer.air.up.rate=128kbit/s"];
    let upload = result(&up);
    let rate = upload.flows[0].wire_goodput_bps.unwrap();
    assert!((124_000.0..128_000.0).contains(&rate), "{rate}");
    let relayed = result(&["relay={}"]);
    let rate = relayed.flows[0].wire_goodput_bps.unwrap();
    assert!((375_000.0..=383_745.0).contains(&rate), "{rate}");
}
