//! Loads scenario files named on the command line.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ackclock_core::name_of;
use ackclock_scenario::{
    Axis, DiskFiles, Files, Limit, Point, RunError, Scenario, ScenarioError, dropped_from, said_of_begins,
    said_of_recordings,
};

use crate::failure::Failure;
use crate::output;
use crate::statistics::Confidence;

/// Scenario file and its overrides.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioFile {
    /// Scenario file to load (TOML).
    file: PathBuf,
    /// Override a value of the file: `edge.buffer=4p`. A flow key without index applies to all flows. `--set` can be
    /// repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Number of runs, and their seed.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Repetition {
    /// Seed of the random numbers, overriding the seed in the file. The seed of run k is derived from the given seed.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Number of runs, overriding the number in the file.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
}

/// Confidence level of the intervals in a table or report.
#[derive(Debug, clap::Args)]
pub(crate) struct Intervals {
    /// Confidence level of intervals over runs, such as `0.9` or `90%`; default 0.95. `--json` prints no intervals.
    #[arg(long, value_name = "LEVEL", conflicts_with = "json", allow_negative_numbers = true)]
    confidence: Option<Confidence>,
}

impl Intervals {
    /// Returns the given confidence level, or the default of 0.95.
    pub(crate) fn confidence(&self) -> Confidence {
        self.confidence.unwrap_or_default()
    }

    /// Returns whether the command line gives a confidence level.
    pub(crate) const fn are_asked_for(&self) -> bool {
        self.confidence.is_some()
    }
}

impl Repetition {
    /// Creates the options for a number of runs.
    #[cfg(feature = "live")]
    pub(crate) fn new(seed: Option<u64>, runs: u32) -> Self {
        Self { seed, runs: Some(runs) }
    }

    /// Converts the options to overrides of scenario keys.
    pub(crate) fn as_sets(&self) -> impl Iterator<Item = String> + use<> {
        let own = [("seed", self.seed), ("runs", self.runs.map(u64::from))];
        own.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?)))
    }
}

impl ScenarioFile {
    /// Creates a scenario file with these overrides.
    pub(crate) fn new(file: PathBuf, set: Vec<String>) -> Self {
        Self { file, set }
    }

    /// Reads the scenario and checks it.
    ///
    /// # Errors
    /// Fails with the file, line and key of the error, the invalid value, and the allowed values.
    pub(crate) fn load(&self, repetition: &Repetition) -> Result<(Scenario, DiskFiles), Failure> {
        self.load_beside(repetition, &[]).map(|(scenario, _, files)| (scenario, files))
    }

    /// Reads the scenario, which is run with the values of `axes`, and checks it. Returns it with the points of its sweep.
    ///
    /// # Errors
    /// Same errors as [`load`](Self::load).
    pub(crate) fn load_beside(
        &self,
        repetition: &Repetition,
        axes: &[Axis],
    ) -> Result<(Scenario, Vec<Point>, DiskFiles), Failure> {
        let text = read_text(&self.file, SCENARIO)?;
        let varied: Vec<_> = axes.iter().map(Axis::key).collect();
        let sets: Vec<String> = self.set.iter().cloned().chain(repetition.as_sets()).collect();
        let scenario =
            Scenario::load_beside(&self.file.to_string_lossy(), &text, &sets, &varied).map_err(of_list)?;
        let files = DiskFiles::for_scenario(&self.file).reading(patiently);
        let points = scenario.check(&files)?;
        Ok((scenario, points, files))
    }

    /// File name of the scenario without folder and extension. Result files are named after the scenario file.
    pub(crate) fn stem(&self) -> &str {
        self.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario")
    }

    /// Path of the scenario file.
    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// Overrides of the scenario file.
    pub(crate) fn set(&self) -> &[String] {
        &self.set
    }
}

/// Reports once which keys were dropped from these scenarios because an override changed a `kind`.
pub(crate) fn say_dropped<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) {
    if let Some(remark) = dropped_from(scenarios) {
        output::remark(&remark);
    }
}

/// Prints the detected format of each imported recording, and the certainty of its rates.
pub(crate) fn say_recordings<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>, files: &dyn Files) {
    said_of_recordings(scenarios, files).iter().for_each(|remark| output::remark(remark));
}

/// Reports once that runs start at random offsets in their recordings, unless the scenario requests random offsets.
pub(crate) fn say_begins<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) {
    if let Some(remark) = said_of_begins(scenarios) {
        output::remark(&remark);
    }
}

/// Reports once per key which settings limit the results of these scenarios besides their links. Each scenario is
/// passed together with its link utilisation.
pub(crate) fn say_limits<'a>(
    scenarios: impl IntoIterator<Item = (&'a Scenario, Option<f64>)>,
    files: &dyn Files,
) -> Result<(), Failure> {
    let (mut limits, mut all) = (BTreeMap::<_, (String, u32)>::new(), 0);
    for (scenario, utilisation) in scenarios {
        all += 1;
        if let Some(Limit { key, message }) = scenario.limit(files, utilisation)? {
            limits.entry(key).or_insert((message, 0)).1 += 1;
        }
    }
    for (key, (message, many)) in limits {
        let others =
            if many > 1 { format!(" (and so with {many} of {all} combinations)") } else { String::new() };
        output::remark(&format!("{key} limits the result: {message}{others}"));
    }
    Ok(())
}

/// Reports times, defaults and keys without effect of a scenario that may be unintended.
pub(crate) fn say_doubts(scenario: &Scenario, files: &dyn Files) -> Result<(), Failure> {
    let doubts = scenario.too_short(files)?.into_iter().chain(scenario.said_of_defaults());
    let doubts = doubts.chain(scenario.said_of_unnoticed()?);
    doubts.for_each(|doubt| output::remark(&doubt));
    Ok(())
}

