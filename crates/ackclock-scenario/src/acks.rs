//! When a receiver acknowledges, as a scenario writes it.

use ackclock_core::{Config, ConfigError, Span};
use ackclock_tcp::AckPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `acks` of a flow.
pub trait Acks: std::fmt::Debug + Send + Sync {
    /// What the receiver is told.
    fn policy(&self) -> AckPolicy;
}

/// Every segment is acknowledged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Every {}

/// Several segments share an acknowledgement (RFC 5681 section 4.2).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Delayed {
    /// Segments to an acknowledgement.
    pub count: u32,
    /// Longest delay of an acknowledgement; with `quick` the least one (Linux: 40 ms), and where segments come slowly about twice the
    /// time between two, up to the round trip of the handshake and 200 ms.
    pub timeout: Span,
    /// Segments that are acknowledged one by one (Linux: 16) at the beginning, after a silence and after data that had arrived
    /// before; with any, each one too that lets a tuned window grow, that the sender pushes or that follows a mark, and of those
    /// out of order the fourth and later ones share an acknowledgement for a millisecond.
    pub quick: u32,
}

impl Default for Delayed {
    fn default() -> Self {
        Self { count: 2, timeout: Span::from_millis(200), quick: 0 }
    }
}

impl Config for Every {}

impl Config for Delayed {
    fn check(&self) -> Result<(), ConfigError> {
        if self.count == 0 {
            return Err(ConfigError::new("count", "0 is not above 0"));
        }
        if self.timeout == Span::ZERO {
            return Err(ConfigError::new("timeout", "0ms is not above 0; `every` delays nothing"));
        }
        Ok(())
    }
}

impl Acks for Every {
    fn policy(&self) -> AckPolicy {
        AckPolicy::Every
    }
}

impl Acks for Delayed {
    fn policy(&self) -> AckPolicy {
        AckPolicy::Delayed { count: self.count, timeout: self.timeout, quick: self.quick }
    }
}

ackclock_core::registry! {
    /// When a receiver acknowledges.
    pub static ACKS: dyn Acks = "way of acknowledging" {
        "every" => Every,
        "delayed" => Delayed,
    }
}
