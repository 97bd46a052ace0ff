//! One run of a scenario: describe its islands, let time pass, read the counters.

use std::io::Write;
use std::sync::Arc;

use ackclock_core::results::RunResult;
use ackclock_core::{ConfigError, Span, Streams, Time};
use ackclock_edge::ChannelSharing;
use ackclock_link::{Files, path};
use ackclock_tcp::host;

use crate::capture::{Capture, Numbers, Tap};
use crate::island::{Builder, Executor, Island, Islands, Line, Places};
use crate::packet::{Interface, Source};
use crate::plan::{self, FlowPlan};
use crate::probe::Probe;
use crate::progress::Watched;
use crate::series::{Recorder, Series};
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
/// Where a file that the scenario names is wrong, the capture cannot be written, or [`Progress::stop`] was called.
pub fn run(
    scenario: &Scenario,
    run: u32,
    files: &dyn Files,
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
    let mut course = Course {
        scenario,
        streams,
        tally: Tally::new(&builder, flows.len()),
        recorder: recorder(&builder, options.series_interval, &flows)
            .map_err(|error| scenario.error(&error))?,
        builder: &builder,
    };
    match options.capture {
        // Packets of all islands are written in their order in time, so the islands must run together.
        Some(writer) => course.captured(&parts, writer)?,
        None => {
            for (number, flows) in parts.iter().enumerate() {
                course.alone(flows, (number, parts.len()))?;
            }
        }
    }
    let mut result = course.tally.result(scenario, run);
    result.provenance.inputs = files.digests();
    Ok(Outcome { result, series: course.recorder.map(Recorder::series) })
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
    tally: Tally,
    recorder: Option<Recorder>,
}

impl Course<'_> {
    /// Runs the islands of `parts` in one engine and writes what crosses their wires.
    fn captured(&mut self, parts: &[&[FlowPlan]], writer: Box<dyn Write + Send>) -> Result<(), RunError> {
        let mut islands = Islands::new(Some(Capture::new(writer)), self.probe());
        for flows in parts {
            let places = islands.add(self.island(flows)?);
            if let Some(capture) = islands.capture_mut() {
                taps(places, numbers_of(flows, parts)).into_iter().for_each(|tap| capture.listen(tap));
            }
        }
        self.take(&mut islands, parts, (0, 1))?;
        islands.capture_mut().map_or(Ok(()), Capture::finish)
    }

    /// Runs the island of `flows` by itself, by the executor that is fastest for its shape.
    fn alone(&mut self, flows: &[FlowPlan], place: (usize, usize)) -> Result<(), RunError> {
        let island = self.island(flows)?;
        if let Some(probe) = self.probe() {
            // Only an engine has wires to listen at.
            return self.in_engine(Some(probe), island, flows, place);
        }
        match Line::try_from(island) {
            Ok(mut line) => self.take(&mut line, &[flows], place),
            Err(island) => self.in_engine(None, *island, flows, place),
        }
    }

    #[cold]
    fn in_engine(
        &mut self,
        probe: Option<Probe>,
        island: Island,
        flows: &[FlowPlan],
        place: (usize, usize),
    ) -> Result<(), RunError> {
        let mut islands = Islands::new(None, probe);
        islands.add(island);
        self.take(&mut islands, &[flows], place)
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

    /// Lets `executor`, of whose place among all that is told, run to the end and reads the counters of its islands.
    fn take(
        &mut self,
        executor: &mut impl Executor,
        islands: &[&[FlowPlan]],
        place: (usize, usize),
    ) -> Result<(), RunError> {
        let end = Time::ZERO + self.scenario.tables().duration;
        let executor = &mut Watched::new(executor, self.builder.progress, place, end);
        match &mut self.recorder {
            Some(recorder) => recorder.record(executor, islands, end),
            None => executor.advance(end),
        }
        if self.builder.progress.is_stopped() {
            return Err(RunError::Stopped);
        }
        executor.close();
        self.tally.read(executor, islands, &self.builder.groups);
        Ok(())
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
