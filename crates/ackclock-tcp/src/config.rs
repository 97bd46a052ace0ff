//! Options of a sender, and the parameters of its flow.
//!
//! All rows of the [sender table](crate::senders) share one set of options. A row sets its own defaults and names the
//! options that do not apply to it; a scenario that sets such an option is refused.

use ackclock_core::{Config, ConfigError, FlowId, Seq, Size, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cc::bbr::{BbrConfig, LossWindow};
use crate::cc::copa::CopaConfig;
use crate::cc::cubic::{CubicConfig, SlowStartEnd};
use crate::cc::prague::PragueConfig;
use crate::cc::westwood::WestwoodConfig;
use crate::congestion_control::CcContext;
use crate::dup_thresh::DupThresh;
use crate::ecn::EcnMode;
use crate::rtt::{Bounds, RtoConfig, RttEstimator};
use crate::scoreboard::SackMemory;
use crate::stack::Stack;

pub use crate::choices::{Growth, Halves, Switch};

/// Options of a TCP sender.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SenderConfig {
    /// Rules that apply unless an option says otherwise. The stack also selects the defaults of the other options.
    pub stack: Stack,
    /// Options of the retransmission timeout.
    pub rto: RtoConfig,
    /// Reno and Sack1 recovery: start no new fast retransmit until everything in flight at the last loss is
    /// acknowledged. If off, recovery may start again within one window of data.
    pub recover_guard: Switch,
    /// NewReno recovery: partial acknowledgements that restart the retransmission timer.
    pub partial_ack_timer: PartialAckTimer,
    /// Send new data on each duplicate acknowledgement before number `dup_thresh`: on the first two by default (limited
    /// transmit, RFC 3042). Limited transmit is always on in the Linux stack.
    pub limited_transmit: Switch,
    /// Number of duplicate acknowledgements, or of segments received beyond a gap, that indicates a loss: DupThresh of
    /// RFC 5681 and RFC 6675, 1 to 1000. `careful` and `aggressive` adapt the number to the bytes in flight and so
    /// tolerate reordering within a round trip (RFC 4653); they need SACK by RFC 6675. The Linux stack ignores this
    /// option and adapts its own threshold.
    pub dup_thresh: DupThresh,
    /// SACK recovery by RFC 6675: keep or discard SACK marks after a timeout.
    pub sack_memory: SackMemory,
    /// Spread a window reduction over the recovery (PRR, RFC 6937). PRR applies to SACK recovery by RFC 6675, and in
    /// the Linux stack also without SACK. A congestion control that paces by a model has no reduction to spread.
    pub prr: Switch,
    /// Window-based congestion control: unit that slow start and congestion avoidance count, acknowledgements or bytes.
    pub growth: Growth,
    /// Window-based congestion control: quantity reduced at a loss, the window or the bytes in flight. A control with a
    /// bandwidth estimate uses this option only until the first estimate. The default depends on the kind of sender.
    pub halves: Option<Halves>,
    /// Initial slow-start threshold; by default the largest window.
    pub initial_ssthresh: Option<Size>,
    /// Window-based congestion control: the window after a timeout, at least one packet (LW of RFC 5681, which allows
    /// at most one). The Linux stack ignores this option and sends one packet in addition to the packets still in
    /// flight.
    pub loss_window: Size,
    /// TCP timestamps (RFC 7323). The default depends on the kind of sender.
    pub timestamps: Option<Switch>,
    /// Tick of the timestamp clock.
    pub timestamp_tick: Span,
    /// Explicit congestion notification. The default depends on the kind of sender.
    pub ecn: Option<EcnMode>,
    /// Retransmit segments at once, without a window reduction, if an agent at the edge reports them missing (Snoop
    /// with `nacks`). This option needs the Linux stack and a sender with SACK.
    pub nacks: Switch,
    /// Probe timeouts of QUIC (RFC 9002) in place of retransmission timeouts and tail probes: a probe timeout sends one
    /// segment and reduces no window. The window falls to two packets if everything sent within three probe timeouts
    /// was lost (persistent congestion), which counts as a timeout. This option needs the Linux stack and a sender with
    /// SACK, and replaces the options `min`, `bounds`, `anchor` and `tick` of `rto`, which must have their defaults.
    pub probe_timeout: Switch,
    /// Open the connection with a handshake and wait for the peer's SYN; `off` starts with an established connection.
    pub handshake: Switch,
    /// Response to a window reduction that proves spurious. The default depends on the kind of sender.
    pub undo: Option<UndoKind>,
    /// With `undo = "eifel"`: rule that sets the window after a spurious reduction.
    pub response: Response,
    /// Options of the cubic sender.
    pub cubic: CubicConfig,
    /// Options of the copa sender.
    pub copa: CopaConfig,
    /// Options of the westwood sender.
    pub westwood: WestwoodConfig,
    /// Options of the prague sender.
    pub prague: PragueConfig,
    /// Options of the bbr sender.
    pub bbr: BbrConfig,
    /// Longest time between two losses of one loss cycle, for the statistics.
    pub loss_cycle_gap: Span,
}

