//! The Ack Regulator with senders newer than its publication.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};
use ackclock_tcp::SENDERS;

/// A link with outages of seconds and a rate that varies by several times in between.
const OUTAGES: &str = r#"
preset = "linux"
duration = "60s"

[path]
delay = "50ms"

[edge]
buffer = "20p"

[edge.down]
kind = "variable"
redraw = "interval(500ms)"

[edge.up]
rate = "1Mbit/s"

[[flow]]
sender = "bbr"
"#;

fn result(name: &str, text: &str, sets: &[String]) -> RunResult {
    let scenario = Scenario::load(name, text, sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

fn goodput(regulator: &str, rate: &str, outage: &str, seed: u64) -> f64 {
    let sets = [
        format!("seed={seed}"),
        format!("edge.regulator={regulator}"),
        format!("edge.down.rate={rate}"),
        format!(r#"edge.down.outages=[{{ at = "5s", for = "{outage}", every = "7s" }}]"#),
    ];
    result("outages.toml", OUTAGES, &sets).flows[0].goodput_bps.unwrap()
}

/// BBR in ProbeRTT keeps four segments in flight and sends nothing until that many are acknowledged. If an idle link
/// released only one ACK a second, BBR would achieve 31 % of its goodput alone. Results depend on the state in which an
/// outage starts, so ten seeds are averaged.
#[test]
fn a_sender_that_lowers_its_window_is_not_stalled() {
    for (rate, outage) in [("ln(4Mbit/s, 5Mbit/s)", "500ms"), ("ln(6Mbit/s, 8Mbit/s)", "1s")] {
        let [none, regulated] = ["none", "ack-regulator"]
            .map(|regulator| (1..=10).map(|seed| goodput(regulator, rate, outage, seed)).sum::<f64>());
        assert!(regulated > 0.9 * none, "{rate} {outage}: {regulated} beside {none}");
    }
}

/// Several packets of a window are sometimes lost, on the radio and in the small queue. It lasts until also a sender that
/// paces at a low rate has lost 20 packets.
const LOSSY: &str = r#"
preset = "cr02"
duration = "90s"

[path]
delay = "50ms"
loss = 0.005

[edge]
buffer = "8p"

[edge.down]
kind = "variable"
rate = "u(800kbit/s, 300kbit/s)"
delay = "u(75ms, 30ms)"
loss = 0.01
"#;

/// If every packet is acknowledged, each ACK triggers one packet, even after losses: duplicate ACKs have already
/// triggered the other packets that a cumulative ACK covers.
#[test]
fn an_ack_costs_one_packet_where_each_is_acknowledged() {
    for sender in SENDERS.entries {
        let [covered, one] = ["covered", "one"].map(|cost| {
            let regulator = format!(r#"edge.regulator={{ kind = "ack-regulator", cost = "{cost}" }}"#);
            result("lossy.toml", LOSSY, &[regulator, format!("flow.sender={}", sender.name)])
        });
        assert!(covered.flows[0].retransmits.unwrap() > 20, "{} lost too little", sender.name);
        assert_eq!(covered.flows, one.flows, "{}", sender.name);
    }
}
