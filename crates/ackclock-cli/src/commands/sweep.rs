//! `ackclock sweep`: simulates every point of a scenario's `[sweep]`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ackclock_link::Files;
use ackclock_output::Folders;
use ackclock_scenario::{Job, Kept, KeptError, Others, Point, RunResult, Want, jobs};
use clap::ValueEnum;

use super::run::rescue;
use crate::batch::{self, Ended, Extras, Timing};
use crate::failure::Failure;
use crate::lines::{Lines, Sink};
use crate::paired::PointRuns;
use crate::report::Report;
use crate::scenario_file::{
    Intervals, Repetition, ScenarioFile, say_begins, say_defaults, say_doubts, say_dropped, say_recordings,
};
use crate::summary::{self, Marks, Uploads};
use crate::{output, python};

/// Simulate every combination of a scenario's [sweep] on all cores, with means and confidence intervals over its runs.
///
/// Repeat an interrupted sweep with `--out FILE` to continue it. Without `--out`, Ctrl-C saves the finished runs in
/// NAME.interrupted.jsonl, from which `--out` can also continue.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFile,
    #[command(flatten)]
    repetition: Repetition,
    #[command(flatten)]
    intervals: Intervals,
    /// Print one JSON object per run, each on its own line. The key `point` contains the run's sweep point.
    #[arg(long)]
    json: bool,
    /// Write the JSON lines to a file. Until all runs are complete, the lines are in FILE.partial. Runs already
    /// contained in FILE or FILE.partial are not repeated.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the `--out` file even if it contains lines of other runs, another build or changed inputs.
    #[arg(long, requires = "out")]
    overwrite: bool,
    /// Run only part K of N parts of the sweep, for N machines or the tasks of a batch job. To join the parts,
    /// concatenate their `--out` files into FILE.partial and repeat the sweep with `--out FILE`.
    #[arg(long, value_name = "K/N", value_parser = Shard::parse)]
    shard: Option<Shard>,
    /// Write an HTML report with figures (Python).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Machines that run the sweep: this machine (local), or a `dask` or `ray` cluster (Python).
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    /// Address of the cluster, such as tcp://head:8786 (Dask) or head:6379 (Ray). Without `--address`, the environment
    /// variable DASK_SCHEDULER_ADDRESS or RAY_ADDRESS applies, or else the engine starts a cluster on this machine.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Measure the CPU time of each run. Without `--timing`, repeated runs print identical output.
    #[arg(long)]
    timing: bool,
}

/// Part of a sweep: every `of`th run, starting with run `part`, counted from 1.
#[derive(Clone, Copy, Debug)]
struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    fn parse(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err("is not K/N with K from 1 to N, such as 2/8".to_owned()),
        }
    }

    /// Whether the shard contains the run at `position` of the sweep, counted from 0.
    const fn contains(self, position: usize) -> bool {
        position % self.of == self.part - 1
    }
}

/// Machines that can run a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// The sweep runs on all cores of this machine.
    Local,
    /// The sweep runs on a Dask cluster.
    Dask,
    /// The sweep runs on a Ray cluster.
    Ray,
}

const EXAMPLES: &str = "\
Examples:
  ackclock sweep papers/cr02/scenarios/alpha.toml
  ackclock sweep papers/cr02/scenarios/alpha.toml --runs 20 --out alpha.jsonl
  ackclock sweep papers/cr02/scenarios/alpha.toml --set duration=60s --json | jq -c '[.point, .run]'";

/// Simulates every point of the sweep and prints the table of results.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let written = [("--out", args.out.as_ref()), ("--report", args.report.as_ref())];
    output::keep_apart(Some(args.scenario.path()), &written)?;
    output::keep_form("--report", args.report.as_ref(), output::Form::Html)?;
    output::keep_form("--out", args.out.as_ref(), output::Form::JsonLines)?;
    let (scenario, points, files) = args.scenario.load_beside(&args.repetition, &[])?;
    scenario.check_simulated()?;
    if args.engine != Engine::Local {
        return on_cluster(args);
    }
    if let Some(address) = &args.address {
        let message = format!("--address {address}: needs --engine dask or --engine ray");
        return Err(Failure::Input(message));
    }
    say_defaults(&scenario);
    if scenario.swept().is_empty() {
        output::remark(&format!("{}: there is no [sweep], so it is one point", scenario.name()));
    }
    say_dropped(points.iter().map(|point| &point.scenario));
    say_begins(points.iter().map(|point| &point.scenario));
    say_recordings(points.iter().map(|point| &point.scenario), &files);
    say_doubts(&scenario, &files)?;
    let mut positions = 0..;
    let mut jobs = jobs(&points);
    jobs.retain(|_| args.shard.is_none_or(|shard| positions.next().is_some_and(|at| shard.contains(at))));
    let finished = {
        let (sinks, done) = sinks(args, &jobs, &files)?;
        let lines = Lines::new(sinks, jobs.len());
        let timing = if args.timing { Timing::Measured } else { Timing::Omitted };
        let extras = Extras { series: None, capture: None, timing };
        batch::simulate(args.scenario.stem(), &jobs, &files, extras, lines, done)?
    };
    show(args, &points, &jobs, &finished.ended)?;
    finished.verdict?;
    let Some(path) = &args.report else { return Ok(()) };
    Report::new(&jobs, &finished.ended, &finished.interrupted, &files, args.intervals.confidence())
        .write(path)
}

