//! Where PDUs stand in the TTIs of a direction: when a packet would have arrived, had nothing been sent again.

use ackclock_core::{Span, Time};

/// The places of PDUs in the TTIs of a direction.
pub(crate) struct Places {
    tti: Span,
    /// Places of a TTI.
    room: u64,
    /// From the end of a TTI until its PDUs have arrived.
    delay: Span,
    /// The first place of the TTI that is being filled.
    first: u64,
    next: Place,
}

/// A place in a TTI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its number among all since time zero, used or not.
    number: u64,
    /// How many PDUs had been sent again before.
    repeated: u64,
}

impl Places {
    /// TTIs of `room` places, whose PDUs arrive so long after their end.
    pub(crate) fn new(tti: Span, room: u32, delay: Span) -> Self {
        Self { tti, room: room.into(), delay, first: 0, next: Place::default() }
    }

    /// The TTI that begins at `now` is filled.
    pub(crate) const fn begin_tti(&mut self, now: Time) {
        self.first = now.as_nanos() / self.tti.as_nanos() * self.room;
        self.go_to(0);
    }

    /// A PDU is now put into this place of the TTI.
    pub(crate) const fn go_to(&mut self, place: usize) {
        self.next.number = self.first + place as u64;
    }

    /// The place of the PDU that is put in now.
    pub(crate) const fn next(&self) -> Place {
        self.next
    }

    /// The PDU that is put in now was sent before.
    pub(crate) const fn on_repeat(&mut self) {
        self.next.repeated += 1;
    }

    /// When a packet would have arrived whose first and last PDU have these places, had each PDU behind the first one been sent so
    /// many places earlier as were taken by others that were sent again.
    pub(crate) fn arrival(&self, [first, last]: [Place; 2]) -> Time {
        let number = last.number - (last.repeated - first.repeated);
        let ends = self.tti.as_nanos().saturating_mul(number / self.room + 1);
        Time::from_nanos(ends) + self.delay
    }
}
