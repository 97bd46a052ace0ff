//! # Host
//!
//! Many TCP endpoints behind one wire.
//!
//! ## Source
//! None: plumbing.
//!
//! ## What it does
//! Holds the endpoint of each flow, sender or receiver, hands it what arrives, and sends what it has to send at port 0.
//! A deadline that moves later, as a retransmission timer does at every ACK, is not written down again: the early wake
//! finds nothing due and sets the true one.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! `tests/host.rs`.

use ackclock_core::{FlowId, Message, Node, Outbox, Port, Segment, Sink, Time, Wakes};

use crate::receiver::Receiver;
use crate::sender::Sender;

/// The port of the wire.
pub const WIRE: Port = 0;

/// A node that is the end of many connections.
#[derive(Default)]
pub struct Host {
    endpoints: Vec<Option<Endpoint>>,
    /// One slot a flow.
    wakes: Wakes,
}

/// One end of a connection.
enum Endpoint {
    Sender(Box<dyn Sender>),
    Receiver(Box<Receiver>),
}

impl Host {
    /// A host without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the sender of `flow`, with its supply; it starts by itself.
    ///
    /// # Panics
    /// Where the flow has an endpoint here already: the graph is built by code, not by users.
    pub fn add_sender(&mut self, flow: FlowId, sender: Box<dyn Sender>) {
        let deadline = sender.poll_timeout();
        self.add(flow, Endpoint::Sender(sender), deadline);
    }

    /// Adds the receiver of `flow`, which begins the handshake, if there is one, at `start`.
    ///
    /// # Panics
    /// As [`Self::add_sender`].
    pub fn add_receiver(&mut self, flow: FlowId, start: Time, receiver: Receiver) {
        self.add(flow, Endpoint::Receiver(Box::new(receiver)), Some(start));
    }

    /// The sender of `flow`, if it is here.
    pub fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::Sender(sender))) => Some(&**sender),
            _ => None,
        }
    }

    /// The receiver of `flow`, if it is here.
    pub fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::Receiver(receiver))) => Some(receiver),
            _ => None,
        }
    }

    fn add(&mut self, flow: FlowId, endpoint: Endpoint, deadline: Option<Time>) {
        while self.endpoints.len() <= flow.index() {
            self.endpoints.push(None);
            self.wakes.add();
        }
        let place = &mut self.endpoints[flow.index()];
        assert!(place.is_none(), "flow {} has two ends at one host", flow.0);
        *place = Some(endpoint);
        self.wakes.set(flow.index(), deadline);
    }

    /// Writes down when `slot` is next due, unless an earlier wake will find out.
    fn arm(&mut self, slot: usize, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.wakes.hasten(slot, deadline);
        }
    }

    /// Takes a segment that arrives.
    #[inline]
    pub fn take(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        let slot = segment.flow.index();
        let Some(Some(endpoint)) = self.endpoints.get_mut(slot) else { return };
        let deadline = endpoint.receive(now, segment, out);
        self.arm(slot, deadline);
    }

    /// Does whatever is due at `now`.
    pub fn run(&mut self, now: Time, out: &mut impl Sink) {
        while let Some((_, slot)) = self.wakes.first().filter(|(due, _)| *due <= now) {
            let deadline = match &mut self.endpoints[slot] {
                Some(endpoint) => endpoint.wake(now, out),
                None => None,
            };
            self.wakes.set(slot, deadline);
        }
    }

    /// When something is next due; [`Time::NEVER`] where nothing is.
    #[inline]
    pub fn due(&self) -> Time {
        self.wakes.due()
    }
}

impl Node for Host {
    fn receive(&mut self, now: Time, _: Port, message: &Message, out: &mut Outbox) {
        if let Message::Segment(segment) = message {
            self.take(now, segment, out);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        self.run(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        Some(self.due()).filter(|&time| time != Time::NEVER)
    }
}

impl Endpoint {
    fn receive(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) -> Option<Time> {
        match self {
            Self::Sender(sender) => sender.drive(now, Some(segment), WIRE, out),
            Self::Receiver(receiver) => {
                receiver.on_segment(now, segment, &mut |seg: Segment| out.pass(WIRE, &seg));
                receiver.poll_timeout()
            }
        }
    }

    fn wake(&mut self, now: Time, out: &mut impl Sink) -> Option<Time> {
        match self {
            Self::Sender(sender) => sender.drive(now, None, WIRE, out),
            Self::Receiver(receiver) => {
                let mut send = |seg: Segment| out.pass(WIRE, &seg);
                receiver.start(now, &mut send);
                receiver.on_timeout(now, &mut send);
                receiver.poll_timeout()
            }
        }
    }
}
