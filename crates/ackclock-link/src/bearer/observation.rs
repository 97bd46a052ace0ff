//! What a box that only observes a queue knows of it.

use ackclock_core::{FlowId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Side of the radio's queue on which a box is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The box is between the servers and the queue.
    #[default]
    Network,
    /// The box is between the queue and the mobiles.
    Mobile,
}

/// Condition under which data counts as departed from a queue that is only observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Data counts as departed if it is among the oldest bytes, as many as the link sends at the recent rate in one
    /// minimum round trip of the loop. This condition estimates departures for which no ACK has arrived yet.
    Estimated,
    /// Data counts as departed only if the departure is certain: the data is acknowledged, or has arrived.
    Certain,
}

/// Starting point of a right edge, taken from a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The acknowledgement number of the flow.
    Acked,
    /// The acknowledgement number plus the number of SACKed bytes.
    Sacked,
    /// The end of the data that has arrived at the box.
    Arrived,
}

impl Base {
    /// Returns the base that shows which data has certainly left a queue observed from this side.
    pub const fn of(side: Side) -> Self {
        match side {
            Side::Network => Self::Sacked,
            Side::Mobile => Self::Arrived,
        }
    }
}

/// An estimate calculated from an ACK or from arriving data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Flow of the ACK or data.
    pub flow: FlowId,
    /// Payload bytes of the flow that have left the queue.
    pub bytes: u64,
    /// Time for which the queue was empty before the bytes left it.
    pub idle: Span,
    /// Whether the window triggered the data: the sender sent it as soon as the window allowed.
    pub called: bool,
    /// Delay from an advertised window to its effect on departures from the queue.
    pub horizon: Span,
    /// Excess delay with which the box learns of the departures.
    pub late: Span,
    /// Whether a probe keeps the windows closed.
    pub probing: bool,
    /// Base of right edges, which shows the data that has certainly left the queue.
    pub base: Base,
    /// Number of bytes beyond `base` that have left the queue according to the estimate.
    pub leaves: u64,
    /// Longest queueing delay of the last one to two seconds; `None` if no sample shows it.
    pub waited: Option<Span>,
    /// Time at which the newest data that has left the queue passed the box. Data of all flows that passed before has
    /// left a queue that serves in order of arrival. `None` if no sample shows it.
    pub passed: Option<Time>,
    /// Whether data of the flow was retransmitted since its last observation.
    pub repeats: bool,
}
