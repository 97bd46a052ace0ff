//! One run of a scenario: builds the islands, simulates them and reads their counters.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use ackclock_core::results::RunResult;
use ackclock_core::{ConfigError, Span, Streams, Time};
use ackclock_edge::ChannelSharing;
use ackclock_link::{Files, path};
use ackclock_tcp::host;

use crate::batch::{self, BatchEvent, in_parallel};
use crate::capture::{Capture, Numbers, Tap};
use crate::island::boxes::Places;
use crate::island::{Builder, Executor, Island, Islands, Line};
use crate::packet::{Interface, Source};
use crate::plan::{self, FlowPlan};
use crate::probe::Probe;
use crate::progress::Watched;
use crate::recordings::certainties;
use crate::series::{Column, Recorder, Series};
use crate::tally::Tally;
use crate::{Inputs, Progress, RunError, Scenario, ScenarioError};

/// Options of a run: additional outputs, progress and threads.
#[derive(Default)]
pub struct RunOptions {
    /// Sampling interval of the time series; `None` records no series.
    pub series_interval: Option<Span>,
    /// Writer for a packet capture in pcapng format; `None` captures no packets.
    pub capture: Option<Box<dyn Write + Send>>,
    /// Receives the progress of the run.
    pub progress: Arc<Progress>,
    /// Maximum number of threads; by default the number of cores. The number of threads does not change the results.
    pub threads: Option<NonZeroUsize>,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Result object of the run.
    pub result: RunResult,
    /// Time series of the run, if requested.
    pub series: Option<Series>,
}

/// Executes run number `run` (from 0) of a scenario, ignoring the scenario's `[sweep]`.
///
/// # Errors
/// Returns an error if an input file is invalid, the capture cannot be written, no thread can be created, or
/// [`Progress::stop`] was called.
pub fn run(
    scenario: &Scenario,
    run: u32,
    files: &(dyn Files + Sync),
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let tables = scenario.tables();
    scenario.check_simulated()?;
    let streams = Streams::new(tables.seed, run.into());
    let files = &Inputs::of(files);
    let builder =
        Builder::new(tables, files, &streams, &options.progress).map_err(|error| scenario.error(&error))?;
    let flows = plan::flows(tables, &streams).map_err(|error| scenario.error(&error))?;
    options.progress.begin(flows.len());
    let parts: Vec<&[FlowPlan]> = match tables.edge.channel {
        ChannelSharing::Shared => flows.chunk_by(|one, next| one.cell == next.cell).collect(),
        ChannelSharing::Dedicated => flows.chunks(1).collect(),
    };
    let recorder =
        recorder(&builder, options.series_interval, &flows).map_err(|error| scenario.error(&error))?;
    let course = Course { scenario, streams, recorder, builder: &builder };
    let (mut tally, mut columns) = (Tally::new(&builder, flows.len()), Vec::new());
    let mut read = |islands: &[&[FlowPlan]], mut ended: Ended| {
        tally.read(&mut *ended.executor, islands, &builder.groups);
        columns.append(&mut ended.columns);
    };
    match options.capture {
        // The capture lists the packets of all islands in time order, so the islands must run together.
        Some(writer) => read(&parts, course.captured(&parts, writer)?),
        None => course.apart(&parts, options.threads, |part, ended| read(&parts[part..=part], ended))?,
    }
    let mut result = tally.result(scenario, run);
    result.provenance.inputs = files.digests();
    result.provenance.recordings = certainties(tables, files);
    Ok(Outcome { result, series: course.recorder.map(|recorder| recorder.series(columns)) })
}

impl Scenario {
    /// Refuses keys without effect on simulated packets.
    ///
    /// # Errors
    /// Fails with the first such key.
    pub fn check_simulated(&self) -> Result<(), ScenarioError> {
        self.refuse(&self.tables().unused_in_simulation())
    }
}

/// Recorder of the time series; `None` if no sampling interval is set.
fn recorder(
    builder: &Builder<'_>,
    interval: Option<Span>,
    flows: &[FlowPlan],
) -> Result<Option<Recorder>, ConfigError> {
    let Some(interval) = interval else { return Ok(None) };
    let lasting = flows.iter().filter(|flow| builder.groups[flow.group].lasts).count();
    let edges = match builder.tables.edge.channel {
        ChannelSharing::Shared => builder.tables.edge.radio().cells as usize,
        ChannelSharing::Dedicated => flows.len(),
    };
    Recorder::new(interval, builder.tables, lasting, edges).map(Some)
}

/// Shared state of a run in progress.
struct Course<'a> {
    scenario: &'a Scenario,
    builder: &'a Builder<'a>,
    streams: Streams,
    recorder: Option<Recorder>,
}

/// Islands that have finished their simulation.
struct Ended {
    executor: Box<dyn Executor + Send>,
    columns: Vec<Column>,
}

