//! The filter of ACKs on an uplink that is too slow for the ACKs of a download.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

/// A download of 20 Mbit/s sends 833 ACKs a second; the uplink carries 156.
const LINK: &str = r#"
duration = "20s"
[path]
delay = "10ms"
[edge]
buffer = "100p"
up_buffer = "50p"
down = { kind = "constant", rate = "20Mbit/s", delay = "10ms" }
up = { kind = "constant", rate = "50kbit/s", delay = "10ms" }
[[flow]]
sender = "cubic"
packet = "1500B"
ack_size = "40B"
max_window = "200p"
acks = { kind = "delayed", count = 2, timeout = "40ms" }
"#;

fn result(sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("filter.toml", LINK, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

const MODES: [&str; 2] = ["ack-filter", r#"{ kind = "ack-filter", mode = "aggressive" }"#];

/// Without a filter ACKs wait 320 ms in a full queue of 50, and half of them are lost. A filter leaves two or one.
#[test]
fn an_uplink_that_is_too_slow_for_the_acks_carries_a_faster_download() {
    let alone = result(&[]);
    for regulator in MODES {
        let filtered = result(&[&format!("edge.regulator={regulator}")]);
        let rtt = |result: &RunResult| result.flows[0].rtt_ms.mean.unwrap();
        assert!(rtt(&filtered) < rtt(&alone) / 2.0, "{} {}", rtt(&filtered), rtt(&alone));
        assert!(filtered.flows[0].delivered_bytes > alone.flows[0].delivered_bytes, "{regulator}");
        let up = &filtered.uplink;
        assert!(up.drops < alone.uplink.drops / 10, "{regulator}: {}", up.drops);
        assert!(up.discarded > 1000, "{regulator}");
    }
}

/// The mark of each packet arrives: a scalable sender behaves over a filtered uplink as over one that is fast enough.
#[test]
fn marks_are_not_lost() {
    for sender in ["prague", "dctcp"] {
        let of = |sets: &[&str]| {
            let sender = format!("flow.0.sender={sender}");
            let sets: Vec<&str> = [&sender, "edge.queue=dualpi2", "edge.down.rate=5Mbit/s"]
                .into_iter()
                .chain(sets.iter().copied())
                .collect();
            let result = result(&sets);
            (result.flows[0].delivered_bytes as f64, result.bottleneck.queue_ms.mean.unwrap())
        };
        let (fast, queue) = of(&["edge.up.rate=5Mbit/s"]);
        for regulator in MODES {
            let (filtered, filtered_queue) = of(&[&format!("edge.regulator={regulator}")]);
            assert!(filtered > 0.8 * fast, "{sender} {regulator}: {filtered} {fast}");
            assert!(filtered_queue < queue + 10.0, "{sender} {regulator}: {filtered_queue} {queue}");
        }
    }
}

#[test]
fn the_acks_of_uploads_are_filtered_on_the_downlink_and_encrypted_ones_are_not() {
    let upload =
        ["flow.0.towards=server", "edge.up.rate=20Mbit/s", "edge.down.rate=50kbit/s", "edge.up_buffer=100p"];
    let with = |set: &'static str| result(&[&upload[..], &[set]].concat()).bottleneck.discarded;
    assert!(with("edge.up_regulator=ack-filter") > 1000);
    let encrypted = result(&["edge.regulator=ack-filter", "flow.0.headers=encrypted"]);
    assert_eq!(encrypted.uplink.discarded, 0);
}
