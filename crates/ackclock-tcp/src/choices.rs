//! Choices that several components take as options.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A feature that is on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Enabled.
    On,
    /// Disabled.
    #[default]
    Off,
}

/// Unit by which acknowledgements grow the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Each acknowledgement of new data counts as one segment.
    #[default]
    Acks,
    /// Each acknowledgement counts the bytes it delivers, while the window limits the sender (RFC 3465 without a limit,
    /// as in Linux).
    Bytes,
}

/// Quantity that is reduced at a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Halves {
    /// Window in use, in whole segments, reduced again at every timeout: the ns-2 agents until 2006.
    Window,
    /// Window in use, with the fraction of a segment: the ns-2 agents since 2006 (`precisionReduce_`). The threshold is
    /// still in whole segments.
    ExactWindow,
    /// Bytes in flight (RFC 5681 equation (4)); not reduced again when the same segment times out again.
    Flight,
    /// Congestion window itself, as in Linux (ssthresh of its controllers).
    Cwnd,
}
