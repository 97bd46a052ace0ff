//! Time series of a run. Sampling does not change the simulation.

use std::io::{self, Write};

use ackclock_core::{ConfigError, FlowId, Histogram, Span, Time};
use ackclock_edge::{ChannelSharing, EdgeConfig};
use ackclock_link::Direction;
use ackclock_tcp::Sender;

use crate::island::Executor;
use crate::island::boxes::{Boxes, RelayBoxes};
use crate::plan::FlowPlan;
use crate::progress::Watched;
use crate::{Tables, memory};

/// Columns of numbers with one row per sample. A value that does not exist at a sampling time is NaN.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Series {
    /// Column names and values. The first column is `t_s`, the time in seconds.
    ///
    /// Each long-lived flow has `flow<id>.cwnd_bytes`, `.ssthresh_bytes`, `.advertised_bytes` (send window: advertised
    /// bytes past the last acknowledged one), `.srtt_ms`, `.rto_ms`, `.rtt_ms` (mean of the samples since the last
    /// row), `.delivered_bytes` (in-order payload) and `.mss_bytes` (payload of a full packet). With a relay each flow
    /// also has `.relay_cwnd_bytes` (congestion window of the relay) and `.relay_buffered_bytes`. Short connections
    /// have no columns.
    ///
    /// The edge has `edge.queue_packets` and `.queue_bytes` (all downlink queues, without the packet in transmission),
    /// `.rate_bps` (current link rate; in a cell, the rate of the first flow's user), `.held_acks`, and `.drops`
    /// (downlink packets lost in queues and on the radio since the last row), and `.queue_ms` (mean queueing delay of
    /// the packets since the last row). The uplink has `.up.queue_packets`, `.up.queue_bytes`, `.up.drops` and
    /// `.up.queue_ms`. A queue with an age limit has `.aged` or `.up.aged` (packets among `drops` that were discarded at
    /// the limit since the last row). With dedicated channels each flow has a separate edge:
    /// `edge<id>.queue_packets` and so on.
    ///
    /// A bearer with its own link layer adds columns like `edge.down.outstanding_pdus`, listed in the bearer's
    /// documentation.
    pub columns: Vec<(String, Vec<f64>)>,
}

/// Name and values of one column.
pub(crate) type Column = (String, Vec<f64>);

impl Series {
    /// Writes the series as CSV with a header row. A value of NaN becomes an empty field.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        let names: Vec<_> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        writeln!(out, "{}", names.join(","))?;
        let rows = self.columns.first().map_or(0, |(_, values)| values.len());
        for row in 0..rows {
            for (index, (_, values)) in self.columns.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                match values[row] {
                    value if value.is_nan() => write!(out, "{comma}")?,
                    value => write!(out, "{comma}{value}")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// The values of the column `name`; `None` if there is no column of that name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, values)| values.as_slice())
    }
}

/// Samples the islands of a run, one island after another.
pub(crate) struct Recorder {
    interval: Span,
    samples: u64,
    channel: ChannelSharing,
    /// Names of the columns of queues with an age limit.
    aged: Vec<&'static str>,
    /// Names of the state values of the link layers, in each direction.
    gauges: Vec<String>,
    /// Names of the relay columns for each flow; empty without a relay.
    relayed: &'static [&'static str],
}

const FLOW: [&str; 8] = [
    "cwnd_bytes",
    "ssthresh_bytes",
    "advertised_bytes",
    "srtt_ms",
    "rto_ms",
    "rtt_ms",
    "delivered_bytes",
    "mss_bytes",
];
/// Names of the relay columns for each flow.
const RELAY: [&str; 2] = ["relay_cwnd_bytes", "relay_buffered_bytes"];
const EDGE: [&str; 10] = [
    "queue_packets",
    "queue_bytes",
    "rate_bps",
    "held_acks",
    "drops",
    "up.queue_packets",
    "up.queue_bytes",
    "up.drops",
    "queue_ms",
    "up.queue_ms",
];

/// Columns of queues with an age limit, by [`Direction`].
const AGED: [&str; 2] = ["aged", "up.aged"];

