//! Scenarios run from Python. The interpreter's lock is held only to report progress and to look for Ctrl-C.

use std::ffi::CString;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use ackclock_core::Span;
use ackclock_scenario::{
    BatchEvent, DiskFiles, Job, Outcome, Point, Progress, RunError, RunOptions, Scenario, ScenarioError,
    Tables, catalogue, dropped_from, in_parallel, jobs, json_line, said_of_begins, threads_of_each,
};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{number, whole_or_none};
use crate::series;

/// One finished run.
#[pyclass(module = "ackclock", frozen)]
pub(crate) struct RunOutcome {
    /// The object of one line of `ackclock run --json`.
    #[pyo3(get)]
    json: String,
    /// Time series by name; the arrays own the memory that the run filled.
    #[pyo3(get)]
    series: Py<PyDict>,
}

/// Run a scenario text, once for each of its `runs`.
#[pyfunction]
#[pyo3(signature = (scenario, *, name="<python>", base_dir=None, set=Vec::new(), series_interval=None))]
#[pyo3(text_signature = "(scenario, *, name='<python>', base_dir=None, set=(), series_interval=None)")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &str,
    name: &str,
    base_dir: Option<&str>,
    set: Vec<String>,
    #[pyo3(from_py_with = interval)] series_interval: Option<Span>,
) -> PyResult<Vec<RunOutcome>> {
    let scenario = Scenario::load(name, scenario, &set).map_err(wrong)?;
    warn(py, 1, dropped_from([&scenario]))?;
    warn(py, 1, said_of_begins([&scenario]))?;
    warn(py, 1, unswept(&scenario))?;
    let points = [Point { labels: Vec::new(), scenario }];
    let batch = Batch { files: &files(base_dir), interval: series_interval, progress: None, threads: None };
    let outcomes = batch.simulate(py, &jobs(&points))?;
    let tables = points[0].scenario.tables();
    outcomes.into_iter().map(|outcome| kept(py, outcome, tables)).collect()
}

/// Run every point of `[sweep]` x every run on all cores and return JSON lines in that order.
#[pyfunction]
#[pyo3(signature = (
    scenario, *, name="<python>", base_dir=None, set=Vec::new(), progress=None, part=(0, 1), threads=None
))]
#[pyo3(
    text_signature = "(scenario, *, name='<python>', base_dir=None, set=(), progress=None, part=(0, 1), threads=None)"
)]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn sweep(
    py: Python<'_>,
    scenario: &str,
    name: &str,
    base_dir: Option<&str>,
    set: Vec<String>,
    progress: Option<Py<PyAny>>,
    #[pyo3(from_py_with = part)] part: (usize, usize),
    #[pyo3(from_py_with = threads)] threads: Option<NonZeroUsize>,
) -> PyResult<Vec<String>> {
    let (first, step) = part;
    let points =
        Scenario::load(name, scenario, &set).and_then(|scenario| scenario.points()).map_err(wrong)?;
    if first == 0 {
        // The parts of a sweep on a cluster would say the same.
        warn(py, 2, dropped_from(points.iter().map(|point| &point.scenario)))?;
        warn(py, 2, said_of_begins(points.iter().map(|point| &point.scenario)))?;
    }
    let jobs: Vec<Job<'_>> = jobs(&points).into_iter().skip(first).step_by(step).collect();
    let batch = Batch { files: &files(base_dir), interval: None, progress, threads };
    let outcomes = batch.simulate(py, &jobs)?;
    Ok(outcomes
        .iter()
        .zip(&jobs)
        .map(|(outcome, job)| json_line(&outcome.result, &job.point.labels))
        .collect())
}

/// Run many scenario texts in one parallel batch: for each text the JSON lines of its runs.
#[pyfunction]
#[pyo3(signature = (scenarios, *, base_dir=None, progress=None, threads=None))]
pub(crate) fn run_many(
    py: Python<'_>,
    scenarios: Vec<String>,
    base_dir: Option<&str>,
    progress: Option<Py<PyAny>>,
    #[pyo3(from_py_with = threads)] threads: Option<NonZeroUsize>,
) -> PyResult<Vec<Vec<String>>> {
    let load = |(index, text): (usize, &String)| {
        let scenario = Scenario::load(&format!("<python> {index}"), text, &[])?;
        Ok(Point { labels: Vec::new(), scenario })
    };
    let points: Vec<Point> =
        scenarios.iter().enumerate().map(load).collect::<Result<_, _>>().map_err(wrong)?;
    let jobs = jobs(&points);
    let batch = Batch { files: &files(base_dir), interval: None, progress, threads };
    let outcomes = batch.simulate(py, &jobs)?;
    let mut lines: Vec<Vec<String>> = points.iter().map(|_| Vec::new()).collect();
    for (outcome, job) in outcomes.iter().zip(&jobs) {
        lines[job.index].push(json_line(&outcome.result, &[]));
    }
    Ok(lines)
}

