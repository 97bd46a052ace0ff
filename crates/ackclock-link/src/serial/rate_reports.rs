//! What the radio controller of a serial link reports: every change of its rate.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Time};

use crate::Load;

/// Reports that were not fetched yet, and the rate that was told last.
pub(super) struct RateReports {
    told: Rate,
    made: VecDeque<RadioReport>,
}

impl RateReports {
    /// Of a link that begins with this rate, which is no change.
    pub(super) fn new(rate: Rate) -> Self {
        Self { told: rate, made: VecDeque::new() }
    }

    /// The rate of the link at `at`, with what then waits: reported where it is another than before.
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

    /// When the next was made; [`Time::NEVER`] where all were fetched.
    pub(super) fn due(&self) -> Time {
        self.made.front().map_or(Time::NEVER, |report| report.at)
    }

    /// The next that was made up to `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.made.pop_front_if(|report| report.at <= now)
    }
}
