//! ACK aggregation: counts acknowledged bytes in excess of what the estimated rate explains.
//!
//! The estimator follows draft-cardwell-iccrg-bbr-congestion-control-02 section 4.5.5 (BBRUpdateACKAggregation), with
//! Linux's bounds. The excess is the largest of the last five to ten rounds, but at most the data delivered in 100 ms
//! at the estimated rate.

use ackclock_core::{Rate, Span, Time};

/// Number of rounds in each of the two periods whose largest excess is kept.
const ROUNDS: u64 = 5;
/// Largest extra window, expressed as time at the estimated rate.
const LONGEST: Span = Span::from_millis(100);

/// Excess of acknowledged data over the data that the estimated rate explains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Time,
    epoch_acked: u64,
    /// Largest excess in the current period of rounds and in the previous period, bytes.
    excess: [u64; 2],
    turn: usize,
    turn_began: u64,
}

impl Aggregation {
    /// Updates the excess for `acked` bytes that arrive at `now`, in round `round`, with a congestion window of `cwnd`
    /// bytes.
    pub(super) fn on_ack(&mut self, now: Time, acked: u32, round: u64, rate: Rate, cwnd: u32) {
        if acked == 0 {
            return;
        }
        if round >= self.turn_began + ROUNDS {
            self.turn_began = round;
            self.turn ^= 1;
            self.excess[self.turn] = 0;
        }
        let mut expected = rate.bytes_in(now.since(self.epoch_start));
        if self.epoch_acked <= expected {
            self.epoch_start = now;
            self.epoch_acked = 0;
            expected = 0;
        }
        self.epoch_acked += u64::from(acked);
        let excess = (self.epoch_acked - expected).min(cwnd.into());
        self.excess[self.turn] = self.excess[self.turn].max(excess);
    }

    /// Restarts the count when sending resumes at `now`; earlier acknowledgements no longer count.
    pub(super) fn restart(&mut self, now: Time) {
        (self.epoch_start, self.epoch_acked) = (now, 0);
    }

    /// Bytes to add to the congestion window for aggregated ACKs.
    pub(super) fn room(&self, rate: Rate) -> u32 {
        let excess = self.excess[0].max(self.excess[1]).min(rate.bytes_in(LONGEST));
        u32::try_from(excess).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_bps(800_000);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn acks_at_the_rate_leave_one_segment_and_a_burst_leaves_itself() {
        let mut aggregation = Aggregation::default();
        // 100 bytes a millisecond
        for n in 1..50 {
            aggregation.on_ack(at(10 * n), 1000, 0, RATE, 20_000);
        }
        assert_eq!(aggregation.room(RATE), 1000);
        aggregation.on_ack(at(500), 5000, 1, RATE, 20_000);
        assert!((5000..=6000).contains(&aggregation.room(RATE)));
    }

    #[test]
    fn an_excess_is_forgotten_after_ten_rounds_and_never_exceeds_100_ms() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(at(10), 15_000, 0, RATE, 20_000);
        assert_eq!(aggregation.room(RATE), 10_000, "100 ms at 100 bytes a millisecond");
        for round in 1..=10 {
            aggregation.on_ack(at(1000 * round), 1000, round, RATE, 20_000);
        }
        assert_eq!(aggregation.room(RATE), 1000);
    }
}
