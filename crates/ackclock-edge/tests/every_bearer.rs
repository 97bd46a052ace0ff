//! Edges over every bearer of the registry, several tables each, for laws that hold on any channel.

use std::sync::Arc;

use ackclock_core::{FlowId, Span, Streams};
use ackclock_edge::BEARERS;
use ackclock_edge::{Edge, EdgeConfig, RegulatorConfig, Surroundings};
use ackclock_link::NoFiles;
use serde_json::{Value, json};

/// An `[edge]` table for each channel. A bearer without tables here is tested with its defaults.
pub(crate) fn every_table() -> Vec<Value> {
    let tables = |name: &str| match name {
        "links" => links().into_iter().chain(cells()).collect(),
        "radio-access" => rlc().into_iter().chain(radio_access()).collect(),
        "observed" => sides(&json!({"kind": name, "probe": "1s"})),
        "autorate" => sides(&json!({"kind": name, "min": "500kbit/s", "base": "1Mbit/s"})),
        _ => vec![json!({ "bearer": name })],
    };
    let all: Vec<_> = BEARERS.entries.iter().flat_map(|entry| tables(entry.name)).collect();
    let aging = all.iter().filter(|table| !observes(table)).map(|table| {
        let mut table = table.clone();
        (table["age_limit"], table["up_age_limit"]) = ("25ms".into(), "40ms".into());
        table
    });
    let aging: Vec<_> = aging.collect();
    [all, aging].concat()
}

/// Whether the bearer of a table only observes a queue.
fn observes(table: &Value) -> bool {
    let bearer = table.get("bearer").map_or_else(|| "links".into(), Value::clone);
    BEARERS.resolve(&bearer).expect("a bearer of the registry").observes().is_some()
}

/// Two links, with both meanings of the buffer.
fn links() -> Vec<Value> {
    let constant = json!({"kind": "constant", "rate": "1Mbit/s", "delay": "20ms"});
    let down = [
        constant.clone(),
        json!({"kind": "variable", "rate": "ln(700kbit/s, 600kbit/s)", "redraw": "interval(50ms)", "delay": "u(75ms, 30ms)"}),
        json!({"kind": "umts-rlc", "bler": 0.2}),
        json!({"kind": "power-controlled"}),
        json!({
            "kind": "constant", "rate": "1Mbit/s", "duplicate": 0.2, "corrupt": 0.1,
            "reorder": {"share": 0.2, "extra": "30ms"}
        }),
    ];
    let counts = ["waiting", "with-transmission"];
    let with =
        |down: Value| counts.map(|counts| json!({"down": down, "up": constant, "buffer_counts": counts}));
    down.into_iter().flat_map(with).collect()
}

/// Cells of two users, one flow each.
fn cells() -> Vec<Value> {
    let user = json!([{"doppler": 60.0}, {"mean_snr": 6.0, "fading": "jakes"}]);
    let up = json!({"kind": "variable", "rate": "64kbit/s", "delay": "e(5ms)"});
    let down = [
        json!({"kind": "cell", "scheduler": "pf-rp", "delay": "2ms + e(3ms)", "loss": 0.05}),
        json!({"kind": "cell", "buffer_per": "user", "overflow": "arriving", "harq": {}}),
    ];
    down.map(|down| json!({"down": down, "up": up, "user": user})).into()
}

/// One user behind dedicated channels: without errors, with many, small windows, rare polls, discards, and unacknowledged.
fn rlc() -> Vec<Value> {
    let table = |rate: &str, errors: &str, by: &str, rlc: Value| {
        let air = |rate| json!({"kind": "dedicated", "rate": rate, "delay": "25ms", "errors": errors, "errors_by": by});
        json!({"bearer": {"kind": "radio-access", "rlc": rlc, "air": {"down": air(rate), "up": air("64kbit/s")}}})
    };
    let fast = |errors, by, rlc| table("384kbit/s", errors, by, rlc);
    vec![
        fast("0%", "tti", json!({})),
        fast("30%", "pdu", json!({"status": {"prohibit": "60ms"}})),
        fast("20%", "tti", json!({"window": 64, "poll": {"timer": "90ms"}})),
        table("64kbit/s", "10%", "tti", json!({"order": "out-of-sequence"})),
        fast("50%", "pdu", json!({"max_dat": 2, "mrw": {"timer": "100ms", "most": 2}})),
        fast(
            "40%",
            "tti",
            json!({"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}}),
        ),
        fast("20%", "tti", json!({"mode": "unacknowledged"})),
    ]
}

/// Two users behind a radio network controller, in both modes of the radio link control.
fn radio_access() -> Vec<Value> {
    let tables = [
        json!({"air": {"down": {"kind": "dedicated", "errors": "20%", "errors_by": "pdu"}}}),
        json!({"rlc": {"mode": "unacknowledged"}}),
        json!({"air": {"down": {"kind": "shared", "delay": "5ms", "harq": {}}}, "iub": {}}),
        json!({"air": {"down": {"kind": "shared", "delay": "5ms", "pdus": "split", "harq": {}}}}),
        json!({
            "rlc": {"pdu": "grant", "window": 512, "max_dat": 9},
            "air": {
                "down": {"kind": "shared", "slots": 1000, "delay": "5ms", "harq": {"delay": "8ms"}},
                "up": {"kind": "dedicated", "rate": "10Mbit/s", "tti": "1ms", "delay": "5ms", "harq": {"delay": "8ms"}},
            },
        }),
        json!({
            "rlc": {"pdu": "grant", "window": 512, "max_dat": 9},
            "air": {
                "down": {"kind": "shared", "slots": 1000, "control": "24%", "delay": "5ms", "harq": {"delay": "8ms"}},
                "up": {"kind": "dedicated", "rate": "2Mbit/s", "tti": "1ms", "delay": "5ms", "harq": {}, "grants": {}},
            },
        }),
        json!({
            "iub": {"loss": 0.02, "base_station_buffer": "100p", "flow_control": "on-off"},
            "air": {"down": {"kind": "shared", "delay": "5ms", "harq": {"feedback_error": 0.1}}},
        }),
        json!({"rlc": {"mode": "unacknowledged"}, "iub": {"flow_control": "none"}, "air": {"down": {"kind": "shared", "delay": "5ms"}}}),
    ];
    let of_two = |mut table: Value| {
        table["kind"] = "radio-access".into();
        json!({"bearer": table, "user": [{"count": 2}]})
    };
    tables.map(of_two).into()
}

/// An observing box, on either side of the queue.
fn sides(bearer: &Value) -> Vec<Value> {
    let side = |side: &str| {
        let mut bearer = bearer.clone();
        bearer["side"] = side.into();
        json!({ "bearer": bearer })
    };
    ["network", "mobile"].map(side).into()
}

/// The edge of a table with a buffer of `packets`; `None` if the regulator does not work over an observing bearer.
pub(crate) fn edge_over(table: &Value, packets: u32, regulator: Arc<dyn RegulatorConfig>) -> Option<Edge> {
    let mut table = table.clone();
    table["buffer"] = format!("{packets}p").into();
    let config: EdgeConfig = serde_json::from_value(table).expect("the keys of the table");
    let bearer = BEARERS.resolve(&config.bearer).expect("a bearer of the registry");
    if bearer.observes().is_some_and(|side| regulator.observes(side).is_err()) {
        return None;
    }
    let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
    let built = config.build_with(regulator, &Streams::new(3, 0), &NoFiles, around);
    let mut edge = built.unwrap_or_else(|error| panic!("{error}"));
    (0..2).for_each(|flow| edge.assign(FlowId(flow), flow));
    Some(edge)
}
