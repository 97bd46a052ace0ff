//! Users of a radio channel and the classes of service of their flows, as scenario files write them.

use ackclock_core::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A group of users of a cell with equal settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CellUser {
    /// Number of users in the group.
    pub count: u32,
    /// Mean SNR of each user's channel, dB.
    pub mean_snr: f64,
    /// Maximum Doppler frequency of each channel, Hz.
    pub doppler: f64,
    /// Fading model of each user's channel.
    pub fading: FadingKind,
}

/// Fading model of a user's channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FadingKind {
    /// Rayleigh fading, generated as in Zheng and Xiao.
    #[default]
    Rayleigh,
    /// Rayleigh fading, generated as in Jakes.
    Jakes,
    /// No fading process: the rate of each slot is drawn independently from the probabilities of the rate table.
    Table,
    /// No fading: the SNR always has its mean value.
    None,
}

impl Default for CellUser {
    /// Returns a user with the mean SNR at which the rates are distributed as in CR02 Table 4.
    fn default() -> Self {
        Self { count: 1, mean_snr: 2.3, doppler: 30.0, fading: FadingKind::Rayleigh }
    }
}

/// A class of service: flows of each user with a separate queue and separate radio link control.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// Name of the class, to which `class` of a flow refers.
    pub name: String,
    /// DSCPs, 0 to 63, that select the class. In `ackclock link`, the first packet of a flow decides; simulated flows
    /// name their class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<u8>,
    /// Keys of `edge.bearer.rlc` with a different value in this class. A class with another `mode` has the default
    /// values of this mode, but the same `pdu`, and with "packet" the same `order` and `reordering`. All classes have PDUs
    /// of equal size.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub rlc: Map<String, Value>,
    /// Size of the downlink queue of this class for each user; by default the size of `edge.buffer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
    /// Weight of a user whose next PDU has this class, 1 to 1000. Flows without a class have weight 1. Round robin serves
    /// the user in as many slots of a turn. Proportional fair multiplies its ratio by the weight: without fading, the
    /// rates of users are in the ratio of their weights; with fading, the ratio is smaller, because each user is served
    /// while its channel is good. Weights of 1 and 3 give a ratio of about 1.8 with Rayleigh fading.
    #[serde(default = "one")]
    pub weight: u16,
    /// Priority among the classes of a user: lower numbers are sent first, and equal numbers in turn. Flows without a
    /// class have priority 1.
    #[serde(default = "one")]
    pub priority: u16,
}

const fn one() -> u16 {
    1
}
