//! # F-RTO
//!
//! Tells a spurious timeout by what arrives after it.
//!
//! ## Source
//! RFC 5682 section 3.1, in the form that Linux gives it.
//!
//! ## What it does
//! After a timeout only the first segment is sent again. If what arrives next was never sent again, the timeout was
//! spurious. If it advances without telling, new data is sent once instead of what is deemed lost: where that arrives and
//! what is before it does not, the loss was real.
//!
//! ## Differences from the source
//! What is deemed lost stays so until the timeout proves spurious; the source would keep silent about it.
//!
//! ## Validation
//! The exchanges of `tests/linux.rs`.

use ackclock_core::Seq;

use super::AckFacts;
use crate::cc::Phase;
use crate::scoreboard::Scoreboard;

/// Whether the last timeout may have been spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Doubt {
    /// It was not, or there was none.
    #[default]
    None,
    /// It may.
    Open,
    /// New data is sent in the place of what is deemed lost, until the next acknowledgement (step 2b).
    Testing,
    /// It was, as an echo told, which leaves it to the next acknowledgement to end the repair.
    Dispelled,
}

impl Doubt {
    /// After a timeout in `phase`, and `in_a_row` with the one before: not where losses were being repaired already
    /// (RFC 5682 step 1), but for timeouts in a row.
    pub(super) fn after_timeout(phase: Phase, in_a_row: bool) -> Self {
        if phase == Phase::Open || in_a_row { Self::Open } else { Self::None }
    }

    /// Something is to be sent: without new data to send, and `none_sent` so far, nothing can be tested.
    #[inline]
    pub(super) fn on_poll(&mut self, fresh: bool, none_sent: bool) {
        if *self == Self::Testing && none_sent && !fresh {
            *self = Self::None;
        }
    }

    /// Something else showed that the timeout was spurious.
    pub(super) fn dispel(&mut self) {
        if *self != Self::None {
            *self = Self::Dispelled;
        }
    }

    /// Whether a segment that was outstanding at the timeout, up to `point`, arrived by its first sending: the lowest ends at `original`.
    pub(super) fn is_dispelled(self, original: Option<Seq>, point: Seq) -> bool {
        self != Self::None && original.is_some_and(|end| !end.after(point))
    }

    /// Takes in an acknowledgement that does not cover all that was outstanding, up to `point`, at the timeout; `original` is the
    /// end of the lowest segment that it shows to have arrived by its first sending. Whether it proves the timeout spurious.
    pub(super) fn on_ack(
        &mut self,
        ack: &AckFacts,
        original: Option<Seq>,
        point: &mut Seq,
        board: &Scoreboard,
    ) -> bool {
        if *self == Self::None {
            return false;
        }
        if self.is_dispelled(original, *point) {
            return true;
        }
        if board.max().after(*point) {
            // Step 3a: new data arrives, and what is before it does not.
            if ack.sacked > 0 || ack.duplicate {
                *self = Self::None;
            } else if *self == Self::Testing {
                *self = Self::Open;
            }
        } else if ack.acked > 0 {
            *point = board.max();
            if *self == Self::Open {
                *self = Self::Testing;
            }
        }
        false
    }
}
