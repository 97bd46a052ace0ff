//! The result object of a run: names and order of its keys, null for missing values, sums over users.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, json_line, run};
use serde_json::Value;

const TWO_USERS: &str = r#"
preset = "cr02"
duration = "60s"
seed = 7
[[flow]]
sender = { kind = "reno" }
user = 3
[[flow]]
count = 2
user = 1
sender = "sack"
workload = { kind = "file", size = "50kB" }
"#;

fn result(number: u32) -> RunResult {
    result_of(TWO_USERS, number)
}

fn result_of(text: &str, number: u32) -> RunResult {
    let scenario = Scenario::load("two.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, number, &NoFiles, RunOptions::default()).unwrap().result
}

/// Keys of nested objects in order, like `flows.rtt_ms.mean`; for lists, the keys of the first item.
fn keys(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                found.push(path.clone());
                keys(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().take(1).for_each(|item| keys(item, prefix, found)),
        _ => {}
    }
}

#[test]
fn the_object_of_a_run_has_these_keys_in_this_order() {
    let line = json_line(&result(2), &[("edge.buffer".to_owned(), "4p".into())]);
    assert!(!line.contains('\n'));
    let object: Value = serde_json::from_str(&line).unwrap();
    let mut found = Vec::new();
    keys(&object, "", &mut found);
    let top: Vec<_> = found.iter().filter(|key| !key.contains('.')).map(String::as_str).collect();
    let contract = [
        "scenario",
        "seed",
        "run",
        "duration_s",
        "flows",
        "users",
        "transfers",
        "fairness",
        "bottleneck",
        "uplink",
        "engine",
        "provenance",
        "point",
    ];
    assert_eq!(top, contract);
    let of = |table: &str| -> Vec<String> {
        let inside = |key: &String| key.strip_prefix(table)?.strip_prefix('.').map(str::to_owned);
        found.iter().filter_map(inside).filter(|key| !key.contains('.')).collect()
    };
    let flow = [
        "id",
        "user",
        "sender",
        "goodput_bps",
        "wire_goodput_bps",
        "delivered_bytes",
        "segments_sent",
        "retransmits",
        "fast_retransmits",
        "timeouts",
        "spurious_timeouts",
        "rtt_ms",
        "timed_rtt_ms",
        "edge_rtt_ms",
        "completion_s",
        "regulator",
        "rto_ms_mean",
        "loss_cycles",
    ];
    assert_eq!(of("flows"), flow);
    assert_eq!(of("flows.rtt_ms"), ["mean", "p50", "p95", "p99"]);
    let user = [
        "id",
        "flows",
        "goodput_bps",
        "wire_goodput_bps",
        "delivered_bytes",
        "segments_sent",
        "retransmits",
        "timeouts",
    ];
    assert_eq!(of("users"), user);
    assert_eq!(of("fairness"), ["jain_users", "jain_flows"]);
    for link in ["bottleneck", "uplink"] {
        assert_eq!(
            of(link),
            [
                "capacity_bps",
                "utilisation",
                "goodput_bps",
                "active_s",
                "drops",
                "discarded",
                "made",
                "resent",
                "queue_ms"
            ]
        );
        assert_eq!(of(&format!("{link}.queue_ms")), ["mean", "p50", "p95", "p99"]);
    }
    assert_eq!(of("engine"), ["events", "packets", "cpu_s"]);
    assert_eq!(
        of("provenance"),
        ["version", "commit", "dirty", "scenario_sha256", "configuration_sha256", "inputs", "set"]
    );
    assert_eq!(object["point"]["edge.buffer"], "4p");
    assert_eq!((&object["seed"], &object["run"]), (&Value::from(7), &Value::from(2)));
}

#[test]
fn a_class_of_transfers_has_these_keys_in_this_order() {
    let text = "duration = \"100s\"\n[[flow]]\nworkload = \"web\"";
    let scenario = Scenario::load("web.toml", text, &[]).unwrap();
    let result = run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result;
    let object: Value = serde_json::from_str(&json_line(&result, &[])).unwrap();
    assert_eq!(object["flows"], Value::Array(Vec::new()));
    let mut found = Vec::new();
    keys(&object["transfers"], "", &mut found);
    let expected = [
        "user",
        "from_bytes",
        "to_bytes",
        "count",
        "unfinished",
        "latency_ms",
        "latency_ms.mean",
        "latency_ms.p50",
        "latency_ms.p95",
        "latency_ms.p99",
        "goodput_bps",
    ];
    assert_eq!(found, expected);
    // Fairness needs two users or two flows; here there is one user and no flow row.
    assert_eq!(
        (&object["fairness"]["jain_users"], &object["fairness"]["jain_flows"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn what_does_not_exist_is_null() {
    let object: Value = serde_json::from_str(&json_line(&result(0), &[])).unwrap();
    assert_eq!(object.get("point"), None);
    assert!(object["engine"]["cpu_s"].is_null());
    assert!(object["flows"][0]["completion_s"].is_null());
    assert!(object["flows"][1]["completion_s"].is_number());
    // Without timestamps a sender cannot detect spurious timeouts.
    assert!(object["flows"][0]["spurious_timeouts"].is_null());
}

#[test]
fn users_are_the_sums_of_their_flows() {
    let result = result(0);
    let of_user = |id| result.users.iter().find(|user| user.id == id).unwrap();
    assert_eq!(result.users.iter().map(|user| (user.id, user.flows)).collect::<Vec<_>>(), [(1, 2), (3, 1)]);
    assert_eq!(of_user(3).delivered_bytes, result.flows[0].delivered_bytes);
    assert_eq!(of_user(1).delivered_bytes, 100_000);
    // 100 kB in 60 s.
    assert!((of_user(1).goodput_bps - 100_000.0 * 8.0 / 60.0).abs() < 1e-6);
    assert_eq!(result.flows.iter().map(|flow| flow.id).collect::<Vec<_>>(), [0, 1, 2]);
    let segments = |user| {
        result.flows.iter().filter(|flow| flow.user == user).map(|flow| flow.segments_sent).sum::<u64>()
    };
    assert_eq!((of_user(1).segments_sent, of_user(3).segments_sent), (segments(1), segments(3)));
}

#[test]
fn without_files_jains_index_is_of_the_whole_run() {
    let result = result_of(&TWO_USERS.replace("workload = ", "# "), 0);
    // By hand: (a + b)^2 / (2 (a^2 + b^2)) for the two users.
    let [a, b] = [0, 1].map(|user: usize| result.users[user].goodput_bps);
    let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
    assert!((result.fairness.jain_users.unwrap() - jain).abs() < 1e-12);
    assert!(result.fairness.jain_flows.is_some());
}
