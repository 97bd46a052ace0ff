//! What rows of flows have where `measure` asks for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// Gaps between the ACKs of a flow, at two places of their way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AckGapResult {
    /// Where they leave the edge; those of an upload, where they come to it.
    pub edge: GapResult,
    /// Where they reach the server, or, of an upload, the mobile; with a relay these are its ACKs, and those at the edge the mobile's.
    pub server: GapResult,
}

/// Gaps between ACKs at one place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapResult {
    /// The gaps, ms.
    #[serde(flatten)]
    pub ms: Distribution,
    /// Share of gaps shorter than half of their median: ACK compression. Null where there was no gap.
    pub compressed: Option<f64>,
}

/// What the link that a transfer's data crosses could have carried in the transfer's time, and how much of it that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkShareResult {
    /// Mean rate that the link could have carried from the request until the last byte of payload was delivered, as `bottleneck.capacity_bps` in the
    /// whole run, bit/s; over several transfers, weighted by their times. Where a rate is drawn for each packet it is an estimate from
    /// all that was sent so far. Null where nothing shows it, in a cell, which estimates it for whole runs, and of a transfer that
    /// did not end.
    pub capacity_bps: Option<f64>,
    /// Packets of the transfer that were delivered, with their headers and each counted once, as a share of that.
    pub utilisation: Option<f64>,
}

/// Reductions of a sender's window though nothing was lost: of what was first sent again, an earlier copy arrived. With a relay
/// these are sums over both connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpuriousResult {
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast retransmit.
    pub fast_retransmits: u64,
}
