//! What tables claim of their runs, and what is said where something else than the link limits them.

use crate::common::Folder;

/// A bulk download over a link of which nothing is drawn.
const STEADY: &str = r#"preset = "linux"
duration = "5s"
[edge]
buffer = "1bdp"
down = { rate = "2Mbit/s", delay = "20ms" }
up = { rate = "2Mbit/s", delay = "20ms" }
[[flow]]
sender = "cubic"
"#;

/// A minute of rates that rise from second to second.
fn recording() -> String {
    let rows: String = (0..60).map(|second| format!("{second},{}\n", 500 + 50 * second)).collect();
    format!("time_s,rate_kbps\n{rows}60,\n")
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("steady.toml", STEADY);
    folder.write("minute.csv", recording());
    let down = r#"kind = "trace", file = "minute.csv""#;
    folder.write("recorded.toml", STEADY.replacen(r#"rate = "2Mbit/s""#, down, 1));
    folder
}

fn with<'a>(arguments: &[&'a str], further: &[&'a str]) -> Vec<&'a str> {
    [arguments, further].concat()
}

#[test]
fn runs_of_which_nothing_is_drawn_claim_no_interval() {
    let table = folder().prints(&["run", "steady.toml", "--runs", "3"]);
    assert!(table.contains("These runs are one run: nothing in this scenario is drawn."), "{table}");
    assert!(!table.contains('±'), "{table}");
    let table = folder().prints(&["compare", "steady.toml", "--runs", "3", "--regulators", "none,forecast"]);
    assert!(table.contains("These runs are one run") && !table.contains('±'), "{table}");
}

#[test]
fn runs_over_a_recording_start_anywhere_in_it_and_that_is_said_once() {
    let folder = folder();
    let (table, said) = folder.remarks(&["run", "recorded.toml", "--runs", "3"]);
    assert!(said.contains("each run starts at a random offset of its recording"), "{said}");
    assert!(table.contains("± is the 95 % confidence interval over 3 runs"), "{table}");
    let table = folder.prints(&["run", "recorded.toml", "--runs", "3", "--set", "edge.down.begin=0s"]);
    assert!(table.contains("These runs are one run"), "{table}");
}

#[test]
fn a_link_starts_at_the_beginning_of_its_recording() {
    let folder = folder();
    let arguments = ["link", "--generate", "--scenario", "recorded.toml", "--set", "runs=3"];
    let generated = folder.run(&arguments).out;
    assert!(generated.contains("minute.csv") && !generated.contains("anywhere"), "{generated}");
}

#[test]
fn a_comparison_is_paired_run_by_run() {
    let (table, _) =
        folder().remarks(&["compare", "recorded.toml", "--runs", "4", "--regulators", "none,forecast"]);
    assert!(table.contains("goodput vs none %") && table.contains("RTT mean vs none %"), "{table}");
    let cell = |name: &str| {
        let row =
            table.lines().skip(2).find(|line| line.split_whitespace().any(|word| word == name)).unwrap();
        row.split("  ").last().unwrap().trim().to_owned()
    };
    assert_eq!(cell("none"), "-");
    assert!(cell("forecast").starts_with(['+', '-']) && cell("forecast").contains('±'), "{table}");
    assert!(table.contains("runs of equal seed and number"), "{table}");
}

#[test]
fn what_limits_a_result_beside_the_link_is_said_with_its_key() {
    let folder = folder();
    for (sets, said) in [
        (
            &["edge.down.rate=10Mbit/s", "edge.buffer=4p", "edge.regulator=wrd"][..],
            "edge.buffer limits the result: 4p, 6.0 kB, is less than bandwidth x delay",
        ),
        (&["flow.max_window=4p"], "flow.max_window limits the result: 4p in a round trip of"),
        (&["path.rate=1Mbit/s"], "path.rate limits the result: the wired path has 1Mbit/s per flow"),
        (&["duration=10ms"], "duration: 10ms is shorter than a round trip, "),
        (&["flow.start=9s"], "flow.0.start: 9s is not before the end of the run, 5s: the flow sends nothing"),
    ] {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let (_, line) = folder.remarks(&with(&["run", "steady.toml"], &sets));
        assert!(line.contains(said), "{sets:?}: {line}");
    }
    // A link that is full is its own limit.
    assert_eq!(folder.run(&["run", "steady.toml"]).err, "");
}

#[test]
fn a_fixed_buffer_of_a_box_that_limits_the_rate_is_said() {
    let folder = folder();
    let sides = STEADY.split_once("buffer").map(|(head, radio)| {
        let radio = radio.replace("rate = \"2Mbit/s\"", "kind = \"constant\", rate = \"50Mbit/s\"");
        format!(
            "{head}regulator = \"wrs\"\nbuffer = \"20p\"\nbearer = \"observed\"\n[edge.behind]\nbuffer{radio}"
        )
    });
    folder.write("box.toml", sides.unwrap());
    let said = |sets: &[&str]| folder.remarks(&with(&["run", "box.toml"], sets)).1;
    let limits = "edge.buffer limits the result: 20p, 30.0 kB, is the window budget of a box";
    assert!(said(&[]).contains(limits), "{}", said(&[]));
    assert!(said(&["--set", "edge.buffer=30kB"]).contains("30000B, 30.0 kB, is the window budget"));
    for sets in [["--set", "edge.buffer=3bdp"], ["--set", "edge.regulator=none"]] {
        let ended = folder.run(&with(&["run", "box.toml"], &sets));
        assert!(ended.status == 0 && !ended.err.contains("limits the result"), "{sets:?}: {}", ended.err);
    }
}

#[test]
fn a_comparison_says_each_limit_once() {
    let arguments = ["compare", "steady.toml", "--buffers", "3p,4p", "--regulators", "wrd"];
    let (_, line) = folder().remarks(&arguments);
    assert!(
        line.contains("edge.buffer limits the result: 3p") && line.contains("2 of 2 combinations"),
        "{line}"
    );
}

#[test]
fn defaults_of_2002_are_said_where_no_preset_says_otherwise() {
    let folder = folder();
    folder.write("old.toml", STEADY.replace("preset = \"linux\"\n", ""));
    let (_, said) = folder.remarks(&["run", "old.toml"]);
    assert!(said.contains("old.toml has no preset: packet, max_window, initial_window, acks"), "{said}");
}

#[test]
fn a_conversion_says_what_the_form_does_not_hold() {
    let folder = Folder::new();
    folder.write("slow.csv", "time_s,rate_kbps,delay_ms\n0,2.5,20\n12,,\n");
    let ended = folder.run(&["trace", "convert", "slow.csv", "--to", "mahimahi"]);
    assert_eq!(
        (ended.status, ended.out.lines().count()),
        (0, 2),
        "of 2.5 opportunities none is added: {ended:?}"
    );
    assert!(ended.err.contains("hold no delay: it is left out"), "{}", ended.err);
    assert!(ended.err.contains("mean rate is 2.500 kbit/s and becomes 2"), "{}", ended.err);
}
