//! Runs many jobs on many cores: the runs of a batch, or the islands of a run.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Point, RunResult};

/// One run of one point of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Index of the point in the sweep.
    pub index: usize,
    /// Point of the sweep to run.
    pub point: &'a Point,
    /// Number of the run, from 0.
    pub run: u32,
}

/// Returns the runs of every point, point by point. Results of a batch have the order of its jobs.
pub fn jobs(points: &[Point]) -> Vec<Job<'_>> {
    let runs = |point: &Point| 0..point.scenario.tables().runs;
    points
        .iter()
        .enumerate()
        .flat_map(|(index, point)| runs(point).map(move |run| Job { index, point, run }))
        .collect()
}

/// Formats the result of a run as one line of JSON. The line of a run in a sweep contains the key `point`.
pub fn json_line(result: &RunResult, labels: &[(String, Value)]) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        result: &'a RunResult,
        #[serde(skip_serializing_if = "Map::is_empty")]
        point: Map<String, Value>,
    }
    let line = Line { result, point: labels.iter().cloned().collect() };
    serde_json::to_string(&line).expect("results are structs of numbers and strings, which always serialise")
}

/// Event during a batch of jobs.
#[derive(Debug)]
pub enum BatchEvent<T> {
    /// Job number `.0` has finished, with result `.1`.
    Done(usize, T),
    /// No job finished for a moment; the event lets the caller check for signals.
    Waiting,
}

/// Interval between [`BatchEvent::Waiting`] events.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` for the jobs 0 to `jobs` - 1 on all cores, or on at most `threads` cores. Calls `on_event` on the
/// caller's thread as jobs finish. Jobs start in order. If `on_event` returns a break, no further job starts, and
/// running jobs are awaited.
///
/// # Errors
/// Fails if the operating system cannot create a thread.
pub fn in_parallel<T: Send, B>(
    jobs: usize,
    threads: Option<NonZeroUsize>,
    work: impl Fn(usize) -> T + Sync,
    mut on_event: impl FnMut(BatchEvent<T>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, String> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(helpful_threads(jobs, threads).get())
        .build()
        .map_err(|error| error.to_string())?;
    let (work, stopped) = (&work, &AtomicBool::new(false));
    let (done, results) = mpsc::channel();
    Ok(pool.in_place_scope_fifo(|scope| {
        for job in 0..jobs {
            let done = done.clone();
            scope.spawn_fifo(move |_| {
                if !stopped.load(Ordering::Relaxed) {
                    // Sending fails only after a break, when the result is not needed.
                    let _ = done.send((job, work(job)));
                }
            });
        }
        drop(done);
        let flow = loop {
            let told = match results.recv_timeout(PATIENCE) {
                Ok((job, result)) => on_event(BatchEvent::Done(job, result)),
                Err(RecvTimeoutError::Timeout) => on_event(BatchEvent::Waiting),
                Err(RecvTimeoutError::Disconnected) => break ControlFlow::Continue(()),
            };
            if told.is_break() {
                break told;
            }
        };
        stopped.store(flow.is_break(), Ordering::Relaxed);
        flow
    }))
}

/// Number of useful threads: at most `threads`, the number of cores and the number of jobs.
pub(crate) fn helpful_threads(jobs: usize, threads: Option<NonZeroUsize>) -> NonZeroUsize {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = NonZeroUsize::new(jobs).unwrap_or(NonZeroUsize::MIN);
    cores.min(jobs).min(threads.unwrap_or(cores))
}

/// Number of threads for the islands of each run, so that `runs` parallel runs together use at most `threads`, or all
/// cores.
pub fn threads_of_each(runs: usize, threads: Option<NonZeroUsize>) -> NonZeroUsize {
    let all = helpful_threads(usize::MAX, threads).get();
    NonZeroUsize::new(all / runs.max(1)).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once() {
        let mut seen = vec![0; 100];
        let flow = in_parallel(
            100,
            NonZeroUsize::new(4),
            |job| job * job,
            |event| {
                if let BatchEvent::Done(job, square) = event {
                    assert_eq!(square, job * job);
                    seen[job] += 1;
                }
                ControlFlow::<()>::Continue(())
            },
        );
        assert_eq!(flow, Ok(ControlFlow::Continue(())));
        assert_eq!(seen, vec![1; 100]);
    }

    #[test]
    fn there_are_no_more_threads_than_help() {
        let mut threads = Vec::new();
        let work = |_| rayon::current_num_threads();
        let flow = in_parallel(3, NonZeroUsize::new(1_000_000), work, |event| {
            if let BatchEvent::Done(_, count) = event {
                threads.push(count);
            }
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(flow, Ok(ControlFlow::Continue(())));
        assert!(threads.iter().all(|count| (1..=3).contains(count)), "{threads:?}");
    }

    #[test]
    fn jobs_begin_in_their_order() {
        let mut order = Vec::new();
        let one = NonZeroUsize::new(1);
        let flow = in_parallel(
            50,
            one,
            |job| job,
            |event| {
                if let BatchEvent::Done(job, _) = event {
                    order.push(job);
                }
                ControlFlow::<()>::Continue(())
            },
        );
        assert!(flow.is_ok());
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn a_break_ends_the_batch_and_hands_its_value_on() {
        let begun = std::sync::atomic::AtomicUsize::new(0);
        let flow = in_parallel(
            10_000,
            NonZeroUsize::new(1),
            |_| begun.fetch_add(1, Ordering::Relaxed),
            |_| ControlFlow::Break("enough"),
        );
        assert_eq!(flow, Ok(ControlFlow::Break("enough")));
    }
}