impl Recorder {
    /// Creates a recorder that samples `flows` long-lived flows and `edges` edges, at time zero and after each
    /// `interval`.
    ///
    /// # Errors
    /// Returns an error if the samples would not fit into memory.
    pub(crate) fn new(
        interval: Span,
        tables: &Tables,
        flows: usize,
        edges: usize,
    ) -> Result<Self, ConfigError> {
        let steps = tables.duration.as_nanos().checked_div(interval.as_nanos()).unwrap_or(u64::MAX);
        let samples = steps.saturating_add(1);
        let gauges = gauges(&tables.edge).map_err(|error| error.under("edge"))?;
        let limits = tables.edge.behind.as_deref().unwrap_or(&tables.edge).age_limits();
        let aged: Vec<_> = AGED.iter().zip(limits).filter_map(|(name, limit)| limit.map(|_| *name)).collect();
        let of_edge = EDGE.len() + aged.len() + gauges.len();
        let relayed = tables.relay.as_ref().map_or(&[][..], |_| &RELAY);
        let columns = (1 + flows * (FLOW.len() + relayed.len()) + edges * of_edge) as u64;
        let what = format!("a series of {samples} rows and {columns} columns, a row each {interval},");
        memory::check("duration", &what, samples.saturating_mul(columns * size_of::<f64>() as u64))?;
        Ok(Self { interval, samples, channel: tables.edge.channel, aged, gauges, relayed })
    }

    /// Runs `executor` until `end` and samples all its islands. Returns the time-series columns of the executor's
    /// islands.
    pub(crate) fn record(
        &self,
        executor: &mut Watched<'_, impl Executor>,
        islands: &[&[FlowPlan]],
        end: Time,
    ) -> Vec<Column> {
        // Clients with short connections have no columns in the series.
        let lasting = |executor: &mut _, island, flows: &[FlowPlan]| -> Vec<FlowId> {
            let (boxes, _) = Executor::island(executor, island);
            (0..flows.len() as u32).map(FlowId).filter(|&flow| boxes.delivered(flow).is_some()).collect()
        };
        let lasting: Vec<_> =
            islands.iter().enumerate().map(|(island, flows)| lasting(executor, island, flows)).collect();
        let names = islands.iter().zip(&lasting).flat_map(|(flows, lasting)| self.names(flows, lasting));
        let (names, room) = (names.collect::<Vec<_>>(), self.samples as usize);
        let mut series: Vec<Column> =
            names.into_iter().map(|name| (name, Vec::with_capacity(room))).collect();
        let mut rtts: Vec<_> = lasting.iter().map(|flows| vec![Times::default(); flows.len()]).collect();
        let mut edges = vec![EdgeCounts::default(); islands.len()];
        for now in (0..self.samples).map(|sample| Time::ZERO + self.interval * sample) {
            executor.advance(now);
            if executor.is_stopped() {
                break;
            }
            let mut columns = series.iter_mut();
            let mut push = |value| {
                if let Some((_, values)) = columns.next() {
                    values.push(value);
                }
            };
            let before = rtts.iter_mut().zip(&mut edges);
            for (island, (flows, (rtts, counts))) in lasting.iter().zip(before).enumerate() {
                let (mut boxes, _) = executor.island(island);
                sample_flows(&boxes, flows, rtts, &mut push);
                sample_edge(&mut boxes, now, counts, &mut push);
            }
        }
        executor.advance(end);
        series
    }

    /// Builds the series of the run from the columns of all islands, in island order.
    pub(crate) fn series(&self, columns: Vec<Column>) -> Series {
        let times = (0..self.samples).map(|sample| (self.interval * sample).as_secs_f64()).collect();
        Series { columns: [("t_s".to_owned(), times)].into_iter().chain(columns).collect() }
    }

    /// Column names of one island, in the order of sampling.
    fn names(&self, flows: &[FlowPlan], lasting: &[FlowId]) -> Vec<String> {
        let of_flow = |flow: &FlowId| {
            let id = flows[flow.index()].id;
            FLOW.iter().chain(self.relayed).map(move |name| format!("flow{id}.{name}"))
        };
        let mut names: Vec<_> = lasting.iter().flat_map(of_flow).collect();
        let edge = match self.channel {
            ChannelSharing::Shared if flows[0].cell == 0 => "edge".to_owned(),
            ChannelSharing::Shared => format!("edge{}", flows[0].cell),
            ChannelSharing::Dedicated => format!("edge{}", flows[0].id),
        };
        names.extend(EDGE.map(|name| format!("{edge}.{name}")));
        names.extend(self.aged.iter().map(|name| format!("{edge}.{name}")));
        names.extend(self.gauges.iter().map(|name| format!("{edge}.{name}")));
        names
    }
}