/// Reports that `command` ignores the scenario's `[sweep]`, unless the axes in `replaced` contain all swept keys.
pub(crate) fn say_unswept(scenario: &Scenario, command: &str, replaced: &[Axis]) {
    let mut swept = scenario.swept();
    swept.retain(|key| replaced.iter().all(|axis| axis.key() != key));
    if !swept.is_empty() {
        let (name, keys) = (scenario.name(), swept.join(", "));
        output::remark(&format!("{name}: {command} ignores [sweep] ({keys}); run it with `ackclock sweep`"));
    }
}

/// Reports the flow that is simulated by default if the scenario has no flow.
pub(crate) fn say_defaults(scenario: &Scenario) {
    let (name, tables) = (scenario.name(), scenario.tables());
    let sender = name_of(&tables.flow[0].sender);
    let by = tables.preset.as_ref().map_or("default".to_owned(), |preset| format!("preset {preset}"));
    let era = match tables.preset {
        None => "; defaults are as in 2002, `preset = \"linux\"` is TCP of today",
        Some(_) => "",
    };
    if scenario.is_empty() {
        let (duration, link) = (tables.duration, &scenario.configuration()["edge"]["down"]["rate"]);
        output::remark(&format!(
            "{name} says nothing: by {by} one {sender} flow is run for {duration} over a link of {}; \
             `ackclock check --show` prints it whole{era}",
            link.as_str().unwrap_or_default()
        ));
    } else if !scenario.names_flows() {
        output::remark(&format!("{name} has no [[flow]]: by {by} one {sender} flow is run{era}"));
    }
}

/// Adds to an error of `--set KEY=A,B` where several values belong.
fn of_list(error: ScenarioError) -> ScenarioError {
    let set = error.place.strip_prefix("--set ").and_then(|set| set.split_once('='));
    let Some((key, list)) = set.filter(|(_, list)| list.contains(',') && !list.contains(['{', '['])) else {
        return error;
    };
    let items: Vec<String> = list.split(',').map(|item| format!("\"{}\"", item.trim())).collect();
    let option = LIST_OPTIONS.iter().find(|(of, _)| *of == key.trim());
    let option =
        option.map_or(String::new(), |(_, option)| format!(", or ackclock compare FILE {option} {list}"));
    let message = format!(
        "`{list}` is one value; several are for [sweep]: \"{}\" = [{}]{option}",
        key.trim(),
        items.join(", ")
    );
    ScenarioError { message, ..error }
}

/// Keys for which `compare` has an option with a list.
pub(crate) const LIST_OPTIONS: [(&str, &str); 4] = [
    ("flow.sender", "--senders"),
    ("edge.regulator", "--regulators"),
    ("edge.buffer", "--buffers"),
    ("edge.queue", "--queues"),
];

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        let is_unknown = |kind| error.message.starts_with(&format!("unknown {kind} `"));
        let may_be_class = is_unknown("regulator") || is_unknown("sender");
        // A name that is close to a known name is a typing error.
        let hint = if may_be_class && !error.message.contains("did you mean") { PYTHON } else { "" };
        Self::Input(format!("{error}{hint}"))
    }
}

/// Hint for a name of a regulator or sender that is not built in.
const PYTHON: &str = "; a class in Python has its name only in Python: run the scenario with `ackclock.run`, \
                      see docs/how-to/python-classes.md";

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            // Errors of the kind `RunError::Scenario` appear only after the run has started.
            RunError::Scenario(_) => Self::Input(error.to_string()),
            RunError::Capture(_) | RunError::Stopped | RunError::Threads(_) => Self::Run(error.to_string()),
        }
    }
}

/// Reads the text of a file. Error messages call the expected file `what`, such as a scenario or a script.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    if path == Path::new("-") {
        return Err(Failure::Input(format!("-: a {what} is a file; standard input is not read")));
    }
    let mut read = Ok(Vec::new());
    patiently(path, &mut || read = read_at_most(path, MAX_TEXT + 1));
    let bytes = read.map_err(|error| {
        let failure = Failure::reading(path, &error);
        if what == SCENARIO { failure.or_rate(path) } else { failure }
    })?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(Failure::Input(format!(
            "{}: longer than {MAX_TEXT} bytes: not a {what}",
            path.display()
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Input(format!("{}: byte {at} is not UTF-8: not a {what}", path.display()))
    })
}

const MAX_TEXT: u64 = 4 << 20;
/// What error messages call a scenario file.
pub(crate) const SCENARIO: &str = "scenario";

fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that may be a pipe, and reports on standard error if the read takes long.
pub(crate) fn patiently(path: &Path, read: &mut dyn FnMut()) {
    if fs::metadata(path).map_or(true, |found| found.is_file()) {
        return read();
    }
    let (done, reading) = mpsc::channel::<()>();
    let waiting = format!("{}: no ordinary file; waiting until all of it is written", path.display());
    let notice = thread::Builder::new().spawn(move || {
        if reading.recv_timeout(NOTICE) == Err(RecvTimeoutError::Timeout) {
            output::remark(&waiting);
        }
    });
    read();
    drop(done);
    if let Ok(notice) = notice {
        // The notice thread is joined, so that its message cannot appear after later messages; the thread cannot panic.
        let _ = notice.join();
    }
}

/// Time after which a slow read is reported. Programs that write to pipes have usually started by then.
const NOTICE: Duration = Duration::from_secs(1);
