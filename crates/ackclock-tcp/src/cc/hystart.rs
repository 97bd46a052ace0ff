//! # HyStart++
//!
//! HyStart++ leaves the first slow start when the round-trip time grows, before the queue overflows.
//!
//! ## Source
//! RFC 9406 sections 4.2 and 4.3.
//!
//! ## What it does
//! HyStart++ compares the smallest round-trip time of a round with the smallest of the previous round. If the
//! round-trip time has grown by an eighth (4 to 16 ms), slow start continues at a quarter of its pace for five rounds.
//! If the round-trip time then falls again, the growth was jitter and full slow start resumes. If the round-trip time
//! stays high, congestion avoidance starts.
//!
//! ## Differences from the source
//! A round ends when all bytes in flight at its start have been delivered. RFC 9406 compares sequence numbers, which a
//! controller does not see. Without loss, which ends slow start anyway, counting bytes and comparing sequence numbers
//! are equivalent.
//!
//! ## Validation
//! Unit tests below compare with hand-computed values.

use ackclock_core::Span;

use crate::congestion_control::AckSample;

/// Constants MIN_RTT_THRESH, MAX_RTT_THRESH and MIN_RTT_DIVISOR of section 4.3.
const LEAST_RISE: Span = Span::from_millis(4);
const MOST_RISE: Span = Span::from_millis(16);
const RISE_DIVISOR: u64 = 8;
/// N_RTT_SAMPLE: smallest number of RTT samples in a round that is evaluated.
const SAMPLES: u32 = 8;
/// CSS_ROUNDS: number of rounds of conservative slow start.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Pace of window growth after an ACK in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// Full pace of slow start.
    Full,
    /// A quarter of slow start's pace (CSS_GROWTH_DIVISOR).
    Conservative,
    /// Slow start has ended.
    Leave,
}

/// Detects the end of the first slow start.
#[derive(Clone, Debug)]
pub(crate) struct HyStart {
    delivered: u64,
    /// Total of delivered bytes at which the round ends.
    round_end: u64,
    last_min: Option<Span>,
    current_min: Option<Span>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// State of conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Smallest round-trip time of the round in which conservative slow start began.
    baseline: Span,
    /// Rounds of conservative slow start so far, including the first.
    rounds: u32,
}

impl HyStart {
    /// Creates the detector of a new connection.
    pub(crate) fn new() -> Self {
        Self { delivered: 0, round_end: 0, last_min: None, current_min: None, samples: 0, conservative: None }
    }

    /// Processes an ACK received in slow start.
    pub(crate) fn on_ack(&mut self, sample: &AckSample) -> Pace {
        self.delivered += u64::from(sample.delivered);
        let ended = self.delivered >= self.round_end;
        if let Some(rtt) = sample.rtt {
            self.samples += 1;
            self.current_min = Some(self.current_min.map_or(rtt, |min| min.min(rtt)));
        }
        self.judge();
        if ended && self.next_round(sample.in_flight) {
            return Pace::Leave;
        }
        if self.conservative.is_some() { Pace::Conservative } else { Pace::Full }
    }

    fn judge(&mut self) {
        let (Some(current), Some(last)) =
            (self.current_min.filter(|_| self.samples >= SAMPLES), self.last_min)
        else {
            return;
        };
        match self.conservative {
            Some(css) if current < css.baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let rise = (last / RISE_DIVISOR).clamp(LEAST_RISE, MOST_RISE);
                if current >= last + rise {
                    self.conservative = Some(Conservative { baseline: current, rounds: 1 });
                }
            }
        }
    }

    /// Starts a round of slow start. Returns whether the last round of conservative slow start is over.
    fn next_round(&mut self, in_flight: u32) -> bool {
        self.round_end = self.delivered + u64::from(in_flight);
        self.last_min = self.current_min.take().or(self.last_min);
        self.samples = 0;
        let Some(css) = &mut self.conservative else { return false };
        css.rounds += 1;
        css.rounds > CONSERVATIVE_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion_control::Phase;
    use ackclock_core::Time;

    /// Simulates a round of `acks` ACKs with one round-trip time. Returns the pace after the last ACK.
    fn round(hystart: &mut HyStart, acks: u32, rtt_ms: u64) -> Pace {
        let mut pace = Pace::Full;
        for _ in 0..acks {
            let rtt = Some(Span::from_millis(rtt_ms));
            let sample = AckSample {
                now: Time::ZERO,
                acked: 1000,
                delivered: 1000,
                in_flight: acks * 1000,
                rtt,
                srtt: rtt,
                min_rtt: rtt,
                rate: None,
                paced_for: Span::ZERO,
                phase: Phase::Open,
                window_limited: true,
                lost: 0,
                lost_in_all: 0,
                marked: 0,
            };
            pace = hystart.on_ack(&sample);
        }
        pace
    }

    #[test]
    fn a_constant_round_trip_time_leaves_slow_start_alone() {
        let mut hystart = HyStart::new();
        for _ in 0..50 {
            assert_eq!(round(&mut hystart, 10, 100), Pace::Full);
        }
    }

    #[test]
    fn a_rise_of_an_eighth_slows_down_for_five_rounds_and_then_leaves() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 20, 80);
        round(&mut hystart, 20, 80);
        // 80 / 8 = 10 ms. The ACK that ends the previous round is the first ACK of these rounds.
        assert_eq!(round(&mut hystart, 20, 90), Pace::Conservative);
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, 20, 90), Pace::Conservative);
        }
        // Conservative slow start lasts for the partial round in which it began and four more rounds. The first ACK of
        // the next round ends the fifth.
        assert_eq!(round(&mut hystart, 1, 90), Pace::Leave);
    }

    #[test]
    fn a_smaller_rise_is_jitter() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 20, 80);
        round(&mut hystart, 20, 80);
        assert_eq!(round(&mut hystart, 20, 89), Pace::Full);
    }

    #[test]
    fn a_fall_below_the_baseline_resumes_slow_start() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 20, 80);
        round(&mut hystart, 20, 80);
        assert_eq!(round(&mut hystart, 20, 100), Pace::Conservative);
        round(&mut hystart, 20, 80);
        assert_eq!(round(&mut hystart, 20, 80), Pace::Full);
    }

    #[test]
    fn seven_samples_are_not_enough() {
        let mut hystart = HyStart::new();
        for rtt in [80, 80, 200, 200, 400, 400] {
            assert_eq!(round(&mut hystart, 7, rtt), Pace::Full);
        }
    }
}
