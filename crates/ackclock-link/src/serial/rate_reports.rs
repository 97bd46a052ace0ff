//! Radio reports of a serial link: one report for every change of its rate.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Time};

use crate::Load;

/// Pending rate reports, and the last reported rate.
pub(super) struct RateReports {
    told: Rate,
    made: VecDeque<RadioReport>,
}

impl RateReports {
    /// Creates the reports of a link; its initial rate is not reported.
    pub(super) fn new(rate: Rate) -> Self {
        Self { told: rate, made: VecDeque::new() }
    }

    /// Generates a report with the link's rate and queued load at `at`, if the rate has changed.
    pub(super) fn note(&mut self, at: Time, rate: Rate, waiting: Load) {
        if std::mem::replace(&mut self.told, rate) == rate {
            return;
        }
        let Load { packets: queued_packets, bytes: queued_bytes } = waiting;
        let reason = ReportReason::Change;
        self.made.push_back(RadioReport {
            number: 0,
            at,
            user: None,
            rate,
            queued_packets,
            queued_bytes,
            reason,
        });
    }

    /// Time of the next pending report; [`Time::NEVER`] if no report is pending.
    pub(super) fn due(&self) -> Time {
        self.made.front().map_or(Time::NEVER, |report| report.at)
    }

    /// Removes and returns the next pending report if its time is not after `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.made.pop_front_if(|report| report.at <= now)
    }
}
