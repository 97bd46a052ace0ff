//! Runs scenarios from Python. The interpreter lock is held only to report progress and to check for Ctrl-C.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use ackclock_core::Span;
use ackclock_core::text::printable;
use ackclock_output::{Folders, WriteError};
use ackclock_scenario::{
    BatchEvent, DiskFiles, Job, Kept, KeptError, Others, Outcome, Point, Progress, RunError, RunOptions,
    Scenario, ScenarioError, Tables, Want, catalogue, dropped_from, in_parallel, jobs, json_line,
    said_of_begins, threads_of_each,
};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{number, whole_or_none};
use crate::classes::{guarded, uses_python};
use crate::files::os_error;
use crate::series;

/// Outcome of a finished run.
#[pyclass(module = "ackclock", frozen)]
pub(crate) struct RunOutcome {
    /// Result as a JSON object, as in a line of `ackclock run --json`.
    #[pyo3(get)]
    json: String,
    /// Time series by name; the arrays own the run's memory.
    #[pyo3(get)]
    series: Py<PyDict>,
}

/// Run a scenario text, once for each of its `runs`.
#[pyfunction]
#[pyo3(signature = (scenario, *, name="<python>", base_dir=None, set=Vec::new(), series_interval=None, extra_wakes=false))]
#[pyo3(
    text_signature = "(scenario, *, name='<python>', base_dir=None, set=(), series_interval=None, extra_wakes=False)"
)]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &str,
    name: &str,
    base_dir: Option<&str>,
    set: Vec<String>,
    #[pyo3(from_py_with = interval)] series_interval: Option<Span>,
    extra_wakes: bool,
) -> PyResult<Vec<RunOutcome>> {
    let scenario = Scenario::load(name, scenario, &set).map_err(wrong)?;
    warn(py, 1, dropped_from([&scenario]))?;
    warn(py, 1, said_of_begins([&scenario]))?;
    warn_of_unnoticed(py, 1, &scenario)?;
    warn(py, 1, unswept(&scenario))?;
    let points = [Point { labels: Vec::new(), scenario }];
    let batch = Batch {
        files: &files(base_dir),
        interval: series_interval,
        progress: None,
        threads: None,
        extra_wakes,
    };
    let jobs = jobs(&points);
    let all: Vec<usize> = (0..jobs.len()).collect();
    let mut outcomes = BTreeMap::new();
    batch.simulate(py, &jobs, &all, |job, outcome| {
        outcomes.insert(job, outcome);
        Ok(())
    })?;
    let tables = points[0].scenario.tables();
    outcomes.into_values().map(|outcome| kept(py, outcome, tables)).collect()
}

/// Simulate all runs of every point of `[sweep]` on all cores and return their JSON lines in order.
#[pyfunction]
#[pyo3(signature = (scenario, *, name="<python>", base_dir=None, set=Vec::new(), progress=None, threads=None))]
#[pyo3(text_signature = "(scenario, *, name='<python>', base_dir=None, set=(), progress=None, threads=None)")]
pub(crate) fn sweep(
    py: Python<'_>,
    scenario: &str,
    name: &str,
    base_dir: Option<&str>,
    set: Vec<String>,
    progress: Option<Py<PyAny>>,
    #[pyo3(from_py_with = threads)] threads: Option<NonZeroUsize>,
) -> PyResult<Vec<String>> {
    let mut jobs = Jobs::of_sweep(py, scenario, name, base_dir, set, None, false)?;
    jobs.run(py, None, progress, threads)?;
    jobs.finish(py)
}

/// Simulate several scenario texts in one parallel batch and return the JSON lines of each text's runs.
#[pyfunction]
#[pyo3(signature = (scenarios, *, base_dir=None, progress=None, threads=None, out=None, overwrite=false))]
pub(crate) fn run_many(
    py: Python<'_>,
    scenarios: Vec<String>,
    base_dir: Option<&str>,
    progress: Option<Py<PyAny>>,
    #[pyo3(from_py_with = threads)] threads: Option<NonZeroUsize>,
    out: Option<PathBuf>,
    overwrite: bool,
) -> PyResult<Vec<Vec<String>>> {
    let load = |(index, text): (usize, &String)| {
        let scenario = Scenario::load(&format!("<python> {index}"), text, &[])?;
        Ok(Point { labels: Vec::new(), scenario })
    };
    let points: Vec<Point> =
        scenarios.iter().enumerate().map(load).collect::<Result<_, _>>().map_err(wrong)?;
    let runs: Vec<usize> = points.iter().map(|point| point.scenario.tables().runs as usize).collect();
    let mut jobs = Jobs::new(py, points, base_dir, out, overwrite)?;
    jobs.run(py, None, progress, threads)?;
    let mut rows = jobs.finish(py)?.into_iter();
    Ok(runs.into_iter().map(|runs| rows.by_ref().take(runs).collect()).collect())
}

