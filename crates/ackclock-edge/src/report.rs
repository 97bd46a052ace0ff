//! # Reports of the radio
//!
//! ## Source
//! M05 section 3.2: a radio network controller reports each change of the bandwidth to a proxy, and periodically the
//! number of queued packets.
//!
//! ## What it does
//! The bearer's changes of rate are reported at port [`REPORTS`](crate::REPORTS) when they happen. A periodic report
//! of rate and queue follows at each multiple of the period, starting at zero. At the same instant a change is
//! reported first. In a cell each user has separate reports, which add up the queues of all its flows; otherwise one
//! report covers all users.
//!
//! ## Differences from the source
//! The source does not define a user's allocation. A cell reports a user's mean rate over one second, counting only
//! the time in which the user had data. It reports a change when the number of users with data changes.
//!
//! ## Validation
//! Instants, rates and queues compared with values computed by hand (`tests/reports.rs`).

use ackclock_core::{Config, ConfigError, FlowId, Law, RadioReport, ReportReason, Span, Streams, Time};
use ackclock_link::{AnyBearer, Bearer, Direction, LinkView, Load, Loss, Outage, ReportWire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reports of the radio's state, and the path that they take.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReportTable {
    /// Time between two periodic reports; changes of the rate are reported in addition.
    pub every: Span,
    /// Law of the delay of a report on its way to the listener, drawn for each report.
    pub delay: Law<Span>,
    /// Probability that a report is lost.
    pub loss: Loss,
    /// A fault: intervals in which no report leaves, `[{ at = "10s", for = "15s" }]`.
    pub outages: Vec<Outage>,
    /// A fault: reported rates are the true rates times this factor.
    pub scale: f64,
}

impl Default for ReportTable {
    fn default() -> Self {
        let delay = Law::from(Span::from_millis(50));
        Self { every: Span::from_secs(1), delay, loss: Loss::NONE, outages: Vec::new(), scale: 1.0 }
    }
}

/// Least report period: a shorter one would generate an event per packet.
const LEAST_PERIOD: Span = Span::from_millis(1);
/// Largest factor, and inverse of the least, for reported rates.
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
    /// The path from the edge to the listener of reports.
    ///
    /// # Errors
    /// Invalid outages.
    pub fn wire(&self, streams: &Streams) -> Result<ReportWire, ConfigError> {
        ReportWire::new(self.delay.clone(), self.loss.probability(), &self.outages, self.scale, streams)
    }
}

/// Generates the reports of an edge.
pub(crate) struct Reporter {
    every: Span,
    /// When the next periodic report is due.
    pub(crate) due: Time,
    number: u32,
    whom: Whom,
}

/// Which users a report covers.
pub(crate) enum Whom {
    /// All users, who share one channel.
    All,
    /// Each user separately; index is the user's number, elements are its flows.
    Each(Vec<Vec<FlowId>>),
}

impl Reporter {
    /// A reporter with period `every` that covers `whom`.
    pub(crate) fn new(every: Span, whom: Whom) -> Self {
        Self { every, due: Time::ZERO, number: 0, whom }
    }

    /// The next report to send, with its sequence number set.
    pub(crate) fn numbered(&mut self, report: RadioReport) -> RadioReport {
        self.number = self.number.wrapping_add(1);
        RadioReport { number: self.number.wrapping_sub(1), ..report }
    }

    /// Sets the user of a flow.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32) {
        self.forget(flow);
        if let Whom::Each(users) = &mut self.whom
            && let Some(flows) = users.get_mut(user as usize)
        {
            flows.push(flow);
        }
    }

    /// Removes a flow that ended.
    pub(crate) fn forget(&mut self, flow: FlowId) {
        if let Whom::Each(users) = &mut self.whom {
            users.iter_mut().for_each(|flows| flows.retain(|&other| other != flow));
        }
    }

    /// The numbered periodic reports due at `now`; the bearer must be drained up to `now`.
    pub(crate) fn sample(&mut self, now: Time, bearer: &mut AnyBearer) -> Vec<RadioReport> {
        self.due = now + self.every;
        let stand = |user, LinkView { rate, .. }, Load { packets, bytes }| RadioReport {
            number: 0,
            at: now,
            user,
            rate,
            queued_packets: packets,
            queued_bytes: bytes,
            reason: ReportReason::Periodic,
        };
        let view = |bearer: &mut AnyBearer, flow| bearer.view(now, Direction::Down, flow);
        let reports: Vec<_> = match &self.whom {
            Whom::All => {
                let seen = view(bearer, FlowId(0));
                vec![stand(None, seen, bearer.waiting(now, Direction::Down))]
            }
            Whom::Each(users) => (0..)
                .zip(users)
                .filter_map(|(user, flows)| {
                    let seen = view(bearer, *flows.first()?);
                    let waiting = flows.iter().map(|&flow| view(bearer, flow).waiting);
                    Some(stand(Some(user), seen, waiting.fold(Load::NONE, |sum, one| sum + one)))
                })
                .collect(),
        };
        reports.into_iter().map(|report| self.numbered(report)).collect()
    }
}
