//! The result of a run: the object that `--json` prints, one line per run. Names and order of the keys are stable.
//!
//! A number that does not exist is null, never 0. Rates are bit/s, times in the unit that the key names. Nothing here
//! depends on the machine or the time of day, so equal runs print equal bytes.

mod measured;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::measured::{AckGapResult, GapResult, LinkShareResult, SpuriousResult};
use crate::{Histogram, Span};

/// One run of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Name of the scenario file.
    pub scenario: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Index of the run under this seed, from 0.
    pub run: u32,
    /// Simulated time, seconds.
    pub duration_s: f64,
    /// One row per long-lived flow. Short connections of a workload such as "web" have none.
    pub flows: Vec<FlowResult>,
    /// One row per user.
    pub users: Vec<UserResult>,
    /// Transfers over short connections, by size class: first all users together, then each user if there are several.
    /// Empty classes are left out.
    pub transfers: Vec<TransferResult>,
    /// Fairness between users and between flows.
    pub fairness: FairnessResult,
    /// Downlink queue and link.
    pub bottleneck: LinkResult,
    /// Uplink queue and link; in a cell, of all users together.
    pub uplink: LinkResult,
    /// Simulation cost of the run.
    pub engine: EngineResult,
    /// Program version, scenario and inputs of the run.
    pub provenance: Provenance,
}

/// Direction of a flow's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Towards {
    /// To the mobile: a download.
    #[default]
    Mobile,
    /// To the server: an upload.
    Server,
}

impl Towards {
    /// Whether it is a download.
    pub fn is_mobile(&self) -> bool {
        *self == Self::Mobile
    }
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResult {
    /// Number of the flow, from 0.
    pub id: u32,
    /// User of the flow.
    pub user: u32,
    /// Direction of the data; left out for a download.
    #[serde(default, skip_serializing_if = "Towards::is_mobile")]
    pub towards: Towards,
    /// Name of the TCP sender.
    pub sender: String,
    /// In-order payload delivered, from the flow's start to its end or the end of the run, bit/s. Null for a flow of
    /// real packets that sent one packet.
    pub goodput_bps: Option<f64>,
    /// Goodput including headers, each packet counted once, bit/s.
    pub wire_goodput_bps: Option<f64>,
    /// In-order payload delivered, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent, retransmissions included. With a relay these counts are sums over both connections.
    pub segments_sent: u64,
    /// Data segments retransmitted.
    pub retransmits: u64,
    /// Fast recoveries entered after duplicate or selective ACKs; null in `ackclock link`, which has no access to
    /// senders.
    pub fast_retransmits: Option<u64>,
    /// Retransmission timeouts; null in `ackclock link`, which has no access to senders.
    pub timeouts: Option<u64>,
    /// Retransmission timeouts that the sender found spurious; null if the sender cannot detect this.
    pub spurious_timeouts: Option<u64>,
    /// Spurious window reductions, as seen by the simulator; left out unless `measure` has `spurious`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spurious: Option<SpuriousResult>,
    /// RTT samples of the sender, ms; with a relay, of the original sender. Null in `ackclock link`, which has no
    /// access to the kernel's RTT samples: see `edge_rtt_ms`.
    pub rtt_ms: Distribution,
    /// Mean RTT measured with one timed segment at a time, ms.
    pub timed_rtt_ms: Option<f64>,
    /// Mean RTT between edge and mobile, measured at the edge, ms; for an upload, the RTT of the handshake.
    pub edge_rtt_ms: Option<f64>,
    /// Time from the flow's start until its last byte was delivered, s; null if it did not complete.
    pub completion_s: Option<f64>,
    /// Share of the link capacity until the last byte was delivered; left out unless `measure` has `utilisation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShareResult>,
    /// Regulator at the edge; null for a simulated upload without a regulator.
    pub regulator: Option<String>,
    /// Mean retransmission timeout at the ACKs of timed segments, without backoff, ms.
    pub rto_ms_mean: Option<f64>,
    /// Losses by cycles of the window; null without losses.
    pub loss_cycles: Option<LossCycles>,
    /// One-way delay of each transmitted data segment from sender to receiver, ms; left out unless `measure` has
    /// `transit`. With a relay see its `legs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit_ms: Option<Distribution>,
    /// Time between the flow's ACKs, ms; left out unless `measure` has `ack-gaps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_gap_ms: Option<Box<AckGapResult>>,
    /// Results of the two connections of a relay; left out without a relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<Box<RelayResult>>,
    /// Endpoints and times of a flow of real packets.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealFlow>,
}

/// A flow that a relay splits into two connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayResult {
    /// Largest amount of the flow's payload buffered in the relay, bytes.
    pub most_buffered_bytes: u64,
    /// The two connections, in the direction of the data: server to relay and relay to mobile for a download, mobile to
    /// relay and relay to server for an upload.
    pub legs: [LegResult; 2],
}

