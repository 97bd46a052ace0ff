//! Result of a run: the object that `--json` prints, one line per run. Names and order of the keys are stable between
//! versions.
//!
//! A number that does not exist is null, never 0. Rates are in bit/s, and the name of a time's key contains its unit.
//! No result depends on the machine or the time of day, so repeated runs print identical output.

mod measured;
mod media;
mod radio;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::measured::{AckGapResult, GapResult, LinkShareResult, SpuriousResult};
pub use self::media::MediaResult;
pub use self::radio::{
    BlockUse, HarqResult, IubCounts, IubResult, LostBy, RadioCounts, RadioResult, RlcResult, UserRadioResult,
};
use crate::{Histogram, Span};

/// Results of one run of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Name of the scenario file.
    pub scenario: String,
    /// Seed of the scenario's random numbers.
    pub seed: u64,
    /// Index of the run among the runs with this seed, starting at 0.
    pub run: u32,
    /// Simulated duration of the run, seconds.
    pub duration_s: f64,
    /// Results of the long-lived flows, one row per flow. Short connections of a workload such as "web" have no rows.
    pub flows: Vec<FlowResult>,
    /// Results of the users, one row per user.
    pub users: Vec<UserResult>,
    /// Transfers over short connections, by size class. Rows for all users together come first, followed by rows for
    /// each user if there are several users. Size classes without transfers are left out.
    pub transfers: Vec<TransferResult>,
    /// Fairness between users and between flows.
    pub fairness: FairnessResult,
    /// Results of the downlink queue and link.
    pub bottleneck: LinkResult,
    /// Results of the uplink queue and link. In a cell, the uplink results cover all users together.
    pub uplink: LinkResult,
    /// Faults of single connections that acted on a real link, also those that have ended; left out without faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultResult>,
    /// Computational cost of the run.
    pub engine: EngineResult,
    /// Origin of the result: program version, scenario and input files.
    pub provenance: Provenance,
}

/// Effect of the faults of one kind on the same flows of a real link (`ackclock link --fault`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultResult {
    /// Kind of the fault, as in `ackclock link fault`.
    pub fault: String,
    /// Flows on which the fault acted, as in `--only`; empty for all flows that cross the link.
    pub only: Vec<String>,
    /// Number of packets that the fault dropped.
    pub dropped: u64,
    /// Number of connections that the fault reset.
    pub reset: u64,
}

/// Direction of a flow's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Towards {
    /// The data flows to the mobile: a download.
    #[default]
    Mobile,
    /// The data flows to the server: an upload.
    Server,
}

impl Towards {
    /// Returns whether the flow is a download.
    pub fn is_mobile(&self) -> bool {
        *self == Self::Mobile
    }
}

