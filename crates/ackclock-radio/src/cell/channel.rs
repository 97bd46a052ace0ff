//! Radio channel of one user. In each slot the state of the channel is a row of the rate table.

use ackclock_core::{Stream, Streams};
use ackclock_link::fading::Fading;
use ackclock_link::{CellUser, FadingKind};

use super::config::{shares, thresholds};
use super::rates::RateRow;

/// Rate of a user in each slot: state 0 means no rate, state n means row n - 1 of the table.
#[derive(Debug)]
pub(super) enum Channel {
    /// A fading channel, whose state is the number of thresholds below the received power.
    Faded { fading: Box<Fading>, thresholds: Box<[f64]> },
    /// A channel whose state is drawn independently for each slot, from the cumulative probabilities of the states.
    Drawn { seed: u64, cumulated: Box<[f64]> },
    /// A channel whose state is constant.
    Still(usize),
}

impl Channel {
    /// Creates the channel of a user, with random draws from `stream`.
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
            FadingKind::None => Self::Still(still(user, rows)),
        }
    }

    /// Changes mean SNR and Doppler frequency from the slot `first` on. The fading continues without a jump.
    pub(super) fn change(&mut self, user: &CellUser, rows: &[RateRow], first: u64) {
        match self {
            Self::Faded { fading, thresholds: powers } => {
                fading.set_doppler(user.doppler, first);
                *powers = thresholds(user, rows).collect();
            }
            // The table alone gives the shares of the rates.
            Self::Drawn { .. } => {}
            Self::Still(state) => *state = still(user, rows),
        }
    }

    fn faded(fading: Fading, user: &CellUser, rows: &[RateRow]) -> Self {
        Self::Faded { fading: Box::new(fading), thresholds: thresholds(user, rows).collect() }
    }

    /// State of the channel in `slot`. The state depends only on the slot number.
    #[inline]
    pub(super) fn state(&mut self, slot: u64) -> usize {
        match self {
            Self::Faded { fading, thresholds } => crossed(fading.power(slot), thresholds),
            Self::Drawn { seed, cumulated } => drawn(*seed, slot, cumulated),
            Self::Still(state) => *state,
        }
    }

    /// State of the channel in `slot`, without changing the channel.
    pub(super) fn peek(&self, slot: u64) -> usize {
        match self {
            Self::Faded { fading, thresholds } => crossed(Fading::clone(fading).power(slot), thresholds),
            Self::Drawn { seed, cumulated } => drawn(*seed, slot, cumulated),
            Self::Still(state) => *state,
        }
    }
}

/// State of a channel without fading.
fn still(user: &CellUser, rows: &[RateRow]) -> usize {
    rows.iter().filter(|row| row.snr <= user.mean_snr).count()
}

/// Number of thresholds below the power `power`.
#[inline]
pub(super) fn crossed(power: f64, thresholds: &[f64]) -> usize {
    thresholds.iter().map(|&threshold| usize::from(power >= threshold)).sum()
}

/// State of the channel in a slot, drawn from a separate random stream for each slot.
fn drawn(seed: u64, slot: u64, cumulated: &[f64]) -> usize {
    let draw = Streams::new(seed, slot).stream("").unit();
    cumulated.iter().take_while(|&&upto| upto <= draw).count().min(cumulated.len() - 1)
}