/// All runs of a sweep with their JSON lines. If the jobs have an output file, each line is stored at once.
#[pyclass(module = "ackclock._core")]
pub(crate) struct Jobs {
    points: Vec<Point>,
    files: DiskFiles,
    kept: Option<Kept>,
    /// Number of jobs finished by an earlier process.
    #[pyo3(get)]
    found: usize,
}

#[pymethods]
impl Jobs {
    /// Prepares the jobs of a sweep. Lines that the file `out` already contains are reused.
    #[staticmethod]
    #[pyo3(signature = (scenario, *, name="<python>", base_dir=None, set=Vec::new(), out=None, overwrite=false))]
    #[pyo3(
        text_signature = "(scenario, *, name='<python>', base_dir=None, set=(), out=None, overwrite=False)"
    )]
    fn of_sweep(
        py: Python<'_>,
        scenario: &str,
        name: &str,
        base_dir: Option<&str>,
        set: Vec<String>,
        out: Option<PathBuf>,
        overwrite: bool,
    ) -> PyResult<Self> {
        let scenario = Scenario::load(name, scenario, &set).map_err(wrong)?;
        let points = scenario.check_simulated().and_then(|()| scenario.points()).map_err(wrong)?;
        warn(py, 2, dropped_from(points.iter().map(|point| &point.scenario)))?;
        warn(py, 2, said_of_begins(points.iter().map(|point| &point.scenario)))?;
        warn_of_unnoticed(py, 2, &scenario)?;
        Self::new(py, points, base_dir, out, overwrite)
    }

    /// Whether a scenario names a regulator in Python.
    #[getter]
    fn uses_python(&self) -> bool {
        self.points.iter().any(|point| uses_python(&point.scenario))
    }

    fn __len__(&self) -> usize {
        jobs(&self.points).len()
    }

    /// Numbers of the jobs that have no result line yet.
    #[getter]
    fn missing(&self) -> Vec<usize> {
        self.kept.as_ref().map_or_else(Vec::new, Kept::missing)
    }

    /// Run these jobs, or all jobs without a result, and return their lines.
    #[pyo3(signature = (only=None, *, progress=None, threads=None))]
    fn run(
        &mut self,
        py: Python<'_>,
        only: Option<Vec<usize>>,
        progress: Option<Py<PyAny>>,
        #[pyo3(from_py_with = threads)] threads: Option<NonZeroUsize>,
    ) -> PyResult<Vec<String>> {
        let jobs = jobs(&self.points);
        let only = only.unwrap_or_else(|| self.missing());
        only.iter().try_for_each(|&job| in_range(job, jobs.len()))?;
        let kept = self.kept.as_mut().ok_or_else(finished)?;
        let batch = Batch { files: &self.files, interval: None, progress, threads, extra_wakes: false };
        batch.simulate(py, &jobs, &only, |job, outcome| {
            let line = json_line(&outcome.result, &jobs[job].point.labels);
            kept.put(job, line).map_err(|error| Python::attach(|py| unwritten(py, error)))
        })?;
        Ok(only.iter().filter_map(|&job| kept.row(job).map(str::to_owned)).collect())
    }

    /// Store the line of a job that another process ran.
    fn put(&mut self, py: Python<'_>, job: usize, line: String) -> PyResult<()> {
        in_range(job, jobs(&self.points).len())?;
        self.kept.as_mut().ok_or_else(finished)?.put(job, line).map_err(|error| unwritten(py, error))
    }

    /// Return all lines in job order, and give the file its final name.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Vec<String>> {
        let kept = self.kept.take().ok_or_else(finished)?;
        kept.finish().map_err(|error| unwritten(py, error))
    }
}

impl Jobs {
    fn new(
        py: Python<'_>,
        points: Vec<Point>,
        base_dir: Option<&str>,
        out: Option<PathBuf>,
        overwrite: bool,
    ) -> PyResult<Self> {
        let files = files(base_dir);
        let all = jobs(&points);
        let (kept, found) = match out {
            None => (Kept::in_memory(all.len()), 0),
            Some(out) => {
                let program: PathBuf = py.import("ackclock._core")?.getattr("__file__")?.extract()?;
                let others = if overwrite { Others::Overwritten } else { Others::Refused };
                let want = Want { jobs: &all, files: &files, timed: false, program: Some(&program), others };
                let opened = Kept::open(&out, Folders::Created, &want);
                let (kept, found) = opened.map_err(|error| match error {
                    KeptError::Write(error) => unwritten(py, error),
                    KeptError::Others(message) => PyValueError::new_err(printable(&message).into_owned()),
                })?;
                (kept, found.len())
            }
        };
        Ok(Self { files, kept: Some(kept), found, points })
    }
}

fn unwritten(py: Python<'_>, error: WriteError) -> PyErr {
    os_error(py, &error.path, &error.source)
}

fn finished() -> PyErr {
    PyValueError::new_err("these jobs are finished")
}

fn in_range(job: usize, jobs: usize) -> PyResult<()> {
    if job < jobs { Ok(()) } else { Err(PyValueError::new_err(format!("job: {job} is none of {jobs}"))) }
}