/// Count and sum of the times before the last row.
#[derive(Clone, Copy, Default)]
struct Times {
    count: u64,
    sum: u128,
}

/// Counts of an edge before the last row, by direction.
#[derive(Clone, Copy, Default)]
struct EdgeCounts {
    drops: [u64; 2],
    aged: [u64; 2],
    waits: [Times; 2],
}

impl Times {
    /// Mean of the times since the last call, ms; NaN without new times.
    fn mean_since(&mut self, times: &Histogram) -> f64 {
        let before = std::mem::replace(self, Self { count: times.count(), sum: times.sum() });
        // Without new times the mean is 0 / 0, which is NaN.
        (self.sum - before.sum) as f64 / (self.count - before.count) as f64 / 1e6
    }
}

fn sample_flows(boxes: &Boxes<'_>, flows: &[FlowId], rtts: &mut [Times], push: &mut impl FnMut(f64)) {
    for (&flow, rtts) in flows.iter().zip(rtts) {
        let sender = boxes.sender(flow);
        let ms = |span: Option<Span>| span.map_or(f64::NAN, Span::as_millis_f64);
        push(sender.map_or(f64::NAN, |sender| sender.cwnd().into()));
        push(sender.and_then(Sender::ssthresh).map_or(f64::NAN, f64::from));
        push(sender.map_or(f64::NAN, |sender| sender.info().tcpi_snd_wnd as f64));
        push(ms(sender.and_then(Sender::srtt)));
        push(ms(sender.map(Sender::rto)));
        push(sender.map_or(f64::NAN, |sender| rtts.mean_since(&sender.stats().rtt)));
        push(boxes.delivered(flow).map_or(f64::NAN, |payload| payload.bytes as f64));
        push(sender.map_or(f64::NAN, |sender| sender.mss().into()));
        if let Some(RelayBoxes { relay, .. }) = &boxes.relay {
            push(relay.sender(flow).map_or(f64::NAN, |sender| sender.cwnd().into()));
            push(relay.buffered_bytes(flow) as f64);
        }
    }
}

/// Samples the state of one edge: queues, rate, drops and queueing delays. `counts` holds the counts of the last row.
fn sample_edge(boxes: &mut Boxes<'_>, now: Time, counts: &mut EdgeCounts, push: &mut impl FnMut(f64)) {
    let flows = boxes.servers.flows();
    let held = (0..flows).map(|flow| boxes.edge.held(FlowId(flow as u32))).sum::<usize>() as f64;
    let queue = boxes.queue();
    let [down, up] = Direction::BOTH.map(|direction| queue.waiting(now, direction));
    let statistics = queue.statistics();
    let all = [statistics.dropped, statistics.dropped_up];
    let [lost_down, lost_up] =
        Direction::BOTH.map(|of| (all[of as usize] - counts.drops[of as usize]) as f64);
    counts.drops = all;
    let aged = statistics.aged;
    let aged_since = aged.iter().zip(&mut counts.aged).filter_map(|(aged, before)| {
        let all = (*aged)?;
        Some((all - std::mem::replace(before, all)) as f64)
    });
    let aged_since: Vec<_> = aged_since.collect();
    let waits = Direction::BOTH.map(|of| counts.waits[of as usize].mean_since(&queue.waits(of)));
    push(down.packets.into());
    push(down.bytes as f64);
    // The rate of flow 0 stands for all flows. In a cell the rates of several users do not add up, so only flow 0's
    // user is sampled.
    push(queue.view(now, FlowId(0)).rate.as_bps() as f64);
    let counted = [held, lost_down, up.packets.into(), up.bytes as f64, lost_up].into_iter();
    counted.chain(waits).chain(aged_since).for_each(&mut *push);
    for edge in boxes.edges() {
        Direction::BOTH.into_iter().flat_map(|direction| edge.gauges(direction)).for_each(&mut *push);
    }
}

/// Names of the link-layer state values of the edge. If the edge observes a separate radio, the names of that radio's
/// values follow.
fn gauges(edge: &EdgeConfig) -> Result<Vec<String>, ConfigError> {
    let mut gauges = Vec::new();
    for (place, table) in [("", Some(edge)), ("behind.", edge.behind.as_deref())] {
        let names = table.map_or(Ok(Vec::new()), EdgeConfig::gauges)?;
        for direction in ["down", "up"] {
            gauges.extend(names.iter().map(|name| format!("{place}{direction}.{name}")));
        }
    }
    Ok(gauges)
}
