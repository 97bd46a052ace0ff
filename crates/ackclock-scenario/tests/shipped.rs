//! The shipped scenarios and presets are valid and run.

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_scenario::{DiskFiles, RunOptions, Scenario, presets::PRESETS, run};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn every_ready_made_scenario_says_what_it_is_and_runs_at_every_point() {
    let files = DiskFiles::in_folder(folder());
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    assert!(paths.len() >= 8, "{paths:?}");
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{}", path.display());
        let mut sets = vec!["duration=5s".to_owned()];
        sets.extend(text.contains("count = 1000").then(|| "flow.count=3".to_owned()));
        let scenario =
            Scenario::load(&path.to_string_lossy(), &text, &sets).unwrap_or_else(|error| panic!("{error}"));
        scenario.check(&files).unwrap_or_else(|error| panic!("{error}"));
        for point in scenario.points().unwrap() {
            let result = run(&point.scenario, 0, &files, RunOptions::default()).unwrap().result;
            let delivered: u64 = result.users.iter().map(|user| user.delivered_bytes).sum();
            assert!(delivered > 0, "{} {:?}", path.display(), point.labels);
        }
    }
}

#[test]
fn every_preset_is_a_scenario_by_itself_whose_sender_can_be_chosen() {
    for preset in PRESETS {
        for sets in [vec![], vec!["flow.sender=sack".to_owned()]] {
            let text = format!("preset = \"{}\"\n", preset.name);
            let scenario =
                Scenario::load(preset.name, &text, &sets).unwrap_or_else(|error| panic!("{error}"));
            let sender = &scenario.tables().flow[0].sender;
            // The options of the preset apply to every sender.
            assert!(sender["handshake"].is_string(), "{}: {sender}", preset.name);
            assert!(sets.is_empty() || sender["kind"] == "sack");
        }
    }
}

#[test]
fn what_a_file_says_counts_more_than_its_preset_and_less_than_an_override() {
    let text = "preset = \"cr02\"\n[edge]\nbuffer = \"5p\"\n[[flow]]\nsender = { kind = \"reno\", rto = { min = \"2s\" } }\n";
    let load = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        Scenario::load("case.toml", text, &sets).unwrap_or_else(|error| panic!("{error}")).tables().clone()
    };
    let plain = load(&[]);
    assert_eq!(plain.edge.buffer.to_string(), "5p");
    assert_eq!(plain.duration.to_string(), "3600s");
    assert_eq!(plain.flow[0].sender["rto"]["min"], "2s");
    assert_eq!(plain.flow[0].sender["rto"]["tick"], "100ms");
    let over = load(&[
        "edge.buffer=7p",
        "flow.sender.rto.tick=500ms",
        "edge.regulator=ack-regulator",
        "edge.regulator.alpha=3",
    ]);
    assert_eq!(over.edge.buffer.to_string(), "7p");
    assert_eq!(over.flow[0].sender["rto"]["min"], "2s");
    assert_eq!(over.flow[0].sender["rto"]["tick"], "500ms");
    assert_eq!(over.edge.regulator["alpha"], 3);
    // Another sender keeps the options it supports, from the file and from the preset.
    let other = load(&["flow.sender=sack1"]);
    assert_eq!(other.flow[0].sender["rto"]["min"], "2s");
    assert_eq!(other.flow[0].sender["rto"]["tick"], "100ms");
}

#[test]
fn a_sweep_is_every_combination_and_its_last_key_varies_fastest() {
    let text = "preset = \"cr02\"\n[sweep]\n\"edge.buffer\" = [\"4p\", \"8p\"]\nflow.sender = [\"reno\", \"sack\"]\n";
    let scenario = Scenario::load("case.toml", text, &[]).unwrap();
    let points = scenario.points().unwrap();
    let labels: Vec<String> = points
        .iter()
        .map(|point| point.labels.iter().map(|(key, value)| format!("{key}={value} ")).collect())
        .collect();
    assert_eq!(labels[0], "edge.buffer=\"4p\" flow.sender=\"reno\" ");
    assert_eq!(labels[1], "edge.buffer=\"4p\" flow.sender=\"sack\" ");
    assert_eq!((labels.len(), points[3].scenario.tables().edge.buffer.to_string()), (4, "8p".to_owned()));
    let hashes: std::collections::BTreeSet<_> = points.iter().map(|point| point.scenario.sha256()).collect();
    assert_eq!(hashes.len(), 4);
}

#[test]
fn scenarios_that_say_the_same_have_one_hash() {
    let hash = |text: &str| Scenario::load("x", text, &[]).unwrap().sha256();
    let short = hash("preset = \"cr02\"\n");
    assert_eq!(short, hash("preset = \"cr02\"\nseed = 1\n[edge]\nbuffer = \"10p\"\n"));
    assert_eq!(
        short,
        hash(
            "# a comment\n[edge]\nbuffer = \"10p\"\n[path]\n[[flow]]\n"
                .replace("[edge]", "preset = \"cr02\"\n[edge]")
                .as_str()
        )
    );
    assert_ne!(short, hash("preset = \"cr02\"\nseed = 2\n"));
}

#[test]
fn the_preset_hsdpa_mac_repeats_what_failed_and_tcp_sees_delay_and_no_loss() {
    let text = "preset = \"hsdpa-mac\"\nduration = \"60s\"\n";
    let of = |set: &str| {
        let scenario =
            Scenario::load("case.toml", text, &[set.to_owned()]).unwrap_or_else(|error| panic!("{error}"));
        run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).unwrap().result
    };
    let (with, without) = (of("edge.down.harq.limit=3"), of("edge.down.harq.error=0"));
    // 1 + 0.1 (1 + 0.01 + 0.0001) = 1.10101 transmissions of a block. Capacity has the luck of the run: of 30 000
    // blocks a share of 0.1 +- 0.0017 is lost.
    let [repeated, once] = [&with, &without].map(|result| result.bottleneck.capacity_bps.unwrap());
    assert!((once / repeated - 1.10101).abs() < 3.0 * 0.0017, "{once} {repeated}");
    // A tenth of the blocks arrive 12 ms late, and packets are delivered in order.
    let [late, straight] = [&with, &without].map(|result| result.flows[0].rtt_ms.mean.unwrap());
    assert!(late > straight, "{late} {straight}");
    // 60 s of at most 30 000 blocks, lost with 1e-7.
    assert_eq!(with.bottleneck.drops, 0);
}
