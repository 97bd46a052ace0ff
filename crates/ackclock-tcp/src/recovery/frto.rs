//! # F-RTO
//!
//! F-RTO detects a spurious timeout from the acknowledgements after the timeout.
//!
//! ## Source
//! RFC 5682 section 3.1, in the form that Linux implements.
//!
//! ## What it does
//! After a timeout F-RTO retransmits only the first segment. If the next segment to arrive was never retransmitted, the
//! timeout was spurious. If an acknowledgement advances without showing which segment arrived, F-RTO once sends new
//! data instead of the segments marked lost. If the new data arrives but the earlier data does not, the loss was real.
//!
//! ## Differences from the source
//! Segments marked lost stay marked until the timeout proves spurious. RFC 5682 would not mark segments as lost during
//! the F-RTO test.
//!
//! ## Validation
//! `tests/linux.rs` checks exchanges of segments.

use ackclock_core::Seq;

use super::AckFacts;
use crate::cc::Phase;
use crate::scoreboard::Scoreboard;

/// State of the test whether the last timeout was spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum SpuriousTest {
    /// The timeout was real, or no timeout occurred.
    #[default]
    None,
    /// The timeout may have been spurious.
    Open,
    /// The sender sends new data instead of segments marked lost, until the next acknowledgement (step 2b).
    Testing,
    /// A timestamp echo showed the timeout to be spurious; the next acknowledgement ends the recovery.
    Proved,
}

impl SpuriousTest {
    /// State of the test after a timeout in `phase`. `in_a_row` says that nothing was acknowledged since the previous
    /// timeout. A timeout during recovery is not tested (RFC 5682 step 1), unless several timeouts occur in a row.
    pub(super) fn after_timeout(phase: Phase, in_a_row: bool) -> Self {
        if phase == Phase::Open || in_a_row { Self::Open } else { Self::None }
    }

    /// Called when a segment can be sent. Without new data to send, the test ends if no new data was sent in this
    /// recovery so far (`none_sent`).
    #[inline]
    pub(super) fn on_poll(&mut self, fresh: bool, none_sent: bool) {
        if *self == Self::Testing && none_sent && !fresh {
            *self = Self::None;
        }
    }

    /// Records that other evidence showed the timeout to be spurious.
    pub(super) fn prove(&mut self) {
        if *self != Self::None {
            *self = Self::Proved;
        }
    }

    /// Whether a segment in flight at the timeout, below `point`, arrived by its first transmission. `original` is the
    /// end of the lowest segment shown to have arrived by its first transmission.
    pub(super) fn is_proved(self, original: Option<Seq>, point: Seq) -> bool {
        self != Self::None && original.is_some_and(|end| !end.after(point))
    }

    /// Processes an acknowledgement that does not cover all data in flight at the timeout, up to `point`. `original` is
    /// the end of the lowest segment shown to have arrived by its first transmission. Returns whether the
    /// acknowledgement proves the timeout spurious.
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
        if self.is_proved(original, *point) {
            return true;
        }
        if board.max().after(*point) {
            // Step 3a: the new data arrives, but the earlier data does not.
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
