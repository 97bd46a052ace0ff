//! Positions of PDUs in the TTIs of a direction, to calculate arrival times without retransmissions. If PDUs fill
//! grants, each octet has a position.

use ackclock_core::{Span, Time};

/// Positions of PDUs in the TTIs of a direction.
pub(crate) struct Places {
    tti: Span,
    /// TTIs from the latest change on.
    current: Piece,
    /// TTIs before the latest change whose positions are still needed, oldest first.
    before: Vec<Piece>,
    /// Number of the first PDU position in the TTI being filled.
    first: u64,
    next: Place,
}

/// TTIs of equal room and delay.
#[derive(Clone, Copy)]
struct Piece {
    /// Start of the first TTI.
    from: Time,
    /// Number of the first PDU position.
    number: u64,
    /// Number of PDUs per TTI.
    room: u64,
    /// Delay from the end of a TTI to the arrival of its PDUs.
    delay: Span,
    /// Arrival time of the last TTI before this piece; no PDU arrives earlier.
    earliest: Time,
}

/// Position of a PDU in a TTI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the position since time zero, including unused positions.
    number: u64,
    /// Number of positions that held retransmissions so far.
    repeated: u64,
}

impl Piece {
    /// Number of the first PDU position in the TTI that starts at `start`.
    const fn number_at(&self, start: Time, tti: Span) -> u64 {
        self.number + start.since(self.from).as_nanos() / tti.as_nanos() * self.room
    }

    /// Arrival time of the PDU at the position `number`.
    fn arrival(&self, number: u64, tti: Span) -> Time {
        let ttis = number.saturating_sub(self.number) / self.room + 1;
        let ends = self.from + Span::from_nanos(tti.as_nanos().saturating_mul(ttis));
        (ends + self.delay).max(self.earliest)
    }
}

impl Places {
    /// Creates TTIs of `room` PDUs each, which arrive `delay` after the end of their TTI.
    pub(crate) fn new(tti: Span, room: u32, delay: Span) -> Self {
        let current = Piece { from: Time::ZERO, number: 0, room: room.into(), delay, earliest: Time::ZERO };
        Self { tti, current, before: Vec::new(), first: 0, next: Place::default() }
    }

    /// Changes the room and the delay of the TTIs from the TTI on that starts at `from`. Positions before `oldest` are
    /// no longer needed; `None` if no position is needed.
    pub(crate) fn change(&mut self, from: Time, room: u32, delay: Span, oldest: Option<Place>) {
        let last = self.current;
        let number = last.number_at(from, self.tti);
        let earliest = last.earliest.max(from + last.delay);
        self.current = Piece { from, number, room: room.into(), delay, earliest };
        self.before.push(last);
        let needed = oldest.map_or(u64::MAX, |place| place.number);
        let ends = self.before.iter().skip(1).map(|next| next.number).chain([number]);
        let gone = ends.take_while(|&end| end <= needed).count();
        self.before.drain(..gone);
    }

    /// Starts filling the TTI that starts at `now`.
    pub(crate) const fn begin_tti(&mut self, now: Time) {
        self.first = self.current.number_at(now, self.tti);
        self.go_to(0);
    }

    /// Continues at PDU position `place` of the current TTI.
    pub(crate) const fn go_to(&mut self, place: usize) {
        self.next.number = self.first + place as u64;
    }

    /// Continues `count` positions later.
    pub(crate) const fn skip(&mut self, count: u32) {
        self.next.number += count as u64;
    }

    /// Position of the next PDU.
    pub(crate) const fn next(&self) -> Place {
        self.next
    }

    /// Registers that the next PDU is a retransmission that takes `units` positions.
    pub(crate) const fn on_repeat(&mut self, units: u64) {
        self.next.repeated += units;
    }

    /// Arrival time of a packet without the retransmissions between its first and its last PDU, which have the given
    /// positions.
    pub(crate) fn arrival(&self, [first, last]: [Place; 2]) -> Time {
        let number = last.number - (last.repeated - first.repeated);
        let piece = match number < self.current.number {
            true => self.before.iter().rev().find(|piece| piece.number <= number),
            false => None,
        };
        piece.unwrap_or(&self.current).arrival(number, self.tti)
    }
}
