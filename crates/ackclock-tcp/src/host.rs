//! # Host
//!
//! A host: many endpoints of TCP and media flows behind one network interface.
//!
//! ## Source
//! The host has no published source, because it is infrastructure.
//!
//! ## What it does
//! A host has one endpoint per flow, a sender or a receiver. The host passes arriving segments to their endpoints, and
//! sends the endpoints' segments at port [`WIRE`]. Temporary connections have *watched* endpoints. The host reports the
//! progress of watched endpoints as [`EndpointEvent`]s, and the caller removes the endpoints. An event is reported at
//! the instant when it happens. The event's flow is due at that instant, so poll for events only when a flow was due.
//!
//! The host does not reschedule a deadline that moves later, like a retransmission timer at every ACK. A wake-up that
//! is too early finds no event, and schedules the new deadline.
//!
//! ## Differences from the source
//! The host has no published source to deviate from.
//!
//! ## Validation
//! `tests/host.rs` has the integration tests.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Message, Node, Outbox, Port, Segment, Sink, Time, Wakes};

use crate::media::{MediaReceiver, MediaSender};
use crate::receiver::Receiver;
use crate::sender::{Sender, SenderState};
use crate::workload::Supply;

/// Port of the network interface.
pub const WIRE: Port = 0;

/// A node that is the endpoint of many connections.
#[derive(Default)]
pub struct Host {
    endpoints: Vec<Option<Endpoint>>,
    /// Wake-up times, one slot for each flow.
    wakes: Wakes,
    events: VecDeque<EndpointEvent>,
}

/// Event of a watched endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointEvent {
    /// The receiver has delivered all bytes up to the next mark.
    Reached(FlowId),
    /// The sender has finished: everything sent is acknowledged, or the peer gave up. The event may be repeated until
    /// the endpoint is removed.
    Closed(FlowId),
}

/// Endpoint of a connection.
enum Endpoint {
    Sender(Box<dyn Sender>),
    Receiver(Box<Receiver>),
    WatchedSender(Box<dyn Sender>),
    WatchedReceiver(Box<Download>),
    MediaSender(Box<MediaSender>),
    MediaReceiver(Box<MediaReceiver>),
}

/// A receiver, and the marks at which it causes events.
struct Download {
    receiver: Receiver,
    /// Totals of in-order payload that cause an event, bytes.
    marks: VecDeque<u64>,
}

impl Host {
    /// Creates a host without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the sender of `flow`, with its data supply. The sender starts at its start time or at the peer's SYN.
    ///
    /// # Panics
    /// Panics if the flow already has an endpoint at this host.
    pub fn add_sender(&mut self, flow: FlowId, sender: Box<dyn Sender>) {
        let deadline = sender.poll_timeout();
        self.add(flow, Endpoint::Sender(sender), deadline);
    }

    /// Adds the sender of `flow`, with its data supply. The sender opens the connection at `start`.
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn connect_sender(&mut self, flow: FlowId, start: Time, mut sender: Box<dyn Sender>) {
        sender.connect(start);
        self.add(flow, Endpoint::Sender(sender), Some(start));
    }

    /// Adds the receiver of `flow`. If a handshake is configured, the receiver starts the handshake at `start`.
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn add_receiver(&mut self, flow: FlowId, start: Time, receiver: Receiver) {
        self.add(flow, Endpoint::Receiver(Box::new(receiver)), Some(start));
    }

    /// Adds the sender of a temporary connection. [`EndpointEvent::Closed`] reports the end of the connection.
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn watch_sender(&mut self, flow: FlowId, sender: Box<dyn Sender>) {
        let deadline = sender.poll_timeout();
        self.add(flow, Endpoint::WatchedSender(sender), deadline);
    }

    /// Adds the sender of a temporary connection, which the sender opens at `start`; see
    /// [`watch_sender`](Self::watch_sender).
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn watch_connecting_sender(&mut self, flow: FlowId, start: Time, mut sender: Box<dyn Sender>) {
        sender.connect(start);
        self.add(flow, Endpoint::WatchedSender(sender), Some(start));
    }

    /// Adds the receiver of a temporary connection. [`Self::mark`] sets the events of the receiver.
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn watch_receiver(&mut self, flow: FlowId, start: Time, receiver: Receiver) {
        let download = Box::new(Download { receiver, marks: VecDeque::new() });
        self.add(flow, Endpoint::WatchedReceiver(download), Some(start));
    }

    /// Adds the sender of a media flow.
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn add_media_sender(&mut self, flow: FlowId, sender: MediaSender) {
        let deadline = sender.poll_timeout();
        self.add(flow, Endpoint::MediaSender(Box::new(sender)), Some(deadline));
    }

    /// Adds the receiver of a media flow.
    ///
    /// # Panics
    /// Panics like [`Self::add_sender`].
    pub fn add_media_receiver(&mut self, flow: FlowId, receiver: MediaReceiver) {
        self.add(flow, Endpoint::MediaReceiver(Box::new(receiver)), None);
    }

    /// Requests an event when a watched receiver has delivered `bytes` in order. `bytes` must exceed all earlier marks
    /// of the receiver.
    pub fn mark(&mut self, flow: FlowId, bytes: u64) {
        if let Some(Some(Endpoint::WatchedReceiver(download))) = self.endpoints.get_mut(flow.index()) {
            download.marks.push_back(bytes);
        }
    }

