//! How far a run has come, for another thread that watches it and may stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ackclock_core::{Span, Time};

use crate::island::{Boxes, Executor};
use crate::probe::Probe;
use crate::traffic::Traffic;

/// How far a run has come.
#[derive(Debug, Default)]
pub struct Progress {
    flows: AtomicU64,
    built: AtomicU64,
    /// The part of the run that is simulated, of [`WHOLE`].
    share: AtomicU64,
    stopped: AtomicBool,
}

/// What a run is at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// So many of its flows are built; there are none where the scenario is still being read.
    Building {
        /// Flows that are built.
        built: u64,
        /// Flows of the run.
        flows: u64,
    },
    /// Time passes; this part of the run is done, from 0 to 1.
    Simulating(f64),
}

impl Progress {
    /// What the run is at now.
    pub fn stage(&self) -> Stage {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        match of(&self.share) {
            0 => Stage::Building { built: of(&self.built), flows: of(&self.flows) },
            share => Stage::Simulating(share as f64 / WHOLE as f64),
        }
    }

    /// Stops every run that reports here: it fails with [`crate::RunError::Stopped`] within a fraction of a second.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The run has so many flows.
    pub(crate) fn begin(&self, flows: usize) {
        self.flows.store(flows as u64, Ordering::Relaxed);
    }

    /// One more flow is built.
    pub(crate) fn build(&self) {
        self.built.fetch_add(1, Ordering::Relaxed);
    }

    /// Another part of the run is simulated.
    fn simulate(&self, part: u64) {
        self.share.fetch_add(part, Ordering::Relaxed);
    }
}

/// A run, in parts so small that those of each of many executors are whole numbers.
const WHOLE: u64 = 1 << 62;

/// A run says how far it is, and looks whether it was stopped, after at most this share of its time,
const STEPS: u64 = 100;
/// which is at most this long,
const LONGEST: Span = Span::from_secs(1);
/// and first this long.
const FIRST: Span = Span::from_millis(1);
/// Events of a step that is long enough: a tenth of a second of work.
const EVENTS: u64 = 100_000;

/// An executor that tells its progress while time passes.
pub(crate) struct Watched<'a, E> {
    executor: &'a mut E,
    progress: &'a Progress,
    /// Executors of the run.
    executors: usize,
    end: Time,
    now: Time,
    /// The part of the run that it has told.
    told: u64,
    /// Time from one report to the next, ns.
    step: u64,
}

impl<'a, E: Executor> Watched<'a, E> {
    /// `executor` is one of so many of a run, each of which runs until `end`.
    pub(crate) fn new(executor: &'a mut E, progress: &'a Progress, executors: usize, end: Time) -> Self {
        Self { executor, progress, executors, end, now: Time::ZERO, told: 0, step: FIRST.as_nanos() }
    }

    /// Makes the next step longer or shorter after one of so many events.
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
        self.progress.simulate(part - std::mem::replace(&mut self.told, part));
    }
}

impl<E: Executor> Executor for Watched<'_, E> {
    fn advance(&mut self, until: Time) {
        loop {
            let next = Time::from_nanos((self.now.as_nanos() / self.step + 1) * self.step);
            self.now = next.min(until);
            let before = self.executor.events();
            self.executor.advance(self.now);
            self.pace(self.executor.events() - before);
            self.note();
            if self.now == until || self.progress.is_stopped() {
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