impl Course<'_> {
    /// Runs all islands of `parts` in one engine and captures their packets.
    fn captured(&self, parts: &[&[FlowPlan]], writer: Box<dyn Write + Send>) -> Result<Ended, RunError> {
        let mut islands = Islands::new(Some(Capture::new(writer)), self.probe());
        for flows in parts {
            let places = islands.add(self.island(flows)?);
            if let Some(capture) = islands.capture_mut() {
                taps(places, numbers_of(flows, parts)).into_iter().for_each(|tap| capture.listen(tap));
            }
        }
        let columns = self.end(&mut islands, parts, 1)?;
        islands.capture_mut().map_or(Ok(()), Capture::finish)?;
        Ok(Ended { executor: Box::new(islands), columns })
    }

    /// Runs the islands of `parts` on at most `threads` threads and passes each finished island to `read` in order.
    fn apart(
        &self,
        parts: &[&[FlowPlan]],
        threads: Option<NonZeroUsize>,
        mut read: impl FnMut(usize, Ended),
    ) -> Result<(), RunError> {
        let work = |part: usize| self.alone(parts[part], parts.len());
        let threads = batch::helpful_threads(parts.len(), threads);
        if threads.get() == 1 {
            return (0..parts.len()).try_for_each(|part| work(part).map(|ended| read(part, ended)));
        }
        // Islands that finish early are kept until all islands before them have been read.
        let (mut next, mut early) = (0, BTreeMap::new());
        let flow = in_parallel(parts.len(), Some(threads), work, |event| {
            if let BatchEvent::Done(part, ended) = event {
                early.insert(part, ended);
            }
            while let Some(ended) = early.remove(&next) {
                match ended {
                    Ok(ended) => read(next, ended),
                    Err(error) => return ControlFlow::Break(error),
                }
                next += 1;
            }
            ControlFlow::Continue(())
        });
        match flow.map_err(RunError::Threads)? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Runs the island that consists of `flows`, one of `islands` islands, with the fastest executor for the island's
    /// shape.
    fn alone(&self, flows: &[FlowPlan], islands: usize) -> Result<Ended, RunError> {
        let island = self.island(flows)?;
        if let Some(probe) = self.probe() {
            // Only the engine can trace packets, so islands with a probe run in the engine.
            return self.in_engine(Some(probe), island, flows, islands);
        }
        match Line::try_from(island) {
            Ok(line) => self.ended(line, flows, islands),
            Err(island) => self.in_engine(None, *island, flows, islands),
        }
    }

    #[cold]
    fn in_engine(
        &self,
        probe: Option<Probe>,
        island: Island,
        flows: &[FlowPlan],
        islands: usize,
    ) -> Result<Ended, RunError> {
        let mut engine = Islands::new(None, probe);
        engine.add(island);
        self.ended(engine, flows, islands)
    }

    fn ended(
        &self,
        executor: impl Executor + Send + 'static,
        flows: &[FlowPlan],
        islands: usize,
    ) -> Result<Ended, RunError> {
        let mut executor = Box::new(executor);
        let columns = self.end(&mut *executor, &[flows], islands)?;
        Ok(Ended { executor, columns })
    }

    /// Probe for the scenario's packet measurements; `None` if the scenario has no packet measurement.
    fn probe(&self) -> Option<Probe> {
        let measures = &self.builder.tables.measure;
        measures.iter().any(|measure| measure.is_at_wires()).then(|| Probe::new(measures))
    }

    fn island(&self, flows: &[FlowPlan]) -> Result<Island, RunError> {
        let island = self.builder.island(flows, &self.streams_of(flows));
        island.map_err(|error| self.scenario.error(&error).into())
    }

    /// Runs `executor`, one of the run's `executors` executors, to the end. Returns the time-series columns of the
    /// executor's islands, if requested.
    fn end(
        &self,
        executor: &mut impl Executor,
        islands: &[&[FlowPlan]],
        executors: usize,
    ) -> Result<Vec<Column>, RunError> {
        let end = Time::ZERO + self.scenario.tables().duration;
        let executor = &mut Watched::new(executor, self.builder.progress, executors, end);
        let columns = match &self.recorder {
            Some(recorder) => recorder.record(executor, islands, end),
            None => {
                executor.advance(end);
                Vec::new()
            }
        };
        if self.builder.progress.is_stopped() {
            return Err(RunError::Stopped);
        }
        executor.close();
        Ok(columns)
    }

    /// Random streams of an island. A dedicated channel or a cell has separate streams, independent of other flows.
    fn streams_of(&self, flows: &[FlowPlan]) -> Streams {
        match self.scenario.tables().edge.channel {
            ChannelSharing::Shared => match flows[0].cell {
                0 => self.streams.clone(),
                cell => self.streams.within(&format!("cell {cell}")),
            },
            ChannelSharing::Dedicated => self.streams.within(&format!("flow {}", flows[0].id)),
        }
    }
}

/// Capture points of an island: the interfaces of the servers and of the clients.
fn taps(places: Places, numbers: Numbers) -> [Tap; 4] {
    let tap = |node, port, interface, source| Tap { node, port, interface, source, numbers };
    [
        tap(places.path, path::SERVER, Interface::Server, Source::Server),
        tap(places.servers, host::WIRE, Interface::Server, Source::Client),
        tap(places.clients, host::WIRE, Interface::Client, Source::Server),
        tap(places.outer_edges()[1], ackclock_edge::RADIO, Interface::Client, Source::Client),
    ]
}

/// Flow numbers of one island in a capture of several islands.
fn numbers_of(flows: &[FlowPlan], parts: &[&[FlowPlan]]) -> Numbers {
    let all = parts.iter().map(|flows| flows.len()).sum::<usize>() as u32;
    Numbers { first: flows[0].id, planned: flows.len() as u32, all, islands: parts.len() as u32 }
}
