//! Spurious reductions: how they are told, and what is done about them.
//!
//! Detection is that of RFC 3522 for every sender with timestamps; the response is an [`Undo`].

pub mod eifel;
pub mod none;

use ackclock_core::{Seq, Span};

use crate::cc::Congestion;
use crate::config::{SenderConfig, UndoKind};

/// The response to a reduction that proves to be spurious.
pub trait Undo: Send {
    /// The window is about to be reduced.
    fn on_reduction(&mut self, before: &Before);

    /// The last reduction was for nothing; gives what to do.
    fn respond(&mut self, proof: &Proof) -> Redress;
}

/// The state before a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// Bytes outstanding.
    pub flight: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// Smoothed round-trip time raised by twice the granularity, and variation.
    pub rtt: Option<(Span, Span)>,
}

/// The acknowledgement that proved a reduction spurious.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// Bytes outstanding after it.
    pub flight: u32,
    /// Bytes that it acknowledged.
    pub acked: u32,
    /// Initial window, bytes.
    pub initial_window: u32,
    /// Whether it also echoes congestion.
    pub ecn_echo: bool,
}

/// What to do about a spurious reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redress {
    /// Nothing.
    Nothing,
    /// What is outstanding is on its way: go on with new data, and give the window back as it was.
    Restore,
    /// Go on with new data and these settings.
    Adopt {
        /// Window and threshold, bytes, unless congestion was echoed.
        window: Option<(u32, u32)>,
        /// Smoothed round-trip time and variation to start again from.
        rtt: Option<(Span, Span)>,
    },
}

/// The response that the options ask for.
pub fn build(kind: UndoKind, config: &SenderConfig) -> Box<dyn Undo> {
    match kind {
        UndoKind::None => Box::new(none::NoUndo),
        UndoKind::Eifel => Box::new(eifel::Eifel::new(config.response)),
    }
}

/// Eifel detection (RFC 3522 section 3.2): if the first acknowledgement after a retransmission echoes a timestamp older
/// than that of the retransmission, the original had arrived.
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
    /// Whether a reduction for this cause is being judged: of its retransmissions only the first is of use (step (1)).
    pub fn watches(&self, cause: Congestion) -> bool {
        self.watch.is_some_and(|watch| watch.cause == cause)
    }

    /// Recovery begins, and its first retransmission goes out with timestamp `value`.
    pub fn watch(&mut self, cause: Congestion, value: u32) {
        self.watch = Some(Watch { cause, retransmit: Seq(value) });
    }

    /// The left edge advanced by an acknowledgement that echoes `echo`, with or without a D-SACK block; gives the cause
    /// of the reduction if it was spurious.
    pub fn on_advance(&mut self, echo: Option<u32>, dsack: bool) -> Option<Congestion> {
        let watch = self.watch.take()?;
        // With a D-SACK the receiver had both: the timestamp then proves nothing.
        (!dsack && Seq(echo?).before(watch.retransmit)).then_some(watch.cause)
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
    fn a_duplicate_sack_leaves_it_open() {
        let mut detector = Detector::default();
        detector.watch(Congestion::FastRetransmit, 100);
        assert_eq!(detector.on_advance(Some(50), true), None);
    }
}
