//! Overrides take effect or are refused: changes of kind, swept keys, the sweep itself.

use ackclock_scenario::{Axis, Scenario, dropped_from};
use serde_json::{Value, json};

const FILE: &str = r#"preset = "cr02"
[edge.down]
kind = "variable"
rate = "300kbit/s"
delay = "50ms"
redraw = "interval(10ms)"
[[flow]]
sender = { kind = "reno", rto = { min = "2s" } }
[sweep]
"edge.buffer" = ["4p", "10p"]
"flow.sender" = ["reno", "sack"]
"#;

fn load(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load("case.toml", text, &sets).map_err(|error| error.to_string())
}

fn down(sets: &[&str]) -> Value {
    Value::clone(&load(FILE, sets).unwrap().tables().edge.down)
}

#[test]
fn a_link_of_another_kind_keeps_rate_and_delay_and_says_what_goes() {
    let scenario = load(FILE, &["edge.down.kind=constant"]).unwrap();
    assert_eq!(
        scenario.tables().edge.down,
        json!({"kind": "constant", "rate": "300kbit/s", "delay": "50ms"}).into()
    );
    assert_eq!(
        dropped_from([&scenario]).unwrap(),
        "dropped with the change of kind: edge.down.redraw (`constant` has no such key)"
    );
    // In either order, and also given as a table.
    let expected = json!({"kind": "constant", "rate": "300kbit/s", "delay": "7ms"});
    assert_eq!(down(&["edge.down.kind=constant", "edge.down.delay=7ms"]), expected);
    assert_eq!(down(&["edge.down.delay=7ms", "edge.down.kind=constant"]), expected);
    assert_eq!(down(&["edge.down={ kind = \"constant\", delay = \"7ms\" }"]), expected);
}

#[test]
fn what_a_preset_says_of_a_link_stays_too() {
    let scenario = load("preset = \"cr02\"", &["edge.down.kind=constant"]).unwrap();
    let expected = json!({"kind": "constant", "rate": "200kbit/s", "delay": "200ms"});
    assert_eq!((&*scenario.tables().edge.down, dropped_from([&scenario])), (&expected, None));
}

#[test]
fn a_value_that_the_new_kind_cannot_have_is_refused() {
    let error = load(FILE, &["edge.down.delay=e(50ms)", "edge.down.kind=constant"]).unwrap_err();
    assert!(error.contains("edge.down.delay: `e(50ms)`"), "{error}");
}

#[test]
fn a_sweep_over_kinds_keeps_what_each_knows_and_names_what_goes_once() {
    let text = FILE.replace(
        "\"flow.sender\" = [\"reno\", \"sack\"]",
        "\"edge.down.kind\" = [\"variable\", \"constant\"]",
    );
    let points = load(&text, &[]).unwrap().points().unwrap();
    let links: Vec<_> = points.iter().map(|point| point.scenario.tables().edge.down.clone()).collect();
    assert!(links.iter().all(|link| link["rate"] == "300kbit/s"), "{links:?}");
    let kinds: Vec<_> = links.iter().map(|link| link["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["variable", "constant", "variable", "constant"]);
    let remark = dropped_from(points.iter().map(|point| &point.scenario)).unwrap();
    assert_eq!(remark.matches("redraw").count(), 1, "{remark}");
}

#[test]
fn options_of_a_sender_stay_with_another_sender() {
    let scenario = load(FILE, &["flow.sender=cubic"]).unwrap();
    let sender = &scenario.tables().flow[0].sender;
    // An option of the file, and one of the preset.
    assert_eq!(
        (&sender["kind"], &sender["rto"]["min"], &sender["handshake"]),
        (&json!("cubic"), &json!("2s"), &json!("off"))
    );
}

#[test]
fn a_swept_key_that_is_set_has_that_value_at_every_point() {
    let points = load(FILE, &["edge.buffer=5p"]).unwrap().points().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        assert_eq!(point.labels[0], ("edge.buffer".to_owned(), json!("5p")));
        assert_eq!(point.scenario.tables().edge.buffer.to_string(), "5p");
    }
    let axis = Axis::new("edge.regulator", vec![json!("none"), json!("wrs")], "--regulators none,wrs");
    let points = load(FILE, &["edge.regulator=wrd"]).unwrap().points_over(&[axis]).unwrap();
    assert_eq!((points.len(), &points[0].labels[0].1), (1, &json!("wrd")));
}

#[test]
fn a_part_of_what_is_varied_cannot_be_set() {
    for set in ["flow.0.sender=sack", "flow.sender.kind=sack", "flow=[{ sender = \"sack\" }]"] {
        let error = load(FILE, &[set]).unwrap().points().unwrap_err().to_string();
        assert!(error.starts_with(&format!("--set {set}: ")), "{error}");
        assert!(error.contains("case.toml:11 varies `flow.sender`"), "{error}");
    }
    // Keys that the axis does not contain can be set too.
    let points = load(FILE, &["flow.sender.rto.min=3s"]).unwrap().points().unwrap();
    assert!(points.iter().all(|point| point.scenario.tables().flow[0].sender["rto"]["min"] == "3s"));
}

#[test]
fn the_sweep_itself_cannot_be_set() {
    for set in ["sweep.nonsense=3", "sweep.edge.buffer=[\"4p\"]", "sweep={}"] {
        let error = load(FILE, &[set]).unwrap_err();
        assert!(error.starts_with(&format!("--set {set}: sweep")), "{error}");
        assert!(error.contains("`--set edge.buffer=4p` sets a key at every point"), "{error}");
    }
}

#[test]
fn what_was_said_is_the_same_scenario_without_presets_and_defaults() {
    let scenario = load(FILE, &["edge.down.kind=constant", "edge.regulator=wrs", "flow.0.count=3"]).unwrap();
    let said = scenario.said();
    assert_eq!((&said["preset"], said.get("duration"), said["edge"].get("up")), (&json!("cr02"), None, None));
    let again = load(&toml::to_string(&said).unwrap(), &[]).unwrap();
    assert_eq!(again.sha256(), scenario.sha256());
}

#[test]
fn flows_that_take_the_place_of_the_files_have_the_options_of_the_preset() {
    let scenario = load(FILE, &["flow=[{ sender = \"sack\" }, {}]", "flow.1.count=2"]).unwrap();
    let flows = &scenario.tables().flow;
    assert_eq!((flows.len(), flows[1].count, flows[0].sender["rto"]["min"].as_str()), (2, 2, Some("1s")));
}