/// Results of one flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResult {
    /// Number of the flow, starting at 0.
    pub id: u32,
    /// Number of the user to whom the flow belongs.
    pub user: u32,
    /// Direction of the flow's data; left out for a download.
    #[serde(default, skip_serializing_if = "Towards::is_mobile")]
    pub towards: Towards,
    /// Name of the TCP sender; "gcc" for media.
    pub sender: String,
    /// Goodput of the flow, bit/s: in-order payload delivered from the flow's start until its end or the end of the
    /// run. The goodput is null for a flow of real packets that sent only one packet.
    pub goodput_bps: Option<f64>,
    /// Goodput of the flow including headers, with each packet counted once, bit/s.
    pub wire_goodput_bps: Option<f64>,
    /// In-order payload delivered by the flow, bytes. In `ackclock link`, the payload of UDP is what left the link
    /// intact, each datagram once.
    pub delivered_bytes: u64,
    /// Data segments sent, retransmissions included. With a relay, the segment and timeout counts of a flow are sums
    /// over both connections.
    pub segments_sent: u64,
    /// Number of data segments retransmitted; for media, of packets sent again after a request. In `ackclock link`, the number of retransmissions is null for everything
    /// but TCP: the packet numbers of QUIC are encrypted.
    pub retransmits: Option<u64>,
    /// Number of fast recoveries entered after duplicate or selective ACKs. The number of fast recoveries is null for
    /// media, and in `ackclock link`, which has no access to senders.
    pub fast_retransmits: Option<u64>,
    /// Number of retransmission timeouts of the sender. The number of timeouts is null for media, and in `ackclock
    /// link`, which has no access to senders.
    pub timeouts: Option<u64>,
    /// Number of retransmission timeouts that the sender found spurious. The number of spurious timeouts is null if the
    /// sender cannot detect spurious timeouts.
    pub spurious_timeouts: Option<u64>,
    /// Spurious window reductions, as seen by the simulator. The key `spurious` is left out unless `measure` contains
    /// `spurious`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spurious: Option<SpuriousResult>,
    /// RTT samples of the sender, ms. With a relay, the RTT samples come from the original sender. In `ackclock link`,
    /// which has no access to the kernel's RTT samples, the RTT samples come from the spin bit of QUIC (RFC 9000
    /// section 17.4); they are null for other protocols and if an end does not use the spin bit: see `edge_rtt_ms`.
    pub rtt_ms: Distribution,
    /// Mean RTT of the sender, measured with one timed segment at a time, ms.
    pub timed_rtt_ms: Option<f64>,
    /// Mean RTT between edge and mobile, measured at the edge, ms. For an upload, the mean RTT at the edge is the RTT
    /// of the handshake. For QUIC, the RTT between the wired end of the link and the mobile, by the spin bit.
    pub edge_rtt_ms: Option<f64>,
    /// Time from the flow's start until its last byte was delivered, s. The completion time is null if the flow did not
    /// complete.
    pub completion_s: Option<f64>,
    /// Share of the link capacity used by the flow until its last byte was delivered. The key `link` is left out unless
    /// `measure` contains `utilisation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShareResult>,
    /// Name of the flow's regulator at the edge. The regulator's name is null for a simulated upload without a
    /// regulator.
    pub regulator: Option<String>,
    /// Mean retransmission timeout without backoff, sampled at the ACKs of timed segments, ms.
    pub rto_ms_mean: Option<f64>,
    /// Losses grouped by cycles of the congestion window. Loss cycles are null if no packet was lost.
    pub loss_cycles: Option<LossCycles>,
    /// One-way delay of each transmitted data segment from sender to receiver, ms. The key `transit_ms` is left out
    /// unless `measure` contains `transit`. With a relay, the transit delays are in `legs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit_ms: Option<Distribution>,
    /// Time between consecutive ACKs of the flow, ms. The key `ack_gap_ms` is left out unless `measure` contains
    /// `ack-gaps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_gap_ms: Option<Box<AckGapResult>>,
    /// Results of the two connections of a relay. The key `relay` is left out without a relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<Box<RelayResult>>,
    /// Frames of a flow with the workload "media". The key `media` is left out for every other flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<Box<MediaResult>>,
    /// Endpoints and times of a flow of real packets.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealFlow>,
}

/// Results of a flow that a relay splits into two connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayResult {
    /// Largest amount of the flow's payload buffered in the relay, bytes.
    pub most_buffered_bytes: u64,
    /// Results of the two connections, in the direction of the data. For a download, the first connection is from
    /// server to relay, and the second from relay to mobile. For an upload, the first connection is from mobile to
    /// relay, and the second from relay to server.
    pub legs: [LegResult; 2],
}

/// Results of one of the two connections of a flow over a relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegResult {
    /// Name of this connection's TCP sender.
    pub sender: String,
    /// Payload acknowledged on this connection, bytes.
    pub acknowledged_bytes: u64,
    /// Data segments sent on this connection, retransmissions included.
    pub segments_sent: u64,
    /// Number of data segments retransmitted on this connection.
    pub retransmits: u64,
    /// Number of fast recoveries entered after duplicate or selective ACKs.
    pub fast_retransmits: u64,
    /// Number of retransmission timeouts on this connection.
    pub timeouts: u64,
    /// Number of retransmission timeouts that the sender found spurious. The number of spurious timeouts is null if the
    /// sender cannot detect spurious timeouts.
    pub spurious_timeouts: Option<u64>,
    /// RTT samples of this connection's sender, ms.
    pub rtt_ms: Distribution,
    /// One-way delay of data segments of this connection, ms. The key `transit_ms` is left out unless `measure`
    /// contains `transit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit_ms: Option<Distribution>,
}

