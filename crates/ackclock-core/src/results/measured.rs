//! Results of the optional measurements of `measure`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// Time between the ACKs of a flow, at two points of their path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AckGapResult {
    /// Gaps as the ACKs leave the edge; for an upload, as they arrive at it.
    pub edge: GapResult,
    /// Gaps as the ACKs arrive at the data sender: the server, or the mobile for an upload. With a relay these are the
    /// relay's ACKs, unlike those at the edge.
    pub server: GapResult,
}

/// Time between ACKs at one point of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapResult {
    /// The gaps, ms.
    #[serde(flatten)]
    pub ms: Distribution,
    /// Share of gaps shorter than half of their median: ACK compression. Null without gaps.
    pub compressed: Option<f64>,
}

/// Capacity of the link during a transfer, and the share that the transfer used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkShareResult {
    /// Mean capacity from the request until the last byte was delivered, defined like `bottleneck.capacity_bps`, bit/s.
    /// Several transfers are weighted by their durations. If a rate is drawn for each packet, it is estimated from the
    /// packets sent so far. Null if unknown, in a cell (which estimates entire runs) and for an unfinished transfer.
    pub capacity_bps: Option<f64>,
    /// Delivered packets of the transfer, with headers and each counted once, as a share of that capacity.
    pub utilisation: Option<f64>,
}

/// Window reductions of a sender although nothing was lost: an earlier copy of the first retransmitted segment arrived.
/// With a relay these are sums over both connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpuriousResult {
    /// Spurious retransmission timeouts.
    pub timeouts: u64,
    /// Spurious fast retransmits.
    pub fast_retransmits: u64,
}
