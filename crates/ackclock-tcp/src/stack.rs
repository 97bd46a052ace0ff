//! # Stack
//!
//! Rules that a sender follows: the RFC of its row, or Linux.
//!
//! ## Source
//! The sources are the RFCs that each module names, and Linux 6.18.
//!
//! ## What it does
//! `stack` selects behaviour that has no separate option, and the defaults of the other options (`config`). The
//! following modules depend on the stack:
//!
//! - `recovery` and `sender/ack.rs`: which [recovery](crate::recovery) retransmits losses; detection of spurious
//!   retransmissions by F-RTO and D-SACK.
//! - `sender/ack.rs`: which round-trip times are sampled.
//! - `sender/timer.rs`: bytes that stay in flight after a timeout.
//! - `sender/output.rs`: effect of an idle period on the congestion window.
//! - `sender/send_buffer.rs`: how much application data the socket accepts.
//! - `sender/outgoing.rs`: transmission in chunks, and the PSH flag.
//! - `sender/handshake.rs`: retransmission of a handshake, and its effect on the congestion window.
//! - `sender/reduction.rs`: effect of an ECN echo on a recovery.
//! - `cc/bbr`: how BBR refreshes its smallest round-trip time and restarts after an idle period.
//!
//! ## Differences from the source
//! Each module lists its own deviations. No connection learns from an earlier one to the same host: Linux takes the
//! first retransmission timeout from the cached RTT (tcp_init_metrics), until the first RTT of data is measured.
//!
//! ## Validation
//! `tests/linux.rs` checks exchanges of segments. `make agree` compares the senders with the kernel's senders in many
//! scenarios.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of SYN timeouts without backoff in Linux (tcp_syn_linear_timeouts).
pub(crate) const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// Rules that a sender follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// The RFC that the sender's row names.
    #[default]
    Rfc,
    /// Linux 6.18. With SACK, losses are detected by time (RACK-TLP, RFC 8985), without SACK by counting duplicates.
    /// Spurious timeouts are detected by F-RTO (RFC 5682). All other options default to Linux's values.
    Linux,
}