/// Endpoints and times of a flow of real packets, present only in the results of `ackclock link`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RealFlow {
    /// Protocol of the flow: `tcp`, `quic`, `udp`, or `other`. One last row with `other` contains all remaining packets: ICMP,
    /// fragments, other protocols, TCP segments that cannot be read, and connections beyond the maximum number of rows.
    /// The payload of `other` includes headers. A QUIC connection that changes its address or port has a row for each. Simulated runs omit the key `protocol`.
    pub protocol: String,
    /// Address and port of the endpoint that sent more bytes. The address is null for the protocol `other`. Simulated
    /// runs omit the key `from`.
    pub from: Option<String>,
    /// Address and port of the endpoint that sent fewer bytes. The address is null for the protocol `other`. Simulated
    /// runs omit the key `to`.
    pub to: Option<String>,
    /// Arrival time of the flow's first packet at the link, s since the link started. Simulated runs omit the key
    /// `start_s`.
    pub start_s: f64,
    /// Time of the flow's last packet, s since the link started: its last arrival at the link, or the departure of its
    /// last data. Simulated runs omit the key `end_s`.
    pub end_s: f64,
    /// Bytes of the flow delivered on the downlink, headers and retransmissions included. The sum of `down_bytes` over
    /// all rows is `bottleneck.delivered_bytes`. Simulated runs omit the key `down_bytes`.
    pub down_bytes: u64,
    /// Bytes of the flow delivered on the uplink, headers and retransmissions included. The sum of `up_bytes` over all
    /// rows is `uplink.delivered_bytes`. Simulated runs omit the key `up_bytes`.
    pub up_bytes: u64,
}

/// Losses of a flow grouped by cycles of its congestion window. Losses close together belong to one cycle of growth and
/// loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossCycles {
    /// Number of window cycles.
    pub cycles: u64,
    /// Share of window cycles with one loss, 0 to 1.
    pub p1: f64,
    /// Share of window cycles with two losses, 0 to 1.
    pub p2: f64,
    /// Share of window cycles with at least three losses or a timeout, 0 to 1.
    pub p3: f64,
    /// Root mean square of the congestion window at the first loss of each cycle that duplicate ACKs detected, packets.
    pub wf: Option<f64>,
}

/// Results of one user of a run, summed over the user's flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserResult {
    /// Number of the user, starting at 0.
    pub id: u32,
    /// Number of the user's flows, including short connections.
    pub flows: u32,
    /// Goodput of the user over the entire run, bit/s: in-order payload delivered, in both directions.
    pub goodput_bps: f64,
    /// Goodput of the user including headers, over the entire run, bit/s.
    pub wire_goodput_bps: f64,
    /// In-order payload delivered to the user, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent on the user's flows, retransmissions included.
    pub segments_sent: u64,
    /// Number of data segments retransmitted on the user's flows.
    pub retransmits: u64,
    /// Number of retransmission timeouts on the user's flows.
    pub timeouts: u64,
    /// Results of the radio network for this user. The key `radio` is left out unless `measure` contains `radio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Box<UserRadioResult>>,
}

/// Results of the transfers in one size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferResult {
    /// Number of the user of these transfers; null for all users together.
    pub user: Option<u32>,
    /// Smallest transfer size in this class, bytes.
    pub from_bytes: u64,
    /// Largest transfer size in this class, bytes; null for the last class.
    pub to_bytes: Option<u64>,
    /// Number of completed transfers.
    pub count: u64,
    /// Number of transfers still active at the end of the run.
    pub unfinished: u64,
    /// Latency of transfers, ms: time from the request (the first packet of a new connection) until the last byte
    /// arrived.
    pub latency_ms: Distribution,
    /// Mean over transfers of size divided by latency, bit/s. The goodput is null without completed transfers.
    pub goodput_bps: Option<f64>,
    /// Share of the link capacity used by completed transfers while they were active. The key `link` is left out unless
    /// `measure` contains `utilisation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShareResult>,
}

/// Jain's fairness index, (sum x)^2 / (n sum x^2), of users and flows. Jain's index is 1 if all shares are equal, and
/// 1/n if one user or flow gets everything.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FairnessResult {
    /// Jain's fairness index of the users' goodputs in the common time: from the start of the last flow to the end of
    /// the first file, or of the run, among the flows that share a link. Jain's index is null for fewer than two users,
    /// without a common time, if no data was delivered in it, and in `ackclock link`.
    pub jain_users: Option<f64>,
    /// Jain's fairness index of the goodputs of the flows in `flows` in the common time, as for the users. Jain's index
    /// is null for fewer than two flows, without a common time, if no data was delivered in it, and in `ackclock link`.
    pub jain_flows: Option<f64>,
}

