//! The slots in transmission.

use ackclock_core::{Segment, Time};

/// The slots in transmission.
pub(super) struct Air {
    /// User that is served; meaningless once they have ended.
    pub(super) user: u32,
    pub(super) carries: Carries,
    pub(super) begins: Time,
    pub(super) slots: u64,
    /// Rate that they count for the scheduler, bit/s.
    pub(super) served: f64,
    /// When they end; [`Time::NEVER`] if nothing is in transmission.
    pub(super) ends: Time,
    /// Packets whose last byte is in them.
    pub(super) last: Vec<Segment>,
}

/// Content of slots.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// New data.
    New,
    /// A retransmission.
    Repetition,
}

impl Air {
    /// Nothing in transmission.
    pub(super) const fn silent() -> Self {
        Self {
            user: 0,
            carries: Carries::New,
            begins: Time::ZERO,
            slots: 0,
            served: 0.0,
            ends: Time::NEVER,
            last: Vec::new(),
        }
    }
}
