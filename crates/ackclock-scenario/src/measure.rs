//! Optional measurements of a scenario: `measure = ["rtt_ms", "transit", "ack-gaps", "spurious", "utilisation", "radio"]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measurement that is off by default because it costs time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Distribution of the RTT samples of a flow in 200 quantiles (`rtt_ms.cdf`).
    #[serde(rename = "rtt_ms")]
    Rtt,
    /// One-way delay of data segments from sender to receiver (`transit_ms`).
    Transit,
    /// Time between the ACKs of a flow as the ACKs leave the edge and as they reach the sender (`ack_gap_ms`).
    AckGaps,
    /// Spurious timeouts and fast retransmits (`spurious`).
    Spurious,
    /// Share of the link capacity that each transfer used while it was active (`link`).
    Utilisation,
    /// Queues, PDUs and losses of the radio network for each user (`users[].radio`).
    Radio,
}

impl Measure {
    /// Whether the measurement uses packets on the wired links.
    pub(crate) fn is_at_wires(self) -> bool {
        matches!(self, Self::Transit | Self::AckGaps | Self::Spurious)
    }
}