/// Options whose defaults differ between rows of the sender table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowDefaults {
    /// Default of `timestamps`.
    pub timestamps: Switch,
    /// Default of `undo`.
    pub undo: UndoKind,
    /// Default of `ecn`.
    pub ecn: EcnMode,
}

impl RowDefaults {
    /// Defaults of rows without particular options.
    pub const NONE: Self = Self { timestamps: Switch::Off, undo: UndoKind::None, ecn: EcnMode::Off };
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
            ecn: None,
            nacks: Switch::Off,
            probe_timeout: Switch::Off,
            handshake: Switch::Off,
            undo: None,
            response: Response::Rfc4015,
            cubic: CubicConfig::default(),
            copa: CopaConfig::default(),
            westwood: WestwoodConfig::default(),
            prague: PragueConfig::default(),
            bbr: BbrConfig::default(),
            loss_cycle_gap: Span::from_millis(2500),
        }
    }
}

impl SenderConfig {
    /// Estimator of the round-trip time, with the timeout that the options select.
    pub(crate) fn estimator(&self) -> RttEstimator {
        match self.probe_timeout {
            Switch::Off => RttEstimator::new(self.rto),
            Switch::On => RttEstimator::for_probes(self.rto),
        }
    }

    /// Checks the options that a probe timeout replaces.
    ///
    /// # Errors
    /// Returns an error that names the key of a replaced option whose value is not its default.
    pub(crate) fn check_probes(&self) -> Result<(), ConfigError> {
        let (own, default) = (self.rto, self.stack.defaults().rto);
        let replaced = [
            ("min", own.min == default.min, format!("{}", default.min)),
            ("bounds", own.bounds == default.bounds, "variation".to_owned()),
            ("anchor", own.anchor == default.anchor, "ack".to_owned()),
            ("tick", own.tick == default.tick, format!("{}", default.tick)),
        ];
        match replaced.into_iter().find(|&(_, is_default, _)| !is_default) {
            Some((key, _, default)) => {
                let message = format!("probe_timeout = \"on\" allows only the default, \"{default}\"");
                Err(ConfigError::new(key, message).under("rto"))
            }
            None => Ok(()),
        }
    }
}

impl Stack {
    /// Default options of senders with this stack.
    pub fn defaults(self) -> SenderConfig {
        match self {
            Self::Rfc => SenderConfig::default(),
            Self::Linux => linux(),
        }
    }
}

fn linux() -> SenderConfig {
    SenderConfig {
        stack: Stack::Linux,
        rto: RtoConfig {
            min: Span::from_millis(200),
            max: Span::from_secs(120),
            bounds: Bounds::Variation,
            ..RtoConfig::default()
        },
        limited_transmit: Switch::On,
        prr: Switch::On,
        growth: Growth::Bytes,
        halves: Some(Halves::Cwnd),
        timestamps: Some(Switch::On),
        undo: Some(UndoKind::Eifel),
        response: Response::Restore,
        cubic: CubicConfig { hystart: SlowStartEnd::Classic, ..CubicConfig::default() },
        bbr: BbrConfig {
            aggregation: Switch::On,
            pacing_margin: 0.01,
            even_window: Switch::On,
            losses: LossWindow::Linux,
            policer: Switch::On,
            bursts: Switch::On,
        },
        ..SenderConfig::default()
    }
}

/// Default loss window, as in RFC 5681.
const ONE_PACKET: Size = Size::Packets(1);

impl Config for SenderConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.bbr.check().map_err(|error| error.under("bbr"))?;
        self.copa.check().map_err(|error| error.under("copa"))?;
        self.prague.check().map_err(|error| error.under("prague"))?;
        self.westwood.check().map_err(|error| error.under("westwood"))?;
        self.rto.check().map_err(|error| error.under("rto"))?;
        if self.timestamp_tick == Span::ZERO {
            return Err(ConfigError::new("timestamp_tick", "0s is not above 0"));
        }
        self.dup_thresh
            .check(self.stack, self.limited_transmit)
            .map_err(|error| error.under("dup_thresh"))?;
        window_bytes(self.loss_window, 1).map_err(|error| error.under("loss_window"))?;
        if self.stack == Stack::Linux && self.loss_window != ONE_PACKET {
            let message = format!("{}: stack = \"linux\" has its own loss window", self.loss_window);
            return Err(ConfigError::new("loss_window", message));
        }
        // Linux can also undo a reduction without timestamps, by D-SACK.
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

