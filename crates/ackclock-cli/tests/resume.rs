//! Sweeps that are interrupted and go on, and single runs repeated from their results.

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::common::{Folder, SCENARIO};

/// Forty runs.
const MANY: [&str; 8] =
    ["sweep", "case.toml", "--runs", "10", "--set", "duration=100s", "--out", "out.jsonl"];

/// The whole lines of a file, if it is there.
fn lines(folder: &Folder, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path(name)).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
}

#[test]
fn a_sweep_that_is_killed_at_any_instant_goes_on_and_runs_nothing_twice() {
    let folder = Folder::new();
    let (table, whole) = (folder.prints(&MANY), folder.read("out.jsonl"));
    std::fs::remove_file(folder.path("out.jsonl")).unwrap();
    let mut before = Vec::new();
    for kill in 0..6 {
        let mut child = folder.command(&MANY).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // At the very start, then after one more row, after two more ...
        let rows = before.len() + kill;
        while child.try_wait().unwrap().is_none() && lines(&folder, "out.jsonl.partial").len() < rows {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let now = lines(&folder, "out.jsonl.partial");
        if now.is_empty() && kill > 0 {
            break; // It was complete before the kill.
        }
        assert_eq!(now[..before.len()], before, "a finished row was lost");
        assert_eq!(now.iter().collect::<BTreeSet<_>>().len(), now.len(), "a run was repeated");
        before = now;
    }
    assert!(!before.is_empty());
    let (again, said) = folder.remarks(&MANY);
    assert!(said.ends_with(" of 40 runs are finished already"), "{said}");
    assert_eq!((again, folder.read("out.jsonl")), (table, whole));
    assert_eq!(folder.names(), ["case.toml", "out.jsonl"]);
}

#[test]
fn the_shards_of_a_sweep_are_together_the_sweep() {
    let folder = Folder::new();
    let whole = folder.prints(&["sweep", "case.toml", "--json"]);
    let shard = |shard| folder.prints(&["sweep", "case.toml", "--json", "--shard", shard]);
    let parts = ["1/3", "2/3", "3/3"].map(shard);
    assert_eq!(parts.each_ref().map(|part| part.lines().count()), [2, 1, 1]);
    folder.write("out.jsonl.partial", parts.concat());
    let (joined, said) = folder.remarks(&["sweep", "case.toml", "--json", "--out", "out.jsonl"]);
    assert_eq!((joined, said.as_str()), (whole, "ackclock: out.jsonl: 4 of 4 runs are finished already"));
    for wrong in ["0/3", "4/3", "3", "1/0", "x/2", "-1/2"] {
        let said = folder.complains(2, &["sweep", "case.toml", &format!("--shard={wrong}")]);
        assert!(said.contains(&format!("{wrong}: is not K/N with K from 1 to N")), "{said}");
    }
}

#[test]
fn a_complete_file_is_not_run_again_and_half_of_one_is_taken_up() {
    let folder = Folder::new();
    let arguments = ["sweep", "case.toml", "--json", "--out", "out.jsonl"];
    let printed = folder.prints(&arguments);
    assert_eq!(folder.remarks(&arguments).1, "ackclock: out.jsonl: 4 of 4 runs are finished already");
    let half: String = lines(&folder, "out.jsonl")[2..].concat();
    folder.write("out.jsonl", half);
    let (again, said) = folder.remarks(&arguments);
    assert_eq!(
        (again.as_str(), said.as_str()),
        (printed.as_str(), "ackclock: out.jsonl: 2 of 4 runs are finished already")
    );
    assert_eq!(folder.read("out.jsonl"), printed);
}

#[test]
fn rows_of_other_runs_builds_or_inputs_are_refused_and_stay() {
    let folder = Folder::new();
    folder.write("rate.down", "1\n2\n3\n");
    let law = "kind = \"variable\"\nrate = \"200kbit/s\"\ndelay = \"e(50ms)\"";
    folder.write("case.toml", SCENARIO.replace(law, "kind = \"trace\"\nfile = \"rate.down\""));
    let sweep = ["sweep", "case.toml", "--out", "out.jsonl"];
    folder.prints(&sweep);
    let whole = folder.read("out.jsonl");
    let refused = |arguments: &[&str], why: &str| {
        let before = folder.read("out.jsonl");
        let said = folder.complains(2, arguments);
        assert!(said.starts_with("out.jsonl:1: ") && said.contains(why), "{said}");
        assert!(said.ends_with("name another file, or --overwrite it"), "{said}");
        assert_eq!((folder.read("out.jsonl"), folder.path("out.jsonl.partial").exists()), (before, false));
    };
    refused(
        &[&sweep[..], &["--seed", "7"]].concat(),
        "it is not one of these runs: case.toml, seed 1, run 0, {",
    );
    refused(&[&sweep[..], &["--timing"]].concat(), "--timing");
    for (from, to, why) in [
        ("\"dirty\":null", "\"dirty\":true", "its build had uncommitted changes"),
        (
            "\"commit\":null",
            "\"commit\":\"abc\"",
            "it is of build 0.1.0 abc, this one is 0.1.0 of an unknown commit",
        ),
        ("{\"scenario\"", "{\"scene\"", "is not the object of a run"),
    ] {
        folder.write("out.jsonl", whole.replace(from, to));
        refused(&sweep, why);
    }
    folder.write("out.jsonl", &whole);
    folder.write("rate.down", "1\n2\n4\n");
    refused(&sweep, "rate.down has changed since");
    folder.prints(&[&sweep[..], &["--overwrite"]].concat());
    assert_ne!(folder.read("out.jsonl"), whole);
}

#[test]
fn rows_older_than_a_program_that_does_not_know_its_commit_are_refused() {
    let folder = Folder::new();
    folder.prints(&MANY);
    let file = std::fs::File::options().write(true).open(folder.path("out.jsonl")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert!(
        folder.complains(2, &MANY).contains("it is older than this program, which does not know its commit")
    );
}

#[test]
fn one_run_of_several_is_that_run() {
    let folder = Folder::new();
    let all = folder.prints(&["run", "case.toml", "--runs", "3", "--json"]);
    for (run, line) in all.lines().enumerate() {
        let run = run.to_string();
        let arguments =
            ["run", "case.toml", "--runs", "3", "--run", &run, "--json", "--series", "series.csv"];
        assert_eq!(folder.prints(&arguments).trim_end(), line);
        assert!(folder.read("series.csv").starts_with("t_s,"));
    }
    let said = folder.complains(2, &["run", "case.toml", "--runs", "3", "--run", "3"]);
    assert_eq!(said, "run: --run 3: the scenario has runs 0 to 2; --runs sets how many");
}

#[test]
fn a_line_of_results_is_enough_to_repeat_its_run() {
    let folder = Folder::new();
    let results = [
        folder.prints(&[
            "sweep",
            "case.toml",
            "--set",
            "duration=5s",
            "--seed",
            "3",
            "--runs",
            "2",
            "--json",
        ]),
        folder.prints(&["compare", "case.toml", "--buffers", "4p,9p", "--json"]),
        folder.prints(&["run", "case.toml", "--json"]),
    ];
    folder.write("runs.jsonl", results.concat());
    for (number, line) in results.concat().lines().enumerate() {
        let from = format!("runs.jsonl#{}", number + 1);
        assert_eq!(folder.prints(&["run", "--from", &from, "--json", "--pcap", "a.pcapng"]).trim_end(), line);
        assert!(folder.path("a.pcapng").exists());
    }
    for (from, why) in [
        ("runs.jsonl", "write it like `runs.jsonl#17` for line 17"),
        ("runs.jsonl#0", "write it like"),
        ("runs.jsonl#999", "the file has fewer lines"),
        ("case.toml#1", "is not the object of a run"),
    ] {
        let said = folder.complains(2, &["run", "--from", from]);
        assert!(said.starts_with(&format!("--from {from}: {why}")), "{said}");
    }
    assert!(folder.complains(2, &["run"]).contains("FILE is missing"));
    assert!(
        folder
            .complains(2, &["run", "case.toml", "--from", "runs.jsonl#1"])
            .contains("cannot be used together")
    );
}

#[test]
fn a_run_that_would_differ_from_its_line_is_repeated_only_on_request() {
    let folder = Folder::new();
    folder.write("runs.jsonl", folder.prints(&["run", "case.toml", "--json"]));
    folder.write("case.toml", folder.read("case.toml").replace("350ms", "351ms"));
    let repeat = ["run", "--from", "runs.jsonl#1", "--json"];
    let why = "--from runs.jsonl#1: its scenario or settings have changed";
    assert_eq!(folder.complains(2, &repeat), format!("{why}; --anyway repeats it all the same"));
    let (out, said) = folder.remarks(&[&repeat[..], &["--anyway"]].concat());
    assert_eq!(said, format!("ackclock: {why}"));
    assert_ne!(out, folder.read("runs.jsonl"));
}