/// One of the two connections of a flow over a relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegResult {
    /// Name of the TCP sender.
    pub sender: String,
    /// Payload acknowledged, bytes.
    pub acknowledged_bytes: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Data segments retransmitted.
    pub retransmits: u64,
    /// Fast recoveries entered after duplicate or selective ACKs.
    pub fast_retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Retransmission timeouts that the sender found spurious; null if the sender cannot detect this.
    pub spurious_timeouts: Option<u64>,
    /// RTT samples of the sender, ms.
    pub rtt_ms: Distribution,
    /// One-way delay of data segments of this connection, ms; left out unless `measure` has `transit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit_ms: Option<Distribution>,
}

/// Endpoints and times of a flow of real packets. Only in the results of `ackclock link`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RealFlow {
    /// Protocol: `tcp`, `udp`, or `other` for one last row with all remaining packets: ICMP, fragments, other
    /// protocols, and connections beyond the maximum number of rows. Payload of `other` includes headers. Only for real
    /// packets.
    pub protocol: String,
    /// Address and port of the end that sent more bytes; null for `other`. Only for real packets.
    pub from: Option<String>,
    /// Address and port of the end that sent fewer bytes; null for `other`. Only for real packets.
    pub to: Option<String>,
    /// Arrival of the flow's first packet at the link, s since the link started. Only for real packets.
    pub start_s: f64,
    /// Arrival of the flow's last packet at the link, or departure of its last data, s since the link started. Only for
    /// real packets.
    pub end_s: f64,
    /// Bytes of the flow delivered on the downlink, headers and retransmissions included. The rows add up to
    /// `bottleneck.delivered_bytes`. Only for real packets.
    pub down_bytes: u64,
    /// Bytes of the flow delivered on the uplink, headers and retransmissions included. The rows add up to
    /// `uplink.delivered_bytes`. Only for real packets.
    pub up_bytes: u64,
}

/// Losses by window cycles. Losses close together belong to one cycle of growth and loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossCycles {
    /// Number of cycles.
    pub cycles: u64,
    /// Share of cycles with one loss.
    pub p1: f64,
    /// Share of cycles with two losses.
    pub p2: f64,
    /// Share of cycles with three losses or more, or a timeout.
    pub p3: f64,
    /// Root mean square of the window at each cycle's first loss detected by duplicate ACKs, packets.
    pub wf: Option<f64>,
}

/// One user of a run: sums over its flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserResult {
    /// Number of the user.
    pub id: u32,
    /// Number of the user's flows, short connections included.
    pub flows: u32,
    /// In-order payload delivered, over the entire run, bit/s.
    pub goodput_bps: f64,
    /// Goodput including headers, over the entire run, bit/s.
    pub wire_goodput_bps: f64,
    /// In-order payload delivered, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Data segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// Transfers of one size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferResult {
    /// User of the transfers; null for all users together.
    pub user: Option<u32>,
    /// Smallest size of the class, bytes.
    pub from_bytes: u64,
    /// Largest size of the class, bytes; null for the last class.
    pub to_bytes: Option<u64>,
    /// Completed transfers.
    pub count: u64,
    /// Transfers still active at the end of the run.
    pub unfinished: u64,
    /// Time from the request (the first packet of a new connection) until the last byte arrived, ms.
    pub latency_ms: Distribution,
    /// Mean over transfers of size divided by latency, bit/s; null without completed transfers.
    pub goodput_bps: Option<f64>,
    /// Share of the link capacity used by completed transfers while active; left out unless `measure` has
    /// `utilisation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShareResult>,
}

