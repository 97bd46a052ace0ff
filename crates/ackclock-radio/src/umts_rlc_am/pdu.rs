//! PDUs that the two RLC entities exchange.

use std::ops::Range;

use super::loss_cause::LossCause;
use super::sn::{SduNumber, Sn};
use super::statuses::StatusRef;

/// RLC protocol data unit, or a run of several. All PDUs have the same size, or each PDU fills a grant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pdu {
    /// AMD or UMD PDU with parts of SDUs.
    Data(Data),
    /// A PDU with this content that was lost below the RLC, with the cause.
    Lost(Payload, LossCause),
    /// STATUS PDU, which reports received and missing PDUs.
    Status(StatusRef),
    /// RESET PDU with its number.
    Reset(ResetNumber),
    /// RESET ACK PDU with the number of the RESET.
    ResetAck(ResetNumber),
}

impl Pdu {
    /// Size of the PDU where PDUs fill grants, octets. A RESET has 4 octets (TS 25.322 section 9.2.1.7).
    pub(crate) fn octets(&self) -> u32 {
        match self {
            Self::Data(Data { payload, .. }) | Self::Lost(payload, _) => payload.octets.into(),
            Self::Status(status) => status.octets.into(),
            Self::Reset(_) | Self::ResetAck(_) => 4,
        }
    }

    /// Number of PDUs of a run.
    pub(crate) const fn count(&self) -> u16 {
        match self {
            Self::Data(data) => data.count,
            Self::Lost(..) | Self::Status(_) | Self::Reset(_) | Self::ResetAck(_) => 1,
        }
    }

    /// Returns `count` PDUs of a run, without the first `before` PDUs.
    pub(crate) const fn part(self, before: u16, count: u16) -> Self {
        match self {
            Self::Data(data) => Self::Data(Data { sn: data.sn.plus(before), count, ..data }),
            other => other,
        }
    }

    /// Number of PDUs of a run with parts of SDUs; 0 for control.
    pub(crate) fn data_pdus(&self) -> u64 {
        if let Self::Data(data) = self { data.count.into() } else { 0 }
    }

    /// STATUS in the PDU.
    pub(super) const fn status(&self) -> Option<StatusRef> {
        match self {
            Self::Data(data) => data.piggyback,
            Self::Status(status) => Some(*status),
            Self::Lost(..) | Self::Reset(_) | Self::ResetAck(_) => None,
        }
    }

    /// Whether the PDU is new data, not a retransmission. The argument `new` is the sequence number of the next new PDU
    /// before the TTI was filled.
    pub(crate) fn is_new(&self, new: Sn) -> bool {
        // Sequence numbers of retransmissions are at most a window below `new`.
        matches!(self, Self::Data(data) if data.sn.above(new) < Sn::MOST / 2)
    }
}

/// RSN: a one-bit reset number that alternates from reset to reset.
pub(crate) type ResetNumber = bool;

/// AMD or UMD PDU with user data, or a run of several: new PDUs of one size within one SDU, without STATUS, which are sent
/// together. They are separated where their fates differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Data {
    /// Sequence number of the first PDU.
    pub(crate) sn: Sn,
    /// Number of PDUs.
    pub(crate) count: u16,
    /// P: the poll bit of each PDU, which requests a STATUS from the peer.
    pub(crate) poll: bool,
    pub(crate) payload: Payload,
    /// STATUS in place of the PDU's padding.
    pub(crate) piggyback: Option<StatusRef>,
}

/// SDUs with parts in a PDU: the SDUs that end in the PDU, as its length indicators show, and at most one SDU that
/// continues in the next PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Payload {
    pub(crate) first: SduNumber,
    /// Number of length indicators that mark the end of an SDU.
    pub(crate) ends: u16,
    /// Whether the PDU also contains a part of an SDU that continues in the next PDU.
    pub(crate) goes_on: bool,
    /// Octets of a PDU that fills a grant, with its header; 0 if all PDUs have the same size.
    pub(crate) octets: u16,
}

impl Payload {
    /// SDUs with a part or their end in the PDU.
    pub(crate) fn sdus(self) -> Range<SduNumber> {
        self.first..self.first + u64::from(self.ends) + u64::from(self.goes_on)
    }

    /// SDUs that end in the PDU.
    pub(crate) fn ended(self) -> Range<SduNumber> {
        self.first..self.first + u64::from(self.ends)
    }
}
