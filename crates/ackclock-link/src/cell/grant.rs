//! What a slot carries.

use ackclock_core::Rate;

use super::config::{CellConfig, Transport};
use super::rates::RateRow;
use super::slots::Slots;

/// What a user gets who is served. Work is counted in bits by the slots of a second, so that it is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) rate: Rate,
    /// The same in bit/s, as schedulers weigh it.
    pub(super) bps: f64,
    pub(super) work: u64,
    pub(super) slots: u64,
}

/// What each state of a channel carries.
pub(super) fn grants(config: &CellConfig, slots: Slots) -> Vec<Grant> {
    let grant = |rate: Rate, work, slots| Grant { rate, bps: rate.as_bps() as f64, work, slots };
    let of_row = |row: &RateRow| match (config.transport, row.bits, row.slots) {
        (Transport::Packets, Some(bits), Some(count)) => {
            grant(row.rate, u64::from(bits) * slots.per_second(), count.into())
        }
        _ => grant(row.rate, row.rate.as_bps(), 1),
    };
    std::iter::once(grant(Rate::ZERO, 0, 1)).chain(config.rates.iter().map(of_row)).collect()
}
