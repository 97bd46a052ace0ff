//! Calculates the RNF window of a user, in packets.

use ackclock_core::{RadioReport, Rate, ReportReason, Span, Time};

use super::target::{Reference, Target};

/// Properties of the path between the proxy and the mobile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    /// Round-trip time of the path without the radio's queue.
    pub(super) tau: Span,
    /// Size of a full packet, bytes.
    pub(super) packet: u32,
}

/// State of the radio as reported, and the feedback correction of the window.
#[derive(Debug)]
pub(super) struct Law {
    reference: Reference,
    gain: f64,
    /// Largest relative difference of rates at which a periodic report counts as a sample of the queue.
    change: f64,
    most: f64,
    /// Delay of reports on their path from the radio.
    lag: Span,
    /// Rate of the latest report, and time of the report that last changed the window.
    known: Option<(Rate, Time)>,
    /// Sum of the feedback corrections to the feedforward window, packets.
    correction: f64,
    /// Whether a connection's window was full since the last sample of the queue.
    limited: bool,
}

impl Law {
    pub(super) fn new(target: Target, gain: f64, change: f64, lag: Span, most: u32) -> Self {
        let reference = Reference::new(target);
        Self { reference, gain, change, lag, most: most.into(), known: None, correction: 0.0, limited: false }
    }

    /// Rate of the radio; `None` before the first report.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.known.map(|(rate, _)| rate)
    }

    /// Window of the user in packets; `None` before the first report.
    pub(super) fn window(&self, way: Way) -> Option<f64> {
        let (rate, _) = self.known?;
        Some(self.bounded(self.feedforward(rate, way) + self.correction))
    }

    pub(super) fn on_window_limited(&mut self) {
        self.limited = true;
    }

    /// Forgets all reports of the radio.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }

    pub(super) fn on_report(&mut self, report: &RadioReport, way: Option<Way>) {
        match (self.known, way) {
            (Some((rate, since)), Some(way)) if self.is_sample(rate, report) => {
                self.on_sample(report, rate, since, way);
                self.limited = false;
            }
            (Some((rate, _)), _) if rate == report.rate => {}
            // The reason of the report is irrelevant, because a periodic report also replaces a lost report of a
            // change.
            _ => {
                self.known = Some((report.rate, report.at));
                (self.correction, self.limited) = (0.0, false);
            }
        }
    }

    /// Returns whether a report is a sample of the queue at the rate in use, and does not announce a different rate.
    fn is_sample(&self, rate: Rate, report: &RadioReport) -> bool {
        let (known, told) = (rate.as_bps() as f64, report.rate.as_bps() as f64);
        report.reason == ReportReason::Periodic && (told - known).abs() <= self.change * known
    }

    /// Applies feedback to the window: equation (3.2).
    fn on_sample(&mut self, report: &RadioReport, rate: Rate, since: Time, way: Way) {
        if rate == Rate::ZERO {
            return;
        }
        let b = packets_a_second(rate, way);
        let (q, q_ref) = (report.queued_bytes as f64 / f64::from(way.packet), self.reference.packets(b));
        let settling = (self.lag + way.tau).as_secs_f64() + q.max(q_ref) / b;
        if report.at.since(since).as_secs_f64() <= settling {
            return;
        }
        let error = q_ref - q;
        if error > 0.0 && !self.limited {
            return;
        }
        let feedforward = self.feedforward(rate, way);
        let corrected = self.bounded(feedforward + self.correction + self.gain * error) - feedforward;
        if std::mem::replace(&mut self.correction, corrected) != corrected {
            self.known = Some((rate, report.at));
        }
        if self.limited {
            self.reference.on_sample(q);
        }
    }

    /// Feedforward window in packets: equation (3.1).
    fn feedforward(&self, rate: Rate, way: Way) -> f64 {
        let b = packets_a_second(rate, way);
        b * way.tau.as_secs_f64() + self.reference.packets(b)
    }

    fn bounded(&self, window: f64) -> f64 {
        window.clamp(0.0, self.most)
    }
}

fn packets_a_second(rate: Rate, way: Way) -> f64 {
    rate.as_bps() as f64 / (8.0 * f64::from(way.packet))
}
