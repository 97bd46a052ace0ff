//! Tells the forecast to ECN-capable senders by marks (keys `act = "mark"` and `act = "both"`).
//!
//! A window regulator allows the budget `B` beyond the data that has left the queue. Of this budget, the wired path
//! holds `r W`, so the forecast wants the rest in the queue: `T = B - r W`. An arriving packet that finds a longer queue
//! is marked, with a probability that rises from 0 at `T` to 1 at `2 T`. A ramp as wide as `T` lets the mark rate settle
//! within the variation of a queue of this length. Scalable and classic senders are coupled (`coupled_marks.rs`).
//!
//! With `act = "mark"`, no header of the transport is read, so encrypted flows are regulated as well. `W` cannot be
//! measured then, and the value before the first measurement is assumed. The gain is learnt in any case: a pause of the
//! link counts if a packet was marked recently, because fewer marks would have prevented the pause.

use std::collections::VecDeque;

use ackclock_core::{Ecn, Segment, Span, Time};
use ackclock_link::LinkView;

use super::link_state::LinkState;
use super::shares::FIRST_WINDOW;
use super::{Config, RULED};
use crate::coupled_marks::CoupledMarks;
use crate::window_regulator::source::UNKNOWN;
use crate::{Output, Regulator, Verdict};

/// Least queue that is not marked, packets: a receiver delays the ACK of one packet.
const LEAST: f64 = 2.0;

/// Marks of all flows that share a queue.
#[derive(Debug, Default)]
pub(super) struct Marks {
    coupled: CoupledMarks,
    /// Time at which a packet was last marked.
    marked_at: Option<Time>,
}

impl Marks {
    /// Verdict on an arriving data segment, if the forecast wants `target` bytes in the queue.
    pub(super) fn verdict(&mut self, now: Time, segment: &Segment, view: LinkView, target: f64) -> Verdict {
        let target = target.max(LEAST * f64::from(segment.wire_bytes()));
        let probability = (view.waiting.bytes as f64 / target - 1.0).clamp(0.0, 1.0);
        let marks = match segment.ecn {
            Ecn::Ect1 => self.coupled.scalable(probability),
            Ecn::Ect0 => self.coupled.classic(probability),
            _ => false,
        };
        if !marks {
            return Verdict::Forward;
        }
        self.marked_at = Some(now);
        Verdict::MarkCe
    }

    /// Returns whether a packet was marked recently.
    pub(super) fn are_recent(&self, now: Time) -> bool {
        self.marked_at.is_some_and(|marked| now.since(marked) <= RULED)
    }
}

/// Forecast regulator that only marks.
pub(super) struct MarkingForecast {
    link: LinkState,
    marks: Marks,
    delay: Span,
    packets: u32,
    output: VecDeque<Output>,
}

impl MarkingForecast {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            link: LinkState::new(config.idle, config.learning),
            marks: Marks::default(),
            delay: config.delay,
            packets: config.packets,
            output: VecDeque::new(),
        }
    }

    /// Queue that the forecast wants when a packet of `bytes` bytes arrives. The first window of a sender is not marked
    /// while the rate is unknown.
    fn target(&mut self, now: Time, bytes: u32) -> f64 {
        let served = self.link.forecast(now, UNKNOWN + self.delay, Span::ZERO);
        let wired = self.link.served_in(now, UNKNOWN);
        let packets = if self.link.is_known() { self.packets } else { self.packets.max(FIRST_WINDOW) };
        served - wired + f64::from(packets) * f64::from(bytes)
    }
}

impl Regulator for MarkingForecast {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        if view.is_idle()
            && let Some(pause) = self.link.on_filled(now)
            && self.marks.are_recent(now)
        {
            self.link.on_missed(pause, UNKNOWN, true);
        }
        if !segment.has_data() || segment.ecn == Ecn::NotEct {
            return Verdict::Forward;
        }
        let target = self.target(now, segment.wire_bytes());
        self.marks.verdict(now, segment, view, target)
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.link.on_served(now, segment.wire_bytes());
        if view.is_idle() {
            self.link.on_empty(now);
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
    use ackclock_core::{FlowId, Seq};
    use ackclock_link::Load;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn packet(ecn: Ecn) -> Segment {
        let mut packet = Segment::data(FlowId(0), Seq(0), 960, 40);
        packet.ecn = ecn;
        packet
    }

    fn view(bytes: u64) -> LinkView {
        LinkView { waiting: Load { packets: (bytes / 1000) as u32, bytes }, ..LinkView::NOTHING }
    }

    /// A regulator with the initial gain that has seen a packet of 1000 B leave every 10 ms for two seconds.
    fn steady() -> MarkingForecast {
        let mut forecast = MarkingForecast::new(&Config { learning: 0.0, ..Config::default() });
        (0..=200).for_each(|number| {
            forecast.on_departed(at(10 * number), &packet(Ecn::NotEct), view(5000));
        });
        forecast
    }

    /// Number of marks on 100 packets of a class that find `bytes` in the queue.
    fn marked(ecn: Ecn, bytes: u64) -> usize {
        let mut forecast = steady();
        let verdicts = (0..101).map(|_| forecast.on_data(at(2000), &packet(ecn), view(bytes)));
        verdicts.filter(|verdict| *verdict == Verdict::MarkCe).count()
    }

    /// At 100 kB/s, 1.75 times the service of 110 ms is 19.25 kB. The wired path holds 10 kB of it, and five packets are
    /// added: 14.25 kB.
    #[test]
    fn the_queue_is_what_the_budget_leaves_beyond_the_wired_path() {
        assert!((steady().target(at(2000), 1000) - 14_250.0).abs() < 1.0);
        assert_eq!([14_250, 21_375, 28_600].map(|bytes| marked(Ecn::Ect1, bytes)), [0, 50, 100]);
        // A quarter where all scalable packets are marked, and none that is not ECN-capable.
        assert_eq!([Ecn::Ect0, Ecn::NotEct].map(|ecn| marked(ecn, 28_600)), [25, 0]);
    }

    #[test]
    fn a_first_window_is_not_marked_before_the_rate_is_known() {
        let mut forecast = MarkingForecast::new(&Config::default());
        let first = forecast.on_data(at(0), &packet(Ecn::Ect1), view(9000));
        assert_eq!(first, Verdict::Forward);
    }

    /// A pause counts for the gain only if a mark may have caused it.
    #[test]
    fn a_pause_after_a_mark_raises_the_gain() {
        let after = |bytes: u64| {
            let mut forecast = MarkingForecast::new(&Config::default());
            (0..=200)
                .for_each(|number| forecast.on_departed(at(10 * number), &packet(Ecn::Ect1), view(5000)));
            for _ in 0..3 {
                forecast.on_data(at(2000), &packet(Ecn::Ect1), view(bytes));
            }
            forecast.on_departed(at(2010), &packet(Ecn::Ect1), LinkView::NOTHING);
            forecast.on_data(at(2050), &packet(Ecn::Ect1), LinkView::NOTHING);
            forecast.target(at(2050), 1000)
        };
        assert!(after(100_000) > after(5000) + 100.0, "{} {}", after(100_000), after(5000));
    }
}