/// All links, queues, regulators, senders, presets and workloads as a JSON object of lists.
#[pyfunction]
pub(crate) fn list_components() -> String {
    ackclock_scenario::catalogue_json(&catalogue()).to_string()
}

/// Settings shared by all runs of a call.
struct Batch<'a> {
    files: &'a DiskFiles,
    interval: Option<Span>,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
    /// Whether regulators in Python are woken more often than they request.
    extra_wakes: bool,
}

impl Batch<'_> {
    /// Simulates the jobs numbered `only` and passes each outcome to `take`. The first failure, or Ctrl-C, ends the
    /// batch.
    fn simulate(
        self,
        py: Python<'_>,
        jobs: &[Job<'_>],
        only: &[usize],
        mut take: impl FnMut(usize, Outcome) -> PyResult<()> + Send,
    ) -> PyResult<()> {
        // The interpreter runs on one thread at a time, and an exception belongs to the run of its thread.
        let in_python = only.iter().any(|&job| uses_python(&jobs[job].point.scenario));
        let threads = if in_python { Some(NonZeroUsize::MIN) } else { self.threads };
        let watched = Arc::new(Progress::default());
        let threads_each = threads_of_each(only.len(), threads);
        let one = One { in_python, threads: threads_each, progress: &watched, batch: &self };
        let work = |number: usize| one.run(jobs[only[number]]);
        let mut done = jobs.len() - only.len();
        let mut attend_to = |event: BatchEvent<PyResult<Outcome>>| {
            if let BatchEvent::Done(number, outcome) = event {
                take(only[number], outcome?)?;
                done += 1;
            }
            Python::attach(|py| attend(py, self.progress.as_ref(), done, jobs.len()))
        };
        let on_event = |event| {
            attend_to(event).map_or_else(
                |error| {
                    watched.stop();
                    ControlFlow::Break(error)
                },
                ControlFlow::Continue,
            )
        };
        let ended = py.detach(|| in_parallel(only.len(), threads, work, on_event));
        ended.map_err(PyRuntimeError::new_err)?.break_value().map_or(Ok(()), Err)
    }
}

/// Settings of each run of a batch.
struct One<'a> {
    /// Whether the scenario may name a class in Python.
    in_python: bool,
    threads: NonZeroUsize,
    progress: &'a Arc<Progress>,
    batch: &'a Batch<'a>,
}

impl One<'_> {
    fn run(&self, Job { point, run, .. }: Job<'_>) -> PyResult<Outcome> {
        let Batch { files, interval, extra_wakes, .. } = *self.batch;
        let options = RunOptions {
            series_interval: interval,
            progress: Arc::clone(self.progress),
            threads: Some(self.threads),
            capture: None,
        };
        let simulate = || ackclock_scenario::run(&point.scenario, run, files, options).map_err(failed);
        if !self.in_python {
            return simulate();
        }
        let label = format!("in run {run} of {}", printable(point.scenario.name()));
        guarded(Arc::clone(self.progress), extra_wakes, &label, simulate)?
    }
}

/// Checks for Ctrl-C and reports the number of finished jobs.
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

fn interval(any: &Bound<'_, PyAny>) -> PyResult<Option<Span>> {
    if any.is_none() {
        return Ok(None);
    }
    // The engine rounds times below half a nanosecond to zero.
    let above_zero = |seconds| Span::from_secs_f64(seconds) > Span::ZERO;
    number("series_interval", any, "above 0 seconds", above_zero).map(Span::from_secs_f64).map(Some)
}

fn unswept(scenario: &Scenario) -> Option<String> {
    let swept = scenario.swept();
    let keys = swept.join(", ");
    (!swept.is_empty()).then(|| format!("{}: run ignores [sweep] ({keys}); use sweep", scenario.name()))
}

/// Warns of keys that nothing in the scenario reacts to, `depth` stack frames up.
fn warn_of_unnoticed(py: Python<'_>, depth: i32, scenario: &Scenario) -> PyResult<()> {
    let remarks = scenario.said_of_unnoticed().map_err(wrong)?;
    remarks.into_iter().try_for_each(|remark| warn(py, depth, Some(remark)))
}

/// Raises a `UserWarning` at the line that called the package, `depth` stack frames up.
fn warn(py: Python<'_>, depth: i32, remark: Option<String>) -> PyResult<()> {
    // Keys of a scenario contain no zero bytes: TOML forbids them.
    let remark = remark.and_then(|remark| CString::new(printable(&remark).as_bytes()).ok());
    remark.map_or(Ok(()), |remark| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &remark, depth + 1))
}

/// Converts a scenario error to a Python error. Control characters in the message are escaped, because names and values
/// may come from untrusted files.
fn wrong(error: ScenarioError) -> PyErr {
    PyValueError::new_err(printable(&error.to_string()).into_owned())
}

fn failed(error: RunError) -> PyErr {
    match error {
        RunError::Scenario(error) => wrong(error),
        other => PyRuntimeError::new_err(printable(&other.to_string()).into_owned()),
    }
}
