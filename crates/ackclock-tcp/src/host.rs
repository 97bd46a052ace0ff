//! # Host
//!
//! Many TCP endpoints behind one wire.
//!
//! ## Source
//! None: plumbing.
//!
//! ## What it does
//! Holds the endpoint of each flow, sender or receiver, hands it what arrives, and sends what it has to send at port 0.
//! Connections may also come and go: their ends are *watched*, which means that the host tells as [`EndpointEvent`] what becomes of
//! them, and they are removed. Such events come at the instant at which they happen, and their flow is due then: who runs a host
//! need look for news only where something was due.
//!
//! A deadline that moves later, as a retransmission timer does at every ACK, is not written down again: the early wake
//! finds nothing due and sets the true one.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! `tests/host.rs`.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Message, Node, Outbox, Port, Segment, Sink, Time, Wakes};

use crate::receiver::Receiver;
use crate::sender::{Sender, SenderState};
use crate::workload::Supply;

/// The port of the wire.
pub const WIRE: Port = 0;

/// A node that is the end of many connections.
#[derive(Default)]
pub struct Host {
    endpoints: Vec<Option<Endpoint>>,
    /// One slot a flow.
    wakes: Wakes,
    events: VecDeque<EndpointEvent>,
}

/// What becomes of a watched end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointEvent {
    /// The receiver has delivered everything up to the first mark that was not reached yet.
    Reached(FlowId),
    /// Everything that the sender sent is acknowledged, or its peer gave up: it has nothing more to do. May be told again
    /// until the end is removed.
    Closed(FlowId),
}

/// One end of a connection.
enum Endpoint {
    Sender(Box<dyn Sender>),
    Receiver(Box<Receiver>),
    WatchedSender(Box<dyn Sender>),
    WatchedReceiver(Box<Download>),
}

/// A receiver and what it is watched for.
struct Download {
    receiver: Receiver,
    /// Payload in order, bytes, at which there is news.
    marks: VecDeque<u64>,
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

    /// Adds the sender of `flow`, with its supply, which opens the connection at `start`.
    ///
    /// # Panics
    /// As [`Self::add_sender`].
    pub fn connect_sender(&mut self, flow: FlowId, start: Time, mut sender: Box<dyn Sender>) {
        sender.connect(start);
        self.add(flow, Endpoint::Sender(sender), Some(start));
    }

    /// Adds the receiver of `flow`, which begins the handshake, if there is one, at `start`.
    ///
    /// # Panics
    /// As [`Self::add_sender`].
    pub fn add_receiver(&mut self, flow: FlowId, start: Time, receiver: Receiver) {
        self.add(flow, Endpoint::Receiver(Box::new(receiver)), Some(start));
    }

    /// Adds the sender of a connection that will be removed; [`EndpointEvent::Closed`] tells when.
    ///
    /// # Panics
    /// As [`Self::add_sender`].
    pub fn watch_sender(&mut self, flow: FlowId, sender: Box<dyn Sender>) {
        let deadline = sender.poll_timeout();
        self.add(flow, Endpoint::WatchedSender(sender), deadline);
    }

    /// As [`watch_sender`](Self::watch_sender), of a sender that opens the connection at `start`.
    ///
    /// # Panics
    /// As [`Self::add_sender`].
    pub fn watch_connecting_sender(&mut self, flow: FlowId, start: Time, mut sender: Box<dyn Sender>) {
        sender.connect(start);
        self.add(flow, Endpoint::WatchedSender(sender), Some(start));
    }

    /// Adds the receiver of a connection that will be removed; [`Self::mark`] says what is news of it.
    ///
    /// # Panics
    /// As [`Self::add_sender`].
    pub fn watch_receiver(&mut self, flow: FlowId, start: Time, receiver: Receiver) {
        let download = Box::new(Download { receiver, marks: VecDeque::new() });
        self.add(flow, Endpoint::WatchedReceiver(download), Some(start));
    }

    /// It is news of a watched receiver when it has so many bytes in order, which are more than at marks before.
    pub fn mark(&mut self, flow: FlowId, bytes: u64) {
        if let Some(Some(Endpoint::WatchedReceiver(download))) = self.endpoints.get_mut(flow.index()) {
            download.marks.push_back(bytes);
        }
    }

