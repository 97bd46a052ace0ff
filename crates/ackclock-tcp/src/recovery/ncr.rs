//! # Non-congestion robustness
//!
//! TCP-NCR: a DupThresh that follows the bytes in flight, to tolerate reordering within a round trip.
//!
//! ## Source
//! RFC 4653 section 3, as an extension of the loss recovery of RFC 6675.
//!
//! ## What it does
//! After the first ACK with SACK, a loss is declared only once about a window of packets beyond the gap has arrived.
//! Meanwhile new data keeps the ACK clock running (extended limited transmit). `aggressive` sends one packet for each
//! packet that leaves the network, `careful` sends one for every second packet. An ACK that advances the left edge
//! shows that packets were only reordered. The window is then limited to prevent a burst, and slow start returns the
//! window to the earlier bytes in flight. A loss halves the bytes in flight from before extended limited transmit.
//!
//! ## Differences from the source
//! - A fraction of a packet in `LT_F * (FlightSize / SMSS)` is rounded up, because only whole packets arrive.
//! - A last segment shorter than SMSS may also be sent.
//! - The window does not change if an ECN echo has already reduced it in the current round trip.
//!
//! ## Validation
//! `tests/ncr.rs` compares exchanges of segments in both variants with hand computations for every ACK.

use super::{Next, Verdict, Window};
use crate::dup_thresh::{DupThresh, Extension};
use crate::scoreboard::{DUP_THRESH, Scoreboard};

/// State of the adaptive DupThresh and of extended limited transmit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ncr {
    extension: Extension,
    /// Bytes that have left the network and have not been replaced by new transmissions.
    skipped: u32,
    /// FlightSizePrev: bytes in flight when extended limited transmit began.
    before: u32,
    /// Whether extended limited transmit is active.
    active: bool,
}

impl Ncr {
    /// Creates the state of TCP-NCR if `threshold` is adaptive; otherwise `None`.
    pub(super) fn new(threshold: DupThresh) -> Option<Self> {
        match threshold {
            DupThresh::Fixed(_) => None,
            DupThresh::Adaptive(extension) => Some(Self { extension, skipped: 0, before: 0, active: false }),
        }
    }

    /// Starts or continues extended limited transmit when an ACK arrives outside recovery. Returns the new DupThresh
    /// (steps I and E.6).
    pub(super) fn on_ack(&mut self, mss: u32, board: &Scoreboard) -> u32 {
        if board.sacked() == 0 {
            (self.active, self.before) = (false, 0);
            return DUP_THRESH;
        }
        if !self.active {
            *self = Self { skipped: 0, before: board.outstanding(), active: true, ..*self };
        }
        let segments = match self.extension {
            Extension::Careful => (2 * u64::from(board.outstanding())).div_ceil(3 * u64::from(mss)),
            Extension::Aggressive => u64::from(board.outstanding()).div_ceil(2 * u64::from(mss)),
        };
        // The bytes in flight fit into 32 bits.
        (segments as u32).max(DUP_THRESH)
    }

    /// Ends extended limited transmit when the left edge advances: SACKed packets were only reordered (steps T).
    pub(super) fn on_advance(&mut self, mss: u32, board: &Scoreboard) -> Verdict {
        if !self.active {
            return Verdict::Open;
        }
        self.skipped = 0;
        Verdict::Reordered { cwnd: self.before.min(board.outstanding() + mss), ssthresh: self.before }
    }

    /// Ends extended limited transmit because recovery starts or the timer expired.
    pub(super) fn end(&mut self) {
        self.active = false;
    }

    /// Bytes in flight before the last extended limited transmit; `None` if nothing was SACKed.
    pub(super) fn before(&self) -> Option<u32> {
        Some(self.before).filter(|&bytes| bytes > 0)
    }

    /// Whether extended limited transmit chooses the segments to send.
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Chooses the next segment by steps E.2 to E.5.
    pub(super) fn poll(&mut self, window: &Window, board: &Scoreboard) -> Option<Next> {
        let allowed = window.fresh > 0 && board.outstanding() + window.fresh <= window.limit;
        let pipe = board.in_flight().saturating_add(self.skipped);
        if !allowed || pipe.saturating_add(window.mss) > self.before {
            return None;
        }
        if self.extension == Extension::Careful {
            self.skipped += window.mss;
        }
        Some(Next::Fresh)
    }
}