impl FairnessResult {
    /// Computes the fairness indices of users and flows from their goodputs in the same time.
    pub fn of(users: &[f64], flows: &[f64]) -> Self {
        Self { jain_users: jain_index(users), jain_flows: jain_index(flows) }
    }
}

/// Jain's fairness index of shares; there must be at least two shares, not all zero.
fn jain_index(shares: &[f64]) -> Option<f64> {
    let (sum, squares) =
        shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Results of the queue and link in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkResult {
    /// Mean capacity of the link, bit/s: the rate that it would have with data always queued, from the first flow's
    /// start to the last flow's end. A rate that varies in time is averaged, outages included. If a rate is drawn for
    /// each packet, the capacity is the bits sent divided by their transmission time, scaled by the time without
    /// outages. The capacity is null if no packet was sent. For a cell, the capacity is the run's estimate with all
    /// users backlogged, or the delivered rate if that rate is higher. The capacities of dedicated channels are summed.
    pub capacity_bps: Option<f64>,
    /// Share of the capacity used: bits delivered, headers and retransmissions included, divided by the capacity in the
    /// same time.
    pub utilisation: Option<f64>,
    /// Total goodput of the flows in this direction, bit/s: in-order payload delivered in `active_s`. The sum of the
    /// flows' own goodputs can be larger, because each covers the flow's own life. The total goodput is null for a
    /// direction without flows and in `ackclock link`.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Time covered by `capacity_bps`, `utilisation` and `goodput_bps`, seconds: from the first flow's start to the last
    /// flow's end; in a cell and in `ackclock link` the complete run. Times of dedicated channels are averaged, weighted
    /// by capacity. The time is null if no packet was sent.
    #[serde(default)]
    pub active_s: Option<f64>,
    /// Number of packets lost in the queue or on the radio link.
    pub drops: u64,
    /// Number of packets among `drops` that were discarded at the age limit, `edge.age_limit`. The key is present only for
    /// a queue with an age limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aged: Option<u64>,
    /// Number of packets of this direction dropped by regulators: redundant ACKs, and data that the mobile already has.
    pub discarded: u64,
    /// Number of packets of this direction generated by regulators.
    pub made: u64,
    /// Number of packets of this direction that regulators retransmitted from copies.
    pub resent: u64,
    /// Queueing delay of packets until their transmission starts, ms.
    pub queue_ms: Distribution,
    /// Queues, PDUs and losses of the radio network, present only for a bearer with radio link control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Box<RadioResult>>,
    /// Counts of impaired packets, present only for a link with `reorder`, `duplicate` or `corrupt`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<ImpairedTraffic>,
    /// Counts of real packets, present only in the results of `ackclock link`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealTraffic>,
}

impl LinkResult {
    /// Returns this result with the total goodput of `payload` bytes.
    #[must_use]
    pub fn with_payload(self, payload: Option<u64>) -> Self {
        let goodput_bps = payload.zip(self.active_s).map(|(bytes, seconds)| bytes as f64 * 8.0 / seconds);
        Self { goodput_bps, ..self }
    }
}

/// Counts of impaired packets in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImpairedTraffic {
    /// Packets delivered after a later packet of their flow had passed them (RFC 4737).
    pub reordered: Reordering,
    /// Number of copies that entered the queue behind their originals.
    pub duplicated: u64,
    /// Number of packets that got a wrong bit. The receiver's checksum drops them; they are not among `drops`.
    pub corrupted: u64,
}

/// Packets that were passed by later packets of their flow (RFC 4737).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reordering {
    /// Number of reordered packets.
    pub packets: u64,
    /// Number of reordered packets divided by the number of delivered packets; null if no packet was delivered.
    pub share: Option<f64>,
    /// Mean extent: the number of packets of the flow delivered from the first one that passed a reordered packet until
    /// that packet; null if no packet was reordered.
    pub mean_extent: Option<f64>,
    /// Maximum extent of a reordered packet.
    pub max_extent: u64,
}