    /// Gives a watched sender more to send, at `now`.
    pub fn supply(&mut self, now: Time, flow: FlowId, supply: Supply) {
        if let Some(Some(Endpoint::WatchedSender(sender))) = self.endpoints.get_mut(flow.index()) {
            sender.supply(supply);
            self.arm(flow.index(), Some(now));
        }
    }

    /// Removes the end of a connection; what still arrives for it is left alone.
    pub fn remove(&mut self, flow: FlowId) {
        if let Some(place) = self.endpoints.get_mut(flow.index()) {
            *place = None;
            self.wakes.set(flow.index(), None);
        }
    }

    /// Whether there is news.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next news, in the order in which it happened.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// The sender of `flow`, if it is here.
    pub fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::Sender(sender) | Endpoint::WatchedSender(sender))) => Some(&**sender),
            _ => None,
        }
    }

    /// The receiver of `flow`, if it is here.
    pub fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::Receiver(receiver))) => Some(receiver),
            Some(Some(Endpoint::WatchedReceiver(download))) => Some(&download.receiver),
            _ => None,
        }
    }

    /// One more than the highest number of a flow that ever had an end here.
    pub fn flows(&self) -> usize {
        self.endpoints.len()
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
    #[inline]
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

    /// An acknowledgement will come soon for `flow`, as [`Sender::prefetch`].
    #[inline]
    pub fn prefetch(&self, flow: FlowId) {
        if let Some(sender) = self.sender(flow) {
            sender.prefetch();
        }
    }

    /// It comes next but a few, as [`Sender::prefetch_more`].
    #[inline]
    pub fn prefetch_more(&self, flow: FlowId) {
        if let Some(sender) = self.sender(flow) {
            sender.prefetch_more();
        }
    }

    /// Does whatever is due at `now`.
    pub fn run(&mut self, now: Time, out: &mut impl Sink) {
        while let Some((_, slot)) = self.wakes.first().filter(|(due, _)| *due <= now) {
            let deadline = match &mut self.endpoints[slot] {
                Some(endpoint) => {
                    endpoint.note_events(FlowId(slot as u32), &mut self.events);
                    endpoint.wake(now, out)
                }
                None => None,
            };
            self.wakes.set(slot, deadline);
        }
        // A flow whose deadline comes has been still for long, and has left the caches.
        if let Some((_, next)) = self.wakes.first() {
            self.prefetch(FlowId(next as u32));
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
                receiver.on_segment(now, segment, &mut |seg: &Segment| out.pass(WIRE, seg));
                receiver.poll_timeout()
            }
            // What is news makes the flow due at once.
            Self::WatchedSender(sender) => sender
                .drive(now, Some(segment), WIRE, out)
                .or_else(|| (sender.state() == SenderState::Closed).then_some(now)),
            Self::WatchedReceiver(download) => {
                download.receiver.on_segment(now, segment, &mut |seg: &Segment| out.pass(WIRE, seg));
                if download.is_reached() { Some(now) } else { download.receiver.poll_timeout() }
            }
        }
    }

    fn wake(&mut self, now: Time, out: &mut impl Sink) -> Option<Time> {
        match self {
            Self::Sender(sender) | Self::WatchedSender(sender) => sender.drive(now, None, WIRE, out),
            Self::Receiver(receiver) => wake(receiver, now, out),
            Self::WatchedReceiver(download) => wake(&mut download.receiver, now, out),
        }
    }

    /// Notes what has become of a watched end.
    fn note_events(&mut self, flow: FlowId, events: &mut VecDeque<EndpointEvent>) {
        match self {
            Self::Sender(_) | Self::Receiver(_) => {}
            Self::WatchedSender(sender) => {
                if sender.state() == SenderState::Closed {
                    events.push_back(EndpointEvent::Closed(flow));
                }
            }
            Self::WatchedReceiver(download) => {
                while download.is_reached() {
                    download.marks.pop_front();
                    events.push_back(EndpointEvent::Reached(flow));
                }
            }
        }
    }
}

impl Download {
    fn is_reached(&self) -> bool {
        self.marks.front().is_some_and(|&mark| self.receiver.delivered_bytes() >= mark)
    }
}

fn wake(receiver: &mut Receiver, now: Time, out: &mut impl Sink) -> Option<Time> {
    let mut send = |seg: &Segment| out.pass(WIRE, seg);
    receiver.start(now, &mut send);
    receiver.on_timeout(now, &mut send);
    receiver.poll_timeout()
}
