//! What a run gives: the object that `--json` prints, one line a run. Names and order of the keys are a contract.
//!
//! A number that does not exist is null, never 0. Rates are bit/s, times in the unit that the key names. Nothing here
//! depends on the machine or the moment, so that equal runs print equal bytes.

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
    /// Number of the run under that seed, from 0.
    pub run: u32,
    /// Simulated time, seconds.
    pub duration_s: f64,
    /// One row a flow; those of workloads whose flows come and go have none.
    pub flows: Vec<FlowResult>,
    /// One row a user.
    pub users: Vec<UserResult>,
    /// Transfers by size, of workloads whose flows come and go: first those of all users together, then, where there are
    /// several, those of each. Classes without transfers are left out.
    pub transfers: Vec<TransferResult>,
    /// How alike shares are.
    pub fairness: FairnessResult,
    /// The queue and the link towards the mobiles.
    pub bottleneck: LinkResult,
    /// The queue and the link from the mobiles; in a cell those of all users together.
    pub uplink: LinkResult,
    /// What the run took.
    pub engine: EngineResult,
    /// What was run.
    pub provenance: Provenance,
}

/// Which way the data of a flow goes.
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
    /// Its user.
    pub user: u32,
    /// Which way its data goes; left out where that is to the mobile.
    #[serde(default, skip_serializing_if = "Towards::is_mobile")]
    pub towards: Towards,
    /// Row of the sender table.
    pub sender: String,
    /// Payload delivered in order, from the flow's start to its end or the end of the run, bit/s. Null for a flow of real packets
    /// that sent one packet.
    pub goodput_bps: Option<f64>,
    /// The same packets with their headers, each counted once, bit/s.
    pub wire_goodput_bps: Option<f64>,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent, repetitions included. With a relay these counts are sums over both connections.
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
    /// Reductions of the window that were for nothing, as the simulator knows; left out unless `measure` has `spurious`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spurious: Option<SpuriousResult>,
    /// Every round-trip time that the sender took, ms; with a relay that of the source of the data. Null in the results of `ackclock link`, which does not see what the
    /// kernel's senders take: `edge_rtt_ms` is measured there.
    pub rtt_ms: Distribution,
    /// Mean round-trip time of one timed segment at a time, ms.
    pub timed_rtt_ms: Option<f64>,
    /// Mean round-trip time between edge and mobile as the edge sees it, ms; of an upload that of the handshake.
    pub edge_rtt_ms: Option<f64>,
    /// From the flow's start until its last byte was delivered, s; null where it was not.
    pub completion_s: Option<f64>,
    /// What it got of the link until its last byte of payload was delivered; left out unless `measure` has `utilisation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShareResult>,
    /// Regulator at the edge; null for an upload of the simulator that has none.
    pub regulator: Option<String>,
    /// Mean of the retransmission timeout at the ends of the timed segments, ms: what follows a sample, without backing off.
    pub rto_ms_mean: Option<f64>,
    /// Losses by cycles of the window; null where there were none.
    pub loss_cycles: Option<LossCycles>,
    /// How long each data segment travelled, from its own sending until it arrived at the peer of its sender, ms; left out
    /// unless `measure` has `transit`, and with a relay, where each of its `legs` has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit_ms: Option<Distribution>,
    /// Gaps between the flow's ACKs, ms; left out unless `measure` has `ack-gaps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_gap_ms: Option<Box<AckGapResult>>,
    /// What a relay made of the flow; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<Box<RelayResult>>,
    /// Where a flow of real packets came from and went.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealFlow>,
}

/// A flow whose connection a relay splits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayResult {
    /// Most payload that the relay held of it, bytes.
    pub most_buffered_bytes: u64,
    /// The connection from the server to the relay, and that from the relay to the mobile; of an upload that from the mobile to
    /// the relay comes first.
    pub legs: [LegResult; 2],
}

/// One of the two connections of a flow over a relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegResult {
    /// Row of the sender table.
    pub sender: String,
    /// Payload acknowledged, bytes.
    pub acknowledged_bytes: u64,
    /// Data segments sent, repetitions included.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Losses found by duplicate or selective acknowledgements.
    pub fast_retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Expiries that proved to be for nothing; null where the sender cannot tell.
    pub spurious_timeouts: Option<u64>,
    /// Every round-trip time that the sender took, ms.
    pub rtt_ms: Distribution,
    /// As `flows[].transit_ms`, of this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit_ms: Option<Distribution>,
}

/// Which connection a flow of real packets was; there only in the results of `ackclock link`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RealFlow {
    /// Protocol: `tcp`, `udp`; or `other`, one last row for all remaining packets: ICMP, fragments, other protocols, connections
    /// beyond the most that have a row. Its payload counts with headers. Only of real packets.
    pub protocol: String,
    /// Address and port of the end that sent most; null for `other`. Only of real packets.
    pub from: Option<String>,
    /// Address and port of the end that sent less; null for `other`. Only of real packets.
    pub to: Option<String>,
    /// When the flow's first packet arrived at the link, s since the link began. Only of real packets.
    pub start_s: f64,
    /// When the flow's last packet arrived at the link or its last data left it, s since the link began. Only of real packets.
    pub end_s: f64,
    /// Bytes of the flow that left the link towards the mobile, with headers and repetitions. The rows add up to
    /// `bottleneck.delivered_bytes`. Only of real packets.
    pub down_bytes: u64,
    /// Bytes of the flow that left the link towards the server, with headers and repetitions. The rows add up to
    /// `uplink.delivered_bytes`. Only of real packets.
    pub up_bytes: u64,
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
    /// Root mean square of the windows at the first loss of each cycle that a duplicate told, packets.
    pub wf: Option<f64>,
}