/// The catalogue of links, queues, regulators, senders, presets and workloads as a JSON object of lists.
#[pyfunction]
pub(crate) fn list_components() -> String {
    ackclock_scenario::catalogue_json(&catalogue()).to_string()
}

/// What all runs of a call share.
struct Batch<'a> {
    files: &'a DiskFiles,
    interval: Option<Span>,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
}

impl Batch<'_> {
    /// The outcomes of the jobs in their order; the first failure ends the batch.
    fn simulate(self, py: Python<'_>, jobs: &[Job<'_>]) -> PyResult<Vec<Outcome>> {
        let Self { files, interval, progress, threads } = self;
        let watched = Arc::new(Progress::default());
        let threads_each = Some(threads_of_each(jobs.len(), threads));
        let work = |index: usize| {
            let Job { point, run, .. } = jobs[index];
            let progress = Arc::clone(&watched);
            let options =
                RunOptions { series_interval: interval, progress, threads: threads_each, capture: None };
            ackclock_scenario::run(&point.scenario, run, files, options)
        };
        let mut outcomes: Vec<Option<Outcome>> = jobs.iter().map(|_| None).collect();
        let mut done = 0;
        let mut take = |event: BatchEvent<Result<Outcome, RunError>>| {
            if let BatchEvent::Done(index, outcome) = event {
                outcomes[index] = Some(outcome.map_err(failed)?);
                done += 1;
            }
            Python::attach(|py| attend(py, progress.as_ref(), done, jobs.len()))
        };
        let on_event = |event| match take(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                watched.stop();
                ControlFlow::Break(error)
            }
        };
        match py
            .detach(|| in_parallel(jobs.len(), threads, work, on_event))
            .map_err(PyRuntimeError::new_err)?
        {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(outcomes.into_iter().flatten().collect()),
        }
    }
}

/// Looks for Ctrl-C and tells how many jobs are done.
fn attend(py: Python<'_>, progress: Option<&Py<PyAny>>, done: usize, jobs: usize) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |progress| progress.call1(py, (done, jobs)).map(drop))
}

fn kept(py: Python<'_>, outcome: Outcome, tables: &Tables) -> PyResult<RunOutcome> {
    let series = PyDict::new(py);
    let columns = series::columns(outcome.series.unwrap_or_default(), tables)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    for (name, values) in columns {
        series.set_item(name, values.into_pyarray(py))?;
    }
    Ok(RunOutcome { json: json_line(&outcome.result, &[]), series: series.unbind() })
}

fn files(base_dir: Option<&str>) -> DiskFiles {
    DiskFiles::in_folder(base_dir.unwrap_or(""))
}

fn threads(any: &Bound<'_, PyAny>) -> PyResult<Option<NonZeroUsize>> {
    let some = (!any.is_none()).then_some(any);
    Ok(whole_or_none("threads", some, 1..=usize::MAX)?.and_then(NonZeroUsize::new))
}

fn part(any: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let wrong = || PyValueError::new_err(format!("part: {any} is not (i, n) with 0 <= i < n"));
    any.extract().ok().filter(|(first, step)| first < step).ok_or_else(wrong)
}

fn interval(any: &Bound<'_, PyAny>) -> PyResult<Option<Span>> {
    if any.is_none() {
        return Ok(None);
    }
    // What is less than half a nanosecond is no time to the engine.
    let above_zero = |seconds| Span::from_secs_f64(seconds) > Span::ZERO;
    number("series_interval", any, "above 0 seconds", above_zero).map(Span::from_secs_f64).map(Some)
}

fn unswept(scenario: &Scenario) -> Option<String> {
    let swept = scenario.swept();
    let keys = swept.join(", ");
    (!swept.is_empty())
        .then(|| format!("{}: run does not look at [sweep] ({keys}); sweep does", scenario.name()))
}

/// A `UserWarning` at the line that called the package, `depth` frames of which lie between.
fn warn(py: Python<'_>, depth: i32, remark: Option<String>) -> PyResult<()> {
    // A key of a scenario has no zero byte: TOML forbids it.
    let remark = remark.and_then(|remark| CString::new(remark).ok());
    remark.map_or(Ok(()), |remark| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &remark, depth + 1))
}

fn wrong(error: ScenarioError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn failed(error: RunError) -> PyErr {
    match error {
        RunError::Scenario(error) => wrong(error),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}