    /// Supplies a watched sender with more data at `now`.
    pub fn supply(&mut self, now: Time, flow: FlowId, supply: Supply) {
        if let Some(Some(Endpoint::WatchedSender(sender))) = self.endpoints.get_mut(flow.index()) {
            sender.supply(supply);
            self.arm(flow.index(), Some(now));
        }
    }

    /// Removes an endpoint. Segments that still arrive for the endpoint are ignored.
    pub fn remove(&mut self, flow: FlowId) {
        if let Some(place) = self.endpoints.get_mut(flow.index()) {
            *place = None;
            self.wakes.set(flow.index(), None);
        }
    }

    /// Whether an event of a watched endpoint is pending.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Next pending event, in order of occurrence.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// The sender of `flow`; `None` if the host does not have it.
    pub fn sender(&self, flow: FlowId) -> Option<&dyn Sender> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::Sender(sender) | Endpoint::WatchedSender(sender))) => Some(&**sender),
            _ => None,
        }
    }

    /// The receiver of `flow`; `None` if the host does not have it.
    pub fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::Receiver(receiver))) => Some(receiver),
            Some(Some(Endpoint::WatchedReceiver(download))) => Some(&download.receiver),
            _ => None,
        }
    }

    /// The sender of a media flow; `None` if the host does not have it.
    pub fn media_sender(&self, flow: FlowId) -> Option<&MediaSender> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::MediaSender(sender))) => Some(sender),
            _ => None,
        }
    }

    /// The receiver of a media flow; `None` if the host does not have it.
    pub fn media_receiver(&self, flow: FlowId) -> Option<&MediaReceiver> {
        match self.endpoints.get(flow.index()) {
            Some(Some(Endpoint::MediaReceiver(receiver))) => Some(receiver),
            _ => None,
        }
    }

    /// One more than the highest flow number that ever had an endpoint at this host.
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

    /// Schedules the next deadline of `slot`, unless a scheduled earlier wake-up will find this deadline.
    #[inline]
    fn arm(&mut self, slot: usize, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.wakes.hasten(slot, deadline);
        }
    }

    /// Processes an arriving segment.
    #[inline]
    pub fn take(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        let slot = segment.flow.index();
        let Some(Some(endpoint)) = self.endpoints.get_mut(slot) else { return };
        let deadline = endpoint.receive(now, segment, out);
        self.arm(slot, deadline);
    }

    /// Prefetches the sender of `flow` when an acknowledgement will arrive soon; see [`Sender::prefetch`].
    #[inline]
    pub fn prefetch(&self, flow: FlowId) {
        if let Some(sender) = self.sender(flow) {
            sender.prefetch();
        }
    }

    /// Prefetches more of the sender's state, when an acknowledgement for `flow` will arrive within a few segments; see
    /// [`Sender::prefetch_more`].
    #[inline]
    pub fn prefetch_more(&self, flow: FlowId) {
        if let Some(sender) = self.sender(flow) {
            sender.prefetch_more();
        }
    }

    /// Processes all deadlines that are due at `now`.
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
        // Prefetches the next flow: a flow that reaches its deadline has been idle for long and is no longer in the CPU
        // caches.
        if let Some((_, next)) = self.wakes.first() {
            self.prefetch(FlowId(next as u32));
        }
    }

    /// Time of the next deadline; [`Time::NEVER`] if there is none.
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
            // A pending event makes the flow due at once.
            Self::WatchedSender(sender) => sender
                .drive(now, Some(segment), WIRE, out)
                .or_else(|| (sender.state() == SenderState::Closed).then_some(now)),
            Self::WatchedReceiver(download) => {
                download.receiver.on_segment(now, segment, &mut |seg: &Segment| out.pass(WIRE, seg));
                if download.is_reached() { Some(now) } else { download.receiver.poll_timeout() }
            }
            Self::MediaSender(sender) => {
                sender.on_segment(now, segment);
                drive(sender, now, out)
            }
            Self::MediaReceiver(receiver) => {
                receiver.on_segment(now, segment, &mut |seg: &Segment| out.pass(WIRE, seg));
                receiver.poll_timeout()
            }
        }
    }

    fn wake(&mut self, now: Time, out: &mut impl Sink) -> Option<Time> {
        match self {
            Self::Sender(sender) | Self::WatchedSender(sender) => sender.drive(now, None, WIRE, out),
            Self::Receiver(receiver) => wake(receiver, now, out),
            Self::WatchedReceiver(download) => wake(&mut download.receiver, now, out),
            Self::MediaSender(sender) => drive(sender, now, out),
            Self::MediaReceiver(receiver) => {
                receiver.on_timeout(now, &mut |seg: &Segment| out.pass(WIRE, seg));
                receiver.poll_timeout()
            }
        }
    }

    /// Queues the new events of a watched endpoint.
    fn note_events(&mut self, flow: FlowId, events: &mut VecDeque<EndpointEvent>) {
        match self {
            Self::Sender(_) | Self::Receiver(_) | Self::MediaSender(_) | Self::MediaReceiver(_) => {}
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

/// Sends what a media sender may send at `now`, and returns its next deadline.
fn drive(sender: &mut MediaSender, now: Time, out: &mut impl Sink) -> Option<Time> {
    sender.send(now, &mut |seg: &Segment| out.pass(WIRE, seg));
    Some(sender.poll_timeout())
}

fn wake(receiver: &mut Receiver, now: Time, out: &mut impl Sink) -> Option<Time> {
    let mut send = |seg: &Segment| out.pass(WIRE, seg);
    receiver.start(now, &mut send);
    receiver.on_timeout(now, &mut send);
    receiver.poll_timeout()
}
