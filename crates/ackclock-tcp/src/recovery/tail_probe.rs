//! # Tail loss probe
//!
//! ## Source
//! RFC 8985 section 7 (tail loss probe).
//!
//! ## What it does
//! Stores the segment that a tail probe sent, and the state of that segment. [RACK](super::rack) decides when to probe
//! and how to interpret the answer.
//!
//! ## Differences from the source
//! The module [RACK](super::rack) lists the deviations.
//!
//! ## Validation
//! `tests/linux.rs` checks exchanges of segments.

use ackclock_core::Seq;

/// A tail probe in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// TLP.end_seq: sequence number after the highest byte sent.
    pub(super) end: Seq,
    pub(super) tail: Sent,
}

/// Segment that a tail probe sent, and whether it has been acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The probe is a segment of new data.
    Fresh,
    /// The probe retransmits the last segment (TLP.is_retrans).
    Again,
    /// The probe retransmitted the last segment, which has been acknowledged since.
    Repaired,
}
