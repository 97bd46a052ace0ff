//! ACK policies of a receiver, as configured in a scenario.

use ackclock_core::{Config, ConfigError, Span};
use ackclock_tcp::AckPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ACK policy of a flow, chosen by the key `acks`.
pub trait Acks: std::fmt::Debug + Send + Sync {
    /// ACK policy of the receiver.
    fn policy(&self) -> AckPolicy;
}

/// ACK policy that acknowledges every segment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Every {}

/// Delayed ACKs: several segments share one ACK (RFC 5681 section 4.2).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Delayed {
    /// Number of segments per ACK.
    pub count: u32,
    /// Longest delay of an ACK. If `quick` is above 0, the value is the shortest delay (Linux: 40 ms). If segments
    /// arrive slowly, this delay grows to about twice the time between segments, but at most to the handshake RTT and
    /// 200 ms.
    pub timeout: Span,
    /// Number of segments acknowledged one by one (Linux: 16) at the start, after an idle period and after duplicate
    /// data. If `quick` is above 0, segments that open a tuned window, have PSH set or follow an ECN mark are also
    /// acknowledged at once. From the fourth out-of-order segment on, segments within a millisecond share an ACK.
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
    /// Registry of ACK policies by name.
    pub static ACKS: dyn Acks = "way of acknowledging" {
        "every" => Every,
        "delayed" => Delayed,
    }
}
