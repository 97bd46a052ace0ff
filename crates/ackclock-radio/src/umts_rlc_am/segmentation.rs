//! Segmentation and concatenation of SDUs (TS 25.322 sections 9.2.2.8 and 11.3.2.1; for grants TS 36.322 section 6.2.1).
//!
//! A PDU of fixed size has room for a fixed number of octets. A length indicator, which takes octets of the payload,
//! marks the end of an SDU; the next SDU follows in the same PDU. If an SDU leaves no room for its indicator, the next
//! PDU marks the SDU's end. A PDU with spare room has another indicator for its padding, or for a STATUS in the
//! padding's place.
//!
//! A PDU that fills a grant has no padding. Each part of an SDU after the first part takes 1.5 octets more of the header.
//!
//! A PDU of one packet has a whole SDU, or a segment where the grant ends (TS 38.322 section 5.7). The first PDU of an SDU
//! has the PDCP header, and each later one a segment offset.

use ackclock_core::Time;

use super::pdu::{Payload, Pdu};
use super::sdus::Sdus;
use super::{PDCP_HEADER, SEGMENT_OFFSET};

/// Layout of PDUs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// All PDUs have the same size.
    Fixed {
        /// Room in a PDU for SDUs and length indicators, octets.
        octets: u32,
        /// Size of a length indicator, octets.
        indicator: u32,
    },
    /// A PDU fills the rest of a grant; its header has this many octets.
    Grant(u32),
    /// A PDU has one SDU, or a segment of one; its header has this many octets.
    Packet(u32),
}

/// Room for a PDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Number of PDUs, or of octets if PDUs fill grants.
    pub(super) units: usize,
    /// Whether the PDU is the first one of its grant. The first PDU may be larger than the grant.
    pub(super) is_first: bool,
}

impl Room {
    /// Room after a further PDU, or a run.
    #[inline]
    pub(super) fn after(self, shape: Shape, pdu: &Pdu) -> Self {
        Self { units: self.units.saturating_sub(shape.units(pdu)), is_first: false }
    }
}

/// Largest PDU with 7-bit length indicators, octets including its header; larger PDUs have 15-bit indicators.
const MOST_OF_SHORT: u32 = 126;

impl Shape {
    /// Layout of PDUs with this many octets after the header.
    pub(super) const fn fixed(octets: u32, header: u32) -> Self {
        Self::Fixed { octets, indicator: if octets + header <= MOST_OF_SHORT { 1 } else { 2 } }
    }

    /// Room that a grant of `units` has after these PDUs.
    #[inline]
    pub(super) fn left(self, units: usize, pdus: &[Pdu]) -> Room {
        let used: usize = pdus.iter().map(|pdu| self.units(pdu)).sum();
        Room { units: units.saturating_sub(used), is_first: pdus.is_empty() }
    }

    /// Units of room that a PDU, or a run, takes.
    #[inline]
    fn units(self, pdu: &Pdu) -> usize {
        match self {
            Self::Fixed { .. } => pdu.count().into(),
            Self::Grant(_) | Self::Packet(_) => pdu.octets() as usize,
        }
    }

    /// Whether a PDU that was sent before fits into this room.
    #[inline]
    pub(super) fn holds(self, payload: Payload, room: Room) -> bool {
        match self {
            Self::Fixed { .. } => true,
            Self::Grant(_) | Self::Packet(_) => room.is_first || usize::from(payload.octets) <= room.units,
        }
    }

    /// Octets of headers that a queued SDU needs at most, if PDUs fill grants.
    pub(super) const fn overhead(self) -> u32 {
        match self {
            Self::Fixed { .. } | Self::Grant(_) => 2,
            Self::Packet(header) => header + PDCP_HEADER,
        }
    }
}

/// PDU filled with parts of SDUs, or a run of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filled {
    pub(super) payload: Payload,
    /// Number of PDUs with this payload; more than one only within an SDU.
    pub(super) count: u16,
    /// Octets of padding after the PDU's last indicator, available for a STATUS.
    pub(super) padding: u32,
}

impl Sdus {
    /// Fills a PDU to be sent at `now`, or a run of at most `most` PDUs; `None` if no data is queued, or none fits.
    #[inline]
    pub(super) fn fill(&mut self, now: Time, shape: Shape, room: Room, most: u16) -> Option<Filled> {
        match shape {
            Shape::Fixed { octets, .. } if self.uncut > octets && !self.owes_end => {
                Some(self.fill_within(octets, most.min(u16::try_from(room.units).unwrap_or(u16::MAX))))
            }
            Shape::Fixed { octets, indicator } => self.fill_fixed(now, octets, indicator),
            Shape::Grant(header) => self.fill_grant(now, header, room.units),
            Shape::Packet(header) => self.fill_packet(now, header, room.units),
        }
    }

    /// Fills a run of one to `most` PDUs that lie within the newest SDU, as most PDUs do.
    fn fill_within(&mut self, octets: u32, most: u16) -> Filled {
        let count = ((self.uncut - 1) / octets).min(most.into()).max(1);
        self.uncut -= count * octets;
        self.on_cut_within(count);
        let payload = Payload { first: self.newest(), goes_on: true, ..Payload::default() };
        Filled { payload, count: count as u16, padding: 0 }
    }

    fn fill_fixed(&mut self, now: Time, octets: u32, indicator: u32) -> Option<Filled> {
        let mut room = octets;
        let mut payload = Payload { first: self.next(), ..Payload::default() };
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
        Some(Filled { payload, count: 1, padding: room.saturating_sub(indicator) })
    }

    /// Fills a PDU of at most `most` octets.
    fn fill_grant(&mut self, now: Time, header: u32, most: usize) -> Option<Filled> {
        let most = most.min(u16::MAX.into()) as u32;
        let mut payload = Payload { first: self.next() - u64::from(self.uncut > 0), ..Payload::default() };
        let mut octets = 0;
        for parts in 0.. {
            // An odd number of lengths of 12 bits each ends with 4 bits of padding.
            let used = header + (3 * parts as u32).div_ceil(2) + octets;
            if used >= most || !(self.uncut > 0 || self.begin(now)) {
                break;
            }
            payload.octets = used as u16;
            let part = self.uncut.min(most - used);
            payload.octets += part as u16;
            (self.uncut, octets) = (self.uncut - part, octets + part);
            payload.goes_on = self.uncut > 0;
            if payload.goes_on {
                break;
            }
            self.depart(now);
            payload.ends += 1;
        }
        if payload.sdus().is_empty() {
            return None;
        }
        self.on_cut(payload);
        Some(Filled { payload, count: 1, padding: 0 })
    }

    /// Fills a PDU of at most `most` octets with an SDU or a segment of one.
    fn fill_packet(&mut self, now: Time, header: u32, most: usize) -> Option<Filled> {
        let most = most.min(u16::MAX.into()) as u32;
        let header = header + if self.uncut > 0 { SEGMENT_OFFSET } else { PDCP_HEADER };
        if header >= most || !(self.uncut > 0 || self.begin(now)) {
            return None;
        }
        let part = self.uncut.min(most - header);
        self.uncut -= part;
        let goes_on = self.uncut > 0;
        if !goes_on {
            self.depart(now);
        }
        let payload = Payload {
            first: self.newest(),
            ends: u16::from(!goes_on),
            goes_on,
            octets: (header + part) as u16,
        };
        self.on_cut(payload);
        Some(Filled { payload, count: 1, padding: 0 })
    }
}
