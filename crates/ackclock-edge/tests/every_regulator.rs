//! Every regulator of the registry, several tables each, for laws that hold with any settings.

use std::sync::Arc;

use ackclock_edge::{REGULATORS, RegulatorConfig};
use serde_json::{Value, json};

/// The `regulator` tables for the laws. A regulator that is not listed here is tested with its defaults.
///
/// Queues of these laws are a few packets long, so thresholds are low. Excluded are tables that hold ACKs until
/// further packets arrive, as documented: `safety = "0s"`, and `step = "single"` without `tti`.
pub(crate) fn every_regulator() -> Vec<Value> {
    let tables = |name: &str| match name {
        "ack-regulator" => vec![
            json!({}),
            json!({"alpha": 0.5, "cost": "one", "fast_retransmit_reserve": 0, "ecn": "ignore", "safety": "10ms"}),
            json!({"alpha": 4.0, "limited_transmit_reserve": 2, "ecn": "echo-ack"}),
        ],
        "ack-rate-control" => ack_rate_control(),
        "snoop" => vec![
            json!({}),
            json!({"nacks": true, "min_timeout": "10ms", "retransmissions": 2}),
            json!({"nacks": true, "reordering": true, "cache": 2}),
        ],
        "wrs" => vec![
            json!({}),
            json!({"floor": true, "assumed_scale": 7}),
            json!({"min_window": 1, "assumed_scale": 0}),
        ],
        "wrd" => vec![
            json!({}),
            json!({"floor": true, "assumed_scale": 7}),
            json!({"count": "printed", "min_window": 1, "assumed_scale": 0}),
        ],
        "wrb" => vec![
            json!({}),
            json!({"floor": true, "assumed_scale": 7, "safety": "10ms"}),
            json!({"count": "printed", "reading": "printed", "release": "all", "empty": "hold", "assumed_scale": 7}),
        ],
        "forecast" => forecast(),
        _ => vec![json!({})],
    };
    let with_kind = |name: &str, mut table: Value| {
        table["kind"] = name.into();
        table
    };
    let of_entry = |name| tables(name).into_iter().map(move |table| with_kind(name, table));
    REGULATORS.entries.iter().flat_map(|entry| of_entry(entry.name)).collect()
}

/// Constant intervals of 0 and 10 ms, and delays that grow from an empty queue, with each kind of release.
fn ack_rate_control() -> Vec<Value> {
    let rising = json!({"alpha": 1.0, "min_threshold": 0, "max_threshold": 4, "min_delay": "1ms", "max_delay": "100ms"});
    let with = |keys: Value| {
        let mut table = rising.clone();
        keys.as_object().into_iter().flatten().for_each(|(key, value)| table[key] = value.clone());
        table
    };
    vec![
        json!({}),
        with(json!({"min_delay": "0s", "max_delay": "0s"})),
        with(json!({"min_delay": "10ms", "max_delay": "10ms"})),
        with(json!({"retime": true, "occupancy": "bytes"})),
        with(json!({"tti": "10ms"})),
        with(json!({"tti": "10ms", "step": "single", "counts": "unacknowledged"})),
    ]
}

/// Each scope, with and without ACKs in reserve.
fn forecast() -> Vec<Value> {
    vec![
        json!({"assumed_scale": 7}),
        json!({"scope": "flow", "assumed_scale": 7, "reserve": 0}),
        json!({"scope": "queue", "min_window": 1, "updates": 0.0, "assumed_scale": 0}),
        json!({"act": "mark"}),
        json!({"act": "both", "assumed_scale": 7}),
    ]
}

/// The regulator of a table.
pub(crate) fn build(table: &Value) -> Arc<dyn RegulatorConfig> {
    REGULATORS.resolve(table).unwrap_or_else(|error| panic!("{table}: {error}"))
}
