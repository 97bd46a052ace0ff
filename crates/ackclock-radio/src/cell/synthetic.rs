//! # Synthetic recordings
//!
//! ## Source
//! Source: the cell of this folder, combined with the fading of `fading.rs` and the shadowing of `shadowing.rs`. The
//! preset of 1xEV-DO is fitted to statistics of the 1xEV-DO driving recording of Winstein, Sivaraman and Balakrishnan ("Stochastic
//! Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013), and the preset of LTE to the
//! recording of LTE while driving that comes with mahimahi (2016); the presets contain none of the recordings' data.
//!
//! ## What it does
//! All users always have data. In every slot the power of each channel is the product of its fading and its shadowing,
//! and the scheduler selects a user. The recording is the rate of the first user.
//!
//! ## Differences from the source
//! All users have equal settings. The real link has handovers and a transmitter that sends in every fourth slot; the
//! model has neither.
//!
//! ## Validation
//! Unit tests check that without shadowing the mean rate equals the cell's mean rate. `docs/how-to/recordings.md`
//! compares the presets with the recordings in mean rate, rates per second and outages, and so does
//! `tests/synthetic.rs` where the recordings are available.

use ackclock_core::{ConfigError, Rate, Span, Streams};
use ackclock_import::{Recording, Sample, Samples};
use ackclock_link::CellUser;
use ackclock_link::Loss;
use ackclock_link::fading::Fading;

use super::CellConfig;
use super::channel::crossed;
use super::config::thresholds;
use super::rates::{self, RateRow};
use super::saturated::{Look, Saturated};
use super::slots::Slots;
use crate::shadowing::Shadowing;

/// Parameters of a synthetic recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Number of users of the cell, who all have unlimited data.
    pub users: u32,
    /// Mean SNR of each user's channel at the median of the shadowing, dB.
    pub mean_snr: f64,
    /// Maximum Doppler frequency of each channel, Hz.
    pub doppler: f64,
    /// Standard deviation of the shadowing, dB.
    pub shadowing: f64,
    /// Time in which the autocorrelation of the shadowing decays to 1/e.
    pub correlation: Span,
    /// Name of the cell's scheduler.
    pub scheduler: String,
    /// Radio technology of the cell.
    pub radio: Radio,
}

/// Time per row of a recording that is written in mahimahi's format, in which times are whole milliseconds: about one
/// slot of 1xEV-DO (1/600 s).
const ROW: Span = Span::from_millis(2);

/// Radio technology of a synthetic cell: its slots and its rate table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Radio {
    /// 1xEV-DO: 600 slots per second and the rates of [`CellConfig::default`].
    #[default]
    Evdo,
    /// LTE with a carrier of 10 MHz: 1000 slots per second and the rates of 3GPP TS 36.213.
    Lte,
}

impl Default for Synthetic {
    /// Returns one user of the default cell, without shadowing.
    fn default() -> Self {
        let user = CellUser::default();
        Self {
            users: 1,
            mean_snr: user.mean_snr,
            doppler: user.doppler,
            shadowing: 0.0,
            correlation: Span::from_secs(6),
            scheduler: "pf".into(),
            radio: Radio::Evdo,
        }
    }
}

impl Synthetic {
    /// Returns the parameters of 1xEV-DO while driving, fitted to the recording in mean rate, rates per second and
    /// outages.
    pub fn evdo_driving() -> Self {
        Self {
            mean_snr: -2.7,
            doppler: 3.0,
            shadowing: 7.5,
            correlation: Span::from_secs(6),
            ..Self::default()
        }
    }

    /// Returns the parameters of LTE while driving, fitted to the recording in mean rate, rates per second and longest
    /// gap.
    pub fn lte_driving() -> Self {
        Self {
            users: 3,
            mean_snr: 7.0,
            doppler: 3.0,
            shadowing: 7.5,
            correlation: Span::from_secs(10),
            radio: Radio::Lte,
            ..Self::default()
        }
    }

    /// Generates a recording: each row is the mean rate over the time `row`, rounded to whole slots.
    ///
    /// # Errors
    /// Returns an error for a user who never has a rate, an unknown scheduler, or a length shorter than a row.
    pub fn record(&self, length: Span, row: Span, seed: u64) -> Result<Samples, ConfigError> {
        let (cell, user) = self.cell()?;
        let slots = Slots::new(cell.slots);
        let in_slots = |span: Span| slots.at(ackclock_core::Time::ZERO + span);
        let each = in_slots(row).max(1);
        let count = in_slots(length) / each;
        let streams = Streams::new(seed, 0);
        let mobile = |number| Mobile::new(self, &user, number, &cell, &streams);
        let mut saturated = Saturated::new(&cell, (0..self.users).map(mobile).collect())?;
        // Returns the bits that the first user gets in the next slot, times slots per second.
        let mut first = || match saturated.serve() {
            Some((0, rate)) => rate.as_bps(),
            _ => 0,
        };
        let begins = |index: u64| slots.start(index * each).since(ackclock_core::Time::ZERO);
        let mut rows: Vec<Sample> = Vec::new();
        for index in 0..count {
            let bits: u64 = (0..each).map(|_| first()).sum();
            let rate = Rate::from_bps(bits / each);
            if rows.last().is_none_or(|last| last.rate != rate) {
                rows.push(Sample { begins: begins(index), rate, delay: Span::ZERO, loss: Loss::NONE });
            }
        }
        Samples::new(rows, begins(count)).map_err(|error| ConfigError::new("duration", error.message))
    }

