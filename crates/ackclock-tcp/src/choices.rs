//! Choices that several components take as options.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A feature that is on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// The feature is enabled.
    On,
    /// The feature is disabled.
    #[default]
    Off,
}

/// Unit in which acknowledgements grow the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Each acknowledgement of new data counts as one segment.
    #[default]
    Acks,
    /// Each acknowledgement counts the bytes it delivers, while the window limits the sender. The rule is RFC 3465
    /// without its limit, as in Linux.
    Bytes,
}

/// Quantity that is reduced at a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Halves {
    /// The congestion window in use is halved, in whole segments and again at every timeout, as in the ns-2 agents
    /// until 2006.
    Window,
    /// The congestion window in use is halved, including the fraction of a segment, as in the ns-2 agents since 2006
    /// (`precisionReduce_`). The slow-start threshold is still in whole segments.
    ExactWindow,
    /// The bytes in flight are halved (RFC 5681 equation (4)). Repeated timeouts of a segment reduce the threshold only
    /// once.
    Flight,
    /// The congestion window itself is halved, as in the congestion controls of Linux.
    Cwnd,
}
