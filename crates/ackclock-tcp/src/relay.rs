//! # Relay
//!
//! A relay splits connections: one TCP endpoint towards the servers, one towards the mobiles, and a buffer between
//! them.
//!
//! ## Source
//! Split TCP as in L02 (section 3.1.2) and I-TCP (Bakre and Badrinath, 1995).
//!
//! ## What it does
//! For each flow the relay receives and acknowledges the server's data, and forwards it over a separate connection with
//! its own congestion control. Data is forwarded in order only. Data not acknowledged by the mobile fills the buffer.
//! The window advertised to the server is the free buffer space. A slow mobile therefore slows the server down, and the
//! buffer never overflows. The relay forwards the FIN after all data. A SYN of the mobile opens both connections; a
//! reset by the mobile is passed on and ends both connections. With a [steering](ackclock_core::Steering), radio
//! reports arrive at a separate port, and the steering sets the congestion windows towards the mobiles.
//!
//! ## Differences from the source
//! - Handover to another relay is not modelled.
//! - The relay answers the mobile's SYN at once, without waiting for the server's SYN-ACK.
//!
//! ## Validation
//! `tests/relay.rs` checks delivery of every byte once and in order, over paths that lose, repeat and reorder.
//! `tests/relay.rs` also checks the buffer bound, the rate of the slower connection, FIN and resets.

mod steerings;

use std::collections::VecDeque;
use std::sync::Arc;

use ackclock_core::{
    Flags, FlowId, Message, Node, Outbox, Port, RadioReport, Segment, Sink, SteeringConfig, Time, Wakes,
};

use self::steerings::Steerings;

use crate::receiver::Receiver;
use crate::sender::{Sender, SenderState};
use crate::workload::Supply;

/// Port towards the servers.
pub const SERVER: Port = 0;
/// Port towards the edge.
pub const EDGE: Port = 1;
/// Port at which radio reports arrive.
pub const REPORTS: Port = 2;

/// A node that splits TCP connections.
#[derive(Default)]
pub struct Relay {
    pairs: Vec<Option<Box<Pair>>>,
    /// Wake-up times, one slot for each flow.
    wakes: Wakes,
    /// Flows whose connection to the mobile has ended, in order of ending.
    ended: VecDeque<FlowId>,
    /// Steerings of the congestion windows towards the mobiles; `None` without steering.
    steerings: Option<Box<Steerings>>,
}

/// The two TCP endpoints of a flow.
struct Pair {
    /// Port at which the data of the flow arrives.
    from: Port,
    receiver: Receiver,
    sender: Box<dyn Sender>,
    /// Total of payload passed to the sender, bytes.
    forwarded: u64,
    /// Largest amount of payload held in the buffer, bytes.
    most: u64,
    /// Whether the sender knows that no more data will follow.
    finished: bool,
    /// Whether the connection to the mobile has ended.
    ended: bool,
}

impl Relay {
    /// Creates a relay without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a relay without connections. Some of the connections added later [will be steered](Self::steer).
    pub fn steered_by(config: Arc<dyn SteeringConfig>) -> Self {
        Self { steerings: Some(Box::new(Steerings::new(config))), ..Self::default() }
    }

    /// Steers the sender of a split flow, together with the other flows of `user`. The sender must have been [built for
    /// steering](crate::SenderRow::build_steered).
    pub fn steer(&mut self, now: Time, flow: FlowId, user: u32) {
        if let Some(steerings) = &mut self.steerings {
            steerings.open(now, flow, user);
        }
    }

    /// Splits `flow`, whose data arrives at port `from`. `receiver` is the endpoint towards the data source and uses
    /// [`WindowPolicy::Unread`](crate::receiver::WindowPolicy::Unread). `sender` is the endpoint that forwards the
    /// data, and has no data supplied yet.
    ///
    /// # Panics
    /// Panics if the flow is already split.
    pub fn split(&mut self, flow: FlowId, from: Port, receiver: Receiver, mut sender: Box<dyn Sender>) {
        while self.pairs.len() <= flow.index() {
            self.pairs.push(None);
            self.wakes.add();
        }
        sender.supply(Supply::Open(0));
        let due = sender.poll_timeout();
        let pair = Pair { from, receiver, sender, forwarded: 0, most: 0, finished: false, ended: false };
        let place = &mut self.pairs[flow.index()];
        assert!(place.is_none(), "flow {} is split already", flow.0);
        *place = Some(Box::new(pair));
        self.wakes.set(flow.index(), due);
    }