/// Jain's index, (sum x)^2 / (n sum x^2): 1 if all shares are equal, 1/n if one gets everything.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FairnessResult {
    /// Jain's index over the goodput of users; null for fewer than two users or if nothing was delivered.
    pub jain_users: Option<f64>,
    /// Jain's index over the goodput of the flows in `flows`; null for fewer than two flows or if nothing was
    /// delivered.
    pub jain_flows: Option<f64>,
}

impl FairnessResult {
    /// The indices of users and flows.
    pub fn of(users: &[UserResult], flows: &[FlowResult]) -> Self {
        let flows: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput_bps).collect();
        let users: Vec<f64> = users.iter().map(|user| user.goodput_bps).collect();
        Self { jain_users: jain_index(&users), jain_flows: jain_index(&flows) }
    }
}

/// Jain's index of at least two shares that are not all zero.
fn jain_index(shares: &[f64]) -> Option<f64> {
    let (sum, squares) =
        shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Queue and link of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkResult {
    /// Mean rate of a link that always has data to send, from the first flow's start to the last flow's end, bit/s. A
    /// rate that varies in time is averaged, outages included. If a rate is drawn for each packet, it is bits sent over
    /// their transmission time, scaled by the time without outages; null if no packet was sent. For a cell, the run's
    /// estimate with all users backlogged, or the delivered rate if that is higher. Dedicated channels are summed.
    pub capacity_bps: Option<f64>,
    /// Bits delivered, headers and retransmissions included, as a share of the capacity in the same time.
    pub utilisation: Option<f64>,
    /// Packets lost in the queue or on the radio.
    pub drops: u64,
    /// Packets of this direction dropped by regulators: redundant ACKs, and data that the mobile already has.
    pub discarded: u64,
    /// Packets of this direction generated by regulators.
    pub made: u64,
    /// Packets of this direction retransmitted by regulators from copies.
    pub resent: u64,
    /// Queueing delay until transmission started, ms.
    pub queue_ms: Distribution,
    /// Counts of real packets.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealTraffic>,
}

/// Counts of real packets in one direction. Only in the results of `ackclock link`.
///
/// `sent + made + resent = delivered + drops + discarded + lost_by_machine + waiting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealTraffic {
    /// Packets sent into this direction of the link, including those the machine lost before it. `sent + made + resent`
    /// is `delivered + drops + discarded + lost_by_machine + waiting`. Only for real packets.
    pub sent: u64,
    /// Packets delivered at the other end of the link. Only for real packets.
    pub delivered: u64,
    /// Bytes delivered, headers and retransmissions included. Only for real packets.
    pub delivered_bytes: u64,
    /// Packets lost by this machine rather than by the emulated link, because a device or ackclock was full. A GSO
    /// packet dropped by a device counts as one. Null if the kernel does not report it. Only for real packets.
    pub lost_by_machine: Option<u64>,
    /// Packets still queued or in transit. Only for real packets.
    pub waiting: u64,
}

/// Counters of the link of one direction.
#[derive(Clone, Debug, Default)]
pub struct LinkCounts {
    /// Mean capacity, bit/s.
    pub capacity_bps: Option<f64>,
    /// Bytes delivered, with headers.
    pub delivered_bytes: u64,
    /// Packets lost in the queue or on the radio.
    pub drops: u64,
    /// Packets of this direction dropped by regulators.
    pub discarded: u64,
    /// Packets of this direction generated by regulators.
    pub made: u64,
    /// Packets of this direction retransmitted by regulators.
    pub resent: u64,
    /// Queueing delay until transmission started.
    pub waits: Histogram,
}

impl LinkCounts {
    /// These counters with the regulator counts of `other`.
    #[must_use]
    pub fn regulated_by(self, other: &Self) -> Self {
        let Self { discarded, made, resent, .. } = *other;
        Self { discarded, made, resent, ..self }
    }

    /// The row of the results, over an interval of `seconds`.
    pub fn result(&self, seconds: f64) -> LinkResult {
        let carried = self.delivered_bytes as f64 * 8.0 / seconds;
        let capacity_bps = self.capacity_bps;
        LinkResult {
            capacity_bps,
            utilisation: capacity_bps.filter(|&capacity| capacity > 0.0).map(|capacity| carried / capacity),
            drops: self.drops,
            discarded: self.discarded,
            made: self.made,
            resent: self.resent,
            queue_ms: Distribution::from(&self.waits),
            real: None,
        }
    }
}

