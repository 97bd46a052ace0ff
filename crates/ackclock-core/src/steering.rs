//! Steering: a controller outside TCP sets how much data each connection of a user may have in flight.
//!
//! Each user has one. It observes the connections and receives radio reports. It has no clock and does no I/O, so it is
//! the same for simulated connections and for kernel sockets.

use std::fmt;

use crate::{FlowId, RadioReport, Rate, Span, Time};

/// Sets the windows of the connections of one user.
///
/// Additional polls change nothing.
pub trait Steering: Send {
    /// Reports an event of one of the user's connections.
    fn on_connection(&mut self, now: Time, id: FlowId, event: ConnectionEvent);

    /// Handles a radio report about the user. Call [`ConnectionEvent::Seen`] for each connection first.
    fn on_report(&mut self, now: Time, report: &RadioReport);

    /// The next connection whose setting has changed.
    fn poll_setting(&mut self, now: Time) -> Option<(FlowId, Setting)>;

    /// When [`on_timeout`](Self::on_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;

    /// Handles timers due at `now`. Early or repeated calls change nothing.
    fn on_timeout(&mut self, now: Time);
}

/// Configuration of a steering.
pub trait SteeringConfig: fmt::Debug + Send + Sync {
    /// Builds the steering of one user; `None` if connections use their own congestion control.
    fn build(&self) -> Option<Box<dyn Steering>>;

    /// Time without a report after which connections use their own congestion control; `None` if no reports are needed.
    fn patience(&self) -> Option<Span>;
}

/// An event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// A new connection. It uses its own congestion control until it gets a setting.
    Opened,
    /// Current state of the connection.
    Seen(ConnectionView),
    /// The connection has ended.
    Closed,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionView {
    /// Whether it has unsent data.
    pub backlogged: bool,
    /// Whether its window prevents it from sending more.
    pub window_limited: bool,
    /// Smallest RTT sample.
    pub min_rtt: Option<Span>,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// Size of a full packet with headers, bytes.
    pub packet: u32,
}

/// Settings of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Limit of payload in flight, bytes; `None` leaves it to the connection's own congestion control.
    pub window: Option<u32>,
    /// Pacing rate; `None` sends without pacing. Ignored without a window.
    pub pacing: Option<Rate>,
    /// State of the retransmission timer.
    pub timer: Timer,
}

impl Setting {
    /// The connection uses its own congestion control.
    pub const OWN: Self = Self { window: None, pacing: None, timer: Timer::Runs };
}

/// State of a retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// The timer runs normally.
    Runs,
    /// Expiry has no effect, because the radio is known to be in outage. Kernel sockets do not support this.
    Frozen,
}
