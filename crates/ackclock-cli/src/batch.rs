//! Runs simulations on all cores with a progress bar. Finished results survive Ctrl-C.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ackclock_core::Span;
use ackclock_link::Files;
use ackclock_scenario::{
    BatchEvent, Job, Outcome, Progress, RunError, RunOptions, RunResult, in_parallel, json_line, run,
    threads_of_each,
};
#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};

use crate::failure::Failure;
use crate::lines::Lines;
use crate::output;
use crate::progress::Shown;

/// Whether results contain the CPU time of each run. With CPU times, two equal runs give different results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Results contain the CPU time of each run.
    Measured,
    /// Results omit the CPU time of each run.
    Omitted,
}

/// Additional data recorded with each run of a batch.
pub(crate) struct Extras {
    /// Time between two rows of the time series.
    pub(crate) series: Option<Span>,
    /// Destination of the captured packets; only a batch with one run has a capture.
    pub(crate) capture: Option<Box<dyn Write + Send>>,
    /// Whether the CPU time of each run is measured.
    pub(crate) timing: Timing,
}

/// Result of a simulated job.
pub(crate) type Ended = Result<Outcome, RunError>;

/// Results of a completed batch.
pub(crate) struct Finished {
    /// Result of each job in the batch.
    pub(crate) ended: Vec<Ended>,
    /// Error if any job failed. The caller returns the error after showing the successful results.
    pub(crate) verdict: Result<(), Failure>,
    /// Flag that Ctrl-C and SIGTERM set.
    pub(crate) interrupted: Arc<AtomicBool>,
}

/// Simulates all jobs except those in `done`, and writes the JSON result of each job to `lines` as the job finishes.
///
/// # Errors
/// Fails if a line cannot be written. If one run fails, the remaining runs continue.
pub(crate) fn simulate(
    title: &str,
    jobs: &[Job<'_>],
    files: &(dyn Files + Sync),
    extras: Extras,
    mut lines: Lines,
    mut done: BTreeMap<usize, RunResult>,
) -> Result<Finished, Failure> {
    let interrupted = on_interrupt()?;
    lines.take_up()?;
    let mut ended: Vec<Option<Ended>> = (0..jobs.len()).map(|job| done.remove(&job).map(kept)).collect();
    let missing: Vec<usize> = (0..jobs.len()).filter(|&job| ended[job].is_none()).collect();
    let shown = Shown::new(title, missing.len());
    let mut lines = Some(lines);
    let work = worker(jobs, files, extras, &shown.only);
    let on_event = |event| {
        let Some(open) = &mut lines else { return ControlFlow::Continue(()) };
        shown.attend();
        if let BatchEvent::Done(number, result) = event {
            let index = missing[number];
            shown.done();
            if let Err(failure) = put_line(open, index, &jobs[index], &result) {
                return ControlFlow::Break(failure);
            }
            ended[index] = Some(result);
        }
        if interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Break(leave(&shown, lines.take()));
        }
        ControlFlow::Continue(())
    };
    let flow = in_parallel(missing.len(), None, |number| work(missing[number]), on_event);
    shown.clear();
    if let ControlFlow::Break(failure) = flow.map_err(Failure::Run)? {
        return Err(failure);
    }
    let ended: Vec<Ended> = ended.into_iter().flatten().collect();
    Ok(Finished { verdict: lines.map_or(Ok(()), |lines| conclude(jobs, &ended, lines)), ended, interrupted })
}