    /// Removes a flow. Segments that still arrive for the flow are ignored.
    pub fn remove(&mut self, now: Time, flow: FlowId) {
        if let Some(steerings) = &mut self.steerings {
            steerings.close(now, flow);
        }
        if let Some(place) = self.pairs.get_mut(flow.index()) {
            *place = None;
            self.wakes.set(flow.index(), None);
        }
    }

    /// Endpoint that forwards the data of `flow`.
    pub fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        self.pair(flow).map(|pair| &*pair.sender)
    }

    /// Endpoint that receives the data of `flow`.
    pub fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.pair(flow).map(|pair| &pair.receiver)
    }

    /// Buffered payload of `flow`, bytes: received in order, but not acknowledged by the final receiver.
    pub fn buffered_bytes(&self, flow: FlowId) -> u64 {
        self.pair(flow).map_or(0, Pair::buffered)
    }

    /// Largest value of [`buffered_bytes`](Self::buffered_bytes) so far.
    pub fn most_buffered_bytes(&self, flow: FlowId) -> u64 {
        self.pair(flow).map_or(0, |pair| pair.most)
    }

    /// Whether the connection that forwards `flow` has ended, or does not exist.
    pub fn has_ended(&self, flow: FlowId) -> bool {
        self.pair(flow).is_none_or(|pair| pair.ended)
    }

    /// Next flow whose connection to the mobile has ended; `None` if no end is pending.
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
            return self.apply_settings(now, out);
        }
        if port == pair.from {
            pair.on_data(now, segment, out);
        } else {
            pair.on_ack(now, segment, out);
        }
        self.note_due(now, slot);
        self.apply_settings(now, out);
    }

    /// Schedules the next deadline of a flow, and records whether its connection to the mobile has ended.
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

    /// Processes a radio report that has arrived.
    fn on_radio_report(&mut self, now: Time, report: &RadioReport, out: &mut impl Sink) {
        if let Some(steerings) = &mut self.steerings {
            let view = |flow: FlowId| Some(self.pairs.get(flow.index())?.as_ref()?.sender.view());
            steerings.on_report(now, report, view);
        }
        self.apply_settings(now, out);
    }

    /// Applies pending window settings of the steerings. Segments sent as a result may cause further settings.
    fn apply_settings(&mut self, now: Time, out: &mut impl Sink) {
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
    /// Port through which data is forwarded.
    fn to(&self) -> Port {
        if self.from == SERVER { EDGE } else { SERVER }
    }

    fn on_data(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        if segment.flags.intersects(Flags::SYN) && !segment.flags.intersects(Flags::ACK) {
            // A SYN from a sending mobile also opens the connection to the server.
            self.sender.connect(now);
            self.sender.drive(now, None, self.to(), out);
        }
        self.receiver.on_segment(now, segment, &mut |answer: &Segment| out.pass(self.from, answer));
        self.forward(now, out);
    }

    fn on_ack(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        if segment.flags.intersects(Flags::SYN) {
            self.receiver.start(now, &mut |syn: &Segment| out.pass(self.from, syn));
        }
        self.sender.drive(now, Some(segment), self.to(), out);
        let read = self.sender.acknowledged();
        self.receiver.read_up_to(now, read, &mut |update: &Segment| out.pass(self.from, update));
    }

    /// Passes newly received in-order data to the sender.
    fn forward(&mut self, now: Time, out: &mut impl Sink) {
        let delivered = self.receiver.delivered_bytes();
        let ends = self.receiver.finished_at().is_some() && !self.finished;
        if delivered == self.forwarded && !ends {
            return;
        }
        self.sender.supply(Supply::Open(delivered - self.forwarded));
        self.forwarded = delivered;
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
        self.forwarded - self.sender.acknowledged()
    }
}

impl Node for Relay {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        match message {
            Message::Segment(segment) => self.take(now, port, segment, out),
            Message::Report(report) => self.on_radio_report(now, report, out),
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
        self.apply_settings(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let steerings = self.steerings.as_ref().map_or(Time::NEVER, |steerings| steerings.due());
        Some(self.wakes.due().min(steerings)).filter(|&time| time != Time::NEVER)
    }
}
