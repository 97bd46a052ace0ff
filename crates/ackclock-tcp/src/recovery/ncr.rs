//! # Non-congestion robustness
//!
//! A DupThresh that follows what is outstanding, so that packets may overtake each other for a round trip (TCP-NCR).
//!
//! ## Source
//! RFC 4653 section 3, on the loss recovery of RFC 6675.
//!
//! ## What it does
//! From the first ACK that SACKs something, no loss is found until about a window of packets beyond the gap has arrived. Meanwhile new
//! data keep the ACKs coming (extended limited transmit): one packet for each that leaves the network (`aggressive`), or one for every
//! second (`careful`). An ACK that advances shows that packets only overtook each other; the window then lets no burst out, and slow
//! start leads it back to what had been outstanding. A loss halves what had been outstanding before the extension.
//!
//! ## Differences from the source
//! - A part of a packet in `LT_F * (FlightSize / SMSS)` counts as a whole one, for no part of a packet arrives by itself.
//! - A last segment of less than SMSS may go out too.
//! - The window stays where an echo of congestion has reduced it in the same round trip.
//!
//! ## Validation
//! The exchanges of both variants by hand, ACK after ACK (`tests/ncr.rs`).

use ackclock_core::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Next, Verdict, Window};
use crate::config::{SenderConfig, Switch};
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::stack::Stack;

/// DupThresh: a number, or how it adapts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "it is 1 to 1000, \"careful\" or \"aggressive\"")]
pub enum DupThresh {
    /// This many.
    Fixed(u32),
    /// About a window of packets (RFC 4653).
    Adaptive(Extension),
}

/// What an extended limited transmit sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// A packet for every second one that leaves the network; DupThresh is two thirds of what is outstanding.
    Careful,
    /// A packet for each that leaves the network; DupThresh is half of what is outstanding.
    Aggressive,
}

/// Largest fixed DupThresh.
const MOST_DUPLICATES: u32 = 1000;

impl Default for DupThresh {
    fn default() -> Self {
        Self::Fixed(DUP_THRESH)
    }
}

impl DupThresh {
    /// The number, and where it adapts the one that it never falls below.
    pub fn least(self) -> u32 {
        match self {
            Self::Fixed(number) => number,
            Self::Adaptive(_) => DUP_THRESH,
        }
    }

    /// Checks it beside the other options of its sender.
    ///
    /// # Errors
    /// Says what is allowed.
    pub fn check(self, config: &SenderConfig) -> Result<(), ConfigError> {
        let refuse = |message: String| Err(ConfigError::new("", message));
        match self {
            _ if config.stack == Stack::Linux && self != Self::default() => {
                refuse("stack = \"linux\" finds its own".to_owned())
            }
            Self::Fixed(number) if !(1..=MOST_DUPLICATES).contains(&number) => {
                refuse(format!("{number} is not 1 to {MOST_DUPLICATES}"))
            }
            Self::Adaptive(_) if config.limited_transmit == Switch::On => refuse(
                "it adapts with a limited transmit of its own: leave limited_transmit \"off\"".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

/// State of the extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ncr {
    extension: Extension,
    /// Bytes for which an ACK sends nothing.
    skipped: u32,
    /// FlightSizePrev, bytes: what was outstanding when the extension began.
    before: u32,
    /// Whether extended limited transmit is under way.
    active: bool,
}

impl Ncr {
    /// Where the options ask for it.
    pub(super) fn new(config: &SenderConfig) -> Option<Self> {
        match config.dup_thresh {
            DupThresh::Fixed(_) => None,
            DupThresh::Adaptive(extension) => Some(Self { extension, skipped: 0, before: 0, active: false }),
        }
    }

    /// An ACK came while nothing is being repaired: whether it begins or goes on, and the DupThresh from now on (steps I and E.6).
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
        // No more than 32 bits of bytes are outstanding.
        (segments as u32).max(DUP_THRESH)
    }

    /// The left edge advanced: what was SACKed had overtaken the rest (steps T).
    pub(super) fn on_advance(&mut self, mss: u32, board: &Scoreboard) -> Verdict {
        if !self.active {
            return Verdict::Open;
        }
        self.skipped = 0;
        Verdict::Reordered { cwnd: self.before.min(board.outstanding() + mss), ssthresh: self.before }
    }

    /// Recovery begins, or the timer expired.
    pub(super) fn end(&mut self) {
        self.active = false;
    }

    /// What was outstanding before the last extension, bytes; `None` where nothing was SACKed.
    pub(super) fn before(&self) -> Option<u32> {
        Some(self.before).filter(|&bytes| bytes > 0)
    }

    /// Whether extended limited transmit says what is sent.
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
