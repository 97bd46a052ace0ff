//! How far a run has come, for whoever watches it from another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_core::{Span, Time};
use ackclock_edge::Edge;

use crate::network::{Graph, Parts};

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

/// Parts of a run after each of which a graph says how far it is,
const STEPS: usize = 100;
/// if they are no longer than this.
const LONGEST: Span = Span::from_secs(1000);

/// A graph that tells its progress while time passes.
pub(crate) struct Watched<'a, G> {
    graph: &'a mut G,
    progress: &'a Progress,
    /// Graphs of the run, and those that were run before this one.
    graphs: (usize, usize),
    end: Time,
    now: Time,
}

impl<'a, G: Graph> Watched<'a, G> {
    /// `graph` is number `done` of `all` graphs that are run one after the other, each until `end`.
    pub(crate) fn new(
        graph: &'a mut G,
        progress: &'a Progress,
        (done, all): (usize, usize),
        end: Time,
    ) -> Self {
        Self { graph, progress, graphs: (done, all), end, now: Time::ZERO }
    }

    fn tell(&self) {
        let (done, all) = self.graphs;
        let part = self.now.as_nanos() as f64 / self.end.as_nanos() as f64;
        self.progress.simulate((done as f64 + part) / all as f64);
    }
}

impl<G: Graph> Graph for Watched<'_, G> {
    fn advance(&mut self, until: Time) {
        let steps = (STEPS / self.graphs.1).max(1) as u64;
        let step = self.end.as_nanos().div_ceil(steps).min(LONGEST.as_nanos());
        loop {
            let next = Time::from_nanos((self.now.as_nanos() / step + 1) * step);
            self.now = next.min(until);
            self.graph.advance(self.now);
            self.tell();
            if self.now == until {
                return;
            }
        }
    }

    fn parts(&mut self, island: usize) -> Parts<'_> {
        self.graph.parts(island)
    }

    fn edge(&mut self, island: usize) -> &mut Edge {
        self.graph.edge(island)
    }

    fn events(&self) -> u64 {
        self.graph.events()
    }

    fn close(&mut self) {
        self.graph.close();
    }
}
