//! Progress of a run, for another thread that observes or stops the run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ackclock_core::{Span, Time};

use crate::island::Executor;
use crate::island::boxes::Boxes;
use crate::probe::Probe;
use crate::traffic::Traffic;

/// Progress of one or more runs. Any thread may read the progress or stop the runs.
#[derive(Debug, Default)]
pub struct Progress {
    flows: AtomicU64,
    built: AtomicU64,
    /// Simulated part of the run, as a share of [`WHOLE`].
    share: AtomicU64,
    stopped: AtomicBool,
}

/// Stage of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// The flows are being built; both counts are 0 while the scenario is still being read.
    Building {
        /// Number of flows built so far.
        built: u64,
        /// Total number of flows of the run.
        flows: u64,
    },
    /// The simulation is running; the value is the finished fraction, from 0 to 1.
    Simulating(f64),
}

impl Progress {
    /// Current stage of the run.
    pub fn stage(&self) -> Stage {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        match of(&self.share) {
            0 => Stage::Building { built: of(&self.built), flows: of(&self.flows) },
            share => Stage::Simulating(share as f64 / WHOLE as f64),
        }
    }

    /// Stops every run that reports to this progress. The run fails with [`crate::RunError::Stopped`] within a fraction
    /// of a second.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Sets the number of flows of the run.
    pub(crate) fn begin(&self, flows: usize) {
        self.flows.store(flows as u64, Ordering::Relaxed);
    }

    /// Counts one more flow as built.
    pub(crate) fn build(&self) {
        self.built.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a simulated part of the run to the progress.
    fn simulate(&self, part: u64) {
        self.share.fetch_add(part, Ordering::Relaxed);
    }
}

/// Progress value of a complete run. The progress value of a complete run is large, so that the shares of many
/// executors are whole numbers.
const WHOLE: u64 = 1 << 62;

/// Minimum number of progress reports in a run. Each progress report also checks whether the run was stopped.
const STEPS: u64 = 100;
/// Longest simulated time between two progress reports.
const LONGEST: Span = Span::from_secs(1);
/// Simulated time until the first progress report.
const FIRST: Span = Span::from_millis(1);
/// Target number of events between two progress reports: a tenth of a second of CPU time.
const EVENTS: u64 = 100_000;

/// Wrapper for an executor that reports the progress.
pub(crate) struct Watched<'a, E> {
    executor: &'a mut E,
    progress: &'a Progress,
    /// Number of executors that share the run.
    executors: usize,
    end: Time,
    now: Time,
    /// Part of the run that the executor has reported so far.
    reported: u64,
    /// Simulated time between two progress reports, ns.
    step: u64,
}

impl<'a, E: Executor> Watched<'a, E> {
    /// Wraps `executor`, and reports its progress to `progress`. The run has `executors` executors, and each executor
    /// runs until `end`.
    pub(crate) fn new(executor: &'a mut E, progress: &'a Progress, executors: usize, end: Time) -> Self {
        Self { executor, progress, executors, end, now: Time::ZERO, reported: 0, step: FIRST.as_nanos() }
    }

    /// Whether the run was stopped, so that nothing advances any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.progress.is_stopped()
    }

    /// Adapts the length of the next step to the number of events in the last step.
    fn pace(&mut self, events: u64) {
        let steps = (STEPS / self.executors as u64).max(1);
        let longest = self.end.as_nanos().div_ceil(steps).min(LONGEST.as_nanos());
        self.step = match events {
            EVENTS.. => (self.step / 2).max(1),
            n if n < EVENTS / 4 => (self.step * 2).min(longest),
            _ => self.step,
        };
    }

    fn note(&mut self) {
        let share = self.now.as_nanos() as f64 / self.end.as_nanos() as f64;
        let part = (share * (WHOLE / self.executors as u64) as f64) as u64;
        self.progress.simulate(part - std::mem::replace(&mut self.reported, part));
    }
}

impl<E: Executor> Executor for Watched<'_, E> {
    fn advance(&mut self, until: Time) {
        while !self.is_stopped() {
            let next = Time::from_nanos((self.now.as_nanos() / self.step + 1) * self.step);
            self.now = next.min(until);
            let before = self.executor.events();
            self.executor.advance(self.now);
            self.pace(self.executor.events() - before);
            self.note();
            if self.now == until {
                return;
            }
        }
    }

    fn island(&mut self, number: usize) -> (Boxes<'_>, &Traffic) {
        self.executor.island(number)
    }

    fn probe(&self) -> Option<&Probe> {
        self.executor.probe()
    }

    fn events(&self) -> u64 {
        self.executor.events()
    }

    fn close(&mut self) {
        self.executor.close();
    }
}
