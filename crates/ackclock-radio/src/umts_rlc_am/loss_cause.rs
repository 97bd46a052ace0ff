//! Causes of losses.

use ackclock_link::Cause;

/// Cause of the loss of an SDU, or of a PDU below the RLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossCause {
    /// A PDU was sent as often as MaxDAT allows.
    MaxDat,
    /// The RLC entities were reset or re-established.
    Reset,
    /// The air interface lost a PDU.
    Air,
    /// The Iub interface lost a PDU, or the queue of the base station was full.
    BaseStation,
    /// A hand-over did not forward the data.
    Handover,
    /// The SDU was in the buffer for longer than the age limit.
    Aged,
}

impl LossCause {
    /// Cause of the event that reports the loss.
    pub(super) const fn event(self) -> Cause {
        match self {
            Self::Handover => Cause::Handover,
            Self::Aged => Cause::Aged,
            Self::MaxDat | Self::Reset | Self::Air | Self::BaseStation => Cause::Medium,
        }
    }
}
