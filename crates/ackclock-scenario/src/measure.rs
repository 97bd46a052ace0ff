//! What is measured beside the results, where a scenario asks for it: `measure = ["transit", "ack-gaps", "spurious", "utilisation"]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that is measured only where it is asked for, because it costs time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// How long data segments travel from their sender to its peer (`transit_ms`).
    Transit,
    /// Gaps between the ACKs of a flow where they leave the edge and where they reach the source of its data (`ack_gap_ms`).
    AckGaps,
    /// Which time-outs and fast retransmits were for nothing (`spurious`).
    Spurious,
    /// What each transfer got of the link while it was under way (`link`).
    Utilisation,
}

impl Measure {
    /// Whether what passes the wires between boxes tells it.
    pub(crate) fn is_at_wires(self) -> bool {
        self != Self::Utilisation
    }
}
