//! # Stack
//!
//! Whose rules a sender keeps: those of the RFC of its row, or those of Linux.
//!
//! ## Source
//! The RFCs that each module names; Linux 6.18.
//!
//! ## What it does
//! `stack` chooses what no other option says, and the default of those that say more. What it chooses stands where it
//! happens: which [recovery](crate::recovery) repairs losses, with F-RTO and D-SACK to doubt them, in `recovery` and
//! `sender/ack.rs`; which round trips are timed, in `sender/ack.rs`; what a timeout leaves in flight, in `sender/timer.rs`; what a
//! silence does to the window, in `sender/output.rs`; what the socket takes of the application's data, in `sender/send_buffer.rs`; chunks and PSH, in `sender/outgoing.rs`; how a handshake is
//! repeated and what that costs, in `sender/handshake.rs`; what an echo of congestion makes of a repair, in `sender/reduction.rs`; how BBR renews its round-trip time and restarts, in `cc/bbr`.
//!
//! ## Differences from the source
//! Each module tells its own.
//!
//! ## Validation
//! The exchanges of `tests/linux.rs`; side by side with the kernel's senders over the cells of `make agree`.

use ackclock_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::bbr::{BbrConfig, LossWindow};
use crate::cc::cubic::{CubicConfig, SlowStartEnd};
use crate::config::{Growth, Halves, Response, SenderConfig, Switch, UndoKind};
use crate::rtt::{Bounds, RtoConfig};

/// So often a SYN of Linux waits no longer than the one before (tcp_syn_linear_timeouts).
pub(crate) const ALIKE_SYN_TIMEOUTS: u32 = 4;

/// Whose rules a sender keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// Those of the RFC that the row names.
    #[default]
    Rfc,
    /// Those of Linux 6.18: losses are told by time where there is SACK (RACK-TLP, RFC 8985) and by counted duplicates where
    /// there is none, timeouts are doubted (F-RTO, RFC 5682), and the other options have the defaults that Linux has.
    Linux,
}

impl Stack {
    /// The options as this stack has them.
    pub fn defaults(self) -> SenderConfig {
        match self {
            Self::Rfc => SenderConfig::default(),
            Self::Linux => linux(),
        }
    }
}

fn linux() -> SenderConfig {
    SenderConfig {
        stack: Stack::Linux,
        rto: RtoConfig {
            min: Span::from_millis(200),
            max: Span::from_secs(120),
            bounds: Bounds::Variation,
            ..RtoConfig::default()
        },
        limited_transmit: Switch::On,
        prr: Switch::On,
        growth: Growth::Bytes,
        halves: Some(Halves::Cwnd),
        timestamps: Some(Switch::On),
        undo: Some(UndoKind::Eifel),
        response: Response::Restore,
        cubic: CubicConfig { hystart: SlowStartEnd::Classic, ..CubicConfig::default() },
        bbr: BbrConfig {
            aggregation: Switch::On,
            pacing_margin: 0.01,
            even_window: Switch::On,
            losses: LossWindow::Linux,
            policer: Switch::On,
            bursts: Switch::On,
        },
        ..SenderConfig::default()
    }
}