/// Partial acknowledgements that restart NewReno's retransmission timer during recovery (RFC 6582 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAckTimer {
    /// Only the first partial acknowledgement restarts the timer.
    #[default]
    Impatient,
    /// Each partial acknowledgement restarts the timer.
    Slow,
}

/// Response to spurious window reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UndoKind {
    /// No response to spurious reductions. With timestamps, spurious reductions are still counted.
    None,
    /// Eifel response; it needs timestamps.
    Eifel,
}

/// Rule by which the Eifel response sets the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Set the congestion window as in RFC 4015.
    #[default]
    Rfc4015,
    /// Restore the congestion window and threshold from before the reduction (Ludwig and Katz 2000).
    Restore,
}

/// Size of headers counted on the link, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderSize {
    /// Fixed header size, bytes; the papers count 40.
    Fixed(u16),
    /// IPv4 and TCP headers plus the options that each segment actually has.
    Real,
}

/// Parameters that a flow gives its sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowParams {
    /// Identifier of the flow.
    pub flow: FlowId,
    /// Time when an established connection starts to send. With a handshake, the client's SYN sets the start.
    pub start: Time,
    /// Size of a full data segment with its headers, bytes.
    pub packet: u16,
    /// Header size counted for each segment.
    pub header: HeaderSize,
    /// Largest congestion window, in packets or bytes of payload.
    pub max_window: Size,
    /// Initial congestion window, in packets or bytes of payload.
    pub initial_window: Size,
    /// Sequence number of the first data byte. The SYN, if any, uses the number before.
    pub first: Seq,
}

impl FlowParams {
    /// Parameters of the papers: 1000-byte packets including 40 bytes of headers, a largest window of 500 packets, an
    /// initial window of one packet.
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

    /// Checks that a packet has room for data and that both windows are valid sizes.
    ///
    /// # Errors
    /// Returns an error that names the offending key of the flow.
    pub fn check(&self, timestamps: Switch) -> Result<(), ConfigError> {
        let header = self.header_bytes(timestamps);
        if self.packet <= header {
            let message = format!("{} B have no room for data after {header} B of headers", self.packet);
            return Err(ConfigError::new("packet", message));
        }
        for (key, size) in [("max_window", self.max_window), ("initial_window", self.initial_window)] {
            window_bytes(size, self.packet - header).map_err(|error| error.under(key))?;
        }
        Ok(())
    }

    /// Header size of a data segment, bytes.
    pub fn header_bytes(&self, timestamps: Switch) -> u16 {
        match (self.header, timestamps) {
            (HeaderSize::Fixed(bytes), _) => bytes,
            (HeaderSize::Real, Switch::Off) => PLAIN_HEADER,
            (HeaderSize::Real, Switch::On) => PLAIN_HEADER + TIMESTAMPS,
        }
    }
}

/// Size of IPv4 and TCP headers without options, bytes.
pub(crate) const PLAIN_HEADER: u16 = 40;
/// Size of the timestamps option with padding, bytes.
pub(crate) const TIMESTAMPS: u16 = 12;

/// Largest possible TCP window, bytes (RFC 7323 section 2.3: 2^30).
pub const LARGEST_WINDOW: u32 = 1 << 30;

/// Converts a window to bytes of payload, with `mss` bytes per packet.
///
/// # Errors
/// Returns an error if the window is zero, larger than 2^30 bytes, or not given in packets or bytes.
pub fn window_bytes(size: Size, mss: u16) -> Result<u32, ConfigError> {
    let bytes = match size {
        Size::Packets(packets) => u64::from(packets) * u64::from(mss),
        Size::Bytes(bytes) => bytes,
        Size::Time(_) | Size::Bdp(_) => {
            let message = format!("{size} is not a window; write it like \"500p\" or \"64kB\"");
            return Err(ConfigError::new("", message));
        }
    };
    match u32::try_from(bytes) {
        Ok(bytes @ 1..=LARGEST_WINDOW) => Ok(bytes),
        _ => Err(ConfigError::new("", format!("{size} is not between 1 byte and 1 GiB"))),
    }
}

/// Context for the congestion control of a flow whose segments have `mss` bytes.
pub(crate) fn context(config: &SenderConfig, params: &FlowParams, mss: u16) -> CcContext {
    CcContext {
        mss: u32::from(mss),
        initial_window: window_in_bytes(params.initial_window, mss),
        initial_ssthresh: window_in_bytes(config.initial_ssthresh.unwrap_or(params.max_window), mss),
        loss_window: window_in_bytes(config.loss_window, mss).max(u32::from(mss)),
        stack: config.stack,
    }
}

/// Converts a checked window to bytes. Returns one segment if the window is invalid.
pub(crate) fn window_in_bytes(size: Size, mss: u16) -> u32 {
    window_bytes(size, mss).unwrap_or(u32::from(mss))
}
