//! What is being sent.

use ackclock_core::{Segment, Time};

/// The slots that are being sent.
pub(super) struct Air {
    /// Whose; of no meaning once they have ended.
    pub(super) user: u32,
    pub(super) carries: Carries,
    pub(super) begins: Time,
    pub(super) slots: u64,
    /// What they count as to the scheduler, bit/s.
    pub(super) served: f64,
    /// When they end; [`Time::NEVER`] where nothing is being sent.
    pub(super) ends: Time,
    /// Packets of which the last byte is among them.
    pub(super) last: Vec<Segment>,
}

/// What slots carry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// What was not sent before.
    New,
    /// What failed before.
    Repetition,
}

impl Air {
    /// Nothing is being sent.
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
