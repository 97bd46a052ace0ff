//! What the two entities send each other.

use std::ops::Range;

use super::sn::{SduNumber, Sn};
use super::status::Status;

/// A protocol data unit, as large as every other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pdu {
    /// AMD or UMD PDU: parts of SDUs.
    Data(Data),
    /// A UMD PDU of which the radio lost what it carried.
    Lost(Payload),
    /// STATUS PDU.
    Status(Status),
    /// RESET PDU with its number.
    Reset(ResetNumber),
    /// RESET ACK PDU with the number of the RESET.
    ResetAck(ResetNumber),
}

/// RSN: one bit, which changes from reset to reset.
pub(crate) type ResetNumber = bool;

/// An AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Data {
    pub(crate) sn: Sn,
    /// P: the peer is to report.
    pub(crate) poll: bool,
    pub(crate) payload: Payload,
    /// A STATUS in place of padding.
    pub(crate) piggyback: Option<Status>,
}

/// The SDUs of which a PDU has parts: some that end in it, by its length indicators, and at most one that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Payload {
    pub(crate) first: SduNumber,
    /// Length indicators that tell the end of an SDU.
    pub(crate) ends: u16,
    /// Whether it has a part too of an SDU that does not end in it.
    pub(crate) goes_on: bool,
}

impl Payload {
    /// Every SDU that has a part in it or its end.
    pub(crate) fn sdus(self) -> Range<SduNumber> {
        self.first..self.first + u64::from(self.ends) + u64::from(self.goes_on)
    }

    /// Those that end in it.
    pub(crate) fn ended(self) -> Range<SduNumber> {
        self.first..self.first + u64::from(self.ends)
    }
}
