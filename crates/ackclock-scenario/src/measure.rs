//! Optional measurements of a scenario: `measure = ["transit", "ack-gaps", "spurious", "utilisation"]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measurement that is off by default because it costs time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// One-way delay of data segments from sender to receiver (`transit_ms`).
    Transit,
    /// Time between the ACKs of a flow as they leave the edge and as they reach the sender (`ack_gap_ms`).
    AckGaps,
    /// Spurious timeouts and fast retransmits (`spurious`).
    Spurious,
    /// Share of the link capacity that each transfer used while it was active (`link`).
    Utilisation,
}

impl Measure {
    /// Whether it is measured from the packets on the wired links.
    pub(crate) fn is_at_wires(self) -> bool {
        self != Self::Utilisation
    }
}
