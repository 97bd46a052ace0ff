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
    /// A PDU has one packet, or a segment of one where its block or TTI ends, as in 5G NR.
    Packet,
}

/// Name of [`PduSize::Grant`].
const GRANT: &str = "grant";
/// Name of [`PduSize::Packet`].
const PACKET: &str = "packet";

impl FromStr for PduSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            GRANT => Ok(Self::Grant),
            PACKET => Ok(Self::Packet),
            size => Size::from_str(size)
                .map(Self::Fixed)
                .map_err(|error| format!("{error}; or \"{GRANT}\", or \"{PACKET}\"")),
        }
    }
}

ackclock_core::text_value!(PduSize);

impl fmt::Display for PduSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Grant => f.write_str(GRANT),
            Self::Packet => f.write_str(PACKET),
        }
    }
}
