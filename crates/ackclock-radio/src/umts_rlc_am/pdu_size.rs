//! Size of PDUs in a scenario file.

use std::fmt;
use std::str::FromStr;

use ackclock_core::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum PduSize {
    /// Payload of each PDU.
    Fixed(Size),
    /// A PDU fills the rest of its block or TTI, as in LTE.
    Grant,
}

/// Name of [`PduSize::Grant`].
const GRANT: &str = "grant";

impl FromStr for PduSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == GRANT {
            return Ok(Self::Grant);
        }
        Size::from_str(text).map(Self::Fixed).map_err(|error| format!("{error}; or \"{GRANT}\""))
    }
}

impl TryFrom<String> for PduSize {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PduSize> for String {
    fn from(size: PduSize) -> Self {
        size.to_string()
    }
}

impl fmt::Display for PduSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Grant => f.write_str(GRANT),
        }
    }
}
