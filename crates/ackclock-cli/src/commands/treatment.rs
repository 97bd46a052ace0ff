//! Option of `import` and `trace` for rows without a rate.

use ackclock_import::formats::Missing;
use clap::ValueEnum;

/// Treatment of rows without a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Treatment {
    /// Rows without a rate are an error.
    Refuse,
    /// Rows without a rate take the rate of the previous row.
    Hold,
    /// Rows without a rate get rate 0.
    Zero,
}

impl From<Treatment> for Missing {
    fn from(treatment: Treatment) -> Self {
        match treatment {
            Treatment::Refuse => Self::Refuse,
            Treatment::Hold => Self::Hold,
            Treatment::Zero => Self::Zero,
        }
    }
}
