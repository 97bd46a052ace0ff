//! Outages and hand-overs of a user.

use ackclock_core::Time;
use ackclock_link::OutageKind;

/// Time in which a user is not served, or in which its blocks are lost. Outages and hand-overs of a user do not overlap.
#[derive(Clone, Copy)]
pub(super) struct Interruption {
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) kind: InterruptionKind,
}

/// Reason of an interruption.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptionKind {
    /// The scheduler sees a user without a rate, or blocks are lost.
    Outage(OutageKind),
    /// The user has left the cell, and the scheduler does not see it.
    Handover,
}

impl Interruption {
    /// Whether an interruption of this kind lasts at `now`.
    pub(super) fn is(self, kind: InterruptionKind, now: Time) -> bool {
        self.kind == kind && self.from <= now && now < self.until
    }
}