    /// Generates a recording in the format of mahimahi.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record), and an error for a recording that is too large for a file.
    pub fn to_mahimahi(&self, length: Span, seed: u64) -> Result<String, ConfigError> {
        Recording::Samples(self.record(length, ROW, seed)?).to_mahimahi().map_err(unprintable)
    }

    /// Returns the configuration of the cell and of its users.
    fn cell(&self) -> Result<(CellConfig, CellUser), ConfigError> {
        if !(0.0..=30.0).contains(&self.shadowing) {
            return Err(ConfigError::new("shadowing", format!("{} is not from 0 to 30 dB", self.shadowing)));
        }
        let user = CellUser {
            count: self.users,
            mean_snr: self.mean_snr,
            doppler: self.doppler,
            ..CellUser::default()
        };
        let mut cell = CellConfig::default();
        cell.scheduler = self.scheduler.as_str().into();
        if self.radio == Radio::Lte {
            (cell.slots, cell.rates) = (1000, rates::lte());
        }
        Ok((cell.with_users(std::slice::from_ref(&user))?, user))
    }
}

/// Channel of one mobile user, with fading and shadowing.
struct Mobile {
    fading: Fading,
    shadowing: Shadowing,
    thresholds: Box<[f64]>,
}

impl Mobile {
    fn new(of: &Synthetic, user: &CellUser, number: u32, cell: &CellConfig, streams: &Streams) -> Self {
        let (slots, rows): (f64, &[RateRow]) = (cell.slots.into(), &cell.rates);
        let stream = |what: &str| streams.stream(&format!("{what}/{number}"));
        Self {
            fading: Fading::rayleigh(of.doppler, slots, &mut stream("fading")),
            shadowing: Shadowing::new(of.shadowing, of.correlation, slots, stream("shadowing")),
            thresholds: thresholds(user, rows).collect(),
        }
    }
}

impl Look for Mobile {
    fn state(&mut self, slot: u64) -> usize {
        crossed(self.fading.power(slot) * self.shadowing.step(), &self.thresholds)
    }
}

/// Converts the error of a recording that is too large for a file.
pub(crate) fn unprintable(error: ackclock_import::TraceError) -> ConfigError {
    ConfigError::new("duration", error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_kbps(synthetic: &Synthetic) -> f64 {
        let samples = synthetic.record(Span::from_secs(400), ROW, 1).unwrap();
        Recording::Samples(samples).mean_rate().as_bps() as f64 / 1e3
    }

    #[test]
    fn without_shadowing_the_mean_is_that_of_the_cell() {
        // schedulers.md section 11: 721 kbit/s for one user at 2.3 dB, and about 1239 for four under proportional
        // fair, a quarter each. 400 s at 120 Hz are 48 000 fades: below 1 %.
        let fast = Synthetic { doppler: 120.0, ..Synthetic::default() };
        assert!((mean_kbps(&fast) / 721.0 - 1.0).abs() < 0.02, "{}", mean_kbps(&fast));
        let four = mean_kbps(&Synthetic { users: 4, ..fast });
        assert!((four / (1239.0 / 4.0) - 1.0).abs() < 0.05, "{four}");
    }

    #[test]
    fn coarser_rows_carry_the_same() {
        let synthetic = Synthetic::evdo_driving();
        let work = |row: Span| {
            let samples = synthetic.record(Span::from_secs(60), row, 3).unwrap();
            assert_eq!(samples.length(), Span::from_secs(60));
            Recording::Samples(samples).mean_rate().as_bps() as f64
        };
        // A rate is rounded down to a whole bit/s in each row.
        assert!((work(ROW) - work(Span::from_millis(100))).abs() < 2.0);
    }

    #[test]
    fn shadowing_makes_outages() {
        let of = |synthetic: Synthetic| {
            let samples = synthetic.record(Span::from_secs(300), ROW, 1).unwrap();
            Recording::parse(Recording::Samples(samples).to_mahimahi().unwrap().as_bytes())
                .unwrap()
                .statistics()
        };
        assert!(of(Synthetic::default()).outages.is_empty());
        assert!(of(Synthetic::evdo_driving()).outages.len() > 3);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let refused = |synthetic: Synthetic| synthetic.record(Span::from_secs(1), ROW, 1).unwrap_err().path;
        let usual = Synthetic::default;
        assert_eq!(refused(Synthetic { users: 0, ..usual() }), "user.0.count");
        assert_eq!(refused(Synthetic { mean_snr: f64::NAN, ..usual() }), "user.0.mean_snr");
        assert_eq!(refused(Synthetic { doppler: 400.0, ..usual() }), "user.0.doppler");
        assert_eq!(refused(Synthetic { shadowing: -1.0, ..usual() }), "shadowing");
        assert_eq!(refused(Synthetic { scheduler: "fair".into(), ..usual() }), "scheduler");
        let none = Synthetic::default().record(Span::from_millis(1), ROW, 1).unwrap_err();
        assert_eq!(none.path, "duration");
    }
}
