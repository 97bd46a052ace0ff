//! PDUs that are sent together.

use super::iub::Sent;
use crate::umts_rlc_am::{Asks, Pdu};

/// PDUs that are sent together; kept to reuse the memory.
#[derive(Default)]
pub(super) struct Filling {
    pub(super) pdus: Vec<Pdu>,
    /// Channels of the PDUs, in the order of the PDUs.
    pub(super) runs: Vec<Run>,
    /// PDUs of a block that HARQ may send again.
    pub(super) block: Vec<OfChannel>,
}

/// A PDU, and the number of its channel among those of its user.
pub(super) type OfChannel = (u8, Sent);

/// Consecutive PDUs of one channel.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Number of the channel among those of its user.
    pub(super) channel: u8,
    /// Number of PDUs.
    pub(super) pdus: u32,
    /// What the RLC end of the channel requests after filling.
    pub(super) asks: Asks,
}
