//! Segmentation and concatenation of SDUs (TS 25.322 sections 9.2.2.8 and 11.3.2.1).
//!
//! A PDU has room for a fixed number of octets. A length indicator, which takes octets of the payload, marks the end of
//! an SDU; the next SDU follows in the same PDU. If an SDU leaves no room for its indicator, the next PDU marks the
//! SDU's end. A PDU with spare room has another indicator for its padding, or for a STATUS in the padding's place.

use ackclock_core::Time;

use super::pdu::Payload;
use super::sdus::Sdus;

/// Layout of PDUs, in octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Room in a PDU for SDUs and length indicators, octets.
    pub(super) octets: u32,
    /// Size of a length indicator, octets.
    pub(super) indicator: u32,
}

/// Largest PDU with 7-bit length indicators, octets including its header; larger PDUs have 15-bit indicators.
const MOST_OF_SHORT: u32 = 126;

impl Shape {
    /// Layout of PDUs with this many octets after the header.
    pub(super) const fn new(octets: u32, header: u32) -> Self {
        Self { octets, indicator: if octets + header <= MOST_OF_SHORT { 1 } else { 2 } }
    }
}

/// PDU filled with parts of SDUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filled {
    pub(super) payload: Payload,
    /// Octets of padding after the PDU's last indicator, available for a STATUS.
    pub(super) padding: u32,
}

impl Sdus {
    /// Fills a PDU to be sent at `now`; `None` if no data is queued.
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
