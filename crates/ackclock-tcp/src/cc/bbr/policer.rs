//! Long-term sampling: detects the rate of a token-bucket policer, as in Linux.
//!
//! The detector follows Google's BBR talks at IETF 97 and 99 ("policer detection"), with Linux's bounds. From the first
//! loss on, each sampling interval lasts four to sixteen rounds and ends with a loss. If two consecutive intervals lost
//! a fifth of the delivered data and have equal rates, BBR keeps that rate for 48 rounds without probing.

use ackclock_core::{Rate, Time};

use super::{Bbr, Mode};
use crate::congestion_control::{AckSample, CongestionEvent};

/// Shortest and longest sampling interval, rounds.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Loss ratio of an interval that indicates a policer, in 256ths of the delivered data.
const LOST_256THS: u64 = 50;
/// Absolute difference up to which two rates count as equal. Rates within an eighth of each other also count as equal.
const RATE_TOLERANCE: Rate = Rate::from_bps(4000);
/// Number of rounds for which a policed rate is kept.
const KEPT_ROUNDS: u32 = 48;

/// Detector of a token-bucket policer, and the detected rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Delivery rate of the last interval.
    last: Option<Rate>,
    state: PolicerState,
    /// Rounds in the current interval, or rounds for which the policed rate has been kept.
    rounds: u32,
    /// Connection totals at the start of the current interval.
    from: Mark,
    /// Connection totals at the last acknowledgement.
    seen: Mark,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum PolicerState {
    /// No loss has occurred yet, so no sampling interval has started.
    #[default]
    Waiting,
    Sampling,
    /// The detected policer rate applies.
    Policed,
}

/// Totals of the connection at the time of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    now: Time,
    /// Total of bytes delivered and total of bytes lost.
    delivered: u64,
    lost: u64,
}

/// State of the current round, as shown by one acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Whether the acknowledgement started a round.
    start: bool,
    /// Whether the acknowledgement showed a loss.
    lost: bool,
    /// Whether the application limited the sending.
    app_limited: bool,
    /// Whether BBR cruises with a full pipe, so that rounds count towards the kept rate.
    cruising: bool,
}

impl Policer {
    /// Policed rate to keep; `None` unless a policer is detected.
    fn rate(&self) -> Option<Rate> {
        self.last.filter(|_| self.state == PolicerState::Policed)
    }

    /// Resets the policer detector.
    pub(super) fn reset(&mut self) {
        *self = Self { seen: self.seen, ..Self::default() };
    }

    /// Processes an acknowledgement. Returns true if the policed rate was kept long enough and probing restarts.
    fn on_ack(&mut self, mark: Mark, round: Round) -> bool {
        self.seen = mark;
        if self.state == PolicerState::Policed {
            self.rounds += u32::from(round.cruising && round.start);
            let over = self.rounds >= KEPT_ROUNDS;
            if over {
                self.reset();
            }
            return over;
        }
        if self.state == PolicerState::Waiting {
            if !round.lost {
                return false;
            }
            self.state = PolicerState::Sampling;
            self.begin(mark);
        }
        self.rounds += u32::from(round.start);
        if round.app_limited || self.rounds > MOST_ROUNDS {
            self.reset();
        } else if self.rounds >= LEAST_ROUNDS && round.lost {
            self.end(mark);
        }
        false
    }

    fn begin(&mut self, mark: Mark) {
        self.from = mark;
        self.rounds = 0;
    }

    /// Ends the sampling interval if enough data of the interval was lost.
    fn end(&mut self, mark: Mark) {
        let delivered = mark.delivered.saturating_sub(self.from.delivered);
        let lost = mark.lost.saturating_sub(self.from.lost);
        let took = mark.now.since(self.from.now).as_secs_f64();
        if delivered == 0 || lost.saturating_mul(256) < delivered.saturating_mul(LOST_256THS) || took < 0.001
        {
            return;
        }
        let rate = Rate::from_bps_f64(delivered as f64 * 8.0 / took);
        let same = |last: &Rate| {
            let apart = last.as_bps().abs_diff(rate.as_bps());
            apart <= last.as_bps() / 8 || apart <= RATE_TOLERANCE.as_bps()
        };
        if let Some(last) = self.last.filter(same) {
            self.last = Some(Rate::from_bps(u64::midpoint(last.as_bps(), rate.as_bps())));
            self.state = PolicerState::Policed;
            self.rounds = 0;
            return;
        }
        self.last = Some(rate);
        self.begin(mark);
    }
}

