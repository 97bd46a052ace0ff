//! Configuration of the RLC protocol, independent of the channel below it.

use ackclock_core::{ConfigError, Size, Span};
use ackclock_link::DeliveryOrder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{TIMERS, in_bounds};
use super::pdu_size::PduSize;
use super::poll::PollConfig;
use super::sn::Sn;
use super::status_config::StatusConfig;
use super::{HEADER, HEADER_OF_PACKET, PDCP_HEADER};
use crate::artificial_delay::HoldConfig;

/// Radio link control (RLC) of 3GPP TS 25.322, acknowledged or unacknowledged; with `pdu = "packet"` without concatenation,
/// as in TS 38.322.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RlcConfig {
    /// Whether lost PDUs are retransmitted: "acknowledged" or "unacknowledged".
    pub mode: RlcMode,
    /// Payload octets of a PDU, for packets and their length indicators; "grant": a PDU fills its block or TTI (LTE);
    /// "packet": a PDU has one packet, or a segment of one where its block or TTI ends (5G NR).
    pub pdu: PduSize,
    /// Packets that count against the buffer: by default all that the peer has not acknowledged ("unacknowledged"), which
    /// TS 25.322 keeps, or only those with an unsent part ("unsent"), as in the queues of LTE and 5G NR above the RLC.
    #[serde(skip_serializing_if = "BufferCounts::is_default")]
    pub buffer_counts: BufferCounts,
    /// Whether packets are delivered in order, or each packet as soon as it is complete.
    pub order: DeliveryOrder,
    /// t-Reordering of PDCP (TS 38.323): packets that arrive before an earlier packet wait for it for at most this time.
    /// A packet that arrives later is discarded. Without this key, packets are delivered as `order` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Span>,
    /// Maximum number of unacknowledged PDUs at the transmitter and the receiver.
    pub window: u32,
    /// MaxDAT: a PDU is given up after `max_dat` - 1 transmissions.
    pub max_dat: u32,
    /// Reaction when a PDU is given up: its packets are discarded ("discard"), or both ends are reset ("reset").
    pub on_max_dat: OnMaxDat,
    /// Minimum age of a PDU's last transmission before a STATUS that reports it missing triggers a retransmission. The
    /// default is the RTT of the radio, because no STATUS can cover a PDU sent within the last RTT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Span>,
    /// Rules for when the transmitter requests a STATUS.
    pub poll: PollConfig,
    /// Rules for when the receiver sends a STATUS.
    pub status: StatusConfig,
    /// Retries of MRW, the message that informs a receiver of discarded PDUs.
    pub mrw: Tries,
    /// Retries of RESET, the message that requests a reset.
    pub reset: Tries,
    /// Artificial delays: hold times of delivered packets, which hide the retransmissions from a sender's timer. Each
    /// user and direction has separate hold times. By default no packet is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<HoldConfig>,
}

/// Packets that count against the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferCounts {
    /// All packets that the peer has not acknowledged.
    #[default]
    Unacknowledged,
    /// Packets with a part that was never sent.
    Unsent,
}

impl BufferCounts {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether lost PDUs are retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RlcMode {
    /// Acknowledged mode: lost PDUs are retransmitted.
    #[default]
    Acknowledged,
    /// Unacknowledged mode: packets with a part in a lost PDU are lost.
    Unacknowledged,
}

/// Reaction to a PDU that was sent MaxDAT - 1 times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnMaxDat {
    /// Packets of the PDU are discarded, and the receiver moves its window.
    #[default]
    Discard,
    /// Both ends are reset, and partly sent packets are lost.
    Reset,
}

/// Retries of a control message to the peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tries {
    /// Time between two attempts to send the message.
    pub timer: Span,
    /// Maximum number of attempts, which is MaxMRW - 1 or MaxRST - 1. If the last MRW is unanswered, both ends are
    /// reset; if the last RESET is unanswered, the bearer is set up again.
    pub most: u32,
}

impl Default for RlcConfig {
    /// Acknowledged mode with typical settings.
    fn default() -> Self {
        Self {
            mode: RlcMode::Acknowledged,
            pdu: PduSize::Fixed(Size::Bytes(40)),
            buffer_counts: BufferCounts::default(),
            order: DeliveryOrder::InSequence,
            reordering: None,
            window: 2047,
            max_dat: 15,
            on_max_dat: OnMaxDat::Discard,
            guard: None,
            poll: PollConfig::default(),
            status: StatusConfig::default(),
            mrw: Tries::default(),
            reset: Tries::default(),
            delays: None,
        }
    }
}

impl Default for Tries {
    fn default() -> Self {
        Self { timer: Span::from_millis(500), most: 4 }
    }
}

/// Largest window: half of the sequence numbers. With a larger window, a moved window could be mistaken for an unmoved
/// window.
const MOST_WINDOW: u32 = Sn::MOST as u32 / 2;
const PDU_BYTES: [u64; 2] = [10, 1000];

