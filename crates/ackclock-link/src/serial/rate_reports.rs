//! Radio reports of a serial link: every change of its rate.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Time};

use crate::Load;

/// Pending reports, and the rate last reported.
pub(super) struct RateReports {
    told: Rate,
    made: VecDeque<RadioReport>,
}

impl RateReports {
    /// For a link with this initial rate, which is not reported.
    pub(super) fn new(rate: Rate) -> Self {
        Self { told: rate, made: VecDeque::new() }
    }

    /// Rate of the link and load queued at `at`: generates a report if the rate has changed.
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

    /// Instant of the next pending report; [`Time::NEVER`] if there is none.
    pub(super) fn due(&self) -> Time {
        self.made.front().map_or(Time::NEVER, |report| report.at)
    }

    /// The next pending report up to `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.made.pop_front_if(|report| report.at <= now)
    }
}
