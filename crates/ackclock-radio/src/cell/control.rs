//! Slots of a cell without data of users: control information and, with time division, slots of the other direction.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slots in which no user is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum ControlSlots {
    /// An evenly spread share of the slots, millionths.
    Share(u32),
    /// Slots that repeat; true for a slot without data of users.
    Pattern(Vec<bool>),
}

/// Number of parts of a share.
const WHOLE: u32 = 1_000_000;
/// Maximum number of slots of a pattern.
const MOST: usize = 10_000;
/// Letters of a pattern: a slot with data of users, and a slot without.
const LETTERS: [char; 2] = ['D', '-'];

impl ControlSlots {
    /// Share of the slots that can hold data of users.
    pub(crate) fn free_share(&self) -> f64 {
        match self {
            Self::Share(share) => 1.0 - f64::from(*share) / f64::from(WHOLE),
            Self::Pattern(slots) => {
                slots.iter().filter(|&&control| !control).count() as f64 / slots.len() as f64
            }
        }
    }

    /// Number of slots after which the pattern repeats; `None` for a share.
    pub(crate) fn period(&self) -> Option<u64> {
        match self {
            Self::Share(_) => None,
            Self::Pattern(slots) => Some(slots.len() as u64),
        }
    }

    /// Whether no user is served in the slot with this number.
    fn contains(&self, slot: u64) -> bool {
        match self {
            Self::Share(share) => {
                let before = |slot: u64| u128::from(slot) * u128::from(*share) / u128::from(WHOLE);
                before(slot + 1) > before(slot)
            }
            Self::Pattern(slots) => slots[(slot % slots.len() as u64) as usize],
        }
    }

    /// Number of the first slot from `slot` on that can hold data of users.
    pub(crate) fn first_free(&self, mut slot: u64) -> u64 {
        while self.contains(slot) {
            slot += 1;
        }
        slot
    }
}

impl FromStr for ControlSlots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!("{text}: {why}; use a share such as \"10%\", or a pattern of D (data) and - (no data)")
        };
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| refused("no share"))?;
            if !(0.0..100.0).contains(&percent) {
                return Err(refused("not from 0% to below 100%"));
            }
            return Ok(Self::Share(((percent / 100.0 * f64::from(WHOLE)).round() as u32).min(WHOLE - 1)));
        }
        let slots: Option<Vec<bool>> = text
            .chars()
            .map(|one| LETTERS.iter().position(|&letter| letter == one).map(|at| at == 1))
            .collect();
        match slots {
            None => Err(refused("unknown letter")),
            Some(slots) if slots.len() > MOST => Err(refused("more than 10000 slots")),
            Some(slots) if slots.iter().all(|&control| control) => Err(refused("no slot has data")),
            Some(slots) => Ok(Self::Pattern(slots)),
        }
    }
}

ackclock_core::text_value!(ControlSlots);

impl fmt::Display for ControlSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "{}%", f64::from(*share) / 1e4),
            Self::Pattern(slots) => {
                slots.iter().try_for_each(|&control| write!(f, "{}", LETTERS[usize::from(control)]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_spread_evenly() {
        let slots: ControlSlots = "24%".parse().unwrap();
        assert_eq!((slots.to_string(), slots.free_share()), ("24%".to_owned(), 0.76));
        let control: Vec<u64> = (0..25).filter(|&slot| slots.contains(slot)).collect();
        // 0.24 n passes an integer.
        assert_eq!(control, [4, 8, 12, 16, 20, 24]);
        assert_eq!((0..100_000).filter(|&slot| slots.contains(slot)).count(), 24_000);
        assert_eq!((slots.first_free(3), slots.first_free(4)), (3, 5));
    }

    #[test]
    fn a_pattern_repeats() {
        let slots: ControlSlots = "DDD-".parse().unwrap();
        assert_eq!((slots.to_string(), slots.free_share()), ("DDD-".to_owned(), 0.75));
        assert_eq!((slots.first_free(6), slots.first_free(7)), (6, 8));
    }

    #[test]
    fn what_leaves_no_slot_is_refused() {
        for text in ["", "--", "DxD", "100%", "-1%", "x%"] {
            let error = text.parse::<ControlSlots>().unwrap_err();
            assert!(error.contains("use a share such as \"10%\""), "{error}");
        }
    }
}
