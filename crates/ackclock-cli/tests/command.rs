//! The commands: what they print, in which order, and how they end.

use crate::common::{Folder, SCENARIO};
use serde_json::Value;

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn json_has_the_keys_of_the_contract_in_their_order() {
    let folder = Folder::new();
    let lines = folder.prints(&["run", "case.toml", "--json", "--runs", "3", "--seed", "7"]);
    let runs = objects(&lines);
    assert_eq!(runs.iter().map(|run| &run["run"]).collect::<Vec<_>>(), [0, 1, 2]);
    let run = &runs[0];
    assert_eq!(
        keys(run),
        [
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
            "provenance"
        ]
    );
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
    ];
    assert_eq!(keys(&run["flows"][0])[..flow.len()], flow);
    assert_eq!(keys(&run["flows"][0]["rtt_ms"]), ["mean", "p50", "p95", "p99"]);
    for link in ["bottleneck", "uplink"] {
        assert_eq!(
            keys(&run[link]),
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
    }
    assert_eq!(keys(&run["engine"]), ["events", "packets", "cpu_s"]);
    assert_eq!(
        keys(&run["provenance"]),
        ["version", "commit", "dirty", "scenario_sha256", "configuration_sha256", "inputs", "set"]
    );
    assert_eq!(run["seed"], 7);
    // What does not exist is null: the download has no end, and nobody asked for CPU time.
    assert_eq!((&run["flows"][0]["completion_s"], &run["engine"]["cpu_s"]), (&Value::Null, &Value::Null));
}

#[test]
fn equal_runs_print_equal_bytes_and_other_seeds_others() {
    let folder = Folder::new();
    let of_seed = |seed| folder.prints(&["run", "case.toml", "--json", "--seed", seed]);
    assert_eq!(of_seed("1"), of_seed("1"));
    assert_ne!(objects(&of_seed("1"))[0]["flows"], objects(&of_seed("2"))[0]["flows"]);
}

