//! # Tail loss probe
//!
//! ## Source
//! RFC 8985 section 7.
//!
//! ## What it does
//! Stores the segment that a probe sent, and its state since. [RACK](super::rack) decides when to probe and how to
//! interpret the answer.
//!
//! ## Differences from the source
//! See RACK.
//!
//! ## Validation
//! The exchanges of `tests/linux.rs`.

use ackclock_core::Seq;

/// An outstanding tail probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// TLP.end_seq: one past the highest sequence number sent.
    pub(super) end: Seq,
    pub(super) tail: Sent,
}

/// Segment sent as a probe, and its state since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// New data.
    Fresh,
    /// Retransmission of the last segment (TLP.is_retrans).
    Again,
    /// Retransmission of the last segment, which has been acknowledged since.
    Repaired,
}