impl Bbr {
    /// Estimated rate of the path: the policer's rate if a policer was detected, otherwise the bottleneck rate.
    pub(super) fn rate(&self) -> Rate {
        self.policer.and_then(|policer| policer.rate()).unwrap_or(self.bottleneck.max())
    }

    pub(super) fn is_policed(&self) -> bool {
        self.policer.is_some_and(|policer| policer.rate().is_some())
    }

    /// Counts a timeout as a round that ends with a loss. The losses of the timeout count in the previous interval, not
    /// in the interval that starts at the timeout.
    pub(super) fn time_out_policer(&mut self, event: &CongestionEvent) {
        let cruising = matches!(self.mode, Mode::ProbeBw(_));
        let round = Round { start: true, lost: true, app_limited: false, cruising };
        let lost = u64::from(event.lost_in_all) * u64::from(self.mss);
        let Some(policer) = &mut self.policer else { return };
        let mark = Mark { lost, ..policer.seen };
        if policer.on_ack(mark, round) {
            self.enter_probe_bw(event.now);
        }
    }

    /// Updates the policer detector with an ACK.
    pub(super) fn update_policer(&mut self, sample: &AckSample) {
        let Some(policer) = &mut self.policer else { return };
        let lost = u64::from(sample.lost_in_all) * u64::from(self.mss);
        let mark = Mark { now: sample.now, delivered: self.delivered, lost };
        let Some(rate) = sample.rate else {
            policer.seen = mark;
            return;
        };
        let round = Round {
            start: self.round_start,
            lost: sample.lost > 0,
            app_limited: rate.app_limited,
            cruising: matches!(self.mode, Mode::ProbeBw(_)),
        };
        if policer.on_ack(mark, round) {
            self.enter_probe_bw(sample.now);
        } else if round.cruising && policer.rate().is_some() {
            self.pacing_gain = 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::BbrConfig;
    use crate::choices::Switch;
    use crate::congestion_control::{CcContext, Congestion};
    use crate::stack::Stack;
    use ackclock_core::Span;

    /// Simulates a round of 100 ms that delivers 10 000 bytes. At its end, `lost` more bytes are lost.
    fn round(policer: &mut Policer, number: u64, lost: u64) -> bool {
        let mark = Mark {
            now: Time::ZERO + Span::from_millis(100) * number,
            delivered: 10_000 * number,
            lost: lost * number,
        };
        policer.on_ack(mark, Round { start: true, lost: lost > 0, app_limited: false, cruising: true })
    }

    #[test]
    fn two_intervals_of_one_rate_with_a_fifth_lost_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        // The first loss starts an interval. Four rounds make the first interval, four more the second.
        (1..8).for_each(|number| assert!(!round(&mut policer, number, 2500)));
        assert_eq!(policer.rate(), None);
        (8..10).for_each(|number| assert!(!round(&mut policer, number, 2500)));
        // 10 000 bytes in 100 ms
        assert_eq!(policer.rate(), Some(Rate::from_bps(800_000)));
        let ended: Vec<u64> = (10..70).filter(|&number| round(&mut policer, number, 0)).collect();
        assert_eq!(ended.len(), 1);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn what_a_timeout_takes_for_lost_was_lost_before_the_interval_that_it_begins() {
        let context = CcContext {
            mss: 1000,
            initial_window: 10_000,
            initial_ssthresh: u32::MAX,
            loss_window: 1000,
            stack: Stack::Linux,
        };
        let mut bbr = Bbr::new(&BbrConfig { policer: Switch::On, ..BbrConfig::default() }, context);
        let event = CongestionEvent {
            now: Time::ZERO + Span::from_secs(1),
            cause: Congestion::Timeout,
            flight: 50_000,
            window: 50_000,
            repeated_timeout: false,
            lost_in_all: 50,
        };
        bbr.time_out_policer(&event);
        assert_eq!(bbr.policer.map(|policer| policer.from.lost), Some(50_000));
    }

    #[test]
    fn a_loss_of_a_tenth_is_none() {
        let mut policer = Policer::default();
        (1..100).for_each(|number| assert!(!round(&mut policer, number, 1000)));
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn what_the_application_limits_is_no_interval() {
        let mut policer = Policer::default();
        for number in 1..20 {
            round(&mut policer, number, 2500);
            let mark = Mark::default();
            policer.on_ack(mark, Round { start: false, lost: false, app_limited: true, cruising: true });
        }
        assert_eq!(policer.rate(), None);
    }
}