impl RlcConfig {
    /// Checks the RLC settings.
    ///
    /// # Errors
    /// Fails if a setting is invalid; the error names its key.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let PduSize::Fixed(size) = self.pdu
            && !matches!(size, Size::Bytes(bytes) if (PDU_BYTES[0]..=PDU_BYTES[1]).contains(&bytes))
        {
            let message = format!("{size} is not a size from \"10B\" to \"1000B\", \"grant\" or \"packet\"");
            return Err(ConfigError::new("pdu", message));
        }
        if !(1..=MOST_WINDOW).contains(&self.window) {
            let message = format!("{} is not 1 to {MOST_WINDOW}, half of the sequence numbers", self.window);
            return Err(ConfigError::new("window", message));
        }
        if self.max_dat < 2 {
            let message = format!("{} is not 2 or more: nothing would be sent", self.max_dat);
            return Err(ConfigError::new("max_dat", message));
        }
        self.delays.iter().try_for_each(HoldConfig::check).map_err(|error| error.under("delays"))?;
        self.check_use()?;
        self.check_order()?;
        self.check_timers()
    }

    /// Checks that packets which `reordering` orders arrive out of order.
    fn check_order(&self) -> Result<(), ConfigError> {
        if self.is_by_packet() && self.order == DeliveryOrder::InSequence {
            let message = "\"in-sequence\": with pdu = \"packet\" the RLC delivers each packet as soon as it is complete \
                           (\"out-of-sequence\"), and `reordering` orders them";
            return Err(ConfigError::new("order", message));
        }
        let Some(reordering) = self.reordering else { return Ok(()) };
        if self.order == DeliveryOrder::InSequence {
            let message = "with order = \"in-sequence\" no packet arrives before an earlier one";
            return Err(ConfigError::new("reordering", message));
        }
        in_bounds("reordering", reordering, TIMERS)
    }

    /// Whether PDUs fill their block or TTI, so that room is counted in octets.
    pub(crate) fn grants(&self) -> bool {
        !matches!(self.pdu, PduSize::Fixed(_))
    }

    /// Whether each PDU has one packet or a segment of one.
    pub(crate) fn is_by_packet(&self) -> bool {
        self.pdu == PduSize::Packet
    }

    /// Unit in which room for PDUs is counted: its payload and its header, octets. The unit is a PDU, or one octet if a
    /// PDU fills its block or TTI.
    pub(crate) const fn unit(&self) -> [u32; 2] {
        match self.pdu {
            PduSize::Fixed(Size::Bytes(bytes)) => [bytes as u32, self.header_octets()],
            // The configuration check accepts only PDU sizes in bytes.
            PduSize::Fixed(_) | PduSize::Grant | PduSize::Packet => [1, 0],
        }
    }

    /// Minimum number of units that hold a part of a packet.
    pub(crate) fn least_units(&self) -> u32 {
        match self.pdu {
            PduSize::Fixed(_) => 1,
            PduSize::Grant => self.header_octets() + 1,
            PduSize::Packet => self.header_octets() + PDCP_HEADER + 1,
        }
    }

    /// Rejects keys that have no effect in the configured mode.
    fn check_use(&self) -> Result<(), ConfigError> {
        let usual = Self::default();
        let mrw = ("mrw", self.mrw != usual.mrw);
        let (mode, said) = match (self.mode, self.on_max_dat) {
            (RlcMode::Acknowledged, OnMaxDat::Discard) => return Ok(()),
            (RlcMode::Acknowledged, OnMaxDat::Reset) => ("on_max_dat = \"reset\"", vec![mrw]),
            (RlcMode::Unacknowledged, _) => {
                let said = vec![
                    ("buffer_counts", self.buffer_counts != usual.buffer_counts),
                    ("order", self.order != usual.order && !self.is_by_packet()),
                    ("window", self.window != usual.window),
                    ("max_dat", self.max_dat != usual.max_dat),
                    ("on_max_dat", self.on_max_dat != usual.on_max_dat),
                    ("guard", self.guard != usual.guard),
                    ("poll", self.poll != usual.poll),
                    ("status", self.status != usual.status),
                    mrw,
                    ("reset", self.reset != usual.reset),
                ];
                ("mode = \"unacknowledged\"", said)
            }
        };
        match said.into_iter().find(|(_, said)| *said) {
            Some((key, _)) => Err(ConfigError::new(key, format!("with {mode} nothing would obey it"))),
            None => Ok(()),
        }
    }

    /// Header size of a PDU, octets.
    pub(crate) const fn header_octets(&self) -> u32 {
        match self.pdu {
            PduSize::Packet => HEADER_OF_PACKET[self.mode as usize],
            PduSize::Fixed(_) | PduSize::Grant => HEADER[self.mode as usize],
        }
    }

    /// Names of the measured quantities (gauges) of a direction.
    pub(crate) const fn gauges(&self) -> &'static [&'static str] {
        match self.mode {
            RlcMode::Acknowledged => {
                &["buffer_packets", "outstanding_pdus", "open_window_pdus", "retransmitted_pdus"]
            }
            RlcMode::Unacknowledged => &["buffer_packets"],
        }
    }

    fn check_timers(&self) -> Result<(), ConfigError> {
        let Self { poll, status, mrw, reset, .. } = self;
        poll.check().map_err(|error| error.under("poll"))?;
        status.check(self.window).map_err(|error| error.under("status"))?;
        let guard = self.guard.unwrap_or_default();
        if guard > TIMERS[1] {
            return Err(ConfigError::new("guard", format!("{guard} is more than {}", TIMERS[1])));
        }
        for (key, tries) in [("mrw", mrw), ("reset", reset)] {
            in_bounds("timer", tries.timer, TIMERS).map_err(|error| error.under(key))?;
            if tries.most == 0 {
                return Err(ConfigError::new("most", "0 is not above 0").under(key));
            }
        }
        Ok(())
    }
}
