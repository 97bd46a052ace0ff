//! Steering: a controller outside TCP limits the data in flight of each connection of a user.
//!
//! Each user has a separate steering, which observes the user's connections and receives radio reports. A steering has
//! no clock and does no I/O, so the same code serves simulated connections and kernel sockets.

use std::fmt;

use crate::{FlowId, RadioReport, Rate, Span, Time};

/// Controller that sets the windows of one user's connections.
///
/// Polling a steering more often than needed changes nothing.
pub trait Steering: Send {
    /// Reports an event of one of the user's connections.
    fn on_connection(&mut self, now: Time, id: FlowId, event: ConnectionEvent);

    /// Handles a radio report about the user. Callers must first call `on_connection` with [`ConnectionEvent::Seen`]
    /// for each connection.
    fn on_report(&mut self, now: Time, report: &RadioReport);

    /// Returns the next connection whose setting has changed, with its new setting.
    fn poll_setting(&mut self, now: Time) -> Option<(FlowId, Setting)>;

    /// Time at which [`on_timeout`](Self::on_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;

    /// Handles the timers due at `now`. Early or repeated calls of `on_timeout` change nothing.
    fn on_timeout(&mut self, now: Time);
}

/// Configuration of a steering, as a table in a scenario file.
pub trait SteeringConfig: fmt::Debug + Send + Sync {
    /// Builds the steering of one user. Returns `None` if connections use their own congestion control.
    fn build(&self) -> Option<Box<dyn Steering>>;

    /// Time without a radio report after which connections use their own congestion control; `None` if the steering
    /// needs no reports.
    fn patience(&self) -> Option<Span>;
}

/// Event of a connection, reported to the steering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// A new connection was opened. A new connection uses its own congestion control until it receives a setting.
    Opened,
    /// The current state of the connection.
    Seen(ConnectionView),
    /// The connection was closed.
    Closed,
}

/// State of a connection, as seen by the steering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionView {
    /// Whether the connection has unsent data.
    pub backlogged: bool,
    /// Whether the connection's window prevents it from sending more data.
    pub window_limited: bool,
    /// Smallest RTT sample of the connection.
    pub min_rtt: Option<Span>,
    /// Payload of a full-sized packet, bytes.
    pub mss: u32,
    /// Size of a full-sized packet including headers, bytes.
    pub packet: u32,
}

/// Settings of a connection, chosen by the steering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Limit of payload in flight, bytes. With the window `None`, the connection uses its own congestion control.
    pub window: Option<u32>,
    /// Pacing rate of the connection. With the rate `None`, the connection is not paced. The pacing rate is ignored if
    /// the setting has no window.
    pub pacing: Option<Rate>,
    /// State of the connection's retransmission timer.
    pub timer: Timer,
}

impl Setting {
    /// Setting of a connection that uses its own congestion control.
    pub const OWN: Self = Self { window: None, pacing: None, timer: Timer::Runs };
}

/// State of a retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// The retransmission timer runs normally.
    Runs,
    /// Expiry of the retransmission timer has no effect, because the radio is known to be in outage. Kernel sockets do
    /// not support a frozen timer.
    Frozen,
}