/// Counts of real packets in one direction, present only in the results of `ackclock link`.
///
/// Balance of packets: `sent + made + resent + duplicated = delivered + drops + discarded + lost_by_machine + waiting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RealTraffic {
    /// Packets sent into this direction of the link, including packets that the machine lost before the link. `sent +
    /// made + resent`, plus `duplicated` if present, is `delivered + drops + discarded + lost_by_machine + waiting`.
    /// Simulated runs omit the key `sent`.
    pub sent: u64,
    /// Number of packets delivered at the far end of the link. Simulated runs omit the key `delivered`.
    pub delivered: u64,
    /// Bytes delivered at the far end of the link, headers and retransmissions included. Simulated runs omit the key
    /// `delivered_bytes`.
    pub delivered_bytes: u64,
    /// Number of packets lost by this machine instead of the emulated link, because a buffer of a device or of ackclock
    /// was full. A GSO packet dropped by a device counts as one packet. The number of lost packets is null if the
    /// kernel does not report its losses. Simulated runs omit the key `lost_by_machine`.
    pub lost_by_machine: Option<u64>,
    /// Number of packets still queued or in transit. Simulated runs omit the key `waiting`.
    pub waiting: u64,
    /// Number of packets that passed beside the link, because `--only` or `--except` did not select their flow. The key
    /// is present only with one of these options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypassed: Option<u64>,
    /// Packets in front of the link that were larger than `edge.mtu`. The key is present only with `edge.mtu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_big: Option<TooBig>,
}

/// Packets that were larger than the MTU of the hop in front of the link. Packets that the hop dropped are not among `sent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TooBig {
    /// Number of IPv4 packets without DF, which the hop sent into the link in fragments.
    pub fragmented: u64,
    /// Number of packets that the hop dropped.
    pub dropped: u64,
    /// Number of ICMP messages with the hop's MTU that the senders of dropped packets received.
    pub messages: u64,
}

/// Counters of the link in one direction.
#[derive(Clone, Debug, Default)]
pub struct LinkCounts {
    /// Mean capacity of the link, bit/s.
    pub capacity_bps: Option<f64>,
    /// Bytes delivered by the link, with headers.
    pub delivered_bytes: u64,
    /// Number of packets lost in the queue or on the radio link.
    pub drops: u64,
    /// Number of packets among `drops` that a queue dropped at its age limit; `None` without an age limit.
    pub aged: Option<u64>,
    /// Number of packets of this direction dropped by regulators.
    pub discarded: u64,
    /// Number of packets of this direction generated by regulators.
    pub made: u64,
    /// Number of packets of this direction retransmitted by regulators.
    pub resent: u64,
    /// Queueing delay of packets until their transmission starts.
    pub waits: Histogram,
    /// Impaired packets; `None` for a link without impairments.
    pub impaired: Option<ImpairedCounts>,
    /// Counters of the radio network; `None` without radio link control.
    pub radio: Option<Box<RadioCounts>>,
}

/// Counters of the impaired packets of one direction.
#[derive(Clone, Debug, Default)]
pub struct ImpairedCounts {
    /// Delivered packets.
    pub delivered: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// Sum of the extents of the reordered packets.
    pub extent: u64,
    /// Maximum extent of a reordered packet.
    pub max_extent: u64,
    /// Copies that entered the queue.
    pub duplicated: u64,
    /// Packets that got a wrong bit.
    pub corrupted: u64,
}

impl ImpairedCounts {
    fn result(&self) -> ImpairedTraffic {
        let share = |count: u64, of: u64| (of > 0).then(|| count as f64 / of as f64);
        ImpairedTraffic {
            reordered: Reordering {
                packets: self.reordered,
                share: share(self.reordered, self.delivered),
                mean_extent: share(self.extent, self.reordered),
                max_extent: self.max_extent,
            },
            duplicated: self.duplicated,
            corrupted: self.corrupted,
        }
    }
}

impl std::ops::AddAssign<&Self> for ImpairedCounts {
    fn add_assign(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.reordered += other.reordered;
        self.extent += other.extent;
        self.max_extent = self.max_extent.max(other.max_extent);
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
    }
}

impl LinkCounts {
    /// Returns a copy of these link counters in which the regulator counts come from `other`.
    #[must_use]
    pub fn regulated_by(self, other: &Self) -> Self {
        let Self { discarded, made, resent, .. } = *other;
        Self { discarded, made, resent, ..self }
    }

