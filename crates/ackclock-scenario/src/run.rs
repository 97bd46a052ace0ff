//! One run of a scenario: describe its islands, let time pass, read the counters.

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
use crate::island::{Builder, Executor, Island, Islands, Line, Places};
use crate::packet::{Interface, Source};
use crate::plan::{self, FlowPlan};
use crate::probe::Probe;
use crate::progress::Watched;
use crate::series::{Column, Recorder, Series};
use crate::tally::Tally;
use crate::{Inputs, Progress, RunError, Scenario};

/// What is kept of a run beside its result.
#[derive(Default)]
pub struct RunOptions {
    /// Time between two samples of the time series; none are kept without it.
    pub series_interval: Option<Span>,
    /// Where the packets are written, as a pcapng file.
    pub capture: Option<Box<dyn Write + Send>>,
    /// Where the run tells how far it has come.
    pub progress: Arc<Progress>,
    /// Most threads on which the islands of the run are simulated; as many as there are cores without it. The results are the same.
    pub threads: Option<NonZeroUsize>,
}

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its results.
    pub result: RunResult,
    /// Its time series, where they were asked for.
    pub series: Option<Series>,
}

/// Runs a scenario, as number `run` (from 0) of its runs. A `[sweep]` in it is not looked at.
///
/// # Errors
/// Where a file that the scenario names is wrong, the capture cannot be written, the operating system gives no threads, or
/// [`Progress::stop`] was called.
pub fn run(
    scenario: &Scenario,
    run: u32,
    files: &(dyn Files + Sync),
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let tables = scenario.tables();
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
        // Packets of all islands are written in their order in time, so the islands must run together.
        Some(writer) => read(&parts, course.captured(&parts, writer)?),
        None => course.apart(&parts, options.threads, |part, ended| read(&parts[part..=part], ended))?,
    }
    let mut result = tally.result(scenario, run);
    result.provenance.inputs = files.digests();
    Ok(Outcome { result, series: course.recorder.map(|recorder| recorder.series(columns)) })
}

/// What samples a run so often, where it is to be sampled.
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

/// A run under way.
struct Course<'a> {
    scenario: &'a Scenario,
    builder: &'a Builder<'a>,
    streams: Streams,
    recorder: Option<Recorder>,
}

/// Islands that have come to their end.
struct Ended {
    executor: Box<dyn Executor + Send>,
    columns: Vec<Column>,
}

impl Course<'_> {
    /// Runs the islands of `parts` in one engine and writes what crosses their wires.
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

    /// Runs the islands of `parts` on at most so many threads, and hands them to `read` in their order.
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
        // What ended before one that began earlier waits for it.
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

    /// Runs the island of `flows`, one of so many, by itself, by the executor that is fastest for its shape.
    fn alone(&self, flows: &[FlowPlan], islands: usize) -> Result<Ended, RunError> {
        let island = self.island(flows)?;
        if let Some(probe) = self.probe() {
            // Only an engine has wires to listen at.
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

    /// What measures at the wires what the scenario asks for.
    fn probe(&self) -> Option<Probe> {
        let measures = &self.builder.tables.measure;
        measures.iter().any(|measure| measure.is_at_wires()).then(|| Probe::new(measures))
    }

    fn island(&self, flows: &[FlowPlan]) -> Result<Island, RunError> {
        let island = self.builder.island(flows, &self.streams_of(flows));
        island.map_err(|error| self.scenario.error(&error).into())
    }

    /// Lets `executor`, one of so many, run to the end: the columns of its islands, where they are asked for.
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

    /// A channel of one flow has chance of its own, whatever other flows there are, and so has each cell.
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

/// Where a capture listens: at the servers' and at the clients' interfaces.
fn taps(places: Places, numbers: Numbers) -> [Tap; 4] {
    let tap = |node, port, interface, source| Tap { node, port, interface, source, numbers };
    [
        tap(places.path, path::SERVER, Interface::Server, Source::Server),
        tap(places.servers, host::WIRE, Interface::Server, Source::Client),
        tap(places.clients, host::WIRE, Interface::Client, Source::Server),
        tap(places.outer_edges()[1], ackclock_edge::RADIO, Interface::Client, Source::Client),
    ]
}

/// What a capture calls the flows of an island of several.
fn numbers_of(flows: &[FlowPlan], parts: &[&[FlowPlan]]) -> Numbers {
    let all = parts.iter().map(|flows| flows.len()).sum::<usize>() as u32;
    Numbers { first: flows[0].id, planned: flows.len() as u32, all, islands: parts.len() as u32 }
}
