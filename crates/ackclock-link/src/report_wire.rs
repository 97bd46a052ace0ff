//! # Path of radio reports
//!
//! ## Source
//! Source: M05 section 3.2: a radio network controller sends its reports over the operator's core network, which takes
//! about 50 ms.
//!
//! ## What it does
//! A report arrives after a delay, unless it is lost. Delay and loss are drawn for each report in order of report
//! number, so polling does not change them. If delays vary, reports may overtake each other. Faults can be configured:
//! the path may lose all reports for a time, and may multiply every reported rate by a factor.
//!
//! ## Differences from the source
//! Loss, random delays and the faults are our own additions.
//!
//! ## Validation
//! Unit tests check arrival times worked out by hand, the share of lost reports, and that extra wake-ups have no
//! effect.

use std::collections::VecDeque;

use ackclock_core::{
    ConfigError, Law, Message, Node, Outbox, Port, RadioReport, Rate, Sink, Span, Stream, Streams, Time,
};

use crate::Outage;
use crate::delay::Delays;
use crate::outage::{Outages, Radio};

/// Port towards the radio controller.
pub const RADIO: Port = 0;
/// Port towards the listener.
pub const LISTENER: Port = 1;

/// Path of radio reports from the radio controller to their listener.
pub struct ReportWire {
    delays: Delays,
    loss: f64,
    chance: Stream,
    outages: Outages,
    scale: f64,
    /// Reports in transit, in order of arrival time.
    flight: VecDeque<(Time, RadioReport)>,
}

impl ReportWire {
    /// Creates a path with `delay` that loses each report with probability `loss`, loses all reports during `outages`,
    /// and multiplies each rate by `scale`. The path draws from the random streams `report/delay` and `report/loss`.
    ///
    /// # Errors
    /// Returns an error if an outage has no length, or if the outages cover all time.
    pub fn new(
        delay: Law<Span>,
        loss: f64,
        outages: &[Outage],
        scale: f64,
        streams: &Streams,
    ) -> Result<Self, ConfigError> {
        let delays = Delays::new(delay, streams.stream("report/delay"));
        let (chance, outages) = (streams.stream("report/loss"), Outages::new(outages)?);
        Ok(Self { delays, loss, chance, outages, scale, flight: VecDeque::new() })
    }
}

impl Node for ReportWire {
    fn receive(&mut self, now: Time, _: Port, message: &Message, out: &mut Outbox) {
        let report = match message {
            Message::Report(report) => report,
            Message::Segment(segment) => return out.discard(segment),
        };
        // The delay is drawn for lost reports too, so that a loss does not change the delays of other reports.
        let (arrives, lost) = (now + self.delays.draw(), self.chance.chance(self.loss));
        if lost || self.outages.at(now).0 == Radio::Out {
            return;
        }
        let rate = Rate::from_bps_f64(report.rate.as_bps() as f64 * self.scale);
        let place = self.flight.partition_point(|(other, _)| *other <= arrives);
        self.flight.insert(place, (arrives, RadioReport { rate, ..*report }));
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, report)) = self.flight.pop_front_if(|(arrives, _)| *arrives <= now) {
            out.send(LISTENER, Message::Report(report));
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.flight.front().map(|(arrives, _)| *arrives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::ReportReason;

    fn report(number: u32) -> Message {
        Message::Report(RadioReport {
            number,
            at: ms(u64::from(number) * 10),
            user: None,
            rate: Rate::from_bps(100_000),
            queued_packets: 0,
            queued_bytes: 0,
            reason: ReportReason::Periodic,
        })
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn wire(delay: &str, loss: f64, scale: f64) -> ReportWire {
        ReportWire::new(delay.parse().unwrap(), loss, &[], scale, &Streams::new(1, 0)).unwrap()
    }

    /// Sends a report every 10 ms; returns what arrives, polled when the path asks and also every `step` ms.
    fn told(mut wire: ReportWire, count: u32, step: u64) -> Vec<(u64, u32, u64)> {
        let (mut out, mut told) = (Outbox::for_one_node(), Vec::new());
        let mut sent = 0;
        for now in (0..u64::from(count) * 10 + 10_000).map(ms) {
            if now.as_nanos() / 1_000_000 % step == 0 || wire.next_wake().is_some_and(|wake| wake <= now) {
                wire.wake(now, &mut out);
            }
            if sent < count && now == ms(u64::from(sent) * 10) {
                wire.receive(now, RADIO, &report(sent), &mut out);
                sent += 1;
            }
            while let Some((port, Message::Report(report))) = out.take() {
                assert_eq!(port, LISTENER);
                told.push((now.as_nanos() / 1_000_000, report.number, report.rate.as_bps()));
            }
        }
        told
    }

    #[test]
    fn reports_come_after_the_delay_with_the_rate_as_the_wire_tells_it() {
        let expected = [(50, 0, 200_000), (60, 1, 200_000), (70, 2, 200_000)];
        assert_eq!(told(wire("50ms", 0.0, 2.0), 3, 1000), expected);
    }

    #[test]
    fn no_report_enters_in_an_outage_of_the_wire() {
        let outage = Outage { at: Span::from_millis(15), lasts: Span::from_millis(20), every: None };
        let delay = Span::from_millis(50).into();
        let wire = ReportWire::new(delay, 0.0, &[outage], 1.0, &Streams::new(1, 0)).unwrap();
        // At 20 and 30 ms no report passes.
        let numbers: Vec<_> = told(wire, 5, 1000).into_iter().map(|(_, number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 4]);
    }

    #[test]
    fn the_share_that_is_lost_is_the_one_that_was_asked_for() {
        // 700 of 1000 arrive, with a deviation of sqrt(1000 * 0.3 * 0.7) = 14.5; five of them.
        let arrived = told(wire("1ms", 0.3, 1.0), 1000, 1000).len();
        assert!(arrived.abs_diff(700) < 73, "{arrived}");
    }

    #[test]
    fn a_report_may_overtake_another_and_extra_looks_change_nothing() {
        let [seldom, often] = [1000, 1].map(|step| told(wire("e(50ms)", 0.2, 1.0), 200, step));
        assert_eq!(seldom, often);
        assert!(
            seldom.windows(2).any(|pair| pair[1].1 < pair[0].1),
            "delays of 50 ms on average, 10 ms apart"
        );
    }
}
