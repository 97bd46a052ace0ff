//! Islands of a run are independent: running them in parallel gives the same results as running them in sequence.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ackclock_core::Span;
use ackclock_link::Files;
use ackclock_scenario::{NoFiles, RunOptions, Scenario, json_line, run};

const BOTTLENECKS: &str = "duration = \"20s\"
measure = [\"spurious\", \"utilisation\"]
[edge]
channel = \"dedicated\"
[edge.down]
kind = \"variable\"
rate = \"u(200kbit/s, 50kbit/s)\"
[[flow]]
count = 20
spread = \"2s\"
sender = \"sack\"
[[flow]]
count = 5
workload = \"web\"
";

#[test]
fn results_and_series_are_the_same_on_any_number_of_threads() {
    let scenario = Scenario::load("case.toml", BOTTLENECKS, &[]).unwrap();
    let on = |threads: usize| {
        let series_interval = Some(Span::from_secs(1));
        let threads = NonZeroUsize::new(threads);
        let options = RunOptions { series_interval, threads, ..RunOptions::default() };
        let outcome = run(&scenario, 0, &NoFiles, options).unwrap();
        let mut series = Vec::new();
        outcome.series.unwrap().write_csv(&mut series).unwrap();
        (json_line(&outcome.result, &[]), series)
    };
    let alone = on(1);
    for threads in [2, 3] {
        assert_eq!(on(threads), alone, "{threads} threads");
    }
}

/// A recording that is delivered only when two threads request it at once, or after a long wait.
#[derive(Default)]
struct Meeting {
    readers: Mutex<(usize, bool)>,
    met: Condvar,
}

impl Files for Meeting {
    fn read(&self, _: &str) -> Result<Arc<[u8]>, String> {
        let mut readers = self.readers.lock().unwrap();
        readers.0 += 1;
        readers.1 |= readers.0 > 1;
        self.met.notify_all();
        let patience = Duration::from_secs(20);
        let (mut readers, _) = self.met.wait_timeout_while(readers, patience, |(_, met)| !*met).unwrap();
        readers.0 -= 1;
        Ok(b"0\n5\n9\n".as_slice().into())
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "says that it was skipped")]
fn islands_are_built_and_run_side_by_side() {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        eprintln!("skipped: there is one core");
        return;
    }
    let text = "duration = \"1s\"
[edge]
channel = \"dedicated\"
[edge.down]
kind = \"trace\"
file = \"recording.down\"
[[flow]]
count = 2
";
    let scenario = Scenario::load("case.toml", text, &[]).unwrap();
    let meeting = Meeting::default();
    run(&scenario, 0, &meeting, RunOptions::default()).unwrap();
    assert!(meeting.readers.lock().unwrap().1, "one island was built after the other");
}
