//! Settings of STATUS reports.

use ackclock_core::{ConfigError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{TIMERS, in_bounds};
use super::missing::MissingFormat;

/// Rules for when the receiver sends a STATUS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusConfig {
    /// Timer_Status_Prohibit: minimum time between two STATUS PDUs; a trigger that comes earlier is answered when the
    /// time is over.
    pub prohibit: Span,
    /// Timer_Status_Periodic: period of STATUS while PDUs arrive or are missing; 0s: no periodic STATUS.
    pub period: Span,
    /// Whether a gap in the PDU numbers triggers a STATUS, in addition to polls.
    pub missing_pdu: bool,
    /// t-Reassembly (TS 38.322): time for which a PDU may arrive after later PDUs before a STATUS reports it as missing. By
    /// default, every gap is reported at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reassembly: Option<Span>,
    /// Whether a STATUS may replace the padding of a PDU.
    pub piggyback: bool,
    /// Format of the list of missing PDUs: LIST super-fields, BITMAP, or the shorter of the two.
    pub missing: MissingFormat,
    /// WINDOW: windows that the receiver allows its peer, each from a given time on. A change triggers a STATUS, and
    /// each later STATUS contains the new window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowChange>,
}

/// Change of the window that a receiver allows its peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowChange {
    /// Time at which the window takes effect.
    pub at: Span,
    /// Maximum number of unacknowledged PDUs, at most `window`.
    pub pdus: u32,
}

impl Default for StatusConfig {
    fn default() -> Self {
        Self {
            prohibit: Span::from_millis(100),
            period: Span::ZERO,
            missing_pdu: true,
            reassembly: None,
            piggyback: true,
            missing: MissingFormat::default(),
            windows: Vec::new(),
        }
    }
}

impl StatusConfig {
    /// Checks the STATUS settings against the window of the bearer, in PDUs.
    pub(super) fn check(&self, window: u32) -> Result<(), ConfigError> {
        if self.period != Span::ZERO {
            in_bounds("period", self.period, TIMERS)?;
        }
        if let Some(reassembly) = self.reassembly {
            in_bounds("reassembly", reassembly, TIMERS)?;
            if !self.missing_pdu {
                let message = "false: the end of `reassembly` triggers a STATUS";
                return Err(ConfigError::new("missing_pdu", message));
            }
        }
        if self.prohibit > TIMERS[1] {
            let message = format!("{} is more than {}", self.prohibit, TIMERS[1]);
            return Err(ConfigError::new("prohibit", message));
        }
        for (place, change) in self.windows.iter().enumerate() {
            let refuse = |key, message| Err(ConfigError::new(format!("windows.{place}.{key}"), message));
            if !(1..=window).contains(&change.pdus) {
                return refuse("pdus", format!("{} is not 1 to {window}, the `window`", change.pdus));
            }
            if self.windows[..place].last().is_some_and(|before| before.at >= change.at) {
                return refuse("at", format!("{} must be later than the one before", change.at));
            }
        }
        Ok(())
    }
}
