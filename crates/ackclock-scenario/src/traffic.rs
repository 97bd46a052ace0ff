//! Short connections: clients send requests. Each request opens or reuses a connection, which closes when all responses
//! have arrived.
//!
//! The traffic of an island acts between events: at the end of an instant at which a request is due or a host has
//! events. Memory is proportional to the number of open connections. The flow number of a closed connection is reused
//! after a quiet time; the edge and the wired links then drop their state of the old connection. The sequence numbers
//! of the new connection follow those of the old connection (RFC 9293 section 3.4.3). A late packet of the old
//! connection is therefore treated as an old duplicate.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ackclock_core::results::{LinkShareResult, Towards};
use ackclock_core::{FlowId, Seq, Span, Time, Wakes};
use ackclock_tcp::sender::SenderState;
use ackclock_tcp::{Client, EndpointEvent, Receiver, Request, Sender, Supply, Then};

use crate::active::Active;
use crate::common_time::{CommonTime, Delivered};
use crate::island::boxes::{Boxes, Payload};
use crate::island::group::Group;
use crate::link_share::{CapacityReports, LinkShare, Mark, Shares, direction_of};
use crate::plan::FlowPlan;
use crate::transfers::Transfers;

/// Quiet time before a flow number is reused: the TIME-WAIT duration of Linux.
const QUIET: Span = Span::from_secs(60);

/// Clients of an island, and their connections.
#[derive(Default)]
pub(crate) struct Traffic {
    clients: Vec<WorkloadClient>,
    /// Time of each client's next request.
    wakes: Wakes,
    /// Flow number of the first short connection. Flows with smaller numbers last for the entire run.
    first: u32,
    /// Open short connections, indexed by flow number minus `first`.
    alive: Vec<Option<Connection>>,
    quiet: VecDeque<Quiet>,
    transfers: Transfers,
    /// Counters of closed connections, summed for each user.
    past: BTreeMap<u32, Counts>,
    /// Payload of closed connections by direction, bytes.
    past_payload: [u64; 2],
    /// Link shares of files on long-lived connections, if `measure` has "utilisation".
    shares: Option<Shares>,
    active: Active,
    common: CommonTime,
}

/// A client with short connections.
struct WorkloadClient {
    client: Box<dyn Client>,
    group: Arc<Group>,
    user: u32,
    /// Index of the user within its cell.
    cell_user: u32,
    /// Name of the random stream for packet loss on the client's wired links.
    name: String,
    /// Number of connections that the client has opened so far.
    opened: u64,
    /// Connections kept open for further requests: the client's number of each connection, and its flow number.
    reused: Vec<(u64, FlowId)>,
}

/// An open connection of a client.
struct Connection {
    client: usize,
    /// Number that the client gave this connection.
    number: u64,
    /// Bytes of response requested so far.
    asked: u64,
    /// Responses that have not arrived completely.
    pending: VecDeque<Answer>,
    /// Bytes of the responses that have arrived completely, including headers.
    answered: u64,
}

/// A response that a client has requested.
#[derive(Clone, Copy)]
struct Answer {
    asked_at: Time,
    bytes: u64,
    /// Total link capacity at the time of the request, if measured.
    begin: Option<Mark>,
}

/// Flow number of a closed connection, waiting for reuse.
struct Quiet {
    until: Time,
    flow: FlowId,
    /// First sequence number that the old connection did not use.
    next: Seq,
}

/// Counters summed over several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) flows: u32,
    pub(crate) delivered_bytes: u64,
    pub(crate) delivered_wire_bytes: u64,
    pub(crate) segments_sent: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
}

impl Counts {
    /// Counters of the connections of one flow; zero if the flow has no connection.
    pub(crate) fn of(flow: FlowId, boxes: &Boxes<'_>) -> Self {
        let Some(Payload { bytes, wire_bytes }) = boxes.delivered(flow) else { return Self::default() };
        let all =
            Self { flows: 1, delivered_bytes: bytes, delivered_wire_bytes: wire_bytes, ..Self::default() };
        let media = boxes.media(flow).map(|(sender, _)| sender.stats());
        let all = media.iter().fold(all, |all, stats| Self {
            segments_sent: stats.packets,
            retransmits: stats.retransmits,
            ..all
        });
        boxes.senders(flow).fold(all, Self::with)
    }

    fn with(self, sender: &dyn Sender) -> Self {
        let stats = sender.stats();
        Self {
            segments_sent: self.segments_sent + stats.segments_sent,
            retransmits: self.retransmits + stats.retransmits,
            timeouts: self.timeouts + stats.timeouts,
            ..self
        }
    }

