//! # Marked fraction
//!
//! Moving average of the fraction of bytes that arrive marked, for scalable congestion controls.
//!
//! ## Source
//! RFC 8257 section 3.3: α, with the gain g = 1/16.
//!
//! ## What it does
//! Delivered and marked bytes are counted over a round trip. At its end, a sixteenth of the difference between their
//! ratio and the average is added to the average.
//!
//! ## Differences from the source
//! A round trip ends when the bytes in flight at its start have been delivered, and may have a least duration.
//!
//! ## Validation
//! Unit tests check the average and the length of rounds by hand.

use ackclock_core::{Span, Time};

use crate::congestion_control::AckSample;

/// Weight of a new fraction in the average: g.
const GAIN: f64 = 1.0 / 16.0;

/// A round trip: it is over when the bytes in flight at its start have been delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Bytes in flight at the start that have not been delivered yet.
    left: u64,
    began: Time,
}

impl Round {
    /// A round that is over at the first ACK.
    pub(super) const OVER: Self = Self { left: 0, began: Time::ZERO };

    /// Starts a round at `now` with `in_flight` bytes in flight.
    pub(super) fn start(now: Time, in_flight: u32) -> Self {
        Self { left: in_flight.into(), began: now }
    }

    /// Counts the bytes that an ACK delivers. Returns whether the round is over; it lasts at least `least`.
    pub(super) fn is_over(&mut self, sample: &AckSample, least: Span) -> bool {
        self.left = self.left.saturating_sub(sample.delivered.into());
        self.left == 0 && sample.now.since(self.began) >= least
    }
}

/// Average of the marked fraction, updated once per round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedFraction {
    /// Average, 0 to 1: alpha.
    average: f64,
    /// Bytes delivered and bytes marked in the current round.
    delivered: u64,
    marked: u64,
    round: Round,
}

impl MarkedFraction {
    pub(super) fn new(average: f64) -> Self {
        Self { average, delivered: 0, marked: 0, round: Round::OVER }
    }

    /// Average of the marked fraction.
    pub(super) fn average(&self) -> f64 {
        self.average
    }

    pub(super) fn set(&mut self, average: f64) {
        self.average = average;
    }

    /// Counts an ACK. Rounds last a round trip and at least `least`.
    pub(super) fn on_ack(&mut self, sample: &AckSample, least: Span) {
        self.delivered += u64::from(sample.delivered);
        self.marked += u64::from(sample.marked);
        if !self.round.is_over(sample, least) {
            return;
        }
        if self.delivered > 0 {
            let fraction = (self.marked as f64 / self.delivered as f64).min(1.0);
            self.average += GAIN * (fraction - self.average);
        }
        (self.delivered, self.marked) = (0, 0);
        self.round = Round::start(sample.now, sample.in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, delivered: u32, marked: u32, in_flight: u32) -> AckSample {
        let now = Time::ZERO + Span::from_millis(millis);
        AckSample { now, delivered, marked, in_flight, ..AckSample::of(delivered) }
    }

    #[test]
    fn a_round_ends_when_what_was_in_flight_is_delivered_and_a_sixteenth_counts() {
        let mut fraction = MarkedFraction::new(1.0);
        // The first ACK starts a round of 2000 bytes.
        fraction.on_ack(&sample(10, 1000, 1000, 2000), Span::ZERO);
        fraction.on_ack(&sample(11, 1000, 0, 2000), Span::ZERO);
        assert_eq!(fraction.average(), 1.0);
        fraction.on_ack(&sample(12, 1000, 1000, 2000), Span::ZERO);
        // Half of the round was marked: 1 + (0.5 - 1)/16.
        assert_eq!(fraction.average(), 0.968_75);
    }

    #[test]
    fn a_round_lasts_at_least_as_long_as_asked() {
        let mut fraction = MarkedFraction::new(0.0);
        let least = Span::from_millis(25);
        fraction.on_ack(&sample(30, 1000, 0, 1000), least);
        fraction.on_ack(&sample(40, 1000, 1000, 1000), least);
        assert_eq!(fraction.average(), 0.0);
        fraction.on_ack(&sample(55, 1000, 0, 1000), least);
        assert_eq!(fraction.average(), 0.5 / 16.0);
    }
}
