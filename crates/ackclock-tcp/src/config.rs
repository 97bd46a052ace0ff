//! What a scenario may say of a sender, and what its flow says.
//!
//! One set of options serves every row of the [sender table](crate::senders): a row fills in the defaults that differ,
//! and an option that a row has no use for is not read by it.

use ackclock_core::{Config, ConfigError, FlowId, Seq, Size, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::CcContext;
use crate::cc::bbr::BbrConfig;
use crate::cc::cubic::CubicConfig;
use crate::cc::westwood::WestwoodConfig;
use crate::recovery::DupThresh;
use crate::rtt::RtoConfig;
use crate::scoreboard::SackMemory;
use crate::stack::Stack;

/// Options of a sender.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SenderConfig {
    /// Whose rules hold where no option says otherwise; it also chooses the defaults of the others.
    pub stack: Stack,
    /// The retransmission timeout.
    pub rto: RtoConfig,
    /// reno, eifel, westwood, sack1: no fast retransmit until everything outstanding at the last loss is acknowledged.
    pub recover_guard: Switch,
    /// newreno: when a partial acknowledgement restarts the retransmission timer.
    pub partial_ack_timer: PartialAckTimer,
    /// New data on each duplicate acknowledgement before `dup_thresh` of them, the first two unless said (RFC 3042); in the stack of Linux it is always so.
    pub limited_transmit: Switch,
    /// Duplicate acknowledgements, or segments received beyond a gap, that tell of a loss: DupThresh of RFC 5681 and RFC 6675, 1 to 1000.
    /// `careful` and `aggressive` (sack, westwood-plus, cubic, bbr) adapt it to what is outstanding, so that packets may overtake each other
    /// for a round trip (RFC 4653). Not in the stack of Linux, which finds its own.
    pub dup_thresh: DupThresh,
    /// sack, westwood-plus, cubic, bbr: whether SACK marks outlive a timeout.
    pub sack_memory: SackMemory,
    /// sack, westwood-plus, cubic, and newreno in the stack of Linux: spread a reduction over the recovery (PRR, RFC 6937).
    pub prr: Switch,
    /// All but bbr: what slow start and congestion avoidance count.
    pub growth: Growth,
    /// reno, newreno, sack, sack1, eifel: what is halved at a loss; cubic: what is reduced, the window or what is outstanding;
    /// westwood, westwood-plus: what is halved before there is an estimate.
    /// The default is the row's.
    pub halves: Option<Halves>,
    /// Initial slow-start threshold; the largest window by default.
    pub initial_ssthresh: Option<Size>,
    /// All but bbr: the window after a timeout, at least one packet (LW of RFC 5681, which allows no more than one). Not in the stack of Linux,
    /// which sends one packet beside what is still in flight.
    pub loss_window: Size,
    /// Timestamps (RFC 7323). The default is the row's.
    pub timestamps: Option<Switch>,
    /// Clock of the timestamps.
    pub timestamp_tick: Span,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Switch,
    /// Repair what an agent at the edge asks for (Snoop with `nacks`) at once and without a reduction. In the stack of Linux, with SACK.
    pub nacks: Switch,
    /// Wait for the peer's SYN, or begin with an established connection.
    pub handshake: Switch,
    /// What to do about a reduction that proves to be spurious. The default is the row's.
    pub undo: Option<UndoKind>,
    /// eifel: the response to a spurious reduction.
    pub response: Response,
    /// Options of CUBIC.
    pub cubic: CubicConfig,
    /// Options of Westwood.
    pub westwood: WestwoodConfig,
    /// Options of BBR.
    pub bbr: BbrConfig,
    /// Statistics: losses further apart than this belong to different cycles.
    pub loss_cycle_gap: Span,
}