#[test]
fn timing_tells_the_cpu_time() {
    let folder = Folder::new();
    let run = objects(&folder.prints(&["run", "case.toml", "--json", "--timing"])).remove(0);
    assert!(run["engine"]["cpu_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_table_shows_each_flow_and_the_bottleneck() {
    let folder = Folder::new();
    let table = folder.prints(&["run", "case.toml", "--runs", "2", "--set", "flow.sender=sack1"]);
    assert!(table.starts_with("flow  sender  regulator  goodput kbit/s"), "{table}");
    assert!(table.contains("\n0     sack1   none"), "{table}");
    assert!(table.contains("capacity kbit/s"), "{table}");
    assert!(table.contains("95 % confidence interval over 2 runs"), "{table}");
}

/// Four seconds of a download over HSDPA, with a hand-over that loses the queue of the controller.
const RADIO: &str = r#"version = 1
preset = "hsdpa"
duration = "4s"
[[edge.at]]
time = "2s"
handover = { to = "controller", for = "100ms", forward = false }
"#;

#[test]
fn a_table_of_the_radio_is_shown_where_it_is_measured() {
    let folder = Folder::new();
    folder.write("radio.toml", RADIO);
    let measured = ["--set", "measure=[\"radio\"]"];
    let unmeasured = folder.prints(&["run", "radio.toml"]);
    assert!(!unmeasured.contains("RLC"), "{unmeasured}");
    let table = folder.prints(&[&["run", "radio.toml"][..], &measured].concat());
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip_while(|line| !line.starts_with("radio  RLC queue p50 ms"))
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let run = &objects(&folder.prints(&[&["run", "radio.toml", "--json"][..], &measured].concat()))[0];
    let lost = |link: &str| run[link]["radio"]["lost_by"]["handover"].to_string();
    // The only cause of lost packets is the hand-over.
    assert_eq!(rows[0][5..], ["RLC retr. %", "duplicates %", "HARQ retr. %", "padding %", "lost: hand-over"]);
    assert_eq!([rows[2][0], rows[2][9]], ["down", &lost("bottleneck")], "{table}");
    assert_eq!([rows[3][0], rows[3][9]], ["up", &lost("uplink")], "{table}");
    assert_eq!(rows[3][3..5], ["-", "-"], "{table}");
    let options = ["compare", "radio.toml", "--regulators", "none,wrd"];
    let table = folder.prints(&[&options[..], &measured].concat());
    for row in
        ["none            down ", "none            up   ", "wrd             down ", "wrd             up   "]
    {
        assert_eq!(table.lines().filter(|line| line.starts_with(row)).count(), 1, "{table}");
    }
}

#[test]
fn the_confidence_of_intervals_can_be_chosen() {
    let folder = Folder::new();
    for (level, said) in [("0.9", "\u{b1} is the 90 %"), ("99%", "\u{b1} is the 99 %")] {
        for command in ["run", "sweep", "compare"] {
            let table = folder.prints(&[command, "case.toml", "--runs", "2", "--confidence", level]);
            assert!(table.contains(said), "{command}: {table}");
        }
    }
    for wrong in [&["--confidence", "95"][..], &["--confidence", "0.9", "--json"]] {
        let complaint = folder.complains(2, &[&["run", "case.toml"][..], wrong].concat());
        assert!(complaint.contains("--confidence"), "{complaint}");
    }
}

#[test]
fn a_sweep_prints_every_point_and_run_in_order_on_any_number_of_cores() {
    let folder = Folder::new();
    let on = |threads: &str| {
        let mut command = folder.command(&["sweep", "case.toml", "--runs", "3", "--json"]);
        String::from_utf8(command.env("RAYON_NUM_THREADS", threads).output().unwrap().stdout).unwrap()
    };
    let lines = on("1");
    assert_eq!(lines, on("4"));
    let runs = objects(&lines);
    let places: Vec<String> = runs
        .iter()
        .map(|run| {
            let of = &run["point"];
            let text = |key: &str| of[key].as_str().unwrap().to_owned();
            format!("{} {} {}", text("edge.buffer"), text("flow.sender"), run["run"])
        })
        .collect();
    assert_eq!(places[..4], ["4p reno 0", "4p reno 1", "4p reno 2", "4p sack1 0"]);
    assert_eq!(places[11], "10p sack1 2");
}

#[test]
fn a_sweep_writes_its_lines_into_a_file_and_prints_the_table() {
    let folder = Folder::new();
    let table = folder.prints(&["sweep", "case.toml", "--runs", "2", "--out", "out.jsonl"]);
    assert!(table.starts_with("edge.buffer  flow.sender  goodput kbit/s"), "{table}");
    assert_eq!(folder.read("out.jsonl"), folder.prints(&["sweep", "case.toml", "--runs", "2", "--json"]));
    assert_eq!(folder.names(), ["case.toml", "out.jsonl"]);
}

#[test]
fn a_comparison_runs_every_combination_and_marks_the_best() {
    let folder = Folder::new();
    let asked = ["compare", "case.toml", "--senders", "reno,sack1", "--buffers", "4p,10p", "--runs", "1"];
    let table = folder.prints(&asked);
    assert_eq!(table.lines().filter(|line| line.contains("reno") || line.contains("sack1")).count(), 4);
    assert!(table.lines().any(|line| line.starts_with("*  ")), "{table}");
    let runs = objects(&folder.prints(&[&asked[..], &["--json"]].concat()));
    assert_eq!(runs.len(), 4);
    assert_eq!(keys(&runs[3]["point"]), ["flow.sender", "edge.buffer"]);
}

#[test]
fn a_comparison_without_a_wish_compares_the_regulators() {
    let folder = Folder::new();
    let runs = objects(&folder.prints(&["compare", "case.toml", "--runs", "1", "--json"]));
    let regulators: Vec<_> =
        runs.iter().map(|run| run["point"]["edge.regulator"].as_str().unwrap()).collect();
    assert_eq!(regulators[..2], ["none", "ack-regulator"]);
}

#[test]
fn a_capture_and_a_series_are_written_whole() {
    let folder = Folder::new();
    folder.prints(&["run", "case.toml", "--pcap", "a.pcapng", "--series", "a.csv", "--every", "1s"]);
    let capture = std::fs::read(folder.path("a.pcapng")).unwrap();
    // The block type of a section header, which reads the same in both byte orders.
    assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let series = folder.read("a.csv");
    assert!(series.starts_with("t_s,"), "{series}");
    // A header, and a row each second from 0 to 10.
    assert_eq!(series.lines().count(), 12);
    assert_eq!(folder.names(), ["a.csv", "a.pcapng", "case.toml"]);
    let refused = folder.complains(2, &["run", "case.toml", "--runs", "2", "--pcap", "a.pcapng"]);
    assert!(refused.contains("--run 0"), "{refused}");
}

#[test]
fn check_says_ok_and_shows_what_is_filled_in() {
    let folder = Folder::new();
    assert_eq!(folder.prints(&["check", "case.toml"]), "case.toml: ok, 4 points\n");
    let shown = folder.prints(&["check", "case.toml", "--show", "--set", "edge.buffer=7p"]);
    assert!(shown.contains("\nbuffer = \"7p\"\n"), "{shown}");
    // What the preset and the defaults say is there too.
    assert!(shown.contains("rate = \"100Mbit/s\"") && shown.contains("[flow.sender.rto]"), "{shown}");
    // What is shown is a scenario itself, and the same one.
    std::fs::create_dir(folder.path("shown")).unwrap();
    folder.write("shown/case.toml", &shown);
    let printed = |inside: &str, more: &[&str]| {
        let mut command = folder.command(&[&["run", "case.toml", "--json"][..], more].concat());
        let output = command.current_dir(folder.path(inside)).output().unwrap();
        objects(&String::from_utf8(output.stdout).unwrap()).remove(0)
    };
    let (mut whole, mut case) = (printed("shown", &[]), printed("", &["--set", "edge.buffer=7p"]));
    let (shown_from, from) = (whole["provenance"].take(), case["provenance"].take());
    assert_eq!(whole, case);
    assert_eq!(shown_from["configuration_sha256"], from["configuration_sha256"]);
    assert_eq!(from["set"], serde_json::json!(["edge.buffer=7p"]));
}

#[test]
fn lists_come_from_the_registries() {
    let folder = Folder::new();
    assert!(folder.prints(&["list", "regulators"]).contains("\n  ack-regulator  "));
    let link = folder.prints(&["list", "link", "variable"]);
    assert!(link.contains("redraw") && link.contains("\"packet\""), "{link}");
    // The shipped table of rates stands row by row below its key, and not in the column of the defaults.
    let cell = folder.prints(&["list", "link", "cell"]);
    assert!(cell.contains("rates              11 tables, below  array\n"), "{cell}");
    assert!(cell.contains("\n    {\"rate\":\"38.4kbit/s\",\"snr\":-12.5,"), "{cell}");
    let catalogue: Value = serde_json::from_str(&folder.prints(&["list", "--json"])).unwrap();
    assert_eq!(
        keys(&catalogue),
        [
            "tables",
            "bearers",
            "airs",
            "flow-controls",
            "links",
            "queues",
            "schedulers",
            "errors",
            "regulators",
            "steerings",
            "senders",
            "acks",
            "presets",
            "workloads"
        ]
    );
    assert_eq!(catalogue["senders"][0]["schema"]["type"], "object");
}

#[test]
fn a_recording_is_described_and_converted() {
    let folder = Folder::new();
    // 1500 bytes every 10 ms for 2 s: 1200 kbit/s.
    let recording: String = (1..=200).map(|n| format!("{}\n", 10 * n)).collect();
    folder.write("a.down", &recording);
    let info = objects(&folder.prints(&["trace", "info", "a.down", "--json"])).remove(0);
    assert_eq!((&info["length_s"], &info["mean_bps"]), (&2.0.into(), &1_200_000.into()));
    let rates = folder.prints(&["trace", "convert", "a.down", "--to", "csv", "--bin", "1s"]);
    assert!(rates.starts_with("# certainty: capacity: "), "{rates}");
    assert!(rates.contains("\ntime_s,rate_kbps\n0,1"), "{rates}");
    folder.prints(&["trace", "convert", "a.down", "--to", "mahimahi", "--out", "b.down"]);
    assert_eq!(folder.read("b.down"), recording);
}

#[test]
fn a_scenario_finds_its_recording_beside_itself() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("below")).unwrap();
    folder.write("below/a.down", (1..=200).map(|n| format!("{}\n", 10 * n)).collect::<String>());
    let down = "[edge.down]\nkind = \"trace\"\nfile = \"a.down\"\n";
    let scenario = SCENARIO
        .replace("[edge.down]\nkind = \"variable\"\nrate = \"200kbit/s\"\ndelay = \"e(50ms)\"\n", down);
    folder.write("below/case.toml", scenario);
    let run = objects(&folder.prints(&["run", "below/case.toml", "--json"])).remove(0);
    // Of each opportunity of 1504 bytes, as mm-link counts.
    let capacity = run["bottleneck"]["capacity_bps"].as_f64().unwrap();
    assert!((1.1e6..1.3e6).contains(&capacity), "{capacity}");
}

#[test]
fn the_command_prints_the_licences_of_what_is_linked_in() {
    let folder = Folder::new();
    let printed = folder.prints(&["--licences"]);
    // Of Rust, of C, and of a crate that comes without its text.
    for holder in ["The Rust Project Developers", "Jason Evans", "Julian Schmid"] {
        assert!(printed.contains(holder), "{holder}");
    }
}
