//! Slots of a cell: a fixed number per second, anchored at the start of the run so that the slots do not drift.

use ackclock_core::{Span, Time};

/// Divides time into slots of equal length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    per_second: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Slots {
    pub(super) const fn new(per_second: u32) -> Self {
        Self { per_second: per_second as u64 }
    }

    /// Number of slots per second.
    pub(super) const fn per_second(self) -> u64 {
        self.per_second
    }

    /// Length of one slot, rounded down to the nanosecond.
    pub(super) const fn length(self) -> Span {
        Span::from_nanos(SECOND / self.per_second)
    }

    /// Start time of a slot: the slot number times the slot length, rounded down to the nanosecond.
    #[inline]
    pub(super) const fn start(self, slot: u64) -> Time {
        let (seconds, slots) = (slot / self.per_second, slot % self.per_second);
        Time::from_nanos(seconds.saturating_mul(SECOND).saturating_add(slots * SECOND / self.per_second))
    }

    /// Number of the slot that contains the instant `now`.
    pub(super) fn at(self, now: Time) -> u64 {
        let (seconds, nanos) = (now.as_nanos() / SECOND, now.as_nanos() % SECOND);
        let slot = seconds * self.per_second + nanos * self.per_second / SECOND;
        // The next slot may start within the nanosecond of `now`, because slot starts are rounded down.
        if self.start(slot + 1) <= now { slot + 1 } else { slot }
    }

    /// Number of the first slot that starts after `now`.
    pub(super) fn after(self, now: Time) -> u64 {
        self.at(now) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_drift_and_every_instant_lies_in_one() {
        let slots = Slots::new(600);
        // 600 000 slots are exactly 1000 s; no fraction of a slot is lost.
        assert_eq!(slots.start(600_000), Time::from_nanos(1000 * SECOND));
        assert_eq!(slots.start(1), Time::from_nanos(1_666_666));
        assert_eq!(slots.start(2), Time::from_nanos(3_333_333));
        for slot in (0..5000).chain(600_000_000..600_000_010) {
            let start = slots.start(slot);
            assert_eq!((slots.at(start), slots.after(start)), (slot, slot + 1));
            let before = Time::from_nanos(slots.start(slot + 1).as_nanos() - 1);
            assert_eq!((slots.at(before), slots.after(before)), (slot, slot + 1));
        }
    }
}