    /// Adds the counters of other connections to this sum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.flows += other.flows;
        self.delivered_bytes += other.delivered_bytes;
        self.delivered_wire_bytes += other.delivered_wire_bytes;
        self.segments_sent += other.segments_sent;
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
    }
}

impl Traffic {
    /// Creates traffic without clients. Flow numbers below `flows` belong to connections that last for the entire run.
    pub(crate) fn numbered_from(flows: usize, active: Active, common: CommonTime) -> Self {
        Self { first: flows as u32, active, common, ..Self::default() }
    }

    /// Time during which the island has flows.
    pub(crate) fn active(&self) -> &Active {
        &self.active
    }

    /// Common time of the island's flows.
    pub(crate) fn common(&self) -> &CommonTime {
        &self.common
    }

    /// Adds the client of a flow plan. `name` selects the random streams for packet loss.
    pub(crate) fn add(&mut self, client: Box<dyn Client>, group: Arc<Group>, plan: &FlowPlan, name: String) {
        let FlowPlan { user, cell_user, .. } = *plan;
        let slot = self.wakes.add();
        self.wakes.set(slot, Some(client.due()));
        self.clients.push(WorkloadClient {
            client,
            group,
            user,
            cell_user,
            name,
            opened: 0,
            reused: Vec::new(),
        });
    }

    /// Starts to measure the link share of transfers.
    pub(crate) fn measure_shares(&mut self, link: CapacityReports) {
        self.shares = Some(Shares::over(link));
    }

    /// Link shares of files on long-lived connections, if measured.
    pub(crate) fn shares_mut(&mut self) -> Option<&mut Shares> {
        self.shares.as_mut()
    }

    /// Whether hosts must report that files on long-lived connections have arrived.
    pub(crate) fn awaits_ends(&self) -> bool {
        self.shares.is_some() || self.active.awaits_ends() || self.common.awaits_end()
    }

