//! Results of the optional measurements selected by the scenario key `measure`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// Time between consecutive ACKs of a flow, measured at two points of their path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AckGapResult {
    /// Times between the ACKs as they leave the edge; for an upload, as they arrive at the edge.
    pub edge: GapResult,
    /// Times between the ACKs as they arrive at the data sender: the server, or the mobile for an upload. With a relay,
    /// the ACKs at the data sender are the relay's ACKs, unlike the ACKs at the edge.
    pub server: GapResult,
}

/// Time between consecutive ACKs at one point of their path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapResult {
    /// Distribution of the times between ACKs, ms.
    #[serde(flatten)]
    pub ms: Distribution,
    /// Share of ACK gaps shorter than half of their median, which indicates ACK compression. The share of short ACK
    /// gaps is null if the flow has no ACK gaps.
    pub compressed: Option<f64>,
}

/// Capacity of the link during a transfer, and the share of the capacity that the transfer used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkShareResult {
    /// Mean capacity from the request until the last byte was delivered, defined like `bottleneck.capacity_bps`, bit/s.
    /// The mean capacity over several transfers weights each transfer by its duration. If a rate is drawn for each
    /// packet, the capacity is estimated from the packets sent so far. The capacity is null if it is unknown, in a cell
    /// (which estimates only entire runs), and for an unfinished transfer.
    pub capacity_bps: Option<f64>,
    /// Share of the link capacity used by the transfer's delivered packets, with headers and with each packet counted
    /// once.
    pub utilisation: Option<f64>,
}

/// Number of spurious window reductions of a sender. A reduction is spurious if an earlier copy of its first
/// retransmitted segment arrived, so no packet was lost. With a relay, the numbers of spurious reductions are sums over
/// both connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpuriousResult {
    /// Number of spurious retransmission timeouts.
    pub timeouts: u64,
    /// Number of spurious fast retransmits.
    pub fast_retransmits: u64,
}
