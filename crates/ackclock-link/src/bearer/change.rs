//! Changes of a bearer while it runs.

use std::ops::Range;

use ackclock_core::{Law, Rate, Span, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::errors::AnyErrorProcess;
use crate::{CellUser, Files, Medium};

/// A change of one direction of a running bearer.
pub enum Change {
    /// Replaces the medium; see [`Link::replace_medium`](crate::Link::replace_medium).
    Medium(Box<dyn Medium>),
    /// Interrupts the transmission of the users with these numbers in one direction until the given time. An outage
    /// that ends at the instant of the change only reports the rates after an earlier outage.
    Outage(Range<u32>, Time, OutageKind),
    /// Changes the dedicated channel of each user, in the order of the users' numbers.
    Dedicated(Vec<DedicatedChange>),
    /// Hands a user over. A hand-over interrupts both directions, whatever the direction of the change.
    Handover(Handover),
    /// Changes the cell of the downlink.
    Cell(CellChange),
    /// Changes the delay of the Iub interface, or each user's rate on it; `None` for an unlimited rate.
    Iub(Span, Option<Rate>),
}

/// Change of a running cell. Blocks and packets in transit keep their fate and their arrival times.
pub enum CellChange {
    /// New settings of the channels of the users with these numbers.
    User(Range<u32>, CellUser),
    /// Error process of each user's packets.
    Loss(Vec<AnyErrorProcess>),
    /// Error process of each user's blocks.
    HarqError(Vec<AnyErrorProcess>),
    /// Distribution of the propagation delay. Packets of one user stay in order.
    Delay(Law<Span>),
    /// Interrupts the channels of the users with these numbers until the given time.
    Outage(Range<u32>, Time, OutageKind),
}

/// New value of a setting of a dedicated channel. The value applies from the next TTI on; PDUs in transit keep their
/// arrival times and their fate.
pub enum DedicatedChange {
    /// Payload rate, and the number of PDUs that this rate transmits in a TTI.
    Rate(Rate, u32),
    /// One-way delay from the end of a TTI until the far end processes its PDUs. No PDU overtakes an earlier PDU.
    Delay(Span),
    /// Error process, and the expected share of the PDUs that arrive.
    Errors(AnyErrorProcess, f64),
}

/// Inputs from which the changes of a running bearer are built, in addition to its table.
#[derive(Clone, Copy)]
pub struct ChangeContext<'a> {
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// Name of the change. A new process draws from the streams named `down/NAME/...` or `up/NAME/...`.
    pub name: &'a str,
    /// Reads the files that the table names.
    pub files: &'a dyn Files,
}

/// Hand-over of one user to another part of the radio network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Number of the user.
    pub user: u32,
    /// Part of the network that changes.
    pub to: HandoverTo,
    /// End of the hand-over: until then, nothing is sent over the air of the user.
    pub until: Time,
    /// Whether the old part of the network forwards the data that it holds to the new part; otherwise the data is lost.
    pub forward: bool,
}

/// Part of the radio network that a hand-over changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverTo {
    /// Another cell or base station of the same controller. The radio link control continues.
    #[default]
    Cell,
    /// Another controller. The radio link control is re-established.
    Controller,
}

/// Behaviour of the transmitter during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutageKind {
    /// The transmitter sends nothing and packets stay queued; timers of the link layer run on.
    Silent,
    /// The transmitter does not notice the outage: all packets that it sends are lost.
    Fade,
}
