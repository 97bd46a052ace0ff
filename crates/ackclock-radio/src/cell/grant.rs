//! Capacity that a user gets when it is served, for each state of its channel.

use ackclock_core::Rate;

use super::config::{CellConfig, Transport};
use super::rates::RateRow;
use super::slots::Slots;

/// Capacity that a user gets when it is served. The integer `work` is in bits times slots per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) rate: Rate,
    /// Rate that the scheduler counts for the user, bit/s.
    pub(super) bps: f64,
    pub(super) work: u64,
    /// Capacity of the block of which `work` is usable, in the same unit.
    pub(super) block: u64,
    pub(super) slots: u64,
}

/// Returns the capacity granted in each state of a channel.
pub(super) fn grants(config: &CellConfig, slots: Slots) -> Vec<Grant> {
    let grant = |rate: Rate, work, slots| Grant { rate, bps: rate.as_bps() as f64, work, block: work, slots };
    let of_row = |row: &RateRow| match (config.transport, row.bits, row.slots) {
        (Transport::Packets, Some(bits), Some(count)) => {
            grant(row.rate, u64::from(bits) * slots.per_second(), count.into())
        }
        _ => grant(row.rate, row.rate.as_bps(), 1),
    };
    let of_row = |row: &RateRow| {
        let grant = of_row(row);
        Grant { block: row.block.map_or(grant.work, |bits| u64::from(bits) * slots.per_second()), ..grant }
    };
    std::iter::once(grant(Rate::ZERO, 0, 1)).chain(config.rates.iter().map(of_row)).collect()
}
