//! Progress reports of a run.

use std::sync::Arc;

use ackclock_core::Span;
use ackclock_scenario::{NoFiles, Progress, RunError, RunOptions, Scenario, Stage, run};

/// Stage of a run of `text` after it has ended.
fn end_of(text: &str) -> Stage {
    let progress = Arc::new(Progress::default());
    assert_eq!(progress.stage(), Stage::Building { built: 0, flows: 0 });
    let scenario = Scenario::load("case.toml", text, &[]).unwrap();
    run(&scenario, 0, &NoFiles, RunOptions { progress: Arc::clone(&progress), ..RunOptions::default() })
        .unwrap();
    progress.stage()
}

#[test]
fn a_run_that_ended_is_simulated_whole() {
    let flows = "duration = \"1s\"\n[[flow]]\ncount = 3\n[[flow]]\nworkload = \"web\"\n";
    for channel in ["shared", "dedicated"] {
        let text = format!("{flows}[edge]\nchannel = \"{channel}\"\n");
        assert_eq!(end_of(&text), Stage::Simulating(1.0), "{channel}");
    }
}

#[test]
fn flows_are_counted_while_they_are_built_and_time_while_it_passes() {
    let progress = Arc::new(Progress::default());
    let text = "duration = \"20s\"\n[[flow]]\n[[flow]]\ncount = 20000\nstart = \"19s\"\n";
    let scenario = Scenario::load("case.toml", text, &[]).unwrap();
    let watched = Arc::clone(&progress);
    let work = std::thread::spawn(move || {
        run(&scenario, 0, &NoFiles, RunOptions { progress: watched, ..RunOptions::default() }).map(drop)
    });
    let mut seen = vec![progress.stage()];
    while !work.is_finished() {
        let stage = progress.stage();
        if seen.last() != Some(&stage) {
            seen.push(stage);
        }
    }
    work.join().unwrap().unwrap();
    let order = |stage: &Stage| match *stage {
        Stage::Building { built, flows } => (0, built as f64, flows as f64),
        Stage::Simulating(share) => (1, share, 0.0),
    };
    assert!(seen.is_sorted_by(|one, next| order(one) <= order(next)), "{seen:?}");
    let part = |stage: &&Stage| matches!(stage, Stage::Simulating(share) if (0.01..0.99).contains(share));
    assert!(
        seen.iter().any(|stage| matches!(stage, Stage::Building { built: 1..20_001, flows: 20_001 })),
        "{seen:?}"
    );
    assert!(seen.iter().find(part).is_some(), "{seen:?}");
}

#[test]
fn a_stopped_run_ends_long_before_its_time_and_has_no_result() {
    let progress = Arc::new(Progress::default());
    // A year at 10 Gbit/s: no test waits for its end.
    let text = "duration = \"8760h\"\n[edge.down]\nrate = \"10Gbit/s\"\n";
    let scenario = Scenario::load("case.toml", text, &[]).unwrap();
    let watched = Arc::clone(&progress);
    let work = std::thread::spawn(move || {
        run(&scenario, 0, &NoFiles, RunOptions { progress: watched, ..RunOptions::default() }).map(drop)
    });
    while matches!(progress.stage(), Stage::Building { .. }) {
        std::thread::yield_now();
    }
    progress.stop();
    assert_eq!(work.join().unwrap(), Err(RunError::Stopped));
    let Stage::Simulating(share) = progress.stage() else { panic!() };
    assert!(share < 0.1, "{share}");
}

/// Otherwise a run with many samples went on for a step between any two of them, for minutes after Ctrl-C.
#[test]
fn a_stopped_run_goes_no_further_at_its_samples() {
    let progress = Arc::new(Progress::default());
    progress.stop();
    let scenario = Scenario::load("case.toml", "duration = \"10s\"\n", &[]).unwrap();
    let series_interval = Some(Span::from_secs(1));
    let options = RunOptions { progress: Arc::clone(&progress), series_interval, ..RunOptions::default() };
    assert_eq!(run(&scenario, 0, &NoFiles, options).map(drop), Err(RunError::Stopped));
    assert!(matches!(progress.stage(), Stage::Building { .. }), "{:?}", progress.stage());
}
