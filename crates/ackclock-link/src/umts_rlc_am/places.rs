//! Positions of PDUs in the TTIs of a direction, to calculate arrival times without retransmissions.

use ackclock_core::{Span, Time};

/// Positions of PDUs in the TTIs of a direction.
pub(crate) struct Places {
    tti: Span,
    /// Number of PDUs per TTI.
    room: u64,
    /// Delay from the end of a TTI to the arrival of its PDUs.
    delay: Span,
    /// Number of the first PDU position in the TTI being filled.
    first: u64,
    next: Place,
}

/// Position of a PDU in a TTI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the position since time zero, including unused positions.
    number: u64,
    /// Number of PDUs retransmitted so far.
    repeated: u64,
}

impl Places {
    /// Creates TTIs of `room` PDUs each, which arrive `delay` after the end of their TTI.
    pub(crate) fn new(tti: Span, room: u32, delay: Span) -> Self {
        Self { tti, room: room.into(), delay, first: 0, next: Place::default() }
    }

    /// Starts filling the TTI that starts at `now`.
    pub(crate) const fn begin_tti(&mut self, now: Time) {
        self.first = now.as_nanos() / self.tti.as_nanos() * self.room;
        self.go_to(0);
    }

    /// Continues at PDU position `place` of the current TTI.
    pub(crate) const fn go_to(&mut self, place: usize) {
        self.next.number = self.first + place as u64;
    }

    /// Position of the next PDU.
    pub(crate) const fn next(&self) -> Place {
        self.next
    }

    /// Registers that the next PDU is a retransmission.
    pub(crate) const fn on_repeat(&mut self) {
        self.next.repeated += 1;
    }

    /// Arrival time of a packet without the retransmissions between its first and its last PDU, which have the given
    /// positions.
    pub(crate) fn arrival(&self, [first, last]: [Place; 2]) -> Time {
        let number = last.number - (last.repeated - first.repeated);
        let ends = self.tti.as_nanos().saturating_mul(number / self.room + 1);
        Time::from_nanos(ends) + self.delay
    }
}
