//! Slots in which the cell is transmitting, with their user and content.

use ackclock_core::{Segment, Time};

/// Slots in which the cell is transmitting.
pub(super) struct Air {
    /// Number of the user that is served; meaningless after the slots have ended.
    pub(super) user: u32,
    pub(super) carries: Carries,
    pub(super) begins: Time,
    pub(super) slots: u64,
    /// Rate that the scheduler counts as service for the slots, bit/s.
    pub(super) served: f64,
    /// Time at which the slots end; [`Time::NEVER`] if nothing is in transmission.
    pub(super) ends: Time,
    /// Packets whose last byte is in the slots.
    pub(super) last: Vec<Segment>,
}

/// Content of the slots in transmission.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// The slots contain new data of the user.
    New,
    /// The slots contain a retransmission of a failed block.
    Repetition,
    /// The user was handed over while the slots were in transmission; nothing arrives.
    Nothing,
}

impl Air {
    /// Returns the state in which nothing is in transmission.
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