/// What the rows of the sender table differ in beside their types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowDefaults {
    /// Timestamps.
    pub timestamps: Switch,
    /// Undo.
    pub undo: UndoKind,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            stack: Stack::Rfc,
            rto: RtoConfig::default(),
            recover_guard: Switch::Off,
            partial_ack_timer: PartialAckTimer::Impatient,
            limited_transmit: Switch::Off,
            dup_thresh: DupThresh::default(),
            sack_memory: SackMemory::Keep,
            prr: Switch::Off,
            growth: Growth::Acks,
            halves: None,
            initial_ssthresh: None,
            loss_window: ONE_PACKET,
            timestamps: None,
            timestamp_tick: Span::from_millis(1),
            ecn: Switch::Off,
            nacks: Switch::Off,
            handshake: Switch::Off,
            undo: None,
            response: Response::Rfc4015,
            cubic: CubicConfig::default(),
            westwood: WestwoodConfig::default(),
            bbr: BbrConfig::default(),
            loss_cycle_gap: Span::from_millis(2500),
        }
    }
}

/// The loss window of RFC 5681.
const ONE_PACKET: Size = Size::Packets(1);

impl Config for SenderConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.bbr.check().map_err(|error| error.under("bbr"))?;
        self.westwood.check().map_err(|error| error.under("westwood"))?;
        self.rto.check().map_err(|error| error.under("rto"))?;
        if self.timestamp_tick == Span::ZERO {
            return Err(ConfigError::new("timestamp_tick", "0s is not above 0"));
        }
        self.dup_thresh.check(self).map_err(|error| error.under("dup_thresh"))?;
        window_bytes(self.loss_window, 1).map_err(|error| error.under("loss_window"))?;
        if self.stack == Stack::Linux && self.loss_window != ONE_PACKET {
            let message = format!("{}: stack = \"linux\" has its own", self.loss_window);
            return Err(ConfigError::new("loss_window", message));
        }
        // Linux takes back by other proofs too.
        let needs_timestamps = self.undo == Some(UndoKind::Eifel) && self.stack == Stack::Rfc;
        if needs_timestamps && self.timestamps == Some(Switch::Off) {
            return Err(ConfigError::new("undo", "`eifel` needs timestamps = \"on\""));
        }
        match self.initial_ssthresh {
            Some(size) => window_bytes(size, 1).map(drop).map_err(|error| error.under("initial_ssthresh")),
            None => Ok(()),
        }
    }
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// It is done.
    On,
    /// It is not done.
    #[default]
    Off,
}

/// When NewReno restarts the retransmission timer in recovery (RFC 6582 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAckTimer {
    /// At the first partial acknowledgement.
    #[default]
    Impatient,
    /// At each.
    Slow,
}

/// What the growth of a window counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Acknowledgements that advance, a segment each.
    #[default]
    Acks,
    /// What they deliver, while the window is what limits the sender (RFC 3465 without a limit, as Linux does).
    Bytes,
}

/// What a loss halves, or reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Halves {
    /// The window in use, in whole segments, as the agents of ns-2 did until 2006; again at every timeout.
    Window,
    /// The same with the fraction of a segment, as they do since (`precisionReduce_`); their threshold stays whole.
    ExactWindow,
    /// What is outstanding (RFC 5681 equation (4)); held when the same segment times out again.
    Flight,
    /// The congestion window itself, as Linux does (the ssthresh of its controllers).
    Cwnd,
}

/// What to do about spurious reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UndoKind {
    /// Nothing; with timestamps they are still counted.
    None,
    /// The Eifel response; needs timestamps.
    Eifel,
}

/// How the Eifel response sets the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// RFC 4015.
    #[default]
    Rfc4015,
    /// Window and threshold as they were before the reduction (Ludwig and Katz 2000).
    Restore,
}

/// Bytes of headers on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderSize {
    /// Always this many (the sources count 40).
    Fixed(u16),
    /// IPv4 and TCP headers and the options that the segment really carries.
    Real,
}

