//! Time series, sampled from outside: looking at a graph changes nothing in it.

use std::io::{self, Write};

use ackclock_core::{ConfigError, FlowId, Histogram, Span, Time};
use ackclock_edge::{ChannelSharing, EdgeConfig};
use ackclock_link::Direction;
use ackclock_tcp::Sender;

use crate::island::{Boxes, Executor, RelayBoxes};
use crate::plan::FlowPlan;
use crate::{Tables, memory};

/// Columns of numbers with one row a sample. What does not exist at an instant is NaN.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Series {
    /// Names and values; the first column is `t_s`, the time in seconds.
    ///
    /// Each flow has `flow<id>.cwnd_bytes`, `.ssthresh_bytes`, `.srtt_ms`, `.rto_ms`, `.rtt_ms` (mean of the samples
    /// since the row before), `.delivered_bytes` (payload in order), `.mss_bytes` (payload of a full packet, for windows in
    /// packets), and over a relay `.relay_cwnd_bytes` and `.relay_buffered_bytes` (window of the relay's sender, and what the relay
    /// holds); connections that come and go have none. The edge has `edge.queue_packets` and `.queue_bytes`
    /// (what waits at that instant, in all queues towards the mobiles; not what is in transmission), `.rate_bps` (of the link now; in a cell that of the channel of the user
    /// of its first flow), `.held_acks`, `.drops` (packets lost towards the mobiles, in queues and on the radio, since the row before), and of the link from the
    /// mobiles `.up.queue_packets`, `.up.queue_bytes` and `.up.drops`; where each flow has a channel of its own, `edge<id>.` and so on. A bearer with a link
    /// layer of its own has columns of it too, `edge.down.outstanding_pdus` and so on, which its page names.
    pub columns: Vec<(String, Vec<f64>)>,
}

/// Name and values of a column.
pub(crate) type Column = (String, Vec<f64>);

impl Series {
    /// Writes the series as CSV with a header row; what does not exist is empty.
    ///
    /// # Errors
    /// Where `out` cannot be written.
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

    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, values)| values.as_slice())
    }
}

/// Takes the samples of a run, island by island.
pub(crate) struct Recorder {
    interval: Span,
    samples: u64,
    channel: ChannelSharing,
    /// What link layers show of their state, in each direction.
    gauges: Vec<String>,
    /// Quantities of a relay for each flow: none without one.
    relayed: &'static [&'static str],
}

const FLOW: [&str; 7] =
    ["cwnd_bytes", "ssthresh_bytes", "srtt_ms", "rto_ms", "rtt_ms", "delivered_bytes", "mss_bytes"];
/// The same of what a relay has of a flow.
const RELAY: [&str; 2] = ["relay_cwnd_bytes", "relay_buffered_bytes"];
const EDGE: [&str; 8] = [
    "queue_packets",
    "queue_bytes",
    "rate_bps",
    "held_acks",
    "drops",
    "up.queue_packets",
    "up.queue_bytes",
    "up.drops",
];

impl Recorder {
    /// A sample at time zero and after each `interval` of the run, of so many flows that last and so many edges.
    ///
    /// # Errors
    /// Where the samples would not fit into memory.
    pub(crate) fn new(
        interval: Span,
        tables: &Tables,
        flows: usize,
        edges: usize,
    ) -> Result<Self, ConfigError> {
        let steps = tables.duration.as_nanos().checked_div(interval.as_nanos()).unwrap_or(u64::MAX);
        let samples = steps.saturating_add(1);
        let gauges = gauges(&tables.edge).map_err(|error| error.under("edge"))?;
        let of_edge = EDGE.len() + gauges.len();
        let relayed = tables.relay.as_ref().map_or(&[][..], |_| &RELAY);
        let columns = (1 + flows * (FLOW.len() + relayed.len()) + edges * of_edge) as u64;
        let what = format!("a series of {samples} rows and {columns} columns, a row each {interval},");
        memory::check("duration", &what, samples.saturating_mul(columns * size_of::<f64>() as u64))?;
        Ok(Self { interval, samples, channel: tables.edge.channel, gauges, relayed })
    }

