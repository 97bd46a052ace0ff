//! Reports of a data plane, in small pages so that packets are not delayed.

use std::sync::mpsc::SendError;

use ackclock_core::results::{EngineResult, LinkCounts};
use ackclock_core::{FlowId, Time};
use ackclock_link::{Direction, LinkView};

use super::{Connection, Plane};
use crate::FlowReport;
use crate::account::{Account, Page, Rest, Summary};
use crate::flow::NO_FLOW;

/// Number of connection numbers that one [`Page`] covers.
const PAGE: usize = 64;

impl Plane {
    /// Returns the collector of results on the first call, and `None` on further calls.
    pub fn account(&mut self) -> Option<Account> {
        Some(Account::new(self.account.take()?, self.regulator.clone()))
    }

    /// Reports one page of current connections, from number `from` on. Reporting all connections at once would delay
    /// packets.
    pub fn page(&mut self, from: usize) -> Page {
        let to = (from + PAGE).min(self.connections.len());
        let known = self.connections.get(from..to).unwrap_or_default().iter().enumerate();
        let flows: Vec<_> = known
            .filter_map(|(index, connection)| {
                let connection = connection.as_ref().filter(|connection| connection.tally.has_row())?;
                Some(self.report(FlowId((from + index) as u32), connection))
            })
            .collect();
        let rest = if to < self.connections.len() {
            Rest::From(to)
        } else {
            Rest::Nothing(Box::new(self.summary()))
        };
        Page { flows, rest }
    }

    /// Results of the plane other than its connections.
    pub fn summary(&mut self) -> Summary {
        let now = self.graph.now();
        let waiting = self.waiting();
        Summary {
            now,
            down: LinkView { waiting, ..self.graph.queue_mut().view(now, NO_FLOW) },
            links: Direction::BOTH.map(|direction| self.link_counts(now, direction)),
            engine: EngineResult {
                events: self.graph.events(),
                packets: self.graph.queue().statistics().delivered,
                cpu_s: None,
            },
            traffic: Direction::BOTH.map(|direction| self.traffic(direction)),
            delivered: self.delivered,
            other: self.other.report().clone(),
            forgotten: self.forgotten,
        }
    }

    /// Counters at the link with the queue, and counters of all regulators.
    fn link_counts(&mut self, now: Time, direction: Direction) -> LinkCounts {
        let counts = self.edge_mut().link_counts(now, direction);
        self.graph.queue_mut().link_counts(now, direction).regulated_by(&counts)
    }

    /// Sends the report of a connection whose number is reused to the account.
    pub(super) fn archive(&mut self, flow: FlowId, connection: &Connection) {
        if !connection.tally.has_row() {
            return;
        }
        let report = self.report(flow, connection);
        let unsent = match self.past_room.checked_sub(1) {
            None => report,
            Some(room) => match self.past.send(report) {
                // The room for reports shrinks only if sending succeeds; sending fails if the receiver was dropped.
                Ok(()) => return self.past_room = room,
                Err(SendError(report)) => report,
            },
        };
        self.forgotten.add(&unsent);
        self.other.absorb(&unsent);
    }

    /// Report of a connection, including values known only to the edge.
    fn report(&self, flow: FlowId, connection: &Connection) -> FlowReport {
        let mut report = connection.tally.report().clone();
        if let Some(statistics) = self.edge().flow_statistics(flow) {
            report.edge_rtt = statistics.edge_rtt.mean();
        }
        report.dropped = self.graph.queue().flow_statistics(flow).map_or(0, |statistics| statistics.dropped);
        report.held = self.edge().held(flow);
        if let Some(rtt) = connection.quic.rtt() {
            report.quic = Some(Box::new(rtt));
            report.edge_rtt = connection.quic.link_rtt();
        }
        report
    }
}