    /// Converts the link counters to the result of an interval of `seconds`.
    pub fn result(&self, seconds: f64) -> LinkResult {
        let carried = self.delivered_bytes as f64 * 8.0 / seconds;
        let capacity_bps = self.capacity_bps;
        LinkResult {
            capacity_bps,
            utilisation: capacity_bps.filter(|&capacity| capacity > 0.0).map(|capacity| carried / capacity),
            goodput_bps: None,
            active_s: Some(seconds).filter(|seconds| *seconds > 0.0),
            drops: self.drops,
            aged: self.aged,
            discarded: self.discarded,
            made: self.made,
            resent: self.resent,
            queue_ms: Distribution::from(&self.waits),
            radio: self.radio.as_ref().map(|radio| Box::new(radio.result())),
            impaired: self.impaired.as_ref().map(ImpairedCounts::result),
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
        if let Some(theirs) = other.aged {
            *self.aged.get_or_insert_default() += theirs;
        }
        self.discarded += other.discarded;
        self.made += other.made;
        self.resent += other.resent;
        self.waits.merge(&other.waits);
        if let Some(theirs) = &other.radio {
            **self.radio.get_or_insert_default() += theirs;
        }
        if let Some(theirs) = &other.impaired {
            *self.impaired.get_or_insert_default() += theirs;
        }
    }
}

/// Computational cost of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineResult {
    /// Number of events: node wake-ups and messages between nodes.
    pub events: u64,
    /// Number of packets delivered on the downlink.
    pub packets: u64,
    /// CPU time of the run, s; null unless requested.
    pub cpu_s: Option<f64>,
}

/// Origin of a run's result. Equal provenance, seed and run number give equal results.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of the ackclock program.
    pub version: String,
    /// Git commit from which the program was built; null if unknown.
    pub commit: Option<String>,
    /// Whether the program was built with uncommitted changes; null if unknown.
    pub dirty: Option<bool>,
    /// SHA-256 of the scenario after applying preset and overrides, as JSON with sorted keys.
    pub scenario_sha256: String,
    /// SHA-256 of the complete configuration with all defaults, as JSON with sorted keys. `ackclock check --show`
    /// prints the complete configuration.
    pub configuration_sha256: String,
    /// SHA-256 of the contents of each input file, by its path as written in the scenario.
    pub inputs: BTreeMap<String, String>,
    /// Certainty that the rates of each recording are the capacity of its link, by the recording's path as written in
    /// the scenario. Recordings of unknown certainty are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recordings: BTreeMap<String, String>,
    /// Overrides of the scenario as given on the command line (`--set` and its shorthands).
    pub set: Vec<String>,
}

/// Mean and percentiles of a time, ms.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Exact mean of the time, ms.
    pub mean: Option<f64>,
    /// Median of the time, ms, accurate to 1.6 %.
    pub p50: Option<f64>,
    /// 95th percentile of the time, ms, accurate to 1.6 %.
    pub p95: Option<f64>,
    /// 99th percentile of the time, ms, accurate to 1.6 %.
    pub p99: Option<f64>,
    /// 200 quantiles of the time, for the probabilities 0.0025, 0.0075, ..., 0.9975, each accurate to 1.6 %. Only
    /// `ack_gap_ms` has the key `cdf`, and `rtt_ms` if `measure` contains `rtt_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdf: Option<Box<[f64]>>,
}

impl Distribution {
    /// Returns the distribution of a histogram with its [`cdf`](Self::cdf).
    pub fn with_cdf(histogram: &Histogram) -> Self {
        let quantile = |number: u32| histogram.quantile((f64::from(number) + 0.5) / f64::from(QUANTILES));
        let cdf: Option<Box<[f64]>> =
            (0..QUANTILES).map(|number| quantile(number).map(Span::as_millis_f64)).collect();
        Self { cdf, ..Self::from(histogram) }
    }
}

/// Number of quantiles in the field `cdf`.
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
        // The first value is the 0.25 % quantile of 1 to 1000 ms, and the last value is the 99.75 % quantile.
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
        // Jain's index is (1 + 2 + 3)^2 / (3 (1 + 4 + 9)) = 36/42.
        assert_eq!(jain_index(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!((jain_index(&[1.0]), jain_index(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let empty = serde_json::to_string(&Distribution::from(&Histogram::default()));
        assert_eq!(empty.unwrap(), r#"{"mean":null,"p50":null,"p95":null,"p99":null}"#);
    }
}
