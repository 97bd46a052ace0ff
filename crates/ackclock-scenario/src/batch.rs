//! Many jobs on many cores: the runs of a batch, or the islands of a run.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Point, RunResult};

/// One run of one point.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Place of the point in the sweep.
    pub index: usize,
    /// The point.
    pub point: &'a Point,
    /// Number of the run, from 0.
    pub run: u32,
}

/// The runs of every point, point by point: the order of all results.
pub fn jobs(points: &[Point]) -> Vec<Job<'_>> {
    let runs = |point: &Point| 0..point.scenario.tables().runs;
    points
        .iter()
        .enumerate()
        .flat_map(|(index, point)| runs(point).map(move |run| Job { index, point, run }))
        .collect()
}

/// The JSON object of a run in one line; a run of a sweep says its `point` too.
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

/// What a batch tells its caller.
#[derive(Debug)]
pub enum BatchEvent<T> {
    /// Job number `.0` is done.
    Done(usize, T),
    /// Nothing was done for a moment; a chance to look at signals.
    Waiting,
}

/// How often a batch reports that it waits.
const PATIENCE: Duration = Duration::from_millis(50);

/// Does `work` for the jobs 0 to `jobs` - 1 on all cores, or on at most `threads` of them, and tells `on_event` on the thread
/// of the caller as they finish. Jobs begin in their order. After a break no further one begins; those begun are waited for.
///
/// # Errors
/// Where the operating system gives no threads.
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
                    // The caller has gone only after a break, and then nobody misses the result.
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

/// Threads that help with so many jobs, of at most `threads`: neither those without a core nor those without a job do.
pub(crate) fn helpful_threads(jobs: usize, threads: Option<NonZeroUsize>) -> NonZeroUsize {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = NonZeroUsize::new(jobs).unwrap_or(NonZeroUsize::MIN);
    cores.min(jobs).min(threads.unwrap_or(cores))
}

/// Threads that each of so many runs of a batch may have for its islands, where the batch has `threads`, or all cores: what the runs
/// leave idle.
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
