//! What a run gives: the object that `--json` prints, one line a run. Names and order of the keys are a contract.
//!
//! A number that does not exist is null, never 0. Rates are bit/s, times in the unit that the key names. Nothing here
//! depends on the machine or the moment, so that equal runs print equal bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Histogram, Span};

/// One run of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Name of the scenario file.
    pub scenario: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Number of the run under that seed, from 0.
    pub run: u32,
    /// Simulated time, seconds.
    pub duration_s: f64,
    /// One row a flow.
    pub flows: Vec<FlowResult>,
    /// One row a user.
    pub users: Vec<UserResult>,
    /// Completed transfers by size, of workloads that have many.
    pub transfers: Vec<TransferResult>,
    /// The queue and the link towards the mobiles.
    pub bottleneck: BottleneckResult,
    /// What the run took.
    pub engine: EngineResult,
    /// What was run.
    pub provenance: Provenance,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResult {
    /// Number of the flow, from 0.
    pub id: u32,
    /// Its user.
    pub user: u32,
    /// Row of the sender table.
    pub sender: String,
    /// Payload delivered in order, from the flow's start to its end or the end of the run, bit/s.
    pub goodput_bps: Option<f64>,
    /// The same packets with their headers, each counted once, bit/s.
    pub wire_goodput_bps: Option<f64>,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent, repetitions included.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Losses found by duplicate or selective acknowledgements, one for each time that recovery began; null where only the
    /// edge was ours.
    pub fast_retransmits: Option<u64>,
    /// Expiries of the retransmission timer; null where only the edge was ours.
    pub timeouts: Option<u64>,
    /// Expiries that proved to be for nothing; null where the sender cannot tell.
    pub spurious_timeouts: Option<u64>,
    /// Every round-trip time that the sender took, ms.
    pub rtt_ms: Distribution,
    /// Mean round-trip time of one timed segment at a time, ms.
    pub timed_rtt_ms: Option<f64>,
    /// Mean round-trip time between edge and mobile as the edge sees it, ms.
    pub edge_rtt_ms: Option<f64>,
    /// From the flow's start until its last byte was delivered, s; null where it was not.
    pub completion_s: Option<f64>,
    /// Regulator at the edge.
    pub regulator: String,
    /// Time average of the retransmission timeout while data was outstanding, ms.
    pub rto_ms_mean: Option<f64>,
    /// Losses by cycles of the window; null where there were none.
    pub loss_cycles: Option<LossCycles>,
}

/// Losses by cycles: those close together belong to one cycle of growth and loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossCycles {
    /// Cycles in all.
    pub cycles: u64,
    /// Share of cycles with one loss.
    pub p1: f64,
    /// Share of cycles with two losses.
    pub p2: f64,
    /// Share of cycles with three losses or more, or a timeout.
    pub p3: f64,
    /// Root mean square of the windows at which cycles ended, packets.
    pub wf: Option<f64>,
}

/// One user of a run: the sum of the flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserResult {
    /// Number of the user.
    pub id: u32,
    /// Its flows.
    pub flows: u32,
    /// Payload delivered in order, bit/s over the whole run.
    pub goodput_bps: f64,
    /// The same packets with their headers, bit/s over the whole run.
    pub wire_goodput_bps: f64,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
}

/// Completed transfers of one class of size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferResult {
    /// Smallest size of the class, bytes.
    pub from_bytes: u64,
    /// The size beyond the largest, bytes; null for the last class.
    pub to_bytes: Option<u64>,
    /// Transfers completed.
    pub count: u64,
    /// Their durations, ms.
    pub latency_ms: Distribution,
}

/// The queue and the link towards the mobiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BottleneckResult {
    /// Long-run rate of the saturated link, bit/s, summed over dedicated channels.
    pub capacity_bps: f64,
    /// Bits delivered over it, headers and repetitions included, as a share of the capacity.
    pub utilisation: Option<f64>,
    /// Packets lost in the queue or on the radio.
    pub drops: u64,
    /// Time that packets waited before their transmission began, ms.
    pub queue_ms: Distribution,
}

/// What a run took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineResult {
    /// Wakes and hops.
    pub events: u64,
    /// Packets delivered over the radio towards the mobiles.
    pub packets: u64,
    /// Processor time, s; null unless it was asked for.
    pub cpu_s: Option<f64>,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit from which it was built; null where that is not known.
    pub commit: Option<String>,
    /// SHA-256 of the scenario with everything that presets and overrides say, as JSON with sorted keys.
    pub scenario_sha256: String,
}

/// Mean and percentiles of spans of time, ms.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Median, within 1.6 %.
    pub p50: Option<f64>,
    /// 95th percentile, within 1.6 %.
    pub p95: Option<f64>,
    /// 99th percentile, within 1.6 %.
    pub p99: Option<f64>,
}

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        let quantile = |q| ms(histogram.quantile(q));
        Self { mean: ms(histogram.mean()), p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_null() {
        let empty = serde_json::to_string(&Distribution::from(&Histogram::default()));
        assert_eq!(empty.unwrap(), r#"{"mean":null,"p50":null,"p95":null,"p99":null}"#);
    }
}
