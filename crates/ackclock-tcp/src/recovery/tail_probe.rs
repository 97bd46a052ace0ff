//! # Probe of the tail
//!
//! ## Source
//! RFC 8985 section 7.
//!
//! ## What it does
//! Remembers what a probe sent and what is known of it since; when one is sent, and what its answer means, says [RACK](super::rack).
//!
//! ## Differences from the source
//! Those of RACK.
//!
//! ## Validation
//! The exchanges of `tests/linux.rs`.

use ackclock_core::Seq;

/// A probe of the tail that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// TLP.end_seq: one past the highest number sent.
    pub(super) end: Seq,
    pub(super) tail: Sent,
}

/// What a probe sent, and what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// New data.
    Fresh,
    /// The last segment again (TLP.is_retrans).
    Again,
    /// The last segment again, which is acknowledged since.
    Repaired,
}
