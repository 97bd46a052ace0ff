//! Steering: somebody outside of TCP says how much the connections of a user may have in flight.
//!
//! One for a user, who sees the connections and hears the reports of the radio. It has no clock and sends nothing, so it is the same
//! whether the connections are simulated or a kernel's sockets.

use std::fmt;

use crate::{FlowId, RadioReport, Rate, Span, Time};

/// Says the windows of the connections of one user.
///
/// Asking more often than something happens changes nothing.
pub trait Steering: Send {
    /// Something became of a connection of the user.
    fn on_connection(&mut self, now: Time, id: FlowId, event: ConnectionEvent);

    /// A report about the user came. Each connection was [seen](ConnectionEvent::Seen) before.
    fn on_report(&mut self, now: Time, report: &RadioReport);

    /// The next connection whose setting is another than before.
    fn poll_setting(&mut self, now: Time) -> Option<(FlowId, Setting)>;

    /// When [`on_timeout`](Self::on_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;

    /// Does what is due at `now`; early or repeated calls change nothing.
    fn on_timeout(&mut self, now: Time);
}

/// A steering as configured.
pub trait SteeringConfig: fmt::Debug + Send + Sync {
    /// The steering of one user; `None` where connections rule themselves.
    fn build(&self) -> Option<Box<dyn Steering>>;

    /// How long it goes without a report before it lets the connections rule themselves; `None` where it needs none.
    fn patience(&self) -> Option<Span>;
}

/// What became of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// There is a new one. It rules itself until its setting says otherwise.
    Opened,
    /// How it stands.
    Seen(ConnectionView),
    /// It is over.
    Closed,
}

/// How a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionView {
    /// Whether it has data that it could not send yet.
    pub backlogged: bool,
    /// Whether that is because its window is full.
    pub window_limited: bool,
    /// The smallest round-trip time that it has seen.
    pub min_rtt: Option<Span>,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// The same packet on the wire, bytes.
    pub packet: u32,
}

/// What a connection is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Payload that may be in flight, bytes; `None` leaves it to the connection's own congestion control.
    pub window: Option<u32>,
    /// Rate at which that is spread; `None` sends at once. Of no meaning without a window.
    pub pacing: Option<Rate>,
    /// What the retransmission timer does.
    pub timer: Timer,
}

impl Setting {
    /// The connection rules itself.
    pub const OWN: Self = Self { window: None, pacing: None, timer: Timer::Runs };
}

/// What a retransmission timer does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// It expires as ever.
    Runs,
    /// Nothing comes of an expiry: the radio is known to be silent. A kernel does not know this and lets it run.
    Frozen,
}
