//! Overrides count, or are refused, and what they cost is said: `--set`, `[sweep]`, `--generate`.

use crate::common::{Folder, SCENARIO, UNSWEPT};
use serde_json::{Value, json};

fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn another_kind_is_run_with_the_rate_of_the_file_and_what_it_does_not_know_is_named() {
    let folder = Folder::new();
    folder.write(
        "slots.toml",
        SCENARIO.replace("delay = \"e(50ms)\"", "redraw = \"slot\"").replace("[sweep]", "[flow.x]"),
    );
    folder.write("slots.toml", folder.read("slots.toml").split("[flow.x]").next().unwrap());
    let sets = ["--set", "edge.down.kind=constant", "--set", "edge.buffer=1bdp"];
    let (line, remark) = folder.remarks(&[&["run", "slots.toml", "--json"], &sets[..]].concat());
    assert_eq!(object(&line)["bottleneck"]["capacity_bps"], 200_000.0);
    assert_eq!(
        remark,
        "ackclock: dropped with the change of kind: edge.down.redraw (`constant` has no such key)"
    );
}

#[test]
fn a_sweep_over_kinds_says_once_what_goes() {
    let folder = Folder::new();
    let text = SCENARIO
        .replace("\"edge.buffer\" = [\"4p\", \"10p\"]", "\"edge.up.kind\" = [\"variable\", \"constant\"]");
    folder.write("kinds.toml", text.replace("delay = \"350ms\"", "delay = \"350ms\"\nredraw = \"slot\""));
    let (table, remark) = folder.remarks(&["sweep", "kinds.toml"]);
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(remark.ends_with("edge.up.redraw (`constant` has no such key)"), "{remark}");
}

#[test]
fn a_set_value_takes_the_place_of_an_axis_and_the_point_shows_it() {
    let folder = Folder::new();
    let lines = folder.prints(&["sweep", "case.toml", "--set", "edge.buffer=5p", "--json"]);
    let points: Vec<_> = lines.lines().map(|line| object(line)["point"].clone()).collect();
    assert_eq!(
        points,
        [
            json!({"edge.buffer": "5p", "flow.sender": "reno"}),
            json!({"edge.buffer": "5p", "flow.sender": "sack1"})
        ]
    );
    let compared = folder.prints(&["compare", "case.toml", "--set", "edge.regulator=wrs", "--json"]);
    assert_eq!(object(compared.trim_end())["point"], json!({"edge.regulator": "wrs"}));
    let part = folder.complains(2, &["sweep", "case.toml", "--set", "flow.0.sender=reno"]);
    assert!(part.contains("case.toml:21 varies `flow.sender`"), "{part}");
    let axis = folder.complains(2, &["sweep", "case.toml", "--set", "sweep.nonsense=3"]);
    assert!(axis.starts_with("--set sweep.nonsense=3: sweep.nonsense: "), "{axis}");
}

#[test]
fn run_and_compare_say_that_they_do_not_look_at_the_sweep() {
    let folder = Folder::new();
    for arguments in [&["run", "case.toml"][..], &["compare", "case.toml", "--regulators", "none"]] {
        let (_, remark) = folder.remarks(arguments);
        let expected = format!("ackclock: case.toml: {} {UNSWEPT}edge.buffer, flow.sender)", arguments[0]);
        assert!(remark.starts_with(&expected), "{remark}");
    }
}

#[test]
fn compare_names_no_swept_key_that_its_options_replace() {
    let folder = Folder::new();
    let one = folder.run(&["compare", "case.toml", "--senders", "reno"]);
    assert!(one.err.contains(&format!("{UNSWEPT}edge.buffer)")), "{}", one.err);
    let both = folder.run(&["compare", "case.toml", "--senders", "reno", "--buffers", "4p"]);
    assert!(!both.err.contains(UNSWEPT), "{}", both.err);
}

#[test]
fn what_is_generated_is_the_link_that_would_run_and_finds_its_recordings_from_any_folder() {
    let folder = Folder::new();
    for below in ["links", "kept"] {
        std::fs::create_dir(folder.path(below)).unwrap();
    }
    folder.write("links/a.down", (1..=200).map(|n| format!("{}\n", 10 * n)).collect::<String>());
    folder.write(
        "links/a.toml",
        "seed = 3\n[edge.down]\nkind = \"trace\"\nfile = \"a.down\"\ndelay = \"30ms\"\n[edge.up]\nrate = \"1mbit\"\n",
    );
    let sets = ["--set", "edge.up.kind=variable", "--buffer", "9p", "--seed", "7"];
    let text = folder.prints(&[&["link", "--scenario", "links/a.toml", "--generate"][..], &sets].concat());
    folder.write("kept/link.toml", &text);
    let shown = |asked: &[&str]| {
        // The remark is about the mean of delays that are drawn for each packet.
        let (text, _) = folder.remarks(&[&["check", "--show"][..], asked].concat());
        let mut table: toml::Table = text.parse().unwrap();
        let file = table["edge"]["down"].as_table_mut().unwrap().remove("file").unwrap();
        assert!(file.as_str().unwrap().ends_with("a.down"));
        table
    };
    let sets = ["--set", "edge.up.kind=variable", "--set", "edge.buffer=9p", "--set", "seed=7"];
    assert_eq!(shown(&["kept/link.toml"]), shown(&[&["links/a.toml"][..], &sets].concat()));
    assert!(text.contains("rate = \"1mbit\""), "{text}");
    let operands = folder.prints(&[
        "link",
        "links/a.down",
        "1mbit",
        "--delay",
        "9ms",
        "--set",
        "edge.down.kind=variable",
        "--set",
        "edge.down.rate=3mbit",
        "--generate",
    ]);
    let table: toml::Table = operands.parse().unwrap();
    assert_eq!(table["edge"]["down"].as_table().unwrap()["delay"].as_str(), Some("9ms"));
}
