//! Flows whose transport headers are encrypted, as those of QUIC.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

const LINK: &str = r#"
preset = "linux"
duration = "20s"
[path]
delay = "20ms"
[edge]
buffer = "200p"
down = { kind = "constant", rate = "5Mbit/s", delay = "20ms" }
up = { kind = "constant", rate = "5Mbit/s", delay = "20ms" }
[[flow]]
sender = "cubic"
headers = "encrypted"
"#;

fn result(sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("headers.toml", LINK, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

fn queue(sets: &[&str]) -> f64 {
    result(sets).bottleneck.queue_ms.mean.unwrap()
}

#[test]
fn a_regulator_of_acks_leaves_an_encrypted_flow_alone() {
    let sent = |sets: &[&str]| {
        let flow = &result(sets).flows[0];
        (flow.delivered_bytes, flow.segments_sent, flow.rtt_ms.mean)
    };
    let alone = sent(&[]);
    for regulator in ["wrd", "forecast", "ack-regulator", "snoop"] {
        let set = format!("edge.regulator={regulator}");
        assert_eq!(sent(&[&set]), alone, "{regulator}");
    }
    assert!(queue(&["edge.regulator=forecast", "flow.0.headers=clear"]) < queue(&[]));
}

#[test]
fn a_marker_acts_on_an_encrypted_flow() {
    let sets = [r#"flow.0.sender={ kind = "cubic", ecn = "on" }"#, "edge.regulator=wait-marker"];
    let forecast = [sets[0], r#"edge.regulator={ kind = "forecast", act = "mark" }"#];
    let drops = [r#"edge.regulator={ kind = "wait-marker", not_ect = "drop" }"#];
    let alone = queue(&[]);
    assert!(queue(&forecast) < alone / 3.0);
    assert!(queue(&sets) < alone / 3.0);
    assert!(queue(&drops) < alone / 3.0);
}

#[test]
fn a_box_that_reads_headers_is_refused() {
    let text = LINK
        .replace("\ndown =", "\nbearer = { kind = \"autorate\" }\nbehind.down =")
        .replace("\nup =", "\nbehind.up =");
    let error = Scenario::load("headers.toml", &text, &[]).unwrap_err().to_string();
    assert!(error.contains("flow.0.headers") && error.contains("observing bearer"), "{error}");
}