    /// Whether there is no client, no measured file and no pending start of a flow.
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty()
            && self.shares.as_ref().is_none_or(Shares::is_empty)
            && self.active.is_settled()
            && self.common.due() == Time::NEVER
            && !self.common.awaits_end()
    }

    /// Time of the next request, flow start or measured file; [`Time::NEVER`] if nothing is due.
    pub(crate) fn due(&self) -> Time {
        let request = self.wakes.first().map_or(Time::NEVER, |(due, _)| due);
        let request = request.min(self.active.due()).min(self.common.due());
        self.shares.as_ref().map_or(request, |shares| request.min(shares.due()))
    }

    /// Handles host events and sends the requests due at `now`, after all other events of this instant. Returns whether
    /// there was any event or request.
    pub(crate) fn serve(&mut self, now: Time, boxes: &mut Boxes<'_>) -> bool {
        let mut served = self.shares.as_mut().is_some_and(|shares| shares.begin(now, boxes));
        served |= self.active.begin(now, boxes);
        if self.common.due() <= now {
            served = true;
            self.common.begin(self.delivered(boxes));
        }
        while let Some(event) = boxes.clients.poll_event().or_else(|| boxes.servers.poll_event()) {
            served = true;
            match event {
                EndpointEvent::Reached(flow) => self.answered(now, flow, boxes),
                EndpointEvent::Closed(flow) => self.close(now, flow, boxes),
            }
        }
        while let Some(flow) = boxes.relay.as_mut().and_then(|boxes| boxes.relay.poll_ended()) {
            served = true;
            self.close(now, flow, boxes);
        }
        while let Some((_, client)) = self.wakes.first().filter(|(due, _)| *due <= now) {
            served = true;
            let request = self.clients[client].client.request();
            self.ask(now, client, request, boxes);
            self.note_due(client);
        }
        served
    }

    /// Statistics of the transfers so far. Active transfers count as unfinished.
    pub(crate) fn transfers(&self) -> Transfers {
        let mut transfers = self.transfers.clone();
        for connection in self.alive.iter().flatten() {
            let user = self.user(connection.client);
            connection.pending.iter().for_each(|answer| transfers.unfinished(user, answer.bytes));
        }
        transfers
    }

    /// Link share of the file of a long-lived flow, if measured.
    pub(crate) fn link_share(&self, flow: FlowId) -> Option<LinkShareResult> {
        self.shares.as_ref().map(|shares| shares.result(flow))
    }

    /// Counters of each user's connections, including open connections.
    pub(crate) fn counts(&self, boxes: &Boxes<'_>) -> BTreeMap<u32, Counts> {
        let mut counts = self.past.clone();
        for (number, connection) in (self.first..).zip(&self.alive) {
            if let Some(connection) = connection {
                let of_user = counts.entry(self.user(connection.client)).or_default();
                of_user.add(&Counts::of(FlowId(number), boxes));
            }
        }
        counts
    }

    /// Payload of the island's flows and users so far.
    pub(crate) fn delivered(&self, boxes: &Boxes<'_>) -> Delivered {
        let of = |flow| boxes.delivered(FlowId(flow)).map_or(0, |payload| payload.bytes);
        let clients = self.counts(boxes).into_iter().map(|(user, counts)| (user, counts.delivered_bytes));
        Delivered { flows: (0..self.first).map(of).collect(), clients: clients.collect() }
    }

    /// Payload of the short connections so far, by direction, bytes.
    pub(crate) fn payload(&self, boxes: &Boxes<'_>) -> [u64; 2] {
        let mut payload = self.past_payload;
        for (number, connection) in (self.first..).zip(&self.alive) {
            if let Some(Connection { client, .. }) = connection {
                let direction = self.direction(*client);
                payload[direction] += boxes.receiver(FlowId(number)).map_or(0, Receiver::delivered_bytes);
            }
        }
        payload
    }

    /// Index of the direction of a client's data.
    fn direction(&self, client: usize) -> usize {
        direction_of(self.clients[client].group.table.towards) as usize
    }

    fn user(&self, client: usize) -> u32 {
        self.clients[client].user
    }

    fn note_due(&mut self, client: usize) {
        self.wakes.set(client, Some(self.clients[client].client.due()));
    }

    /// Sends a client's request on an existing connection, or on a new one.
    fn ask(&mut self, now: Time, client: usize, request: Request, boxes: &mut Boxes<'_>) {
        let Request { connection, bytes, then } = request;
        let known = self.clients[client].reused.iter().position(|&(number, _)| number == connection);
        let flow = match known {
            Some(place) if then == Then::Close => self.clients[client].reused.swap_remove(place).1,
            Some(place) => self.clients[client].reused[place].1,
            None => self.open(now, client, request, boxes),
        };
        let towards = self.clients[client].group.table.towards;
        let begin = self.shares.as_ref().map(|shares| shares.mark(now, towards, boxes));
        let [sending, receiving] = boxes.hosts(towards);
        let Some(Some(connection)) = self.alive.get_mut((flow.0 - self.first) as usize) else { return };
        connection.asked += bytes;
        connection.pending.push_back(Answer { asked_at: now, bytes, begin });
        receiving.mark(flow, connection.asked);
        let supply = match then {
            Then::Close => Supply::Bytes(bytes),
            Then::More => Supply::Open(bytes),
        };
        sending.supply(now, flow, supply);
    }

    /// Opens a new connection for a client's request.
    fn open(&mut self, now: Time, client: usize, request: Request, boxes: &mut Boxes<'_>) -> FlowId {
        let (flow, first) = self.number(now, boxes);
        let WorkloadClient { group, cell_user, name, opened, reused, .. } = &mut self.clients[client];
        let name = format!("{name}/{opened}");
        boxes.wires.iter_mut().for_each(|wires| {
            wires.renew(flow, &name);
            wires.lengthen(flow, group.table.route);
        });
        if let Some(boxes) = &mut boxes.relay {
            boxes.core.iter_mut().for_each(|wires| wires.renew(flow, &name));
            group.split(boxes.relay, flow, *cell_user, [now; 2], first);
        }
        boxes.edges().for_each(|edge| {
            edge.assign(flow, *cell_user);
            edge.classify(flow, group.class);
        });
        group.announce(boxes.edge, flow);
        let (sender, receiver) = group.connection(flow, now, first);
        match group.table.towards {
            Towards::Mobile => {
                boxes.servers.watch_sender(flow, sender);
                boxes.clients.watch_receiver(flow, now, receiver);
            }
            Towards::Server => {
                boxes.clients.watch_connecting_sender(flow, now, sender);
                boxes.servers.watch_receiver(flow, now, receiver);
            }
        }
        *opened += 1;
        if request.then == Then::More {
            reused.push((request.connection, flow));
        }
        let number = request.connection;
        self.alive[(flow.0 - self.first) as usize] =
            Some(Connection { client, number, asked: 0, pending: VecDeque::new(), answered: 0 });
        flow
    }

    /// Allocates a free flow number. Also returns the first sequence number of the flow.
    fn number(&mut self, now: Time, boxes: &mut Boxes<'_>) -> (FlowId, Seq) {
        match self.quiet.front() {
            Some(quiet) if quiet.until <= now => {
                let (flow, next) = (quiet.flow, quiet.next);
                self.quiet.pop_front();
                boxes.edges().for_each(|edge| edge.forget(now, flow));
                // The SYN, if the connection has one, takes one sequence number.
                (flow, next + 1)
            }
            _ => {
                self.alive.push(None);
                (FlowId(self.first + self.alive.len() as u32 - 1), Seq(1))
            }
        }
    }

    /// Slot of a short connection; `None` for a long-lived connection, whose events a relay may also report.
    fn slot(&mut self, flow: FlowId) -> Option<&mut Option<Connection>> {
        self.alive.get_mut(flow.0.checked_sub(self.first)? as usize)
    }

    /// Handles the arrival of the last byte of a response.
    fn answered(&mut self, now: Time, flow: FlowId, boxes: &mut Boxes<'_>) {
        let Some(slot) = self.slot(flow) else {
            self.shares.iter_mut().for_each(|shares| shares.reached(now, flow, boxes));
            self.active.finished(now, boxes);
            if self.common.awaits_end() {
                self.common.finished(now, self.delivered(boxes));
            }
            return;
        };
        let Some(connection) = slot else { return };
        let Some(Answer { asked_at, bytes, begin }) = connection.pending.pop_front() else { return };
        let (client, number) = (connection.client, connection.number);
        let delivered = boxes.receiver(flow).map_or(0, Receiver::delivered_wire_bytes);
        let carried = delivered - std::mem::replace(&mut connection.answered, delivered);
        let towards = self.clients[client].group.table.towards;
        let end = self.shares.as_ref().map(|shares| shares.mark(now, towards, boxes));
        let share = begin.zip(end).and_then(|(begin, end)| LinkShare::between(begin, end, carried));
        self.transfers.finished(self.user(client), bytes, now.since(asked_at), share);
        self.clients[client].client.on_answered(now, number);
        self.note_due(client);
    }

    /// Removes a connection once both ends have closed, and keeps the connection's counters. With a relay the sender
    /// may close long before the receiver.
    fn close(&mut self, now: Time, flow: FlowId, boxes: &mut Boxes<'_>) {
        let source = boxes.sender(flow).is_none_or(|sender| sender.state() == SenderState::Closed);
        if !source || boxes.relay.as_ref().is_some_and(|boxes| !boxes.relay.has_ended(flow)) {
            return;
        }
        let Some(connection) = self.slot(flow).and_then(Option::take) else { return };
        let past = self.past.entry(self.clients[connection.client].user).or_default();
        let counts = Counts::of(flow, boxes);
        past.add(&counts);
        let direction = self.direction(connection.client);
        self.past_payload[direction] += counts.delivered_bytes;
        let next = boxes.receiver(flow).map_or(Seq(1), Receiver::next);
        boxes.servers.remove(flow);
        if let Some(boxes) = &mut boxes.relay {
            boxes.relay.remove(now, flow);
        }
        boxes.clients.remove(flow);
        self.quiet.push_back(Quiet { until: now + QUIET, flow, next });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::island::{Builder, Executor, Line};
    use crate::{DiskFiles, Scenario};
    use ackclock_core::Streams;

    #[test]
    fn memory_goes_with_the_connections_that_are_alive() {
        let text = r#"
            duration = "1h"
            [[flow]]
            workload = { kind = "web", page_time = "e(2s)" }
            [[flow]]
        "#;
        let scenario = Scenario::load("web.toml", text, &[]).expect("a scenario written here");
        let (files, streams) = (DiskFiles::in_folder("."), Streams::new(1, 0));
        let progress = crate::Progress::default();
        let builder = Builder::new(scenario.tables(), &files, &streams, &progress).expect("it was checked");
        let flows = crate::plan::flows(scenario.tables(), &streams).expect("it was checked");
        let island = builder.island(&flows, &streams).expect("it was checked");
        let Ok(mut line) = Line::try_from(island) else { panic!("it has the plainest shape") };
        line.advance(Time::ZERO + Span::from_secs(3600));
        let (boxes, traffic) = line.island(0);
        let opened = traffic.counts(&boxes)[&0].flows;
        // 1800 pages of 5.517 objects make 9931 objects, with a deviation of 3 %.
        assert!(opened > 8_500, "{opened}");
        // 166 connections are opened in the minute in which a flow number is quiet, with a deviation of 30 at most.
        assert!(traffic.alive.len() < 400, "{}", traffic.alive.len());
        assert_eq!(boxes.servers.flows(), 2 + traffic.alive.len());
        assert!(traffic.alive.iter().flatten().count() < 100);
    }
}
