//! `ackclock run`: simulate one scenario.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ackclock_core::Span;
use ackclock_link::Files;
use ackclock_output::{Folders, WholeFile};
use ackclock_scenario::{Job, Point, RunResult, Scenario, Series, jobs};

use super::replay::{self, Chosen};
use super::time_above_zero;
use crate::batch::{self, Ended, Extras, Timing};
use crate::failure::Failure;
use crate::lines::{Lines, Sink};
use crate::output::{self, Form};
use crate::report::Report;
use crate::scenario_file::{
    Intervals, Repetition, ScenarioFile, say_begins, say_defaults, say_doubts, say_dropped, say_limits,
    say_recordings, say_unswept,
};
use crate::summary;
use crate::summary::Uploads;

/// Simulate a scenario and print the results of its flows. A `[sweep]` in the scenario is ignored.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: Option<ScenarioFile>,
    #[command(flatten)]
    repetition: Repetition,
    /// Run only run K of the scenario's runs, counted from 0. Run K draws the same random numbers alone as in a
    /// complete batch.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    run: Option<u32>,
    /// Repeat the run of one result line, counted from 1, such as `runs.jsonl#17`. The result line names the scenario,
    /// settings, seed and run.
    #[arg(long, value_name = "FILE#LINE", conflicts_with_all = ["file", "set", "seed", "runs", "run"])]
    from: Option<String>,
    /// Repeat the run even if the scenario, its input files or this build have changed since.
    #[arg(long, requires = "from")]
    anyway: bool,
    #[command(flatten)]
    intervals: Intervals,
    /// Print one JSON object per run, each on its own line.
    #[arg(long)]
    json: bool,
    /// Write the packets of the run, as captured at the server and at the mobile, to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write a time series to a CSV file: congestion window, threshold, rate, round-trip time and queue.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Time between two samples of the time series.
    #[arg(long, value_name = "TIME", requires = "series", default_value = "100ms", value_parser = time_above_zero)]
    every: Span,
    /// Write an HTML report of the run (Python).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Measure the CPU time of each run. Without `--timing`, repeated runs print identical output.
    #[arg(long)]
    timing: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock run scenarios/first.toml
  ackclock run scenarios/first.toml --set edge.regulator=none --runs 5
  ackclock run scenarios/first.toml --pcap first.pcapng --series first.csv
  ackclock run scenarios/first.toml --runs 5 --run 3 --series third.csv
  ackclock run --from alpha.jsonl#17 --series 17.csv --report 17.html
  ackclock run scenarios/first.toml --json | jq '.flows[0].goodput_bps'";

/// Simulates the scenario and prints the results.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let Chosen { file, points, files, run } = chosen(args)?;
    check_outputs(args, &file)?;
    let jobs = jobs_of(args, &points, run)?;
    say(args, &points[0].scenario, &files)?;
    let capture = args.pcap.as_deref().map(Capture::create).transpose()?;
    let series_file =
        args.series.as_deref().map(|path| WholeFile::create(path, Folders::Existing)).transpose()?;
    let extras = Extras {
        series: args.series.as_ref().map(|_| args.every),
        capture: capture.clone().map(|capture| Box::new(capture) as Box<dyn Write + Send>),
        timing: if args.timing { Timing::Measured } else { Timing::Omitted },
    };
    let sink = sink(args.json, &file);
    let finished = batch::simulate(
        file.stem(),
        &jobs,
        &files,
        extras,
        Lines::new(vec![sink], jobs.len()),
        BTreeMap::new(),
    )?;
    let results: Vec<&RunResult> = finished.ended.iter().flatten().map(|outcome| &outcome.result).collect();
    say_limits([(&points[0].scenario, summary::utilisation(&results))], &files)?;
    if !args.json && !results.is_empty() {
        output::print(&summary::of_runs(&results, Uploads::of(&points), args.intervals.confidence()))?;
    }
    finished.verdict?;
    capture.map_or(Ok(()), Capture::finish)?;
    write_series_of(&finished.ended, series_file)?;
    let Some(path) = &args.report else { return Ok(()) };
    Report::new(&jobs, &finished.ended, &finished.interrupted, &files, args.intervals.confidence())
        .write(path)
}

