//! A sender and what it says, from its SYN to its FIN.

use ackclock_core::{ConfigError, FlowId, Segment, Seq, Size, Span, Time};
use ackclock_scenario::{FlowGroup, presets};
use ackclock_tcp::{FlowParams, HeaderSize, SENDERS, Sender, Supply, TcpInfo};
use serde_json::Value;

/// What a connection is made of. What is left out is the preset's, or else the default of a scenario's `[[flow]]`.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Row of the sender table: a name, or a table with `kind` and options.
    pub sender: Value,
    /// Preset whose settings of flows and senders lie below.
    pub preset: Option<String>,
    /// A full packet with its headers, and these headers, bytes.
    pub packet: Option<(u16, HeaderSize)>,
    /// Largest window.
    pub max_window: Option<Size>,
    /// First congestion window.
    pub initial_window: Option<Size>,
    /// Number of the first byte of data; the SYN, if there is one, has the one before.
    pub first: Seq,
    /// What there is to send.
    pub data: Data,
}

/// What a connection has to send at its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Data without end, until the first [`Connection::write`].
    Endless,
    /// What is [written](Connection::write).
    Written,
}

/// One connection of a sender. It has no clock: every call brings the time along.
pub struct Connection {
    sender: Box<dyn Sender>,
    /// One past the last number that has left.
    highest: Seq,
    timestamp_tick: Span,
    /// Nothing may be written any more.
    is_closed: bool,
}

/// Something was written after the connection had been closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the connection was closed: nothing can be written any more")]
pub struct WriteAfterClose;

/// A segment that the sender wants on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The segment.
    pub segment: Segment,
    /// Whether what it carries was sent before.
    pub is_repeated: bool,
}

/// Nobody else is there.
pub(crate) const FLOW: FlowId = FlowId(0);

impl Setup {
    /// The sender of this row, with the settings of a scenario's defaults and endless data, which begins with number 0.
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
    /// A connection that has not begun.
    ///
    /// # Errors
    /// Names the key of the sender's table or of the flow that is wrong, its value and what is allowed.
    pub fn new(setup: &Setup) -> Result<Self, ConfigError> {
        let table = match &setup.preset {
            Some(preset) => presets::flow(preset, &setup.sender)?,
            None => FlowGroup { sender: setup.sender.clone(), ..FlowGroup::default() },
        };
        let row = SENDERS.resolve(&table.sender)?;
        let mut sender = row.build(setup.params(&table)?)?;
        sender.supply(match setup.data {
            Data::Endless => Supply::Endless,
            Data::Written => Supply::Open(0),
        });
        let timestamp_tick = row.config().timestamp_tick;
        // A SYN has the number before the first byte.
        Ok(Self { sender, highest: setup.first - 1, timestamp_tick, is_closed: false })
    }

    /// Opens the connection with a SYN, instead of waiting for the peer's. Does nothing without a handshake.
    pub fn connect(&mut self, now: Time) {
        self.sender.connect(now);
    }

    /// Takes in a segment of the peer.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        self.sender.on_segment(now, segment);
    }

    /// Gives the sender `bytes` more to send. What was endless before ends here: from the first time on only what is
    /// written is sent.
    ///
    /// # Errors
    /// After [`Self::close`].
    pub fn write(&mut self, bytes: u64) -> Result<(), WriteAfterClose> {
        if self.is_closed {
            return Err(WriteAfterClose);
        }
        self.sender.supply(Supply::Open(bytes));
        Ok(())
    }

    /// The application sets TCP_NODELAY: what the peer's window leaves of a segment waits for no acknowledgement.
    pub fn set_nodelay(&mut self) {
        self.sender.set_nodelay();
    }

    /// No more data follows: the FIN goes with the last byte, or after it.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.sender.finish();
    }

    /// When [`Self::on_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.sender.poll_timeout()
    }

    /// Does what is due at `now`; early or repeated calls change nothing.
    pub fn on_timeout(&mut self, now: Time) {
        if self.sender.poll_timeout().is_some_and(|due| due <= now) {
            self.sender.on_timeout(now);
        }
    }

    /// The next segment to send at `now`.
    pub fn poll_segment(&mut self, now: Time) -> Option<Sent> {
        let segment = self.sender.poll_segment(now)?;
        let is_repeated = segment.has_data() && segment.seq.before(self.highest);
        self.highest = self.highest.max(segment.end());
        Some(Sent { segment, is_repeated })
    }

    /// What Linux would tell of the socket.
    pub fn info(&self) -> TcpInfo {
        self.sender.info()
    }

    /// The sender itself.
    pub fn sender(&self) -> &dyn Sender {
        &*self.sender
    }

    /// Clock of the timestamps that the sender sends.
    pub fn timestamp_tick(&self) -> Span {
        self.timestamp_tick
    }
}
