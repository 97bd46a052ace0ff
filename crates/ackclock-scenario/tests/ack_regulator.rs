//! What the Ack Regulator does to senders that its source did not know.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};
use ackclock_tcp::SENDERS;

/// Seconds without service every now and then, and a rate that changes by several times in between.
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

/// BBR in search of the least round-trip time keeps four segments in flight and answers no ACK until as many have come.
/// While one ACK a second went from an idle link, it carried 31 % of what it carries alone in both cases. What an outage meets is
/// luck, of which ten seeds have some of each kind.
#[test]
fn a_sender_that_lowers_its_window_is_not_stalled() {
    for (rate, outage) in [("ln(4Mbit/s, 5Mbit/s)", "500ms"), ("ln(6Mbit/s, 8Mbit/s)", "1s")] {
        let [none, regulated] = ["none", "ack-regulator"]
            .map(|regulator| (1..=10).map(|seed| goodput(regulator, rate, outage, seed)).sum::<f64>());
        assert!(regulated > 0.9 * none, "{rate} {outage}: {regulated} beside {none}");
    }
}

/// Several packets of a window are lost now and then, on the air and where the small queue is full.
const LOSSY: &str = r#"
preset = "cr02"
duration = "60s"

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

/// Where every packet is acknowledged each ACK calls forth what one packet does, whatever was lost: what an advance covers
/// beside the repaired packet, duplicates have paid for.
#[test]
fn an_ack_costs_one_packet_where_each_is_acknowledged() {
    for sender in SENDERS.entries {
        let [covered, one] = ["covered", "one"].map(|cost| {
            let regulator = format!(r#"edge.regulator={{ kind = "ack-regulator", cost = "{cost}" }}"#);
            result("lossy.toml", LOSSY, &[regulator, format!("flow.sender={}", sender.name)])
        });
        assert!(covered.flows[0].retransmits > 20, "{} lost too little", sender.name);
        assert_eq!(covered.flows, one.flows, "{}", sender.name);
    }
}
