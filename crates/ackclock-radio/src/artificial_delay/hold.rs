//! Hold times of delivered packets: a fixed table, or one that is calculated from the delays of the packets.

use ackclock_core::{Config, ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::learned::{LearnTable, Learned};
use super::optimum::MOST_HELD;

/// Hold times of delivered packets, selected by the delay of a packet from retransmissions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HoldConfig {
    /// Rows of two times, [delay, extra]: a packet that retransmissions delayed for `delay` is held for `extra`. Delays
    /// increase from row to row. A delay between two rows selects the lower row; a delay above the last row adds
    /// nothing.
    pub table: Vec<[Span; 2]>,
    /// Calculation of `table` from the delays of delivered packets. The given rows apply until the first calculation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learn: Option<LearnTable>,
}

impl HoldConfig {
    /// Checks the rows and the settings of the calculation.
    ///
    /// # Errors
    /// Fails if the delays do not increase from row to row, or if a setting of `learn` is invalid.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(learn) = &self.learn {
            learn.check().map_err(|error| error.under("learn"))?;
        }
        match self.table.windows(2).position(|rows| rows[0][0] >= rows[1][0]) {
            Some(row) => {
                let [above, here] = [self.table[row][0], self.table[row + 1][0]];
                let message = format!("{here} is not above {above}: delays must increase from row to row");
                Err(ConfigError::new(format!("table[{}]", row + 1), message))
            }
            None => Ok(()),
        }
    }
}

/// Current hold times, and the counted delays from which new hold times are calculated.
pub(crate) struct HoldTimes {
    table: Vec<[Span; 2]>,
    learned: Option<Learned>,
}

impl HoldTimes {
    pub(crate) fn new(config: &HoldConfig) -> Self {
        let mut table = config.table.clone();
        table.reserve(MOST_HELD + 1);
        Self { table, learned: config.learn.clone().map(Learned::new) }
    }

    /// Counts the delay from retransmissions of a packet that is delivered at `at`, and returns the packet's hold time.
    pub(crate) fn hold(&mut self, at: Time, delay: Span) -> Span {
        if let Some(learned) = &mut self.learned {
            learned.update(at, &mut self.table);
            learned.observe(delay);
        }
        self.extra(delay)
    }

    /// Hold time from the table for a packet that retransmissions delayed for `delay`.
    fn extra(&self, delay: Span) -> Span {
        let above = self.table.partition_point(|row| row[0] <= delay);
        let beyond = above == self.table.len() && self.table.last().is_some_and(|row| row[0] < delay);
        if above == 0 || beyond { Span::ZERO } else { self.table[above - 1][1] }
    }
}
