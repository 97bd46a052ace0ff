//! # Reports of the radio
//!
//! ## Source
//! Source: M05 section 3.2. A radio network controller reports each change of the bandwidth to a proxy, and
//! periodically reports the number of queued packets.
//!
//! ## What it does
//! Each change of the bearer's rate is reported at once at the port [`REPORTS`](crate::REPORTS). A periodic report of
//! rate and queue follows at each multiple of the period, starting at zero. If a change and a periodic report fall on
//! the same instant, the change is reported first. In a cell, each user has separate reports about the packets
//! of all the user's flows. Without a cell, one report covers all users.
//!
//! ## Differences from the source
//! M05 does not define the allocation of a user in a cell. In this implementation, a cell reports a user's mean rate
//! over one second, counting only the time in which the user had data. The cell reports a change when the number of
//! users with data changes.
//!
//! ## Validation
//! Tests compare instants, rates and queues with values computed by hand (`tests/reports.rs`).

use ackclock_core::{Config, ConfigError, FlowId, Law, RadioReport, ReportReason, Span, Streams, Time};
use ackclock_link::{AnyBearer, Bearer, Direction, LinkView, Load, Loss, Outage, ReportWire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reports of the radio's state, and delay and loss on their path to the listener.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReportTable {
    /// Time between two periodic reports. Changes of the rate are reported in addition to periodic reports.
    pub every: Span,
    /// Delay of a report on its path to the listener, drawn from this distribution for each report.
    pub delay: Law<Span>,
    /// Probability that a report is lost on its path to the listener.
    pub loss: Loss,
    /// Simulated fault: intervals in which no report is sent, `[{ at = "10s", for = "15s" }]`.
    pub outages: Vec<Outage>,
    /// Simulated fault: ratio of the reported rates to the true rates.
    pub scale: f64,
}

impl Default for ReportTable {
    fn default() -> Self {
        let delay = Law::from(Span::from_millis(50));
        Self { every: Span::from_secs(1), delay, loss: Loss::NONE, outages: Vec::new(), scale: 1.0 }
    }
}

/// Minimum period of reports. A shorter period of reports would generate an event per packet.
const LEAST_PERIOD: Span = Span::from_millis(1);
/// Maximum ratio of the reported rates to the true rates. The minimum ratio of reported to true rates is the inverse of
/// the maximum ratio.
const MOST_SCALE: f64 = 1000.0;

impl Config for ReportTable {
    fn check(&self) -> Result<(), ConfigError> {
        if self.every < LEAST_PERIOD {
            return Err(ConfigError::new("every", format!("{} is less than {LEAST_PERIOD}", self.every)));
        }
        if !(1.0 / MOST_SCALE..=MOST_SCALE).contains(&self.scale) {
            let message = format!("{} is not from 0.001 to {MOST_SCALE}", self.scale);
            return Err(ConfigError::new("scale", message));
        }
        self.wire(&Streams::new(0, 0)).map(drop)
    }
}

impl ReportTable {
    /// Creates the path from the edge to the listener of reports.
    ///
    /// # Errors
    /// Fails if the configured outages of reports are invalid.
    pub fn wire(&self, streams: &Streams) -> Result<ReportWire, ConfigError> {
        ReportWire::new(self.delay.clone(), self.loss.probability(), &self.outages, self.scale, streams)
    }
}

/// Generator of the reports of an edge.
pub(crate) struct Reporter {
    every: Span,
    /// Time at which the next periodic report is due.
    pub(crate) due: Time,
    number: u32,
    whom: Whom,
}

/// Users that a report covers.
pub(crate) enum Whom {
    /// One report covers all users, who share one channel.
    All,
    /// Each user has separate reports. The vector is indexed by the user's number and contains the user's flows.
    Each(Vec<Vec<FlowId>>),
}

impl Reporter {
    /// Creates a reporter with period `every` that covers `whom`.
    pub(crate) fn new(every: Span, whom: Whom) -> Self {
        Self { every, due: Time::ZERO, number: 0, whom }
    }

    /// Sets the sequence number of a report and returns the report.
    pub(crate) fn numbered(&mut self, report: RadioReport) -> RadioReport {
        self.number = self.number.wrapping_add(1);
        RadioReport { number: self.number.wrapping_sub(1), ..report }
    }

    /// Sets the user of a flow, for reports per user.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32) {
        self.forget(flow);
        if let Whom::Each(users) = &mut self.whom
            && let Some(flows) = users.get_mut(user as usize)
        {
            flows.push(flow);
        }
    }

    /// Removes a flow that has ended.
    pub(crate) fn forget(&mut self, flow: FlowId) {
        if let Whom::Each(users) = &mut self.whom {
            users.iter_mut().for_each(|flows| flows.retain(|&other| other != flow));
        }
    }

    /// Returns the periodic reports due at `now`, with sequence numbers. The bearer must be drained up to `now`.
    pub(crate) fn sample(&mut self, now: Time, bearer: &mut AnyBearer) -> Vec<RadioReport> {
        self.due = now + self.every;
        self.reports(now, ReportReason::Periodic, |_| true, bearer)
    }

    /// Returns the report about a user whose rate has changed at `now`, if the user has separate reports.
    pub(crate) fn change(&mut self, now: Time, user: u32, bearer: &mut AnyBearer) -> Vec<RadioReport> {
        self.reports(now, ReportReason::Change, |other| other == Some(user), bearer)
    }

    /// Returns reports about the users that `wanted` selects, or about all users together.
    fn reports(
        &mut self,
        now: Time,
        reason: ReportReason,
        wanted: impl Fn(Option<u32>) -> bool,
        bearer: &mut AnyBearer,
    ) -> Vec<RadioReport> {
        let stand = |user, LinkView { rate, .. }, Load { packets, bytes }| RadioReport {
            number: 0,
            at: now,
            user,
            rate,
            queued_packets: packets,
            queued_bytes: bytes,
            reason,
        };
        let view = |bearer: &mut AnyBearer, flow| bearer.view(now, Direction::Down, flow);
        let reports: Vec<_> = match &self.whom {
            Whom::All if !wanted(None) => Vec::new(),
            Whom::All => {
                let seen = view(bearer, FlowId(0));
                vec![stand(None, seen, bearer.waiting(now, Direction::Down))]
            }
            Whom::Each(users) => (0..)
                .zip(users)
                .filter(|&(user, _)| wanted(Some(user)))
                .filter_map(|(user, flows)| {
                    let seen = view(bearer, *flows.first()?);
                    Some(stand(Some(user), seen, bearer.waiting_of(now, user)))
                })
                .collect(),
        };
        reports.into_iter().map(|report| self.numbered(report)).collect()
    }
}
