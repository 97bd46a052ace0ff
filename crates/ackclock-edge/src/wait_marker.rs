//! # Marker by the predicted wait
//!
//! ## Source
//! After the idea of L4Span (Wan and Jamieson, CoNEXT 2025, arXiv 2510.02682): a base station predicts the wait in its
//! RLC queue and marks packets as they arrive, for scalable and classic senders. Classic packets are coupled as in RFC
//! 9332 section 2.1.
//!
//! ## What it does
//! The rate of the link is measured over busy times of at least `window`: its mean and variance are moving averages with
//! the gain 1/8. An arriving packet waits longer than `target` if the rate is below `queue / target`; with a normal law
//! of the rate the probability of that is `p`. A queue that nothing has left for a time is late by that time. A packet
//! with ECT(1) is marked with p, a packet with ECT(0) with (p/2)². With `not_ect = "drop"`, other packets are dropped
//! with (p/2)². ACKs pass unchanged.
//!
//! ## Differences from the source
//! Only the abstract of the paper was at hand: the estimator, the normal law and the coupling are our choice. The source
//! can also write marks into passing ACKs (its short circuit); here packets are marked on arrival only.
//!
//! ## Validation
//! Unit tests check the probabilities and the estimate by hand. `crates/ackclock-scenario/tests/l4s.rs` checks the delay
//! of Prague over it.

use ackclock_core::{ConfigError, Ecn, Segment, Span, Time};
use ackclock_link::{Departures, LinkView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::coupled_marks::CoupledMarks;
use crate::{FlowContext, Output, Regulator, RegulatorConfig, Scope, Verdict};

/// Marks packets on arrival with the probability that their wait exceeds a target (after L4Span, CoNEXT 2025).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Wait in the queue above which packets are marked.
    pub(crate) target: Span,
    /// Least busy time over which the rate is measured.
    pub(crate) window: Span,
    /// What happens to packets that are not ECN-capable: "pass", or "drop" in place of classic marks.
    pub(crate) not_ect: NotEct,
}

/// Action on packets that are not ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NotEct {
    /// The packets pass.
    Pass,
    /// The packets are dropped where ECN-capable classic packets would be marked.
    Drop,
}

impl Default for Config {
    fn default() -> Self {
        Self { target: Span::from_millis(10), window: Span::from_millis(12), not_ect: NotEct::Pass }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, span) in [("target", self.target), ("window", self.window)] {
            if !(Span::from_millis(1)..=Span::from_secs(10)).contains(&span) {
                return Err(ConfigError::new(key, format!("{span} is not 1ms to 10s")));
            }
        }
        Ok(())
    }
}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(WaitMarker::new(self.clone())))
    }

    fn scope(&self) -> Scope {
        Scope::User
    }

    fn reads_headers(&self) -> bool {
        false
    }

    fn marks_only(&self) -> bool {
        self.not_ect == NotEct::Pass
    }

    fn departures(&self) -> Departures {
        Departures::Watched
    }
}

/// Weight of a new measurement of the rate.
const GAIN: f64 = 1.0 / 8.0;

struct WaitMarker {
    config: Config,
    /// Mean and variance of the rate, B/s; `None` before the first measurement.
    rate: Option<(f64, f64)>,
    /// Departure after which the link has been busy, and the bytes since.
    busy: Option<(Time, u64)>,
    /// Last departure, or the arrival at an empty queue.
    last: Time,
    marks: CoupledMarks,
    output: VecDeque<Output>,
}

impl WaitMarker {
    fn new(config: Config) -> Self {
        Self {
            config,
            rate: None,
            busy: None,
            last: Time::ZERO,
            marks: CoupledMarks::default(),
            output: VecDeque::new(),
        }
    }

    /// Probability that a packet that arrives behind `bytes` waits longer than the target.
    fn probability(&self, now: Time, bytes: u64) -> f64 {
        let Some((mean, variance)) = self.rate.filter(|_| bytes > 0) else { return 0.0 };
        let left = self.config.target.saturating_sub(now.since(self.last)).as_secs_f64();
        if left <= 0.0 {
            return 1.0;
        }
        let above = bytes as f64 / left - mean;
        if variance == 0.0 {
            return if above > 0.0 { 1.0 } else { 0.0 };
        }
        // The normal distribution function.
        0.5 * libm::erfc(-above / libm::sqrt(2.0 * variance))
    }

    /// Adds a measurement of the rate, B/s.
    fn measure(&mut self, rate: f64) {
        self.rate = Some(match self.rate {
            None => (rate, 0.0),
            Some((mean, variance)) => {
                let off = rate - mean;
                (mean + GAIN * off, (1.0 - GAIN) * (variance + GAIN * off * off))
            }
        });
    }
}

