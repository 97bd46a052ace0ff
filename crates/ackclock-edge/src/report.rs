//! # Reports of the radio
//!
//! ## Source
//! M05 section 3.2: a radio network controller tells a proxy of every change of the bandwidth, and from time to time how many packets
//! wait.
//!
//! ## What it does
//! What the bearer tells of changes goes out at the port [`REPORTS`](crate::REPORTS), and a report of how things stand at every
//! multiple of a period, from zero on. A change comes before the periodic report of the same instant. Where the bearer is a cell
//! each user has reports of its own, with what waits of all its flows; otherwise all users share one.
//!
//! ## Differences from the source
//! The source does not define the allocation of a user. A cell tells what a user was served over a second in the time in which it had
//! data, and a change where the number of users with data changes.
//!
//! ## Validation
//! Instants, rates and queues by hand (`tests/reports.rs`).

use ackclock_core::{Config, ConfigError, FlowId, Law, RadioReport, ReportReason, Span, Streams, Time};
use ackclock_link::{AnyBearer, Bearer, Direction, LinkView, Load, Loss, Outage, ReportWire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is told of the radio, and over which wire.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReportTable {
    /// Time between two reports of how things stand; changes of the rate are told beside.
    pub every: Span,
    /// Law of the time that a report travels to who listens, drawn for each.
    pub delay: Law<Span>,
    /// Probability that a report is lost.
    pub loss: Loss,
    /// A fault: times in which no report leaves, `[{ at = "10s", for = "15s" }]`.
    pub outages: Vec<Outage>,
    /// A fault: reports tell this multiple of the true rate.
    pub scale: f64,
}

impl Default for ReportTable {
    fn default() -> Self {
        let delay = Law::from(Span::from_millis(50));
        Self { every: Span::from_secs(1), delay, loss: Loss::NONE, outages: Vec::new(), scale: 1.0 }
    }
}

/// Least time between two reports: more would be an event a packet.
const LEAST_PERIOD: Span = Span::from_millis(1);
/// How wrong rates can be told.
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
    /// The wire from the edge to who listens.
    ///
    /// # Errors
    /// Where the outages are none.
    pub fn wire(&self, streams: &Streams) -> Result<ReportWire, ConfigError> {
        ReportWire::new(self.delay.clone(), self.loss.probability(), &self.outages, self.scale, streams)
    }
}

/// Makes the reports of an edge.
pub(crate) struct Reporter {
    every: Span,
    /// When the next periodic report is made.
    pub(crate) due: Time,
    number: u32,
    whom: Whom,
}

/// Of whom a report speaks.
pub(crate) enum Whom {
    /// Of all users, who share one channel.
    All,
    /// Of each user, whose flows stand at its number.
    Each(Vec<Vec<FlowId>>),
}

impl Reporter {
    /// One that speaks of `whom` each `every`.
    pub(crate) fn new(every: Span, whom: Whom) -> Self {
        Self { every, due: Time::ZERO, number: 0, whom }
    }

    /// The next report that leaves, with its number.
    pub(crate) fn numbered(&mut self, report: RadioReport) -> RadioReport {
        self.number = self.number.wrapping_add(1);
        RadioReport { number: self.number.wrapping_sub(1), ..report }
    }

    /// Tells whose flow it is.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32) {
        self.forget(flow);
        if let Whom::Each(users) = &mut self.whom
            && let Some(flows) = users.get_mut(user as usize)
        {
            flows.push(flow);
        }
    }

    /// The flow has ended.
    pub(crate) fn forget(&mut self, flow: FlowId) {
        if let Whom::Each(users) = &mut self.whom {
            users.iter_mut().for_each(|flows| flows.retain(|&other| other != flow));
        }
    }

    /// The reports of `now`, at which one is due, numbered; the bearer was drained up to then.
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
