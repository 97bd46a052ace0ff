//! How far a run has come, for whoever watches it from another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_core::{Span, Time};

use crate::island::{Boxes, Executor};
use crate::probe::Probe;
use crate::traffic::Traffic;

/// How far a run has come.
#[derive(Debug, Default)]
pub struct Progress {
    flows: AtomicU64,
    built: AtomicU64,
    /// The part of the run that is simulated, as the bits of a float.
    share: AtomicU64,
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
        match f64::from_bits(of(&self.share)) {
            0.0 => Stage::Building { built: of(&self.built), flows: of(&self.flows) },
            share => Stage::Simulating(share),
        }
    }

    /// The run has so many flows.
    pub(crate) fn begin(&self, flows: usize) {
        self.flows.store(flows as u64, Ordering::Relaxed);
    }

    /// One more flow is built.
    pub(crate) fn build(&self) {
        self.built.fetch_add(1, Ordering::Relaxed);
    }

    fn simulate(&self, share: f64) {
        self.share.store(share.to_bits(), Ordering::Relaxed);
    }
}

/// Parts of a run after each of which an executor says how far it is,
const STEPS: usize = 100;
/// if they are no longer than this.
const LONGEST: Span = Span::from_secs(1000);

/// An executor that tells its progress while time passes.
pub(crate) struct Watched<'a, E> {
    executor: &'a mut E,
    progress: &'a Progress,
    /// Executors of the run, and those that ran before this one.
    executors: (usize, usize),
    end: Time,
    now: Time,
}

impl<'a, E: Executor> Watched<'a, E> {
    /// `executor` is number `done` of `all` that run one after the other, each until `end`.
    pub(crate) fn new(
        executor: &'a mut E,
        progress: &'a Progress,
        (done, all): (usize, usize),
        end: Time,
    ) -> Self {
        Self { executor, progress, executors: (done, all), end, now: Time::ZERO }
    }

    fn note(&self) {
        let (done, all) = self.executors;
        let part = self.now.as_nanos() as f64 / self.end.as_nanos() as f64;
        self.progress.simulate((done as f64 + part) / all as f64);
    }
}

impl<E: Executor> Executor for Watched<'_, E> {
    fn advance(&mut self, until: Time) {
        let steps = (STEPS / self.executors.1).max(1) as u64;
        let step = self.end.as_nanos().div_ceil(steps).min(LONGEST.as_nanos());
        loop {
            let next = Time::from_nanos((self.now.as_nanos() / step + 1) * step);
            self.now = next.min(until);
            self.executor.advance(self.now);
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
