//! # Relay
//!
//! Splits connections: a TCP end towards the servers, another towards the mobiles, and a buffer between them.
//!
//! ## Source
//! Split TCP as L02 (section 3.1.2) and I-TCP (Bakre and Badrinath, 1995) have it.
//!
//! ## What it does
//! For each flow it receives what the server sends, acknowledges it, and sends it on over a connection of its own, with its own
//! congestion control. Nothing is handed on out of order. What the mobile has not acknowledged yet fills the buffer, and the
//! window that the server sees is what is free of it, so that a slow mobile slows the server and the buffer never holds more
//! than its size. The end of the data follows when everything before it was handed on. A SYN of the mobile opens both
//! connections; a reset of the mobile is passed on and ends both. Where a [steering](ackclock_core::Steering) is said, reports of the
//! radio come in at a port of their own, and the windows towards the mobiles are what it says.
//!
//! ## Differences from the source
//! - A hand-over to another relay is not modelled.
//! - The relay answers the mobile's SYN at once, without waiting for the server's answer.
//!
//! ## Validation
//! `tests/relay.rs`: every byte once and in order over paths that lose, repeat and reorder; the bound of the buffer; the rate of
//! the slower connection; the end of the data and resets.

mod steerings;

use std::collections::VecDeque;

use ackclock_core::{
    Flags, FlowId, Message, Node, Outbox, Port, RadioReport, Segment, Sink, SteeringConfig, Time, Wakes,
};

use self::steerings::Steerings;

use crate::receiver::Receiver;
use crate::sender::{Sender, SenderState};
use crate::workload::Supply;

/// The port towards the servers.
pub const SERVER: Port = 0;
/// The port towards the edge.
pub const EDGE: Port = 1;
/// The port at which reports of the radio come in.
pub const REPORTS: Port = 2;

/// A box that splits connections.
#[derive(Default)]
pub struct Relay {
    pairs: Vec<Option<Box<Pair>>>,
    /// One slot a flow.
    wakes: Wakes,
    /// Flows whose connection to the mobile is over, in the order in which that happened.
    ended: VecDeque<FlowId>,
    /// Who says the windows towards the mobiles, where they do not say them themselves.
    steerings: Option<Box<Steerings>>,
}

/// The two ends of a flow.
struct Pair {
    /// The port towards the peer of the receiver, from which data comes.
    from: Port,
    receiver: Receiver,
    sender: Box<dyn Sender>,
    /// Payload that was handed to the sender, bytes.
    handed: u64,
    /// Most payload that the buffer held, bytes.
    most: u64,
    /// Whether the sender was told that nothing follows.
    finished: bool,
    /// Whether the connection to the mobile is over.
    ended: bool,
}

impl Relay {
    /// A relay without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// A relay without connections, some of which [will be steered](Self::steer).
    pub fn steered_by(config: Box<dyn SteeringConfig>) -> Self {
        Self { steerings: Some(Box::new(Steerings::new(config))), ..Self::default() }
    }

    /// Has the sender of a flow that was split steered, together with the other ones of the user. It was
    /// [built for that](crate::SenderRow::build_steered).
    pub fn steer(&mut self, now: Time, flow: FlowId, user: u32) {
        if let Some(steerings) = &mut self.steerings {
            steerings.open(now, flow, user);
        }
    }

    /// Splits `flow`, whose data comes in at the port `from`: `receiver` is the end towards its source, with
    /// [`WindowPolicy::Unread`](crate::receiver::WindowPolicy::Unread), and `sender` the other one, which was supplied with
    /// nothing yet.
    ///
    /// # Panics
    /// Where the flow is split already: the graph is built by code, not by users.
    pub fn split(&mut self, flow: FlowId, from: Port, receiver: Receiver, mut sender: Box<dyn Sender>) {
        while self.pairs.len() <= flow.index() {
            self.pairs.push(None);
            self.wakes.add();
        }
        sender.supply(Supply::Open(0));
        let due = sender.poll_timeout();
        let pair = Pair { from, receiver, sender, handed: 0, most: 0, finished: false, ended: false };
        let place = &mut self.pairs[flow.index()];
        assert!(place.is_none(), "flow {} is split already", flow.0);
        *place = Some(Box::new(pair));
        self.wakes.set(flow.index(), due);
    }

    /// Forgets a flow; what still arrives for it is left alone.
    pub fn remove(&mut self, now: Time, flow: FlowId) {
        if let Some(steerings) = &mut self.steerings {
            steerings.close(now, flow);
        }
        if let Some(place) = self.pairs.get_mut(flow.index()) {
            *place = None;
            self.wakes.set(flow.index(), None);
        }
    }