/// Simulates all jobs and records their time series. The results have the order of `jobs`.
///
/// # Errors
/// Fails if a run fails, or `interrupted` is set.
pub(crate) fn with_series(
    jobs: &[Job<'_>],
    files: &(dyn Files + Sync),
    interval: Span,
    interrupted: &AtomicBool,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    let progress = Arc::new(Progress::default());
    let work = |index: usize| {
        let series_interval = Some(interval);
        let options =
            RunOptions { series_interval, progress: Arc::clone(&progress), ..RunOptions::default() };
        simulate_one(&jobs[index], files, options, Timing::Omitted)
    };
    let on_event = |event| {
        if interrupted.load(Ordering::Relaxed) {
            progress.stop();
            return ControlFlow::Break(Failure::Reported(INTERRUPTED));
        }
        match event {
            BatchEvent::Done(index, Ok(outcome)) => drop(outcomes.insert(index, outcome)),
            BatchEvent::Done(_, Err(error)) => return ControlFlow::Break(Failure::from(error)),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    match in_parallel(jobs.len(), None, work, on_event).map_err(Failure::Run)? {
        ControlFlow::Break(failure) => Err(failure),
        ControlFlow::Continue(()) => Ok(outcomes.into_values().collect()),
    }
}

/// Wraps the result of a job that an earlier process finished.
fn kept(result: RunResult) -> Ended {
    Ok(Outcome { result, series: None })
}

/// Writes the JSON line of a successful job.
fn put_line(lines: &mut Lines, index: usize, job: &Job<'_>, ended: &Ended) -> Result<(), Failure> {
    lines.put(index, ended.as_ref().ok().map(|outcome| json_line(&outcome.result, &job.point.labels)))
}

/// Runs jobs in one thread of the batch.
fn worker<'a>(
    jobs: &'a [Job<'a>],
    files: &'a (dyn Files + Sync),
    extras: Extras,
    only: &'a Arc<Progress>,
) -> impl Fn(usize) -> Ended + Sync + 'a {
    // Only a batch with one job has a capture.
    let capture = std::sync::Mutex::new(extras.capture);
    // The measured CPU time covers only one thread. If CPU time is measured, each run uses one thread.
    let threads = match extras.timing {
        Timing::Measured => NonZeroUsize::MIN,
        Timing::Omitted => threads_of_each(jobs.len(), None),
    };
    move |index| {
        let capture = capture.lock().map_or(None, |mut capture| capture.take());
        let progress = Arc::clone(only);
        let options =
            RunOptions { series_interval: extras.series, capture, progress, threads: Some(threads) };
        simulate_one(&jobs[index], files, options, extras.timing)
    }
}

/// Closes the JSON lines of a batch. If a run failed, the output file keeps the temporary name of an incomplete file.
fn conclude(jobs: &[Job<'_>], ended: &[Ended], lines: Lines) -> Result<(), Failure> {
    let failures: Vec<_> =
        jobs.iter().zip(ended).filter_map(|(job, end)| Some((job, end.as_ref().err()?))).collect();
    match failures.as_slice() {
        [] => lines.finish(),
        [(_, error)] if jobs.len() == 1 => Err(Failure::from((*error).clone())),
        failures => {
            for (job, error) in failures {
                output::remark(&format!("{}: {error}", named(job)));
            }
            let left = lines.abandon();
            Err(Failure::Run(format!("{} of {} runs failed{left}", failures.len(), jobs.len())))
        }
    }
}

fn simulate_one(job: &Job<'_>, files: &(dyn Files + Sync), options: RunOptions, timing: Timing) -> Ended {
    let before = thread_cpu_seconds();
    let mut outcome = run(&job.point.scenario, job.run, files, options)?;
    if timing == Timing::Measured {
        outcome.result.engine.cpu_s = Some(thread_cpu_seconds() - before);
    }
    Ok(outcome)
}

/// A number that does not exist, and is null in JSON.
#[cfg(not(unix))]
const fn thread_cpu_seconds() -> f64 {
    f64::NAN
}

#[cfg(unix)]
fn thread_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Name of a job in messages.
fn named(job: &Job<'_>) -> String {
    let labels = job.point.labels.iter().map(|(key, value)| format!("{key} = {value}, "));
    format!("{}run {}", labels.collect::<String>(), job.run)
}

/// Creates a flag that Ctrl-C and SIGTERM set.
fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let raised = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&raised);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(raised)
}

/// Saves finished results, prints the path of the saved file, and stops the running jobs. Files that are not complete
/// are removed when the batch ends.
fn leave(shown: &Shown, lines: Option<Lines>) -> Failure {
    shown.only.stop();
    shown.clear();
    if let Some(lines) = lines {
        let message = lines.interrupt().unwrap_or_else(|failure| {
            format!("interrupted: {}", failure.message().unwrap_or("the results were not read"))
        });
        output::remark(&message);
    }
    Failure::Reported(INTERRUPTED)
}

/// Exit status that shells report after Ctrl-C.
const INTERRUPTED: u8 = 130;
