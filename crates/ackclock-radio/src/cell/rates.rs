//! Rate table of a cell: rates, each with the SNR that it needs.

use ackclock_core::{ConfigError, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A row of the rate table: a rate and the SNR that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateRow {
    /// Rate of a user at this SNR.
    pub rate: Rate,
    /// Minimum SNR for this rate, dB.
    pub snr: f64,
    /// Share of the slots in which a user with `fading = "table"` has this rate. If the shares of all rows sum to less
    /// than 1, the user has no rate in the remaining slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Number of bits of a physical packet, for `transport = "packets"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u32>,
    /// Number of slots of a physical packet, for `transport = "packets"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Number of bits of a block that has room for fewer bits of complete PDUs.
    #[serde(skip)]
    pub(crate) block: Option<u32>,
}

/// Rows of the 1xEV-DO rate table (`links.md` section 4): rate in units of 100 bit/s, SNR in dB, share of slots after
/// CR02 Table 4, bits and slots of a physical packet.
const EVDO: [(u64, f64, f64, u32, u32); 11] = [
    (384, -12.5, 0.033, 1024, 16),
    (768, -9.5, 0.015, 1024, 8),
    (1024, -8.5, 0.043, 1024, 6),
    (1536, -6.5, 0.023, 1024, 4),
    (2048, -5.7, 0.060, 1024, 3),
    (3072, -4.0, 0.168, 1024, 2),
    (6144, -1.0, 0.172, 1024, 1),
    (9216, 1.3, 0.145, 3072, 2),
    (12288, 3.0, 0.260, 2048, 1),
    (18432, 7.2, 0.042, 3072, 1),
    (24576, 9.5, 0.011, 4096, 1),
];

/// Returns the rate table of 1xEV-DO.
pub(super) fn evdo() -> Vec<RateRow> {
    let row = |&(hundreds, snr, probability, bits, slots)| RateRow {
        rate: Rate::from_bps(hundreds * 100),
        snr,
        probability: Some(probability),
        bits: Some(bits),
        slots: Some(slots),
        block: None,
    };
    EVDO.iter().map(row).collect()
}

/// Spectral efficiencies of the channel quality indicators 1 to 15 of LTE, bits per symbol (3GPP TS 36.213, table
/// 7.2.3-1).
const LTE: [f64; 15] = [
    0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234,
    5.1152, 5.5547,
];

/// Returns the rate table of LTE for one antenna and a carrier of 10 MHz: 50 blocks of 12 carriers with 14 symbols per
/// millisecond, of which we assume that a quarter is control and reference symbols. The SNR of each rate is ours: steps
/// of 2.1 dB from -6.7 dB.
pub(super) fn lte() -> Vec<RateRow> {
    const DATA_SYMBOLS: f64 = 0.75 * 50.0 * 12.0 * 14.0 * 1000.0;
    let row = |(index, efficiency): (usize, &f64)| RateRow {
        rate: Rate::from_bps_f64(efficiency * DATA_SYMBOLS),
        snr: -6.7 + 2.1 * index as f64,
        probability: None,
        bits: None,
        slots: None,
        block: None,
    };
    LTE.iter().enumerate().map(row).collect()
}

/// Converts decibels to a ratio of powers.
pub(super) fn linear(decibels: f64) -> f64 {
    libm::pow(10.0, decibels / 10.0)
}

/// Checks a rate table: it needs at least one row, and increasing rates and SNRs.
pub(super) fn check(rows: &[RateRow]) -> Result<(), ConfigError> {
    let error = |row: usize, key: &str, message: String| {
        Err(ConfigError::new(format!("rates[{row}].{key}"), message))
    };
    if rows.is_empty() || rows.len() > MOST_ROWS {
        return Err(ConfigError::new("rates", format!("{} rows; a table has 1 to {MOST_ROWS}", rows.len())));
    }
    for (number, row) in rows.iter().enumerate() {
        if !(-100.0..=100.0).contains(&row.snr) {
            return error(number, "snr", format!("{} is not between -100 and 100 dB", row.snr));
        }
        if row.rate == Rate::ZERO {
            return error(number, "rate", "must be above 0; below the first SNR there is no rate".into());
        }
        if row.probability.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return error(number, "probability", "must be a number from 0 to 1".into());
        }
        if row.slots.is_some_and(|slots| !(1..=1000).contains(&slots)) {
            return error(number, "slots", "must be from 1 to 1000".into());
        }
        if row.bits == Some(0) {
            return error(number, "bits", "must be above 0".into());
        }
        let above = number.checked_sub(1).map(|above| &rows[above]);
        if above.is_some_and(|above| above.rate >= row.rate || above.snr >= row.snr) {
            return error(
                number,
                "rate",
                format!("{}: rates and their SNRs must increase from row to row", row.rate),
            );
        }
    }
    if rows.iter().filter_map(|row| row.probability).sum::<f64>() > 1.0 + 1e-9 {
        return Err(ConfigError::new("rates", "the probabilities add up to more than 1"));
    }
    Ok(())
}

const MOST_ROWS: usize = 1000;