/// One user of a run: the sum of the flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserResult {
    /// Number of the user.
    pub id: u32,
    /// Its flows, those that came and went included.
    pub flows: u32,
    /// Payload delivered in order, bit/s over the whole run.
    pub goodput_bps: f64,
    /// The same packets with their headers, bit/s over the whole run.
    pub wire_goodput_bps: f64,
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent, repetitions included.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
}

/// Transfers of one class of size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferResult {
    /// Their user; null for those of all users together.
    pub user: Option<u32>,
    /// Smallest size of the class, bytes.
    pub from_bytes: u64,
    /// Largest size of the class, bytes; null for the last class, which has none.
    pub to_bytes: Option<u64>,
    /// Transfers whose last byte arrived.
    pub count: u64,
    /// Transfers that were under way at the end of the run.
    pub unfinished: u64,
    /// From the request, at which the connection's first packet leaves where it is new, until the last byte arrived, ms.
    pub latency_ms: Distribution,
    /// Mean of the transfers' own rates, size by latency, bit/s; null where none was completed.
    pub goodput_bps: Option<f64>,
    /// What those that were completed got of the link, each while it was under way; left out unless `measure` has `utilisation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShareResult>,
}

/// Jain's index, (sum x)^2 / (n sum x^2): 1 where all get the same, 1/n where one gets everything.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FairnessResult {
    /// Over the goodputs of the users; null for fewer than two, or where nothing was delivered.
    pub jain_users: Option<f64>,
    /// Over the goodputs of the flows that have rows; null as above.
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

/// The queue and the link of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkResult {
    /// Mean rate that the link could have carried from the start of the first flow until the end of the last, always with something to
    /// send, bit/s; of a cell in the whole run. Where its rate changes
    /// in time: the mean of the rates that it had, outages included. Where a rate is drawn for each packet: what was sent over
    /// the time that it took, for all the time without outages. Of a cell: what its scheduler would have given the users to whom flows came, had
    /// all of them always had something to send, or what it did carry, where that is more. Dedicated channels are
    /// summed. Null where a rate is drawn for each packet and none was sent.
    pub capacity_bps: Option<f64>,
    /// Bits delivered over it, headers and repetitions included, as a share of what it could have carried in the same time.
    pub utilisation: Option<f64>,
    /// Packets lost in the queue or on the radio.
    pub drops: u64,
    /// Packets coming this way that regulators took out: ACKs that they made superfluous, data that the mobile has.
    pub discarded: u64,
    /// Packets going this way that regulators made.
    pub made: u64,
    /// Packets going this way that regulators sent once more, from copies.
    pub resent: u64,
    /// Time that packets waited before their transmission began, ms.
    pub queue_ms: Distribution,
    /// What became of real packets.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealTraffic>,
}

/// What became of the real packets of one direction; there only in the results of `ackclock link`.
///
/// `sent + made + resent = delivered + drops + discarded + lost_by_machine + waiting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealTraffic {
    /// Packets sent into this direction of the link, those that the machine lost before it included. With `made` and `resent`
    /// this is the sum of `delivered`, `drops`, `discarded`, `lost_by_machine` and `waiting`. Only of real packets.
    pub sent: u64,
    /// Packets handed on at the other end of the link. Only of real packets.
    pub delivered: u64,
    /// Bytes that left the link, with headers and repetitions. Only of real packets.
    pub delivered_bytes: u64,
    /// Packets that this machine lost and the emulated link did not: its devices were full, or ackclock had no room. A
    /// super-packet that a device dropped counts as one. Null where the kernel does not tell. Only of real packets.
    pub lost_by_machine: Option<u64>,
    /// Packets still queued or in transit. Only of real packets.
    pub waiting: u64,
}

/// What is counted at the link of one direction.
#[derive(Clone, Debug, Default)]
pub struct LinkCounts {
    /// Mean rate that it could have carried, bit/s.
    pub capacity_bps: Option<f64>,
    /// Bytes delivered over it, with headers.
    pub delivered_bytes: u64,
    /// Packets lost in the queue or on the radio.
    pub drops: u64,
    /// Packets coming this way that regulators took out.
    pub discarded: u64,
    /// Packets going this way that regulators made.
    pub made: u64,
    /// Packets going this way that regulators sent once more.
    pub resent: u64,
    /// Time that packets waited before their transmission began.
    pub waits: Histogram,
}

impl LinkCounts {
    /// The same with what regulators did that stand elsewhere.
    #[must_use]
    pub fn regulated_by(self, other: &Self) -> Self {
        let Self { discarded, made, resent, .. } = *other;
        Self { discarded, made, resent, ..self }
    }

    /// The row of the results, over so many seconds.
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

/// What was run: equal provenance, seed and run give equal results.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit from which it was built; null where that is not known.
    pub commit: Option<String>,
    /// Whether its sources were changed since that commit; null where that is not known.
    pub dirty: Option<bool>,
    /// SHA-256 of the scenario with everything that presets and overrides say, as JSON with sorted keys.
    pub scenario_sha256: String,
    /// SHA-256 of the whole configuration, with every key that was left out (`ackclock check --show` prints it), as JSON
    /// with sorted keys.
    pub configuration_sha256: String,
    /// The files that were read, as the scenario writes their paths, with the SHA-256 of their contents.
    pub inputs: BTreeMap<String, String>,
    /// The overrides (`--set` and what stands for it), as they were given.
    pub set: Vec<String>,
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
