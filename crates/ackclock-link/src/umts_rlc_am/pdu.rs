//! Messages between the two entities.

use std::ops::Range;

use super::sn::{SduNumber, Sn};
use super::status::Status;

/// A protocol data unit; all have the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pdu {
    /// AMD or UMD PDU: parts of SDUs.
    Data(Data),
    /// A UMD PDU whose content the radio lost.
    Lost(Payload),
    /// STATUS PDU.
    Status(Status),
    /// RESET PDU with its number.
    Reset(ResetNumber),
    /// RESET ACK PDU with the number of the RESET.
    ResetAck(ResetNumber),
}

impl Pdu {
    /// Whether it is data that was not sent before it was filled, when `new` was the number of the next new PDU.
    pub(crate) fn is_new(&self, new: Sn) -> bool {
        // Retransmissions are at most a window behind.
        matches!(self, Self::Data(data) if data.sn.above(new) < Sn::MOST / 2)
    }
}

/// RSN: one bit, alternating from reset to reset.
pub(crate) type ResetNumber = bool;

/// An AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Data {
    pub(crate) sn: Sn,
    /// P: the peer must report.
    pub(crate) poll: bool,
    pub(crate) payload: Payload,
    /// A STATUS in place of padding.
    pub(crate) piggyback: Option<Status>,
}

/// SDUs with parts in a PDU: those that end in it, by its length indicators, and at most one that continues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Payload {
    pub(crate) first: SduNumber,
    /// Length indicators that mark the end of an SDU.
    pub(crate) ends: u16,
    /// Whether it also has a part of an SDU that does not end in it.
    pub(crate) goes_on: bool,
}

impl Payload {
    /// Every SDU with a part or its end in it.
    pub(crate) fn sdus(self) -> Range<SduNumber> {
        self.first..self.first + u64::from(self.ends) + u64::from(self.goes_on)
    }

    /// SDUs that end in it.
    pub(crate) fn ended(self) -> Range<SduNumber> {
        self.first..self.first + u64::from(self.ends)
    }
}
