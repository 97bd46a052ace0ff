//! What a slot carries.

use ackclock_core::Rate;

use super::config::{CellConfig, Transport};
use super::rates::RateRow;
use super::slots::Slots;

/// What a user gets who is served. Work is counted in bits by the slots of a second, so that it is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) rate: Rate,
    pub(super) work: u64,
    pub(super) slots: u64,
}

/// What each state of a channel carries.
pub(super) fn grants(config: &CellConfig, slots: Slots) -> Vec<Grant> {
    let grant = |row: &RateRow| match (config.transport, row.bits, row.slots) {
        (Transport::Packets, Some(bits), Some(count)) => {
            Grant { rate: row.rate, work: u64::from(bits) * slots.per_second(), slots: count.into() }
        }
        _ => Grant { rate: row.rate, work: row.rate.as_bps(), slots: 1 },
    };
    let none = Grant { rate: Rate::ZERO, work: 0, slots: 1 };
    std::iter::once(none).chain(config.rates.iter().map(grant)).collect()
}
