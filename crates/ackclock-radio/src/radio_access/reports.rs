//! Radio reports of dedicated channels: one report for every change of a user's rate.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Time};
use ackclock_link::Load;
use ackclock_link::bearer::Direction;

use super::user::User;

/// Pending reports, and the last reported rate of each user.
pub(super) struct Reports {
    told: Vec<Rate>,
    made: VecDeque<RadioReport>,
}

impl Reports {
    /// Creates the reports of these users; their initial rates are not reported.
    pub(super) fn new(users: &[User]) -> Self {
        Self {
            told: users.iter().map(|user| user.rate(Time::ZERO, Direction::Down)).collect(),
            made: VecDeque::new(),
        }
    }

    /// Generates a report at `at` for each user whose rate has changed.
    pub(super) fn note(&mut self, at: Time, users: &[User]) {
        for (number, (user, told)) in (0..).zip(users.iter().zip(&mut self.told)) {
            let rate = user.rate(at, Direction::Down);
            if std::mem::replace(told, rate) == rate {
                continue;
            }
            let Load { packets: queued_packets, bytes: queued_bytes } = user.waiting();
            self.made.push_back(RadioReport {
                number: 0,
                at,
                user: Some(number),
                rate,
                queued_packets,
                queued_bytes,
                reason: ReportReason::Change,
            });
        }
    }

    /// Removes and returns the next report if its time is not after `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.made.pop_front_if(|report| report.at <= now)
    }
}
