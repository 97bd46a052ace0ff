//! The channel of one user: which row of the rate table it carries in a slot.

use ackclock_core::{Stream, Streams};

use super::config::{CellUser, FadingKind, shares, thresholds};
use super::rates::RateRow;
use crate::fading::Fading;

/// Which rate a user has, slot by slot: 0 is none, n the row n - 1 of the table.
#[derive(Debug)]
pub(super) enum Channel {
    /// Its power crosses thresholds.
    Faded { fading: Box<Fading>, thresholds: Box<[f64]> },
    /// Each slot is drawn by itself, from the shares up to and including each state.
    Drawn { seed: u64, cumulated: Box<[f64]> },
    /// It is always the same.
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

    /// The state in `slot`. It depends on nothing but the number of the slot.
    #[inline]
    pub(super) fn state(&mut self, slot: u64) -> usize {
        match self {
            Self::Faded { fading, thresholds } => crossed(fading.power(slot), thresholds),
            Self::Drawn { seed, cumulated } => drawn(*seed, slot, cumulated),
            Self::Still(state) => *state,
        }
    }

    /// The same for somebody who only looks.
    pub(super) fn peek(&self, slot: u64) -> usize {
        match self {
            Self::Faded { fading, thresholds } => crossed(Fading::clone(fading).power(slot), thresholds),
            Self::Drawn { seed, cumulated } => drawn(*seed, slot, cumulated),
            Self::Still(state) => *state,
        }
    }
}

/// How many thresholds a power has crossed.
#[inline]
pub(super) fn crossed(power: f64, thresholds: &[f64]) -> usize {
    thresholds.iter().map(|&threshold| usize::from(power >= threshold)).sum()
}

/// The state of a slot, which has a stream of its own.
fn drawn(seed: u64, slot: u64, cumulated: &[f64]) -> usize {
    let draw = Streams::new(seed, slot).stream("").unit();
    cumulated.iter().take_while(|&&upto| upto <= draw).count().min(cumulated.len() - 1)
}