    /// Lets the time of `executor` pass up to `end`, with samples of all its islands on the way: their columns.
    pub(crate) fn record(
        &self,
        executor: &mut impl Executor,
        islands: &[&[FlowPlan]],
        end: Time,
    ) -> Vec<Column> {
        // Clients whose connections come and go have no columns.
        let lasting = |executor: &mut _, island, flows: &[FlowPlan]| -> Vec<FlowId> {
            let (boxes, _) = Executor::island(executor, island);
            (0..flows.len() as u32).map(FlowId).filter(|&flow| boxes.sender(flow).is_some()).collect()
        };
        let lasting: Vec<_> =
            islands.iter().enumerate().map(|(island, flows)| lasting(executor, island, flows)).collect();
        let names = islands.iter().zip(&lasting).flat_map(|(flows, lasting)| self.names(flows, lasting));
        let (names, room) = (names.collect::<Vec<_>>(), self.samples as usize);
        let mut series: Vec<Column> =
            names.into_iter().map(|name| (name, Vec::with_capacity(room))).collect();
        let mut rtts: Vec<_> = lasting.iter().map(|flows| vec![Rtts::default(); flows.len()]).collect();
        let mut drops = vec![[0u64; 2]; islands.len()];
        for sample in 0..self.samples {
            let now = Time::ZERO + self.interval * sample;
            executor.advance(now);
            let mut columns = series.iter_mut();
            let mut push = |value| {
                if let Some((_, values)) = columns.next() {
                    values.push(value);
                }
            };
            let before = rtts.iter_mut().zip(&mut drops);
            for (island, (flows, (rtts, drops))) in lasting.iter().zip(before).enumerate() {
                let (mut boxes, _) = executor.island(island);
                sample_flows(&boxes, flows, rtts, &mut push);
                sample_edge(&mut boxes, now, drops, &mut push);
            }
        }
        executor.advance(end);
        series
    }

    /// The series of all islands, of which `columns` has those of each in their order.
    pub(crate) fn series(&self, columns: Vec<Column>) -> Series {
        let times = (0..self.samples).map(|sample| (self.interval * sample).as_secs_f64()).collect();
        Series { columns: [("t_s".to_owned(), times)].into_iter().chain(columns).collect() }
    }

    /// The columns of one island, in the order in which they are sampled.
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
        names.extend(self.gauges.iter().map(|name| format!("{edge}.{name}")));
        names
    }
}

/// Count and sum of the round-trip times up to the row before.
#[derive(Clone, Copy, Default)]
struct Rtts {
    count: u64,
    sum: u128,
}

impl Rtts {
    /// Mean of the samples since the last call, ms.
    fn mean_since(&mut self, rtt: &Histogram) -> f64 {
        let before = std::mem::replace(self, Self { count: rtt.count(), sum: rtt.sum() });
        // Without new samples this is 0 / 0, which is NaN.
        (self.sum - before.sum) as f64 / (self.count - before.count) as f64 / 1e6
    }
}

fn sample_flows(boxes: &Boxes<'_>, flows: &[FlowId], rtts: &mut [Rtts], push: &mut impl FnMut(f64)) {
    for (&flow, rtts) in flows.iter().zip(rtts) {
        let sender = boxes.sender(flow);
        let ms = |span: Option<Span>| span.map_or(f64::NAN, Span::as_millis_f64);
        push(sender.map_or(f64::NAN, |sender| sender.cwnd().into()));
        push(sender.and_then(Sender::ssthresh).map_or(f64::NAN, f64::from));
        push(ms(sender.and_then(Sender::srtt)));
        push(ms(sender.map(Sender::rto)));
        push(sender.map_or(f64::NAN, |sender| rtts.mean_since(&sender.stats().rtt)));
        let receiver = boxes.receiver(flow);
        push(receiver.map_or(f64::NAN, |receiver| receiver.delivered_bytes() as f64));
        push(sender.map_or(f64::NAN, |sender| sender.mss().into()));
        if let Some(RelayBoxes { relay, .. }) = &boxes.relay {
            push(relay.sender(flow).map_or(f64::NAN, |sender| sender.cwnd().into()));
            push(relay.buffered_bytes(flow) as f64);
        }
    }
}

/// `drops` are those up to the row before, by direction.
fn sample_edge(boxes: &mut Boxes<'_>, now: Time, drops: &mut [u64; 2], push: &mut impl FnMut(f64)) {
    let flows = boxes.servers.flows();
    let held = (0..flows).map(|flow| boxes.edge.held(FlowId(flow as u32))).sum::<usize>() as f64;
    let queue = boxes.queue();
    let [down, up] = Direction::BOTH.map(|direction| queue.waiting(now, direction));
    let statistics = queue.statistics();
    let all = [statistics.dropped, statistics.dropped_up];
    let [lost_down, lost_up] = Direction::BOTH.map(|of| (all[of as usize] - drops[of as usize]) as f64);
    *drops = all;
    push(down.packets.into());
    push(down.bytes as f64);
    // One rate for all flows, but in a cell, where those of several users do not add up.
    push(queue.view(now, FlowId(0)).rate.as_bps() as f64);
    [held, lost_down, up.packets.into(), up.bytes as f64, lost_up].into_iter().for_each(&mut *push);
    for edge in boxes.edges() {
        Direction::BOTH.into_iter().flat_map(|direction| edge.gauges(direction)).for_each(&mut *push);
    }
}

/// What the link layers show of their state: of the edge, and of the radio that it observes, where it does.
fn gauges(edge: &EdgeConfig) -> Result<Vec<String>, ConfigError> {
    let mut gauges = Vec::new();
    for (place, table) in [("", Some(edge)), ("behind.", edge.behind.as_deref())] {
        let names = table.map_or(Ok(&[][..]), EdgeConfig::gauges)?;
        for direction in ["down", "up"] {
            gauges.extend(names.iter().map(|name| format!("{place}{direction}.{name}")));
        }
    }
    Ok(gauges)
}
