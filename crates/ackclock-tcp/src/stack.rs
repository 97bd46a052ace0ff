//! # Stack
//!
//! Rule set that a sender follows: the RFC of its row, or Linux.
//!
//! ## Source
//! The RFCs named in each module; Linux 6.18.
//!
//! ## What it does
//! `stack` selects behaviour that has no option of its own, and the defaults of the other options (`config`). Each choice
//! is implemented where it applies:
//!
//! - `recovery` and `sender/ack.rs`: which [recovery](crate::recovery) retransmits losses; detection of spurious
//!   retransmissions by F-RTO and D-SACK.
//! - `sender/ack.rs`: which round trips are timed.
//! - `sender/timer.rs`: bytes left in flight by a timeout.
//! - `sender/output.rs`: effect of an idle period on the window.
//! - `sender/send_buffer.rs`: how much application data the socket accepts.
//! - `sender/outgoing.rs`: chunks and PSH.
//! - `sender/handshake.rs`: retransmission of a handshake, and its effect on the window.
//! - `sender/reduction.rs`: effect of an ECN echo on a recovery.
//! - `cc/bbr`: how BBR refreshes its round-trip time and restarts after idle.
//!
//! ## Differences from the source
//! Listed in each module.
//!
//! ## Validation
//! The exchanges of `tests/linux.rs`; comparison with the kernel's senders over the cells of `make agree`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of SYN timeouts without backoff in Linux (tcp_syn_linear_timeouts).
pub(crate) const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// Rule set that a sender follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// The RFC that the row names.
    #[default]
    Rfc,
    /// Linux 6.18: losses are detected by time with SACK (RACK-TLP, RFC 8985) and by counting duplicates without it.
    /// Spurious timeouts are detected (F-RTO, RFC 5682). All other options default to Linux's values.
    Linux,
}
