//! Spurious window reductions: detection and response.
//!
//! Detection follows RFC 3522 for every sender with timestamps; the Linux stack also uses D-SACK. An [`Undo`] is the
//! response to a spurious reduction.

pub mod eifel;
pub mod none;

use ackclock_core::{SackBlock, Seq, Span};

use crate::cc::Congestion;
use crate::config::{SenderConfig, UndoKind};

/// Response to a window reduction that proves spurious.
pub trait Undo: Send {
    /// Saves the state of the sender before a reduction of the window.
    fn on_reduction(&mut self, before: &Before);

    /// Returns the response to the last reduction, which was spurious.
    fn respond(&mut self, proof: &Proof) -> Redress;
}

/// State of the sender before a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// Bytes in flight before the reduction.
    pub flight: u32,
    /// Slow-start threshold before the reduction, bytes.
    pub ssthresh: u32,
    /// Smoothed round-trip time plus twice the granularity, and the RTT variation.
    pub rtt: Option<(Span, Span)>,
}

/// Facts about the acknowledgement that proved a reduction spurious.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// Bytes in flight after the acknowledgement.
    pub flight: u32,
    /// Bytes that the acknowledgement covers.
    pub acked: u32,
    /// Initial window of the connection, bytes.
    pub initial_window: u32,
    /// Whether the acknowledgement also echoes a congestion mark.
    pub ecn_echo: bool,
}

/// Response of the sender to a spurious reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redress {
    /// Keep the reduced window.
    Nothing,
    /// Continue with new data and restore the previous window, because the data in flight is still in transit.
    Restore,
    /// Continue with new data, and adopt the given window and RTT estimate.
    Adopt {
        /// New window and threshold, bytes; `None` if a congestion mark was echoed.
        window: Option<(u32, u32)>,
        /// Smoothed round-trip time and variation from which the estimate restarts.
        rtt: Option<(Span, Span)>,
    },
}

/// Creates the response that the options select.
pub fn build(kind: UndoKind, config: &SenderConfig) -> Box<dyn Undo> {
    match kind {
        UndoKind::None => Box::new(none::NoUndo),
        UndoKind::Eifel => Box::new(eifel::Eifel::new(config.response)),
    }
}

/// Eifel detection (RFC 3522 section 3.2). If the first acknowledgement after a retransmission echoes a timestamp older
/// than the retransmission, the original segment had arrived.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    watch: Option<Watch>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    cause: Congestion,
    /// `RetransmitTS`: timestamp of the first retransmission.
    retransmit: Seq,
}

impl Detector {
    /// Whether a reduction for this cause is being tested. During a test only the first retransmission matters (step
    /// (1)).
    pub fn watches(&self, cause: Congestion) -> bool {
        self.watch.is_some_and(|watch| watch.cause == cause)
    }

    /// Starts a test at the start of recovery. `value` is the timestamp of the first retransmission.
    pub fn watch(&mut self, cause: Congestion, value: u32) {
        self.watch = Some(Watch { cause, retransmit: Seq(value) });
    }

    /// Evaluates an acknowledgement that advanced the left edge and echoes `echo`. The acknowledgement proves nothing
    /// if the receiver may have `both` the original and the retransmission. Returns the cause of the reduction if it
    /// was spurious.
    pub fn on_advance(&mut self, echo: Option<u32>, both: bool) -> Option<Congestion> {
        let watch = self.watch.take()?;
        (!both && Seq(echo?).before(watch.retransmit)).then_some(watch.cause)
    }
}

/// Detectors of spurious reductions.
#[derive(Clone, Debug, Default)]
pub struct Detectors {
    /// Detection by timestamp echoes.
    pub echoes: Detector,
    /// Detection by segments that the receiver reports as duplicates.
    pub repeats: Repeats,
}

/// D-SACK detection in Linux's form (RFC 3708). A reduction was spurious if the receiver reports every segment
/// retransmitted since the reduction as a duplicate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeats {
    judged: Option<Tested>,
}