/// Prints the table of sweep points, unless JSON lines were requested.
fn show(args: &Args, points: &[Point], jobs: &[Job<'_>], ended: &[Ended]) -> Result<(), Failure> {
    if !args.json {
        output::print(&summary::of_points(
            &by_point(points, jobs, ended),
            Marks::None,
            Uploads::of(points),
            args.intervals.confidence(),
        ))?;
    }
    Ok(())
}

/// Returns the finished runs of each sweep point.
pub(super) fn by_point<'a>(points: &'a [Point], jobs: &[Job<'_>], ended: &'a [Ended]) -> Vec<PointRuns<'a>> {
    let mut of_points: Vec<_> =
        points.iter().map(|point| PointRuns { labels: &point.labels, runs: Vec::new() }).collect();
    for (job, ended) in jobs.iter().zip(ended) {
        if let Ok(outcome) = ended {
            of_points[job.index].runs.push(&outcome.result);
        }
    }
    of_points
}

/// Returns the destinations of the JSON result lines, and the results that already exist in the `--out` file.
fn sinks(
    args: &Args,
    jobs: &[Job<'_>],
    files: &dyn Files,
) -> Result<(Vec<Sink>, BTreeMap<usize, RunResult>), Failure> {
    let mut sinks = Vec::new();
    let mut done = BTreeMap::new();
    if args.json {
        sinks.push(Sink::Printed);
    }
    match &args.out {
        Some(path) => {
            let kept;
            (kept, done) = keep(path, args, jobs, files)?;
            sinks.push(Sink::File(kept));
        }
        None if !args.json => sinks.push(Sink::Memory(rescue(&args.scenario), String::new())),
        None => {}
    }
    Ok((sinks, done))
}

/// Opens the `--out` file and reports how many of the sweep's runs it contains.
fn keep(
    path: &Path,
    args: &Args,
    jobs: &[Job<'_>],
    files: &dyn Files,
) -> Result<(Kept, BTreeMap<usize, RunResult>), Failure> {
    let program = std::env::current_exe().ok();
    let others = if args.overwrite { Others::Overwritten } else { Others::Refused };
    let want = Want { jobs, files, timed: args.timing, program: program.as_deref(), others };
    let (kept, done) = Kept::open(path, Folders::Existing, &want)?;
    if !done.is_empty() {
        let (path, found, all) = (path.display(), done.len(), jobs.len());
        output::remark(&format!("{path}: {found} of {all} runs are finished already"));
    }
    Ok((kept, done))
}

impl From<KeptError> for Failure {
    fn from(error: KeptError) -> Self {
        match error {
            KeptError::Write(error) => error.into(),
            KeptError::Others(message) => Self::Input(message),
        }
    }
}

/// Runs the sweep in Python, which prints or writes the same JSON lines as this command.
fn on_cluster(args: &Args) -> Result<(), Failure> {
    if args.intervals.are_asked_for() {
        let message = "--confidence is for tables; on a cluster a sweep gives the objects of its runs";
        return Err(Failure::Input(message.to_owned()));
    }
    if args.shard.is_some() {
        let message = "--shard is for sweeps on this machine; a cluster distributes the runs itself";
        return Err(Failure::Input(message.to_owned()));
    }
    if args.report.is_some() {
        let message =
            "--report is for sweeps on this machine; `ackclock report` draws the lines of a cluster";
        return Err(Failure::Input(message.to_owned()));
    }
    let engine = if args.engine == Engine::Dask { "dask" } else { "ray" };
    let mut arguments: Vec<OsString> = vec![args.scenario.path().into(), "--engine".into(), engine.into()];
    let sets = args.scenario.set().iter().cloned().chain(args.repetition.as_sets());
    arguments.extend(sets.flat_map(|set| ["--set".into(), set.into()]));
    if let Some(path) = &args.out {
        arguments.extend(["--out".into(), path.into()]);
    }
    if let Some(address) = &args.address {
        arguments.extend(["--address".into(), address.into()]);
    }
    if args.overwrite {
        arguments.push("--overwrite".into());
    }
    Err(python::become_module(&["sweep"], &arguments))
}
