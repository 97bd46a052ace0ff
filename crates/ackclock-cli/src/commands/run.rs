//! `ackclock run`: simulate one scenario.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ackclock_core::Span;
use ackclock_output::{Folders, WholeFile};
use ackclock_scenario::{DiskFiles, Point, RunResult, Scenario, Series, jobs};

use super::time_above_zero;
use crate::batch::{self, Extras, Timing};
use crate::failure::Failure;
use crate::lines::{Lines, Sink};
use crate::output::{self, Form};
use crate::scenario_file::{
    Intervals, Repetition, ScenarioFile, say_begins, say_defaults, say_doubts, say_dropped, say_limits,
    say_unswept,
};
use crate::summary::Uploads;
use crate::{report, summary};

/// Simulate a scenario and print what its flows got. A `[sweep]` in it is not looked at.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFile,
    #[command(flatten)]
    repetition: Repetition,
    #[command(flatten)]
    intervals: Intervals,
    /// Print one JSON object a run, a line each.
    #[arg(long)]
    json: bool,
    /// Write the packets of the run into a pcapng file, as captures at the server and at the mobile would hold them.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write window, threshold, rate, round-trip time and queue over time into a CSV file.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Time between two samples of the series.
    #[arg(long, value_name = "TIME", requires = "series", default_value = "100ms", value_parser = time_above_zero)]
    every: Span,
    /// Write an HTML report (Python).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Measure the CPU time of each run; without it equal runs print equal bytes.
    #[arg(long)]
    timing: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock run scenarios/first.toml
  ackclock run scenarios/first.toml --set edge.regulator=none --runs 5
  ackclock run scenarios/first.toml --pcap first.pcapng --series first.csv
  ackclock run scenarios/first.toml --json | jq '.flows[0].goodput_bps'";

/// Simulates and prints.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    check_outputs(args)?;
    let (scenario, files) = args.scenario.load(&args.repetition)?;
    let points = [Point { labels: Vec::new(), scenario }];
    let jobs = jobs(&points);
    if (args.pcap.is_some() || args.series.is_some()) && jobs.len() > 1 {
        let runs = jobs.len();
        let message = format!("--pcap and --series take one run, the scenario asks for {runs}; add --runs 1");
        return Err(Failure::Input(message));
    }
    say(&points[0].scenario, &files)?;
    let capture = args.pcap.as_deref().map(Capture::create).transpose()?;
    let series_file =
        args.series.as_deref().map(|path| WholeFile::create(path, Folders::Existing)).transpose()?;
    let extras = Extras {
        series: args.series.as_ref().map(|_| args.every),
        capture: capture.clone().map(|capture| Box::new(capture) as Box<dyn Write + Send>),
        timing: if args.timing { Timing::Measured } else { Timing::Omitted },
    };
    let sink = match args.json {
        true => Sink::Printed,
        false => Sink::Kept(rescue(&args.scenario), String::new()),
    };
    let finished =
        batch::simulate(args.scenario.stem(), &jobs, &files, extras, Lines::new(vec![sink], jobs.len()))?;
    let results: Vec<&RunResult> = finished.ended.iter().flatten().map(|outcome| &outcome.result).collect();
    say_limits([(&points[0].scenario, summary::utilisation(&results))], &files)?;
    if !args.json && !results.is_empty() {
        output::print(&summary::of_runs(&results, Uploads::of(&points), args.intervals.confidence()))?;
    }
    finished.verdict?;
    capture.map_or(Ok(()), Capture::finish)?;
    let series = finished.ended.iter().flatten().find_map(|outcome| outcome.series.as_ref());
    if let (Some(file), Some(series)) = (series_file, series) {
        write_series(file, series)?;
    }
    let Some(path) = &args.report else { return Ok(()) };
    let runs = finished.ended.iter().flatten().map(|outcome| (&outcome.result, &[][..]));
    report::write(path, &args.scenario, runs, args.series.as_deref(), args.intervals.confidence())
}

/// Says what of the scenario may not be meant.
fn say(scenario: &Scenario, files: &DiskFiles) -> Result<(), Failure> {
    say_defaults(scenario);
    say_unswept(scenario, "run", &[]);
    say_dropped([scenario]);
    say_begins([scenario]);
    say_doubts(scenario, files)
}

/// Checks that the files to write are different ones, and called as what they will hold.
fn check_outputs(args: &Args) -> Result<(), Failure> {
    let written = [
        ("--pcap", args.pcap.as_ref(), Form::Capture),
        ("--series", args.series.as_ref(), Form::Csv),
        ("--report", args.report.as_ref(), Form::Html),
    ];
    output::keep_apart(Some(args.scenario.path()), &written.map(|(name, path, _)| (name, path)))?;
    written.into_iter().try_for_each(|(name, path, form)| output::keep_form(name, path, form))
}

/// Where finished runs are saved if Ctrl-C comes before the table.
pub(super) fn rescue(scenario: &ScenarioFile) -> PathBuf {
    PathBuf::from(format!("{}.interrupted.jsonl", scenario.stem()))
}

fn write_series(mut file: WholeFile, series: &Series) -> Result<(), Failure> {
    series.write_csv(&mut file).map_err(|error| file.failure(error))?;
    Ok(file.finish()?)
}

/// The capture file, shared with the run that writes it.
#[derive(Clone)]
pub(super) struct Capture(Arc<Mutex<Option<WholeFile>>>);

impl Capture {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Mutex::new(Some(WholeFile::create(path, Folders::Existing)?)))))
    }

    /// Gives the file its name, now that the run has written it.
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
