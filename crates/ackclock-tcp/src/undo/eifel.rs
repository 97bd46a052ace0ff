//! # Eifel response
//!
//! ## Source
//! RFC 4015; Ludwig and Katz 2000 for the option `restore`.
//!
//! ## What it does
//! After a spurious reduction the sender continues with new data. `rfc4015` sets the window to the bytes in flight plus
//! the bytes just acknowledged, and the threshold to the earlier window use. `rfc4015` also restarts the RTT estimate
//! from the larger of the old and new values. `restore` restores the earlier window and threshold.
//!
//! ## Differences from the source
//! The duplicate threshold is not raised after a spurious fast retransmit, which RFC 4015 makes optional.
//!
//! ## Validation
//! `tests/exchanges.rs` checks exchanges of segments.

use super::{Before, Proof, Redress, Undo};
use crate::config::Response;

/// State of the sender saved before the last reduction.
#[derive(Clone, Copy, Debug)]
pub struct Eifel {
    response: Response,
    saved: Option<Before>,
}

impl Eifel {
    /// Creates the undo that uses `response`.
    pub fn new(response: Response) -> Self {
        Self { response, saved: None }
    }
}

impl Undo for Eifel {
    fn on_reduction(&mut self, before: &Before) {
        self.saved = Some(*before);
    }

    fn respond(&mut self, proof: &Proof) -> Redress {
        let Some(before) = self.saved.take() else { return Redress::Nothing };
        if self.response == Response::Restore {
            return Redress::Restore;
        }
        // RFC 4015 section 3 sets pipe_prev = max(FlightSize, ssthresh) and cwnd = FlightSize + min(bytes acked, IW).
        let window = proof.flight.saturating_add(proof.acked.min(proof.initial_window));
        let settings = (window, before.flight.max(before.ssthresh));
        Redress::Adopt { window: (!proof.ecn_echo).then_some(settings), rtt: before.rtt }
    }
}
