//! Channel of one user: its state, a row of the rate table, in each slot.

use ackclock_core::{Stream, Streams};

use super::config::{CellUser, FadingKind, shares, thresholds};
use super::rates::RateRow;
use crate::fading::Fading;

/// Rate of a user, slot by slot: 0 is no rate, n the row n - 1 of the table.
#[derive(Debug)]
pub(super) enum Channel {
    /// Fading: the power crosses thresholds.
    Faded { fading: Box<Fading>, thresholds: Box<[f64]> },
    /// Each slot is drawn independently, from the cumulative shares of the states.
    Drawn { seed: u64, cumulated: Box<[f64]> },
    /// Constant.
    Still(usize),
}

impl Channel {
    /// The channel of a user, with draws from `stream`.
    pub(super) fn new(user: &CellUser, rows: &[RateRow], slots: f64, mut stream: Stream) -> Self {
        match user.fading {
            FadingKind::Rayleigh => {
                Self::faded(Fading::rayleigh(user.doppler, slots, &mut stream), user, rows)
            }
            FadingKind::Jakes => Self::faded(Fading::jakes(user.doppler, slots, &mut stream), user, rows),
            FadingKind::Table => {
                let mut sum = 0.0;
                let cumulated = shares(user, rows).into_iter().map(|share| {
                    sum += share;
                    sum
                });
                Self::Drawn { seed: stream.bits(), cumulated: cumulated.collect() }
            }
            FadingKind::None => Self::Still(rows.iter().filter(|row| row.snr <= user.mean_snr).count()),
        }
    }

    fn faded(fading: Fading, user: &CellUser, rows: &[RateRow]) -> Self {
        Self::Faded { fading: Box::new(fading), thresholds: thresholds(user, rows).collect() }
    }

    /// State in `slot`. It depends only on the number of the slot.
    #[inline]
    pub(super) fn state(&mut self, slot: u64) -> usize {
        match self {
            Self::Faded { fading, thresholds } => crossed(fading.power(slot), thresholds),
            Self::Drawn { seed, cumulated } => drawn(*seed, slot, cumulated),
            Self::Still(state) => *state,
        }
    }

    /// State in `slot`, without changing the channel.
    pub(super) fn peek(&self, slot: u64) -> usize {
        match self {
            Self::Faded { fading, thresholds } => crossed(Fading::clone(fading).power(slot), thresholds),
            Self::Drawn { seed, cumulated } => drawn(*seed, slot, cumulated),
            Self::Still(state) => *state,
        }
    }
}

/// Number of thresholds below a power.
#[inline]
pub(super) fn crossed(power: f64, thresholds: &[f64]) -> usize {
    thresholds.iter().map(|&threshold| usize::from(power >= threshold)).sum()
}

/// State of a slot, drawn from a separate stream per slot.
fn drawn(seed: u64, slot: u64, cumulated: &[f64]) -> usize {
    let draw = Streams::new(seed, slot).stream("").unit();
    cumulated.iter().take_while(|&&upto| upto <= draw).count().min(cumulated.len() - 1)
}
