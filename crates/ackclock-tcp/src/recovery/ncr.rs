//! # Non-congestion robustness
//!
//! A DupThresh that follows the bytes in flight, to tolerate reordering within a round trip (TCP-NCR).
//!
//! ## Source
//! RFC 4653 section 3, on the loss recovery of RFC 6675.
//!
//! ## What it does
//! After the first ACK with SACK, a loss is only declared once about a window of packets beyond the gap has arrived.
//! Meanwhile new data keeps the ACK clock running (extended limited transmit): one packet for each that leaves the
//! network (`aggressive`), or for every second one (`careful`). An ACK that advances shows mere reordering: the window
//! then prevents a burst, and slow start returns it to the earlier bytes in flight. A loss halves the bytes in flight
//! from before the extension.
//!
//! ## Differences from the source
//! - A fraction of a packet in `LT_F * (FlightSize / SMSS)` is rounded up, as packets arrive whole.
//! - A last segment shorter than SMSS may be sent too.
//! - The window is not changed if a congestion echo has reduced it in the same round trip.
//!
//! ## Validation
//! Exchanges of both variants computed by hand, ACK by ACK (`tests/ncr.rs`).

use super::{Next, Verdict, Window};
use crate::dup_thresh::{DupThresh, Extension};
use crate::scoreboard::{DUP_THRESH, Scoreboard};

/// State of the extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ncr {
    extension: Extension,
    /// Bytes that have left the network without a new transmission in return.
    skipped: u32,
    /// FlightSizePrev, bytes in flight when the extension began.
    before: u32,
    /// Whether extended limited transmit is active.
    active: bool,
}

impl Ncr {
    /// Creates the state if the threshold is adaptive.
    pub(super) fn new(threshold: DupThresh) -> Option<Self> {
        match threshold {
            DupThresh::Fixed(_) => None,
            DupThresh::Adaptive(extension) => Some(Self { extension, skipped: 0, before: 0, active: false }),
        }
    }

    /// An ACK arrived outside recovery: begins or continues the extension; returns the new DupThresh (steps I and E.6).
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
        // Bytes in flight fit in 32 bits.
        (segments as u32).max(DUP_THRESH)
    }

    /// The left edge advanced: SACKed packets were only reordered (steps T).
    pub(super) fn on_advance(&mut self, mss: u32, board: &Scoreboard) -> Verdict {
        if !self.active {
            return Verdict::Open;
        }
        self.skipped = 0;
        Verdict::Reordered { cwnd: self.before.min(board.outstanding() + mss), ssthresh: self.before }
    }

    /// Ends the extension: recovery begins, or the timer expired.
    pub(super) fn end(&mut self) {
        self.active = false;
    }

    /// Bytes in flight before the last extension; `None` if nothing was SACKed.
    pub(super) fn before(&self) -> Option<u32> {
        Some(self.before).filter(|&bytes| bytes > 0)
    }

    /// Whether extended limited transmit chooses what is sent.
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Steps E.2 to E.5.
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
