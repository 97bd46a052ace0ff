//! Queues whose packets leave at an age limit: results, causes of loss, and keys.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};
use serde_json::Value;

/// A download over a link of 1 Mbit/s with a deep queue.
const LINK: &str = r#"
    version = 1
    preset = "linux"
    duration = "30s"
    [edge]
    buffer = "300p"
    up_buffer = "300p"
    [edge.down]
    kind = "constant"
    rate = "1Mbit/s"
    delay = "20ms"
    [edge.up]
    kind = "constant"
    rate = "1Mbit/s"
    delay = "20ms"
    [[flow]]
    sender = "cubic"
"#;

/// The same over UMTS, whose RLC keeps packets until they are acknowledged.
const UMTS: &str = r#"
    version = 1
    preset = "linux"
    duration = "60s"
    [edge]
    buffer = "100p"
    [edge.bearer]
    kind = "radio-access"
    air.down = { kind = "dedicated", delay = "25ms", errors = "20%", errors_by = "pdu" }
    air.up = { kind = "dedicated", rate = "64kbit/s", delay = "25ms", errors = "20%", errors_by = "pdu" }
    [[flow]]
    sender = "cubic"
"#;

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::load("aged.toml", text, &sets).unwrap();
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

fn refused(text: &str, sets: &[&str]) -> String {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::load("aged.toml", text, &sets).unwrap_err().to_string()
}

#[test]
fn the_age_limit_bounds_the_queueing_delay_and_each_packet_over_it_counts() {
    let seen = result(LINK, &["edge.age_limit=150ms"]).bottleneck;
    // The buffer holds 3.6 s of data, so that packets are lost only because of their age.
    assert!(seen.aged.unwrap() > 0 && seen.aged == Some(seen.drops), "{seen:?}");
    assert!(seen.queue_ms.p95.unwrap() < 152.0, "{:?}", seen.queue_ms);
    let unlimited = result(LINK, &[]).bottleneck;
    assert!(unlimited.queue_ms.p95.unwrap() > 1000.0, "{:?}", unlimited.queue_ms);
}

#[test]
fn acks_age_in_a_full_uplink() {
    let both = format!("{LINK}[[flow]]\nsender = \"cubic\"\ntowards = \"server\"\n");
    let seen = result(&both, &["edge.up_age_limit=150ms"]);
    assert!(seen.uplink.aged.unwrap() > 0 && seen.uplink.queue_ms.p95.unwrap() < 152.0, "{:?}", seen.uplink);
    assert_eq!(seen.bottleneck.aged, None);
}

#[test]
fn results_have_the_count_only_with_a_limit() {
    let text = |sets: &[&str]| {
        let mut result = serde_json::to_value(result(LINK, sets)).unwrap();
        // Both name the keys that were set, or how often the link was asked.
        for key in ["provenance", "engine"] {
            result.as_object_mut().unwrap().remove(key);
        }
        result.to_string()
    };
    assert!(!text(&[]).contains("\"aged\""));
    assert_eq!(text(&["edge.age_limit=none"]), text(&[]));
    // A limit that no packet reaches changes nothing but the key.
    assert_eq!(text(&["edge.age_limit=100s"]).replace("\"aged\":0,", ""), text(&[]));
}

#[test]
fn umts_discards_packets_that_were_sent_in_part() {
    let seen = result(UMTS, &["edge.age_limit=400ms"]).bottleneck;
    let radio = seen.radio.unwrap();
    assert!(radio.lost_by.aged > 0 && radio.lost_by.aged <= seen.aged.unwrap(), "{:?}", radio.lost_by);
    assert_eq!((radio.lost_by.max_dat, radio.lost_by.reset, radio.rlc.resets), (0, 0, 0), "{radio:?}");
    // A PDU that fills its block belongs to a packet that is never discarded once it was sent in part.
    let lte = LINK.split("[edge.down]").next().unwrap().replace("\"linux\"", "\"lte\"");
    let seen = result(&lte, &["edge.age_limit=50ms"]).bottleneck;
    assert!(seen.aged.unwrap() > 0 && seen.radio.unwrap().lost_by.aged == 0);
}

#[test]
fn a_limit_is_a_time_above_zero() {
    for (set, said) in [
        ("edge.age_limit=0s", "edge.age_limit: 0s: every packet would leave unsent"),
        ("edge.up_age_limit=20p", "edge.up_age_limit: "),
    ] {
        let error = refused(LINK, &[set]);
        assert!(error.contains(said), "{error}");
    }
    let boxed = "version = 1\n[edge]\nbearer = \"observed\"\nregulator = \"wrd\"\nbuffer = \"20p\"\n\
                 [edge.behind]\n[[flow]]\n";
    let error = refused(boxed, &["edge.age_limit=100ms"]);
    assert!(error.contains("edge.age_limit: a bearer of kind `observed` has no radio"), "{error}");
    Scenario::load("aged.toml", boxed, &["edge.behind.age_limit=100ms".to_owned()]).unwrap();
}

#[test]
fn a_series_has_the_count_only_with_a_limit() {
    let columns = |sets: &[&str]| {
        let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load("aged.toml", LINK, &sets).unwrap();
        let interval = Some(ackclock_core::Span::from_secs(1));
        let options = RunOptions { series_interval: interval, ..RunOptions::default() };
        run(&scenario, 0, &NoFiles, options).unwrap().series.unwrap()
    };
    let series = columns(&["edge.age_limit=150ms"]);
    let aged: f64 = series.column("edge.aged").unwrap().iter().sum();
    let drops: f64 = series.column("edge.drops").unwrap().iter().sum();
    assert!(aged > 0.0 && aged == drops, "{aged} of {drops}");
    assert!(series.column("edge.up.aged").is_none());
    assert!(columns(&[]).column("edge.aged").is_none());
}

#[test]
fn every_result_is_a_number_or_left_out() {
    let seen = serde_json::to_value(result(LINK, &["edge.age_limit=150ms"])).unwrap();
    assert!(seen["bottleneck"]["aged"].is_u64());
    assert_eq!(seen["uplink"].get("aged"), None::<&Value>);
}
