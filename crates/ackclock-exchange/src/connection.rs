//! One TCP connection of a sender, from its SYN to its FIN.

use ackclock_core::{ConfigError, FlowId, Segment, Seq, Size, Span, Time};
use ackclock_scenario::{FlowGroup, presets};
use ackclock_tcp::{FlowParams, HeaderSize, SENDERS, Sender, Supply, TcpInfo};
use serde_json::Value;

/// Configuration of a connection. Values that are not set come from the preset, or from the defaults of a scenario's
/// `[[flow]]`.
#[derive(Clone, Debug)]
pub struct Setup {
    /// TCP sender: a name, or a table with `kind` and the sender's options.
    pub sender: Value,
    /// Name of the preset with the defaults of flow and sender.
    pub preset: Option<String>,
    /// Size of a full packet including headers, and size of its headers, bytes.
    pub packet: Option<(u16, HeaderSize)>,
    /// Largest receive window that the sender uses.
    pub max_window: Option<Size>,
    /// Initial congestion window of the sender.
    pub initial_window: Option<Size>,
    /// Sequence number of the first byte of data. The SYN has the preceding sequence number.
    pub first: Seq,
    /// Data that the application sends.
    pub data: Data,
}

/// Data that a connection has to send when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Endless data, until the first [`Connection::write`].
    Endless,
    /// Only data [written](Connection::write) by the caller.
    Written,
}

/// One TCP connection of a sender. The connection has no clock: calls take the time as an argument.
pub struct Connection {
    sender: Box<dyn Sender>,
    /// Sequence number after the highest sequence number sent.
    highest: Seq,
    timestamp_tick: Span,
    /// Whether the connection was closed for writing.
    is_closed: bool,
}

/// Error of a write after the connection had been closed for writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the connection was closed: nothing can be written any more")]
pub struct WriteAfterClose;

/// A segment sent by the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The segment that was sent.
    pub segment: Segment,
    /// Whether the segment is a retransmission.
    pub is_repeated: bool,
}

/// Flow number of the connection, which is the only flow.
pub(crate) const FLOW: FlowId = FlowId(0);

impl Setup {
    /// Creates a setup with `sender`, the defaults of a scenario, and endless data from sequence number 0.
    pub fn new(sender: Value) -> Self {
        Self {
            sender,
            preset: None,
            packet: None,
            max_window: None,
            initial_window: None,
            first: Seq(0),
            data: Data::Endless,
        }
    }

    fn params(&self, table: &FlowGroup) -> Result<FlowParams, ConfigError> {
        let mut params = table.params(FLOW, Time::ZERO, self.first)?;
        (params.packet, params.header) = self.packet.unwrap_or((params.packet, params.header));
        params.max_window = self.max_window.unwrap_or(params.max_window);
        params.initial_window = self.initial_window.unwrap_or(params.initial_window);
        Ok(params)
    }
}

impl Connection {
    /// Creates a connection that has not started.
    ///
    /// # Errors
    /// Returns an error that names the invalid key of the sender or the flow, its value and the allowed values.
    pub fn new(setup: &Setup) -> Result<Self, ConfigError> {
        let table = match &setup.preset {
            Some(preset) => presets::flow(preset, &setup.sender)?,
            None => FlowGroup { sender: setup.sender.clone().into(), ..FlowGroup::default() },
        };
        let row = table.sender.config(&SENDERS)?;
        let mut sender = row.build(setup.params(&table)?)?;
        sender.supply(match setup.data {
            Data::Endless => Supply::Endless,
            Data::Written => Supply::Open(0),
        });
        let timestamp_tick = row.config().timestamp_tick;
        // The SYN has the sequence number before the first byte of data.
        Ok(Self { sender, highest: setup.first - 1, timestamp_tick, is_closed: false })
    }

    /// Opens the connection with a SYN instead of waiting for the peer's SYN. The call has no effect on a connection
    /// without a handshake.
    pub fn connect(&mut self, now: Time) {
        self.sender.connect(now);
    }

    /// Handles a segment from the peer.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        self.sender.on_segment(now, segment);
    }

    /// Gives the sender `bytes` more bytes to send. The first call ends endless data: afterwards only written data is
    /// sent.
    ///
    /// # Errors
    /// Returns an error if [`Self::close`] was called before.
    pub fn write(&mut self, bytes: u64) -> Result<(), WriteAfterClose> {
        if self.is_closed {
            return Err(WriteAfterClose);
        }
        self.sender.supply(Supply::Open(bytes));
        Ok(())
    }

    /// Sets TCP_NODELAY: segments smaller than the MSS do not wait for an ACK.
    pub fn set_nodelay(&mut self) {
        self.sender.set_nodelay();
    }

    /// Closes the connection for writing. The FIN is sent with the last byte of data, or after the last byte.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.sender.finish();
    }

    /// Time at which [`Self::on_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.sender.poll_timeout()
    }

    /// Handles the sender's timers that are due at `now`. Early or repeated calls have no effect.
    pub fn on_timeout(&mut self, now: Time) {
        if self.sender.poll_timeout().is_some_and(|due| due <= now) {
            self.sender.on_timeout(now);
        }
    }

    /// Returns the next segment to send at `now`.
    pub fn poll_segment(&mut self, now: Time) -> Option<Sent> {
        let segment = self.sender.poll_segment(now)?;
        let is_repeated = segment.has_data() && segment.seq.before(self.highest);
        self.highest = self.highest.max(segment.end());
        Some(Sent { segment, is_repeated })
    }

    /// Returns the `TCP_INFO` of the sender, as in Linux.
    pub fn info(&self) -> TcpInfo {
        self.sender.info()
    }

    /// Returns the sender of the connection.
    pub fn sender(&self) -> &dyn Sender {
        &*self.sender
    }

    /// Length of one tick of the sender's timestamp clock.
    pub fn timestamp_tick(&self) -> Span {
        self.timestamp_tick
    }
}
