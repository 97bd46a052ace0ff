//! Segmentation and concatenation (TS 25.322 sections 9.2.2.8 and 11.3.2.1).
//!
//! A PDU has room for a fixed number of octets. A length indicator, which takes part of that room, marks the end of an
//! SDU; the next SDU follows in the same PDU. If an SDU leaves no room for its indicator, the next PDU marks its end.
//! A PDU with spare room has another indicator for its padding, or for a STATUS in place of padding.

use ackclock_core::Time;

use super::pdu::Payload;
use super::sdus::Sdus;

/// Layout of PDUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Room for SDUs and length indicators, octets.
    pub(super) octets: u32,
    /// Octets of a length indicator.
    pub(super) indicator: u32,
}

/// Largest PDU with length indicators of 7 bits, octets including its header; larger ones have 15 bits.
const MOST_OF_SHORT: u32 = 126;

impl Shape {
    /// PDUs with this many octets of room after a header.
    pub(super) const fn new(octets: u32, header: u32) -> Self {
        Self { octets, indicator: if octets + header <= MOST_OF_SHORT { 1 } else { 2 } }
    }
}

/// A filled PDU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filled {
    pub(super) payload: Payload,
    /// Octets of padding after its last indicator, available for a STATUS.
    pub(super) padding: u32,
}

impl Sdus {
    /// Fills a PDU sent at `now`; `None` if there is nothing to send.
    pub(super) fn fill(&mut self, now: Time, shape: Shape) -> Option<Filled> {
        let Shape { octets: mut room, indicator } = shape;
        let mut payload = Payload { first: self.next(), ends: 0, goes_on: false };
        if self.uncut > 0 || self.owes_end {
            payload.first -= 1;
        }
        if self.owes_end {
            self.owes_end = false;
            payload.ends = 1;
            room -= indicator;
        }
        while room > 0 && (self.uncut > 0 || self.begin(now)) {
            if self.uncut > room {
                self.uncut -= room;
                room = 0;
                payload.goes_on = true;
                break;
            }
            let left = room - self.uncut;
            self.uncut = 0;
            self.depart(now);
            if left < indicator {
                room = 0;
                payload.goes_on = true;
                self.owes_end = true;
                break;
            }
            room = left - indicator;
            payload.ends += 1;
        }
        if payload.sdus().is_empty() {
            return None;
        }
        self.on_cut(payload);
        Some(Filled { payload, padding: room.saturating_sub(indicator) })
    }
}