/// Writes the recorded time series to the requested file.
fn write_series_of(ended: &[Ended], file: Option<WholeFile>) -> Result<(), Failure> {
    let series = ended.iter().flatten().find_map(|outcome| outcome.series.as_ref());
    match (file, series) {
        (Some(into), Some(series)) => write_series(into, series),
        _ => Ok(()),
    }
}

/// Returns the jobs of all runs of the points, or only of the run with number `run`.
fn jobs_of<'a>(args: &Args, points: &'a [Point], run: Option<u32>) -> Result<Vec<Job<'a>>, Failure> {
    let mut jobs = jobs(points);
    jobs.retain(|job| run.is_none_or(|run| job.run == run));
    match jobs.len() {
        runs @ 2.. if args.pcap.is_some() || args.series.is_some() => Err(Failure::Input(format!(
            "--pcap and --series take one run, the scenario asks for {runs}; --run 0 is the first"
        ))),
        _ => Ok(jobs),
    }
}

/// Prints remarks about the scenario: defaults, ignored settings, start offsets and recordings.
fn say(args: &Args, scenario: &Scenario, files: &dyn Files) -> Result<(), Failure> {
    if args.from.is_none() {
        say_defaults(scenario);
        say_unswept(scenario, "run", &[]);
        say_begins([scenario]);
    }
    say_dropped([scenario]);
    say_recordings([scenario], files);
    say_doubts(scenario, files)
}

fn chosen(args: &Args) -> Result<Chosen, Failure> {
    if let Some(from) = &args.from {
        return replay::find(from, args.anyway);
    }
    let file = args.scenario.clone().expect("clap requires FILE where there is no --from");
    let (scenario, files) = file.load(&args.repetition)?;
    let runs = scenario.tables().runs;
    if let Some(run) = args.run.filter(|&run| run >= runs) {
        let message =
            format!("run: --run {run}: the scenario has runs 0 to {}; --runs sets how many", runs - 1);
        return Err(Failure::Input(message));
    }
    Ok(Chosen { file, points: [Point { labels: Vec::new(), scenario }], files, run: args.run })
}

/// Checks that the output files differ and that their names fit their formats.
fn check_outputs(args: &Args, scenario: &ScenarioFile) -> Result<(), Failure> {
    let written = [
        ("--pcap", args.pcap.as_ref(), Form::Capture),
        ("--series", args.series.as_ref(), Form::Csv),
        ("--report", args.report.as_ref(), Form::Html),
    ];
    output::keep_apart(Some(scenario.path()), &written.map(|(name, path, _)| (name, path)))?;
    written.into_iter().try_for_each(|(name, path, form)| output::keep_form(name, path, form))
}

/// Destination of the JSON result lines.
pub(super) fn sink(json: bool, scenario: &ScenarioFile) -> Sink {
    match json {
        true => Sink::Printed,
        false => Sink::Memory(rescue(scenario), String::new()),
    }
}

/// File that receives the finished runs if Ctrl-C arrives before the table is printed.
pub(super) fn rescue(scenario: &ScenarioFile) -> PathBuf {
    // A built-in recording is called `synthetic:starlink`; not every system has files with a colon in their name.
    PathBuf::from(format!("{}.interrupted.jsonl", scenario.stem().replace(':', "-")))
}

fn write_series(mut file: WholeFile, series: &Series) -> Result<(), Failure> {
    series.write_csv(&mut file).map_err(|error| file.failure(error))?;
    Ok(file.finish()?)
}

/// Capture file, shared with the run that writes it.
#[derive(Clone)]
pub(super) struct Capture(Arc<Mutex<Option<WholeFile>>>);

impl Capture {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Mutex::new(Some(WholeFile::create(path, Folders::Existing)?)))))
    }

    /// Renames the capture file to its final name after the run has written it.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(file.map_or(Ok(()), WholeFile::finish)?)
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(file) => file.write(bytes).map_err(|error| file.named(&error)),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .map_or(Ok(()), |file| file.flush().map_err(|error| file.named(&error)))
    }
}
