//! What the base station tells the edge of the rates of its users.
//!
//! A report is news: the rate at which a user can be served is not what it was when it was last told. It is told at the
//! beginning of the slot that is decided with the new rate, with what waits of all flows of the user; a rate of zero is an
//! outage. In slots in which a user has nothing to send its channel is not looked at, and nothing is told.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Time};

/// Reports that were not fetched yet, and what was told last.
#[derive(Default)]
pub(super) struct Reports {
    /// State of each user's channel that was told last; empty while nobody listens.
    last: Vec<Option<usize>>,
    waiting: VecDeque<RadioReport>,
}

impl Reports {
    /// From now on somebody listens.
    pub(super) fn want_reports(&mut self, users: usize) {
        self.last.resize(users, None);
    }

    /// Whether somebody listens.
    pub(super) fn wanted(&self) -> bool {
        !self.last.is_empty()
    }

    /// Whether the state of a user's channel has changed since it was asked last.
    pub(super) fn is_change(&mut self, user: u32, state: usize) -> bool {
        self.last.get_mut(user as usize).is_some_and(|last| last.replace(state) != Some(state))
    }

    pub(super) fn push(&mut self, report: RadioReport) {
        self.waiting.push_back(report);
    }

    /// The next report of an instant of at most `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.waiting.pop_front_if(|report| report.at <= now)
    }
}
