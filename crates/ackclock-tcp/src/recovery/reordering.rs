//! # Reordering
//!
//! ## Source
//! RFC 8985 section 6.2 steps 3 and 4 (reordering window).
//!
//! ## What it does
//! Detects whether the path reorders, and sets the reordering window in quarters of the smallest round-trip time. The
//! reordering window grows by one quarter for each round trip in which a D-SACK reports a spurious retransmission.
//! After sixteen recoveries without a D-SACK the reordering window is reset.
//!
//! ## Differences from the source
//! As in Linux, a D-SACK has no effect until reordering was seen on the path (tcp_dsack_seen).
//!
//! ## Validation
//! Unit tests below compare with hand-computed values.

use ackclock_core::Seq;

use super::AckFacts;
use crate::scoreboard::Scoreboard;

/// Number of recoveries without a D-SACK after which the reordering window is reset.
const PERSISTENCE: u32 = 16;
/// Largest reordering window, in quarters of the smallest round-trip time.
const MOST_STEPS: u32 = 255;

/// Reordering observed on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// RACK.reordering_seen: whether a segment sent only once arrived after a segment with a higher sequence number.
    pub(super) seen: bool,
    /// RACK.reo_wnd_mult: reordering window, in quarters of the smallest round-trip time.
    pub(super) steps: u32,
    /// RACK.reo_wnd_persist: number of recoveries until the reordering window is reset.
    persist: u32,
    /// RACK.dsack_round: left edge from which D-SACKs count again, one round trip after the last counted D-SACK.
    round: Option<Seq>,
    /// RACK.fack: highest right end of SACKed data.
    highest: Option<Seq>,
}

impl Default for Reordering {
    fn default() -> Self {
        Self { seen: false, steps: 1, persist: 0, round: None, highest: None }
    }
}

impl Reordering {
    /// Processes an acknowledgement. `of_probe` says that the acknowledgement's D-SACK answers a tail probe, and is
    /// therefore no evidence.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &AckFacts, of_probe: bool, board: &Scoreboard) {
        if let (Some(end), Some(highest)) = (ack.original, self.highest) {
            self.seen |= end.before(highest);
        }
        if let Some(end) = ack.highest_sacked {
            self.highest = Some(self.highest.map_or(end, |highest| highest.max(end)));
        }
        self.round = self.round.filter(|&round| board.una().before(round));
        if self.seen && ack.dsack.is_some() && !of_probe && self.round.is_none() {
            self.round = Some(board.max());
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.persist = PERSISTENCE;
        }
    }

    /// Counts a recovery that has ended.
    pub(super) fn on_repaired(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{SackBlock, Span, Time};

    use crate::sent::Marks;

    fn facts(original: Option<u32>, highest_sacked: Option<u32>, dsack: bool) -> AckFacts {
        AckFacts {
            now: Time::ZERO,
            latest: None,
            last: None,
            original: original.map(Seq),
            passed_repeated: false,
            highest_sacked: highest_sacked.map(Seq),
            dsack: dsack.then_some(SackBlock { left: Seq(0), right: Seq(10) }),
            srtt: None,
            rto: Span::from_secs(1),
            base_rto: Span::from_secs(1),
            min_rtt: None,
            acked: 0,
            sacked: 0,
            duplicate: true,
            mss: 10,
            cwnd: 100,
        }
    }

    #[test]
    fn what_was_sent_once_and_arrives_below_the_highest_is_reordered() {
        let board = Scoreboard::new(Seq(0));
        let mut reordering = Reordering::default();
        reordering.on_ack(&facts(Some(30), Some(30), false), false, &board);
        reordering.on_ack(&facts(Some(40), Some(40), false), false, &board);
        assert!(!reordering.seen, "in order");
        reordering.on_ack(&facts(Some(20), None, false), false, &board);
        assert!(reordering.seen);
    }

    #[test]
    fn a_round_trip_with_duplicates_widens_the_window_once_and_sixteen_recoveries_end_it() {
        let mut board = Scoreboard::new(Seq(0));
        board.push(Time::ZERO, 100, Marks::default());
        let mut reordering = Reordering::default();
        reordering.on_ack(&facts(None, None, true), false, &board);
        assert_eq!(reordering.steps, 1, "nothing was reordered so far");
        reordering.seen = true;
        (0..3).for_each(|_| reordering.on_ack(&facts(None, None, true), false, &board));
        assert_eq!(reordering.steps, 2);
        board.acknowledge(Seq(100), |_| {});
        reordering.on_ack(&facts(None, None, true), true, &board);
        assert_eq!(reordering.steps, 2, "a probe that came twice tells nothing");
        reordering.on_ack(&facts(None, None, true), false, &board);
        assert_eq!(reordering.steps, 3);
        let steps: Vec<u32> = (0..16)
            .map(|_| {
                reordering.on_repaired();
                reordering.steps
            })
            .collect();
        assert_eq!((steps[14], steps[15]), (3, 1));
    }
}
