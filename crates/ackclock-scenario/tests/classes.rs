//! Classes of service from server to terminal: `[[edge.class]]` and `class` of a flow.

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

fn load(text: &str) -> Scenario {
    Scenario::load("case.toml", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn of(preset: &str, text: &str) -> RunResult {
    let text = format!("preset = \"{preset}\"\nmeasure = [\"radio\"]\n{text}");
    run(&load(&text), 0, &NoFiles, RunOptions::default()).unwrap().result
}

/// A table `[[edge.class]]` with this name and these keys.
fn class(name: &str, keys: &str) -> String {
    format!("[[edge.class]]\nname = \"{name}\"\n{keys}\n")
}

const BULK: &str = "[[flow]]\n";

#[test]
fn files_of_a_class_before_the_others_are_as_fast_as_alone() {
    let files = "[[flow]]\nclass = \"web\"\ncount = 20\nstart = \"5s\"\nspread = \"20s\"\n\
                 workload = { kind = \"file\", size = \"20kB\" }\n";
    let mean = |preset: &str, keys: &str, beside: &str| {
        let classes = class("web", keys);
        let result = of(preset, &format!("duration = \"30s\"\n{classes}{files}{beside}"));
        for link in [&result.bottleneck, &result.uplink] {
            assert_eq!(link.radio.as_ref().unwrap().rlc.resets, 0, "{preset} {keys}");
        }
        let times: Vec<_> = result.flows[..20].iter().map(|flow| flow.completion_s.unwrap()).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    for preset in ["hsdpa", "lte"] {
        let (alone, first) = (mean(preset, "priority = 0", ""), mean(preset, "priority = 0", BULK));
        assert!(first <= 1.2 * alone, "{preset}: {first} s beside a bulk download, {alone} s alone");
        let equal = mean(preset, "", BULK);
        assert!(equal > 1.05 * first, "{preset}: {equal} s at equal priorities, {first} s");
    }
}

#[test]
fn saturated_users_have_rates_in_the_ratio_of_their_weights() {
    // Users that lose packets because of their age do not always have data.
    let users = "duration = \"60s\"\n[edge]\nage_limit = \"none\"\n[[edge.user]]\nfading = \"none\"\n\
                 [[edge.user]]\nfading = \"none\"\n";
    let flows =
        "[[flow]]\nmax_window = \"1MB\"\n[[flow]]\nmax_window = \"1MB\"\nclass = \"heavy\"\nuser = 1\n";
    for preset in ["hsdpa", "lte"] {
        let result = of(preset, &format!("{users}{}{flows}", class("heavy", "weight = 3")));
        let [light, heavy] = [0, 1].map(|flow| result.flows[flow].goodput_bps.unwrap());
        assert!((heavy / light / 3.0 - 1.0).abs() < 0.1, "{preset}: {light} and {heavy} bit/s");
    }
}

#[test]
fn only_the_class_without_acknowledgements_repeats_nothing() {
    let keys = "[edge.bearer.air.down.harq]\nerror = \"20%\"\nlimit = 0\n";
    let flows = "[[flow]]\n[[flow]]\nclass = \"streaming\"\nuser = 1\n";
    let streaming = class("streaming", "rlc = { mode = \"unacknowledged\" }");
    // Users do not fade: in a fade, TCP has timeouts and repeats packets that the radio still delivers.
    let users = "duration = \"20s\"\n[[edge.user]]\nfading = \"none\"\n[[edge.user]]\nfading = \"none\"\n";
    let result = of("hsdpa", &format!("{users}{keys}{streaming}{flows}"));
    let [usual, streaming] = [0, 1].map(|user| &result.users[user].radio.as_ref().unwrap().down);
    let repeated = [usual, streaming].map(|radio| radio.rlc.retransmitted);
    let lost = [usual, streaming].map(|radio| radio.lost_by.air);
    assert!(repeated[0] > 100 && repeated[1] == 0, "{repeated:?}");
    assert!(lost[0] == 0 && lost[1] > 0, "{lost:?}");
    // TCP repeats what the radio lost.
    let retransmits = [0, 1].map(|flow| result.flows[flow].retransmits.unwrap());
    assert!(retransmits[0] == 0 && retransmits[1] > 0, "{retransmits:?}");
}

#[test]
fn a_class_without_flows_changes_nothing() {
    let dedicated = "[edge.bearer]\nkind = \"radio-access\"\n";
    for (preset, keys) in [("hsdpa", ""), ("lte", ""), ("nr", ""), ("linux", dedicated)] {
        let with = |classes: &str| {
            let text = format!("duration = \"5s\"\n{keys}{classes}{BULK}[[flow]]\ntowards = \"server\"\n");
            let RunResult { flows, bottleneck, uplink, engine, .. } =
                run(&load(&format!("preset = \"{preset}\"\n{text}")), 0, &NoFiles, RunOptions::default())
                    .unwrap()
                    .result;
            serde_json::to_string(&(flows, bottleneck.queue_ms, uplink.queue_ms, engine)).unwrap()
        };
        let classes = class("a", "priority = 0") + &class("b", "rlc = { mode = \"unacknowledged\" }");
        assert_eq!(with(&classes), with(""), "{preset}");
    }
}

#[test]
fn a_regulator_acts_in_every_class() {
    let drops = |regulator: &str| {
        let text = format!(
            "duration = \"20s\"\n[edge]\nbuffer = \"20p\"\nregulator = \"{regulator}\"\n{}\
             [[flow]]\nmax_window = \"512kB\"\n[[flow]]\nmax_window = \"512kB\"\nclass = \"a\"\n",
            class("a", "buffer = \"30p\"")
        );
        of("hsdpa", &text).bottleneck.drops
    };
    assert!(drops("none") > 10, "{}", drops("none"));
    for regulator in ["wrs", "wrd"] {
        assert_eq!(drops(regulator), 0, "{regulator}");
    }
}

#[test]
fn a_class_has_a_queue_of_its_own_size() {
    let delay = |buffer: &str| {
        let text = format!(
            "duration = \"20s\"\n{}[[flow]]\nclass = \"a\"\nmax_window = \"1MB\"\n",
            class("a", &format!("buffer = \"{buffer}\""))
        );
        of("hsdpa", &text).bottleneck.queue_ms.mean.unwrap()
    };
    let [small, large] = ["20p", "150p"].map(delay);
    assert!(large > 2.0 * small, "{small} and {large} ms");
}

#[test]
fn a_complete_scenario_has_its_classes() {
    let text =
        class("a", "dscp = [34, 36]\nbuffer = \"9p\"\nweight = 2\nrlc = { mode = \"unacknowledged\" }");
    let scenario = load(&format!("preset = \"hsdpa\"\n{text}[[flow]]\nclass = \"a\"\n"));
    let complete = scenario.configuration();
    let class = &complete["edge"]["class"][0];
    assert_eq!(
        (&class["buffer"], &class["weight"], &class["priority"]),
        (&"9p".into(), &2.into(), &1.into())
    );
    assert_eq!((&class["dscp"][1], &class["rlc"]["mode"]), (&36.into(), &"unacknowledged".into()));
    assert_eq!(complete["flow"][0]["class"], "a");
}