/// What a flow says of its sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowParams {
    /// The flow.
    pub flow: FlowId,
    /// When an established connection begins to send. With a handshake the client decides.
    pub start: Time,
    /// A full data segment on the wire with its headers, bytes.
    pub packet: u16,
    /// Headers of a segment.
    pub header: HeaderSize,
    /// Largest window, in packets or bytes of payload.
    pub max_window: Size,
    /// Initial window, in packets or bytes of payload.
    pub initial_window: Size,
    /// Number of the first byte of data; the SYN, if any, has the one before.
    pub first: Seq,
}

impl FlowParams {
    /// Parameters of the sources: 1000-byte packets of which 40 are headers, a window of 500 packets that begins at 1.
    pub fn new(flow: FlowId) -> Self {
        Self {
            flow,
            start: Time::ZERO,
            packet: 1000,
            header: HeaderSize::Fixed(40),
            max_window: Size::Packets(500),
            initial_window: Size::Packets(1),
            first: Seq(1),
        }
    }

    /// Checks that there is room for data and that the windows are numbers of packets or bytes.
    ///
    /// # Errors
    /// Names the key of the flow.
    pub fn check(&self, timestamps: Switch) -> Result<(), ConfigError> {
        let header = self.header_bytes(timestamps);
        if self.packet <= header {
            let message = format!("{} B hold no data beside {header} B of headers", self.packet);
            return Err(ConfigError::new("packet", message));
        }
        for (key, size) in [("max_window", self.max_window), ("initial_window", self.initial_window)] {
            window_bytes(size, self.packet - header).map_err(|error| error.under(key))?;
        }
        Ok(())
    }

    /// Headers of a data segment, bytes.
    pub fn header_bytes(&self, timestamps: Switch) -> u16 {
        match (self.header, timestamps) {
            (HeaderSize::Fixed(bytes), _) => bytes,
            (HeaderSize::Real, Switch::Off) => PLAIN_HEADER,
            (HeaderSize::Real, Switch::On) => PLAIN_HEADER + TIMESTAMPS,
        }
    }
}

/// IPv4 and TCP headers without options, bytes.
pub(crate) const PLAIN_HEADER: u16 = 40;
/// The timestamps option with its padding, bytes.
pub(crate) const TIMESTAMPS: u16 = 12;

/// The largest window that TCP can have, bytes (RFC 7323 section 2.3: 2^30).
pub const LARGEST_WINDOW: u32 = 1 << 30;

/// A window in bytes of payload, where a packet carries `mss` of them.
///
/// # Errors
/// Where it is zero, larger than TCP can have (2^30), or not a number of packets or bytes.
pub fn window_bytes(size: Size, mss: u16) -> Result<u32, ConfigError> {
    let bytes = match size {
        Size::Packets(packets) => u64::from(packets) * u64::from(mss),
        Size::Bytes(bytes) => bytes,
        Size::Time(_) | Size::Bdp(_) => {
            let message = format!("{size} is not a window; it is written like \"500p\" or \"64kB\"");
            return Err(ConfigError::new("", message));
        }
    };
    match u32::try_from(bytes) {
        Ok(bytes @ 1..=LARGEST_WINDOW) => Ok(bytes),
        _ => Err(ConfigError::new("", format!("{size} is not between 1 byte and 1 GiB"))),
    }
}

/// What a controller is told of a flow whose segments carry `mss` bytes.
pub(crate) fn context(config: &SenderConfig, params: &FlowParams, mss: u16) -> CcContext {
    CcContext {
        mss: u32::from(mss),
        initial_window: window_in_bytes(params.initial_window, mss),
        initial_ssthresh: window_in_bytes(config.initial_ssthresh.unwrap_or(params.max_window), mss),
        loss_window: window_in_bytes(config.loss_window, mss).max(u32::from(mss)),
        stack: config.stack,
    }
}

/// A window that was checked, in bytes; one segment if it was not.
pub(crate) fn window_in_bytes(size: Size, mss: u16) -> u32 {
    window_bytes(size, mss).unwrap_or(u32::from(mss))
}
