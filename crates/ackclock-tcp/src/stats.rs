//! Counters of a sender.

use ackclock_core::{Histogram, Span, Time};

use crate::cc::Congestion;

/// Counters of one sender. Fields that every ACK accesses come first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct SenderStats {
    /// Distribution of all round-trip time samples.
    pub rtt: Histogram,
    /// Number of segments sent with data, FIN or probes, including retransmissions.
    pub segments_sent: u64,
    /// Number of retransmitted segments.
    pub retransmits: u64,
    /// Number of times that fast retransmit started.
    pub fast_retransmits: u64,
    /// Number of times that the retransmission timer expired.
    pub timeouts: u64,
    /// Number of timeouts that proved spurious; `None` without timestamps to detect them.
    pub spurious_timeouts: Option<u32>,
    /// Number of fast retransmits that proved spurious; `None` without timestamps to detect them.
    pub spurious_fast_retransmits: Option<u32>,
    /// Number of window reductions due to an ECN echo.
    pub ecn_reductions: u64,
    /// Losses of the sender, grouped into cycles.
    pub loss_cycles: LossCycles,
    /// Values of the counters of timeouts and of fast retransmits when an event of that kind was last proved spurious.
    proved: [u32; 2],
    timed_sum: Span,
    timed_count: u64,
    rto_sum: Span,
}

impl SenderStats {
    /// Creates the counters of a sender, all zero. Counts of spurious reductions start from `spurious`; `None` if
    /// spurious reductions cannot be detected. Losses further apart than `gap` belong to separate cycles.
    pub fn new(spurious: Option<u32>, gap: Span) -> Self {
        Self {
            spurious_timeouts: spurious,
            spurious_fast_retransmits: spurious,
            loss_cycles: LossCycles::new(gap),
            ..Self::default()
        }
    }

    /// Mean round-trip time, measured on one segment at a time (the `rtt` of CR02 Table 1).
    pub fn timed_rtt(&self) -> Option<Span> {
        (self.timed_count > 0).then(|| self.timed_sum / self.timed_count)
    }

    /// Number of segments whose round-trip time was measured one at a time.
    pub fn timed_count(&self) -> u64 {
        self.timed_count
    }

    /// Mean retransmission timeout, sampled at the end of each timed segment.
    pub fn rto_mean(&self) -> Option<Span> {
        (self.timed_count > 0).then(|| self.rto_sum / self.timed_count)
    }

    /// Counts the last timeout or fast retransmit as spurious. Several proofs for one event count once.
    pub(crate) fn on_spurious(&mut self, cause: Congestion) {
        let (count, happened, proved) = match cause {
            Congestion::Timeout => (&mut self.spurious_timeouts, self.timeouts, &mut self.proved[0]),
            _ => (&mut self.spurious_fast_retransmits, self.fast_retransmits, &mut self.proved[1]),
        };
        let happened = u32::try_from(happened).unwrap_or(u32::MAX);
        if *proved < happened {
            *proved = happened;
            *count = count.map(|count| count + 1);
        }
    }

    pub(crate) fn on_timed(&mut self, rtt: Span, rto: Span) {
        self.timed_sum += rtt;
        self.rto_sum += rto;
        self.timed_count += 1;
    }
}

/// Loss cycles in the throughput models of CR02 section 4: groups of losses that belong together.
///
/// Type 1 is a cycle with one fast retransmit (TD), type 2 has two fast retransmits, and type 3 has a timeout (TO) or
/// more fast retransmits. A cycle ends with a timeout, or when the next loss comes after a gap of several round trips.
#[derive(Clone, Debug)]
pub struct LossCycles {
    gap: Span,
    /// Time of the last loss; `None` if the next loss starts a cycle.
    last: Option<Time>,
    fast_retransmits: u32,
    timeouts: u32,
    counts: [u64; 3],
    windows: u64,
    squares: f64,
}

impl Default for LossCycles {
    fn default() -> Self {
        Self::new(Span::from_millis(2500))
    }
}

impl LossCycles {
    /// Creates empty counts of loss cycles. Losses further apart than `gap` belong to separate cycles.
    pub fn new(gap: Span) -> Self {
        Self { gap, last: None, fast_retransmits: 0, timeouts: 0, counts: [0; 3], windows: 0, squares: 0.0 }
    }

    /// Counts a loss that occurs at a congestion window of `window` segments.
    pub fn on_loss(&mut self, now: Time, cause: Congestion, window: f64) {
        if self.last.is_none_or(|last| now.since(last) > self.gap) {
            self.close();
        }
        self.last = Some(now);
        match cause {
            Congestion::FastRetransmit => {
                if self.fast_retransmits == 0 {
                    self.windows += 1;
                    self.squares += window * window;
                }
                self.fast_retransmits += 1;
            }
            Congestion::Timeout => {
                self.timeouts += 1;
                self.close();
            }
            Congestion::Ecn => {}
        }
    }

    /// Number of cycles of types 1, 2 and 3, including the current cycle.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = self.counts;
        if let Some(kind) = self.kind() {
            counts[kind] += 1;
        }
        counts
    }

    /// Fractions p1, p2, p3 of the three cycle types; `None` without losses.
    pub fn shares(&self) -> Option<[f64; 3]> {
        let counts = self.counts();
        let total: u64 = counts.iter().sum();
        (total > 0).then(|| counts.map(|count| count as f64 / total as f64))
    }

    /// Root mean square of the windows at the first fast retransmit of each cycle (W_f), segments.
    pub fn loss_window(&self) -> Option<f64> {
        (self.windows > 0).then(|| libm::sqrt(self.squares / self.windows as f64))
    }

    fn kind(&self) -> Option<usize> {
        match (self.fast_retransmits, self.timeouts) {
            (0, 0) => None,
            (1, 0) => Some(0),
            (2, 0) => Some(1),
            _ => Some(2),
        }
    }

    fn close(&mut self) {
        if let Some(kind) = self.kind() {
            self.counts[kind] += 1;
        }
        (self.fast_retransmits, self.timeouts, self.last) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_grouped_by_their_distance_and_end_with_a_timeout() {
        let mut cycles = LossCycles::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        cycles.on_loss(at(1_000), Congestion::FastRetransmit, 20.0);
        cycles.on_loss(at(10_000), Congestion::FastRetransmit, 22.0);
        cycles.on_loss(at(10_700), Congestion::FastRetransmit, 11.0);
        cycles.on_loss(at(20_000), Congestion::FastRetransmit, 24.0);
        cycles.on_loss(at(22_000), Congestion::Timeout, 6.0);
        cycles.on_loss(at(22_600), Congestion::FastRetransmit, 10.0);
        assert_eq!(cycles.counts(), [2, 1, 1]);
        // sqrt((20^2 + 22^2 + 24^2 + 10^2) / 4) = sqrt(390)
        assert!((cycles.loss_window().unwrap() - 390f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn several_proofs_of_one_timeout_count_once() {
        let mut stats = SenderStats::new(Some(0), Span::from_secs(1));
        for timeouts in [1, 1, 2, 2] {
            stats.timeouts = timeouts;
            stats.on_spurious(Congestion::Timeout);
        }
        stats.on_spurious(Congestion::FastRetransmit);
        assert_eq!((stats.spurious_timeouts, stats.spurious_fast_retransmits), (Some(2), Some(0)));
    }

    #[test]
    fn without_losses_there_are_no_shares() {
        assert_eq!(LossCycles::default().shares(), None);
        assert_eq!(LossCycles::default().loss_window(), None);
    }
}
