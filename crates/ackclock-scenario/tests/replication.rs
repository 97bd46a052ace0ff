//! Several runs over a recording, and the time that the link's utilisation covers.

use std::collections::BTreeSet;
use std::sync::Arc;

use ackclock_core::results::RunResult;
use ackclock_scenario::{Files, RunOptions, Scenario, run};

/// A recording of rates that differ in every second of a minute.
struct Minute;

impl Files for Minute {
    fn read(&self, _: &str) -> Result<Arc<[u8]>, String> {
        let rows: String = (0..60).map(|second| format!("{second},{}\n", 400 + 10 * second)).collect();
        Ok(format!("time_s,rate_kbps\n{rows}60,\n").into_bytes().into())
    }
}

const RECORDED: &str = r#"
    preset = "linux"
    duration = "10s"
    runs = 5
    [edge.down]
    kind = "trace"
    file = "minute.csv"
    delay = "20ms"
    [[flow]]
    sender = "cubic"
"#;

fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load("replication.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"))
}

fn result(scenario: &Scenario, number: u32) -> RunResult {
    run(scenario, number, &Minute, RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).result
}

/// Number of different goodputs among the runs.
fn different(scenario: &Scenario) -> usize {
    let runs = 0..scenario.tables().runs;
    runs.map(|number| result(scenario, number).users[0].delivered_bytes).collect::<BTreeSet<_>>().len()
}

#[test]
fn several_runs_over_a_recording_start_anywhere_in_it_where_nothing_else_is_drawn() {
    let anywhere = scenario(RECORDED, &[]);
    assert!(anywhere.begins_anywhere());
    assert_eq!(anywhere.configuration()["edge"]["down"]["begin"], "anywhere");
    assert_eq!(different(&anywhere), 5);
    // A single run, and a recording with `begin`, do not change.
    for sets in [&["runs=1"][..], &["edge.down.begin=0s"]] {
        let fixed = scenario(RECORDED, sets);
        assert!(!fixed.begins_anywhere(), "{sets:?}");
        assert_eq!(different(&fixed), 1, "{sets:?}");
    }
}

#[test]
fn runs_that_differ_in_links_or_flows_start_at_the_beginning() {
    for set in ["edge.down.loss=1%", "path.loss=1%", "flow.spread=1s", "flow.workload=web", "edge.up.loss=1%"]
    {
        assert!(!scenario(RECORDED, &[set]).begins_anywhere(), "{set}");
    }
    // Random drops of a queue are not part of the link: all queues of a comparison get the same start offsets.
    assert!(scenario(RECORDED, &["edge.queue=red"]).begins_anywhere());
}

#[test]
fn a_run_that_starts_later_in_a_recording_gets_what_a_later_flow_of_one_gets() {
    let begin = result(&scenario(RECORDED, &["runs=1", "edge.down.begin=30s"]), 0);
    let later = result(&scenario(RECORDED, &["runs=1", "duration=40s", "flow.start=30s"]), 0);
    assert_eq!(begin.flows[0].delivered_bytes, later.flows[0].delivered_bytes);
    assert_eq!(begin.flows[0].rtt_ms, later.flows[0].rtt_ms);
    let near = |one: Option<f64>, other: Option<f64>| (one.unwrap() / other.unwrap() - 1.0).abs() < 1e-9;
    assert!(near(begin.bottleneck.capacity_bps, later.bottleneck.capacity_bps));
    assert!(near(begin.bottleneck.utilisation, later.bottleneck.utilisation));
    // Means of the rates from 30 to 39 s.
    assert!(near(begin.bottleneck.capacity_bps, Some(745e3)), "{:?}", begin.bottleneck.capacity_bps);
}

const FULL: &str = r#"
    duration = "100s"
    [edge]
    down = { rate = "400kbit/s", delay = "20ms" }
    [[flow]]
    max_window = "40p"
"#;

#[test]
fn a_link_that_is_full_from_the_first_start_on_is_full() {
    for sets in [
        &["flow.start=50s"][..],
        &["flow.start=50s", "edge.channel=dedicated", "flow.count=3", "flow.stagger=10s"],
        &["flow.start=50s", "edge.down.kind=variable", "edge.down.rate=u(400kbit/s, 50kbit/s)"],
        &["flow.start=50s", r#"edge.down={ kind = "trace", file = "minute.csv", begin = "17s" }"#],
        // In an engine.
        &["flow.start=50s", r#"measure=["transit"]"#],
        // A file that completes after 4 s of 100.
        &["flow.start=50s", "flow.workload={ kind = \"file\", size = \"200kB\" }"],
    ] {
        let used = result(&scenario(FULL, sets), 0).bottleneck.utilisation.unwrap();
        assert!((0.96..=1.0 + 1e-9).contains(&used), "{sets:?}: {used}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    /// No link is used by more than 100 %, whatever flows on it and however early they end.
    #[test]
    fn no_link_delivers_more_than_its_capacity(
        rates in proptest::array::uniform2(proptest::sample::select(&["64kbit/s", "1Mbit/s", "20Mbit/s"][..])),
        delays in proptest::array::uniform2(proptest::sample::select(&["0ms", "20ms", "300ms"][..])),
        kind in proptest::sample::select(&["constant", "variable"][..]),
        work in proptest::sample::select(&["\"bulk\"", "{ kind = \"file\", size = \"1kB\" }", "{ kind = \"file\", size = \"100kB\" }"][..]),
        towards in proptest::sample::select(&["mobile", "server"][..]),
        start in proptest::sample::select(&["0s", "1.5s"][..]),
        channel in proptest::sample::select(&["shared", "dedicated"][..]),
        count in 1..4,
    ) {
        let link = |way: usize| format!("{{ kind = \"{kind}\", rate = \"{}\", delay = \"{}\" }}", rates[way], delays[way]);
        let text = format!(
            "duration = \"5s\"\n[edge]\nchannel = \"{channel}\"\ndown = {}\nup = {}\n[[flow]]\ncount = {count}\nstart = \"{start}\"\n\
             stagger = \"200ms\"\ntowards = \"{towards}\"\nworkload = {work}\n",
            link(0), link(1),
        );
        let result = result(&scenario(&text, &[]), 0);
        for link in [&result.bottleneck, &result.uplink] {
            proptest::prop_assert!(link.utilisation.is_none_or(|used| used <= 1.0 + 1e-9), "{link:?}\n{text}");
        }
    }
}