#[derive(Clone, Copy, Debug)]
struct Tested {
    cause: Congestion,
    /// Left edge at the reduction. Retransmissions below the left edge at the reduction belong to an earlier reduction.
    above: Seq,
    /// Retransmitted segments not yet reported as duplicates; `None` if nothing was retransmitted so far.
    left: Option<u32>,
}

impl Repeats {
    /// Starts a test at a reduction, when everything below `above` is acknowledged. `probed` says that a tail probe of
    /// the last segment is in flight. The receiver may report the probe as a duplicate too, which proves nothing about
    /// other segments (tcp_init_undo).
    pub fn watch(&mut self, cause: Congestion, above: Seq, probed: bool) {
        self.judged = Some(Tested { cause, above, left: probed.then_some(1) });
    }

    /// Ends the test of a reduction: the reduction was undone, or a further reduction follows that duplicates cannot
    /// disprove.
    pub fn forget(&mut self) {
        self.judged = None;
    }

    /// Counts a segment that is retransmitted.
    pub fn on_sent_again(&mut self) {
        if let Some(judged) = &mut self.judged {
            judged.left = Some(judged.left.unwrap_or(0) + 1);
        }
    }

    /// Processes `block`, which the receiver reported as a duplicate; segments have at most `mss` bytes. Returns the
    /// cause of the reduction if all retransmissions were spurious.
    pub fn on_duplicate(&mut self, block: SackBlock, mss: u32) -> Option<Congestion> {
        let judged = self.judged.as_mut().filter(|judged| block.right.after(judged.above))?;
        let left = judged.left?.saturating_sub(block.right.since(block.left).div_ceil(mss));
        judged.left = Some(left);
        (left == 0).then_some(judged.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_echo_proves_the_timeout_spurious_and_an_equal_one_does_not() {
        for (echo, proven) in [(99, true), (100, false), (101, false)] {
            let mut detector = Detector::default();
            detector.watch(Congestion::Timeout, 100);
            assert!(detector.watches(Congestion::Timeout));
            let found = detector.on_advance(Some(echo), false);
            assert_eq!(found.is_some(), proven, "{echo}");
            assert_eq!(detector.on_advance(Some(0), false), None, "only the first acknowledgement tells");
        }
    }

    #[test]
    fn a_reduction_was_for_nothing_once_all_that_was_sent_again_proves_to_have_been_there() {
        let block = |left, right| SackBlock { left: Seq(left), right: Seq(right) };
        let mut repeats = Repeats::default();
        repeats.watch(Congestion::FastRetransmit, Seq(1000), false);
        assert_eq!(repeats.on_duplicate(block(1000, 2000), 1000), None, "nothing was sent again");
        (0..3).for_each(|_| repeats.on_sent_again());
        assert_eq!(repeats.on_duplicate(block(0, 1000), 1000), None, "it was sent again for another loss");
        assert_eq!(repeats.on_duplicate(block(1000, 3000), 1000), None);
        assert_eq!(repeats.on_duplicate(block(3000, 3500), 1000), Some(Congestion::FastRetransmit));
    }

    #[test]
    fn the_repetition_of_a_probe_proves_nothing_of_what_was_sent_again_for_a_loss() {
        let block = |left, right| SackBlock { left: Seq(left), right: Seq(right) };
        for (probed, proven) in [(true, None), (false, Some(Congestion::FastRetransmit))] {
            let mut repeats = Repeats::default();
            repeats.watch(Congestion::FastRetransmit, Seq(0), probed);
            repeats.on_sent_again();
            assert_eq!(repeats.on_duplicate(block(9000, 10_000), 1000), proven);
        }
    }

    #[test]
    fn a_duplicate_sack_leaves_it_open() {
        let mut detector = Detector::default();
        detector.watch(Congestion::FastRetransmit, 100);
        assert_eq!(detector.on_advance(Some(50), true), None);
    }
}