impl std::ops::AddAssign<&Self> for LinkCounts {
    fn add_assign(&mut self, other: &Self) {
        let [ours, theirs] = [self.capacity_bps, other.capacity_bps];
        self.capacity_bps = ours.into_iter().chain(theirs).reduce(|sum, one| sum + one);
        self.delivered_bytes += other.delivered_bytes;
        self.drops += other.drops;
        self.discarded += other.discarded;
        self.made += other.made;
        self.resent += other.resent;
        self.waits.merge(&other.waits);
    }
}

/// Simulation cost of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineResult {
    /// Events: node wake-ups and messages between nodes.
    pub events: u64,
    /// Packets delivered on the downlink.
    pub packets: u64,
    /// CPU time, s; null unless requested.
    pub cpu_s: Option<f64>,
}

/// Origin of a result. Equal provenance, seed and run give equal results.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Git commit of the build; null if unknown.
    pub commit: Option<String>,
    /// Whether the build has uncommitted changes; null if unknown.
    pub dirty: Option<bool>,
    /// SHA-256 of the scenario with preset and overrides applied, as JSON with sorted keys.
    pub scenario_sha256: String,
    /// SHA-256 of the complete configuration with all defaults (`ackclock check --show` prints it), as JSON with sorted
    /// keys.
    pub configuration_sha256: String,
    /// Input files, by path as written in the scenario, with the SHA-256 of their contents.
    pub inputs: BTreeMap<String, String>,
    /// How sure it is that the rates of a recording are the capacity of its link, by path as written in the scenario; left out
    /// where nothing is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recordings: BTreeMap<String, String>,
    /// Overrides as given (`--set` and its shorthands).
    pub set: Vec<String>,
}

/// Mean and percentiles of a time, ms.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Median, within 1.6 %.
    pub p50: Option<f64>,
    /// 95th percentile, within 1.6 %.
    pub p95: Option<f64>,
    /// 99th percentile, within 1.6 %.
    pub p99: Option<f64>,
    /// 200 quantiles, of the probabilities 0.0025, 0.0075, ..., 0.9975, each within 1.6 %; left out unless `measure` has `rtt_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdf: Option<Box<[f64]>>,
}

impl Distribution {
    /// The distribution with its [`cdf`](Self::cdf).
    pub fn with_cdf(histogram: &Histogram) -> Self {
        let quantile = |number: u32| histogram.quantile((f64::from(number) + 0.5) / f64::from(QUANTILES));
        let cdf: Option<Box<[f64]>> =
            (0..QUANTILES).map(|number| quantile(number).map(Span::as_millis_f64)).collect();
        Self { cdf, ..Self::from(histogram) }
    }
}

/// Number of quantiles in a CDF.
const QUANTILES: u32 = 200;

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        let quantile = |q| ms(histogram.quantile(q));
        Self {
            mean: ms(histogram.mean()),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            cdf: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdf_has_200_quantiles_that_rise_and_nothing_has_none() {
        let mut histogram = Histogram::default();
        for ms in 1..=1000 {
            histogram.record(Span::from_millis(ms));
        }
        let cdf = Distribution::with_cdf(&histogram).cdf.unwrap();
        assert_eq!(cdf.len(), 200);
        assert!(cdf.is_sorted());
        // The first is the 0.25 % quantile of 1 to 1000 ms, the last that of 99.75 %.
        assert!(
            (1.0..=4.0).contains(&cdf[0]) && (980.0..=1015.0).contains(&cdf[199]),
            "{} {}",
            cdf[0],
            cdf[199]
        );
        assert_eq!(Distribution::with_cdf(&Histogram::default()).cdf, None);
    }

    #[test]
    fn the_fairness_of_shares_is_jains_index() {
        assert_eq!(jain_index(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_index(&[0.0, 0.0, 0.0, 7.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 (1 + 4 + 9)) = 36/42
        assert_eq!(jain_index(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!((jain_index(&[1.0]), jain_index(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let empty = serde_json::to_string(&Distribution::from(&Histogram::default()));
        assert_eq!(empty.unwrap(), r#"{"mean":null,"p50":null,"p95":null,"p99":null}"#);
    }
}