impl Regulator for WaitMarker {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        let bytes = view.waiting.bytes;
        if bytes == 0 && view.in_transmission.is_none() {
            self.last = now;
        }
        if !segment.has_data() {
            return Verdict::Forward;
        }
        let probability = self.probability(now, bytes);
        match segment.ecn {
            Ecn::Ect1 if self.marks.scalable(probability) => Verdict::MarkCe,
            Ecn::Ect0 if self.marks.classic(probability) => Verdict::MarkCe,
            Ecn::NotEct if self.config.not_ect == NotEct::Drop && self.marks.classic(probability) => {
                Verdict::Drop
            }
            _ => Verdict::Forward,
        }
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.last = now;
        let sent = self.busy.map(|(from, bytes)| (from, bytes + u64::from(segment.wire_bytes())));
        self.busy = match sent {
            Some((from, bytes)) if now.since(from) >= self.config.window => {
                self.measure(bytes as f64 / now.since(from).as_secs_f64());
                Some((now, 0))
            }
            Some(sent) => Some(sent),
            None => Some((now, 0)),
        };
        if view.waiting.is_none() && view.in_transmission.is_none() {
            self.busy = None;
        }
    }

    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        self.output.push_back(Output::ToSender(ack));
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{FlowId, Seq};
    use ackclock_link::Load;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn view(bytes: u64) -> LinkView {
        LinkView { waiting: Load { packets: (bytes / 1000) as u32, bytes }, ..LinkView::NOTHING }
    }

    fn packet(ecn: Ecn) -> Segment {
        let mut packet = Segment::data(FlowId(0), Seq(0), 960, 40);
        packet.ecn = ecn;
        packet
    }

    /// A marker that has seen a packet of 1000 B leave each millisecond: 1 MB/s.
    fn steady(not_ect: NotEct) -> WaitMarker {
        let mut marker = WaitMarker::new(Config { not_ect, ..Config::default() });
        (0..200).for_each(|ms| marker.on_departed(at(ms), &packet(Ecn::NotEct), view(5_000)));
        marker
    }

    fn verdicts(marker: &mut WaitMarker, ecn: Ecn, bytes: u64, count: usize) -> (usize, usize) {
        let all: Vec<Verdict> =
            (0..count).map(|_| marker.on_data(at(199), &packet(ecn), view(bytes))).collect();
        let of = |verdict| all.iter().filter(|&&got| got == verdict).count();
        (of(Verdict::MarkCe), of(Verdict::Drop))
    }

    #[test]
    fn a_steady_rate_is_a_step_at_the_target() {
        let mut marker = steady(NotEct::Pass);
        assert_eq!(marker.rate, Some((1e6, 0.0)));
        // 10 kB leave in 10 ms.
        assert_eq!(verdicts(&mut marker, Ecn::Ect1, 10_000, 101), (0, 0));
        assert_eq!(verdicts(&mut marker, Ecn::Ect1, 10_001, 101), (100, 0));
        // A quarter, and no packet that is not ECN-capable.
        assert_eq!(verdicts(&mut marker, Ecn::Ect0, 20_000, 101), (25, 0));
        assert_eq!(verdicts(&mut marker, Ecn::NotEct, 20_000, 101), (0, 0));
        assert_eq!(verdicts(&mut steady(NotEct::Drop), Ecn::NotEct, 20_000, 101), (0, 25));
    }

    /// A measurement of 1.8 MB/s: mean 1.1 MB/s, variance 7/8·1/8·0.8² = 0.07 (MB/s)². At 11 kB in 10 ms half of the
    /// packets are marked, at one deviation more, 0.2646 MB/s, 84 %.
    #[test]
    fn a_varying_rate_has_a_slope() {
        let mut marker = steady(NotEct::Pass);
        marker.measure(1.8e6);
        assert!((marker.probability(at(199), 11_000) - 0.5).abs() < 1e-9);
        assert!((marker.probability(at(199), 13_646) - 0.8413).abs() < 1e-3);
    }

    /// 6 ms after the last departure a packet behind 4001 B leaves later than 10 ms after it.
    #[test]
    fn a_stalled_queue_is_late_by_the_stall() {
        let marker = steady(NotEct::Pass);
        assert_eq!([4_000, 4_001].map(|bytes| marker.probability(at(205), bytes)), [0.0, 1.0]);
        assert_eq!(marker.probability(at(250), 1), 1.0);
    }

    /// The queue is empty for the pause: the link was not asked for more, so its rate is still 1 MB/s.
    #[test]
    fn pauses_of_any_length_change_no_rate() {
        for pause in [1, 11, 12, 100, 5_000] {
            let mut marker = steady(NotEct::Pass);
            marker.on_departed(at(200), &packet(Ecn::NotEct), view(0));
            let begin = 200 + pause;
            marker.on_data(at(begin), &packet(Ecn::NotEct), view(0));
            (1..100).for_each(|ms| {
                marker.on_departed(at(begin + ms), &packet(Ecn::NotEct), view(5_000));
            });
            assert_eq!(marker.rate, Some((1e6, 0.0)), "a pause of {pause} ms");
        }
    }

    #[test]
    fn an_impossible_value_is_refused() {
        use ackclock_core::Config as _;
        let config = Config { target: Span::ZERO, ..Config::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "target: 0ms is not 1ms to 10s");
    }
}
