//! Provenance of results: the configuration, the input files, the overrides.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_scenario::presets::PRESETS;
use ackclock_scenario::{DiskFiles, Files, RunOptions, RunResult, Scenario, run};

struct Shelf(BTreeMap<&'static str, &'static str>);

impl Files for Shelf {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        self.0.get(path).map(|text| text.as_bytes().into()).ok_or_else(|| format!("{path}: none"))
    }
}

fn load(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load("case.toml", text, &sets).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn result(scenario: &Scenario, files: &(dyn Files + Sync)) -> RunResult {
    run(scenario, 0, files, RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).result
}

/// The complete configuration of a scenario: it runs and gives the same results.
#[track_caller]
fn assert_shown_is_the_same(scenario: &Scenario, files: &(dyn Files + Sync)) {
    let text = toml::to_string_pretty(&scenario.configuration()).unwrap();
    let shown = load(&text, &[]);
    assert_eq!(shown.configuration(), scenario.configuration());
    let (mut before, mut after) = (result(scenario, files), result(&shown, files));
    assert_eq!(before.provenance.configuration_sha256, after.provenance.configuration_sha256);
    after.scenario = before.scenario.clone();
    before.provenance.scenario_sha256.clear();
    after.provenance.scenario_sha256.clear();
    before.provenance.set.clear();
    assert_eq!(serde_json::to_string(&before).unwrap(), serde_json::to_string(&after).unwrap(), "\n{text}");
}

#[test]
fn the_whole_configuration_of_every_ready_made_scenario_gives_the_same_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = DiskFiles::in_folder(&folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let few = if text.contains("count = 1000") { "flow.count=3" } else { "runs=1" };
        for point in load(&text, &["duration=5s", few]).points().unwrap() {
            assert_shown_is_the_same(&point.scenario, &files);
        }
    }
}

#[test]
fn the_whole_configuration_of_every_preset_gives_the_same_results() {
    for preset in PRESETS {
        let text = format!("preset = \"{}\"\nduration = \"20s\"\n", preset.name);
        assert_shown_is_the_same(&load(&text, &[]), &Shelf(BTreeMap::new()));
    }
}

#[test]
fn the_whole_configuration_says_every_key_and_no_user_that_is_not_there() {
    let whole = load("", &[]).configuration();
    assert_eq!(whole["edge"]["down"]["rate"], "10Mbit/s");
    assert_eq!(whole["edge"]["down"]["delay"], "20ms");
    assert_eq!((whole["edge"].get("user"), whole.get("preset")), (None, None));
    assert_eq!(whole["flow"][0]["sender"]["rto"]["min"].as_str().map(|text| text.is_empty()), Some(false));
    let cell = load("preset = \"cr04\"", &[]).configuration();
    assert_eq!(cell["edge"]["user"][0]["count"], 1);
    // Nested components are complete too.
    assert!(cell["edge"]["down"]["scheduler"].as_object().unwrap().len() > 1, "{cell}");
}

#[test]
fn a_step_that_gives_a_link_another_kind_stays_right_when_the_link_is_written_out() {
    let text = "duration = \"4s\"\n[edge.down]\nkind = \"variable\"\nrate = \"1mbit\"\ndelay = \"5ms\"\n\
                [[edge.at]]\ntime = \"1s\"\nset = { down.rate = \"500kbit\" }\n\
                [[edge.at]]\ntime = \"2s\"\nset = { \"down.kind\" = \"constant\" }\n";
    assert_shown_is_the_same(&load(text, &[]), &Shelf(BTreeMap::new()));
}

#[test]
fn files_and_overrides_of_a_run_stand_in_its_provenance() {
    let text = "duration = \"1s\"\n[edge.down]\nkind = \"trace\"\nfile = \"a.down\"\n";
    let shelf = Shelf(BTreeMap::from([("a.down", "10\n20\n30\n"), ("b.down", "10\n20\n")]));
    let of = |sets: &[&str]| result(&load(text, sets), &shelf).provenance;
    let (a, b) = (of(&["seed=7", "edge.buffer=4p"]), of(&["edge.down.file=b.down"]));
    assert_eq!(a.set, ["seed=7", "edge.buffer=4p"]);
    // Of `printf '10\n20\n30\n' | sha256sum`.
    let expected = "a1852ec81c3b20981618e10c24edce1a85ba43ef5f09aaf13bd44d6a715ed5b5";
    assert_eq!(a.inputs.keys().collect::<Vec<_>>(), ["a.down"]);
    assert_eq!(a.inputs["a.down"], expected);
    assert_eq!(b.inputs.keys().collect::<Vec<_>>(), ["b.down"]);
    assert_ne!(a.configuration_sha256, b.configuration_sha256);
}

#[test]
fn the_configuration_is_the_same_whether_a_default_is_written_or_not() {
    let said = load("[edge.down]\nkind = \"constant\"\nrate = \"10000kbit/s\"\n", &[]);
    let left_out = load("", &[]);
    assert_ne!(said.sha256(), left_out.sha256());
    assert_eq!(said.provenance().configuration_sha256, left_out.provenance().configuration_sha256);
}