    /// The end of `flow` that sends on.
    pub fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        self.pair(flow).map(|pair| &*pair.sender)
    }

    /// The end of `flow` that receives.
    pub fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.pair(flow).map(|pair| &pair.receiver)
    }

    /// Payload of `flow` that came in order and that was not acknowledged where it is sent on to, bytes.
    pub fn buffered_bytes(&self, flow: FlowId) -> u64 {
        self.pair(flow).map_or(0, Pair::buffered)
    }

    /// The most that [`buffered_bytes`](Self::buffered_bytes) ever was.
    pub fn most_buffered_bytes(&self, flow: FlowId) -> u64 {
        self.pair(flow).map_or(0, |pair| pair.most)
    }

    /// Whether the connection over which `flow` is sent on is over, or there is none.
    pub fn has_ended(&self, flow: FlowId) -> bool {
        self.pair(flow).is_none_or(|pair| pair.ended)
    }

    /// The next flow whose connection to the mobile is over.
    pub fn poll_ended(&mut self) -> Option<FlowId> {
        self.ended.pop_front()
    }

    fn pair(&self, flow: FlowId) -> Option<&Pair> {
        self.pairs.get(flow.index())?.as_deref()
    }

    fn take(&mut self, now: Time, port: Port, segment: &Segment, out: &mut impl Sink) {
        let slot = segment.flow.index();
        let Some(Some(pair)) = self.pairs.get_mut(slot) else { return out.discard(segment) };
        if segment.flags.contains(Flags::RST) {
            out.pass(if port == SERVER { EDGE } else { SERVER }, segment);
            self.end(now, segment.flow);
            return self.obey(now, out);
        }
        if port == pair.from {
            pair.on_data(now, segment, out);
        } else {
            pair.on_ack(now, segment, out);
        }
        self.note_due(now, slot);
        self.obey(now, out);
    }

    /// Writes down when a flow is next due, and whether it has ended.
    fn note_due(&mut self, now: Time, slot: usize) {
        let Some(Some(pair)) = self.pairs.get_mut(slot) else { return };
        let due = pair.due();
        if let Some(steerings) = &mut self.steerings {
            steerings.look(now, FlowId(slot as u32), || pair.sender.view());
        }
        if pair.sender.state() == SenderState::Closed && !pair.ended {
            self.end(now, FlowId(slot as u32));
        }
        self.wakes.set(slot, due);
    }

    fn end(&mut self, now: Time, flow: FlowId) {
        if let Some(Some(pair)) = self.pairs.get_mut(flow.index())
            && !pair.ended
        {
            pair.ended = true;
            self.ended.push_back(flow);
            if let Some(steerings) = &mut self.steerings {
                steerings.close(now, flow);
            }
        }
    }

    /// Hears a report of the radio.
    fn hear(&mut self, now: Time, report: &RadioReport, out: &mut impl Sink) {
        if let Some(steerings) = &mut self.steerings {
            let view = |flow: FlowId| Some(self.pairs.get(flow.index())?.as_ref()?.sender.view());
            steerings.on_report(now, report, view);
        }
        self.obey(now, out);
    }

    /// Does what the steerings want. What a connection then sends may be news to them.
    fn obey(&mut self, now: Time, out: &mut impl Sink) {
        while let Some((flow, setting)) =
            self.steerings.as_mut().and_then(|steerings| steerings.poll_setting(now))
        {
            if let Some(Some(pair)) = self.pairs.get_mut(flow.index()) {
                pair.sender.steer(now, &setting);
                pair.sender.drive(now, None, pair.to(), out);
                self.note_due(now, flow.index());
            }
        }
    }
}

impl Pair {
    /// The port at which data is sent on.
    fn to(&self) -> Port {
        if self.from == SERVER { EDGE } else { SERVER }
    }

    fn on_data(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        if segment.flags.intersects(Flags::SYN) && !segment.flags.intersects(Flags::ACK) {
            // A mobile that sends opens its connection, and so the one to the server.
            self.sender.connect(now);
            self.sender.drive(now, None, self.to(), out);
        }
        self.receiver.on_segment(now, segment, &mut |answer: &Segment| out.pass(self.from, answer));
        self.hand_on(now, out);
    }

    fn on_ack(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        if segment.flags.intersects(Flags::SYN) {
            self.receiver.start(now, &mut |syn: &Segment| out.pass(self.from, syn));
        }
        self.sender.drive(now, Some(segment), self.to(), out);
        let read = self.sender.acknowledged();
        self.receiver.read_up_to(now, read, &mut |update: &Segment| out.pass(self.from, update));
    }

    /// What came in order goes to the sender.
    fn hand_on(&mut self, now: Time, out: &mut impl Sink) {
        let delivered = self.receiver.delivered_bytes();
        let ends = self.receiver.finished_at().is_some() && !self.finished;
        if delivered == self.handed && !ends {
            return;
        }
        self.sender.supply(Supply::Open(delivered - self.handed));
        self.handed = delivered;
        self.most = self.most.max(self.buffered());
        if ends {
            self.finished = true;
            self.sender.finish();
        }
        self.sender.drive(now, None, self.to(), out);
    }

    fn wake(&mut self, now: Time, out: &mut impl Sink) {
        self.receiver.on_timeout(now, &mut |answer: &Segment| out.pass(self.from, answer));
        self.sender.drive(now, None, self.to(), out);
    }

    fn due(&self) -> Option<Time> {
        let deadlines = [self.receiver.poll_timeout(), self.sender.poll_timeout()];
        deadlines.into_iter().flatten().min()
    }

    fn buffered(&self) -> u64 {
        self.handed - self.sender.acknowledged()
    }
}

impl Node for Relay {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        match message {
            Message::Segment(segment) => self.take(now, port, segment, out),
            Message::Report(report) => self.hear(now, report, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, slot)) = self.wakes.first().filter(|(due, _)| *due <= now) {
            if let Some(Some(pair)) = self.pairs.get_mut(slot) {
                pair.wake(now, out);
            } else {
                self.wakes.set(slot, None);
            }
            self.note_due(now, slot);
        }
        if let Some(steerings) = &mut self.steerings {
            steerings.expire(now);
        }
        self.obey(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let steerings = self.steerings.as_ref().map_or(Time::NEVER, |steerings| steerings.due());
        Some(self.wakes.due().min(steerings)).filter(|&time| time != Time::NEVER)
    }
}
