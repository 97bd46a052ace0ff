//! Types for the tables `[path]` and `[[flow]]` of a scenario file.

use std::sync::Arc;

use ackclock_core::results::Towards;
use ackclock_core::{Component, ConfigError, FlowId, Rate, Seq, Size, Span, Streams, Time};
use ackclock_link::Loss;
use ackclock_tcp::config::Switch;
use ackclock_tcp::receiver::WindowPolicy;
use ackclock_tcp::{Course, FlowParams, HeaderSize, Place, SENDERS, SenderRow, WORKLOADS, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acks::{ACKS, Acks};

/// A wired path, on which each flow has a separate link of the path's rate and delay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathTable {
    /// Rate of each flow's wired link.
    pub rate: Rate,
    /// One-way propagation delay of the wired path.
    pub delay: Span,
    /// Packet loss probability of the wired path, in each direction.
    pub loss: Loss,
}

/// A group of identical flows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowGroup {
    /// Number of flows in each cell. For a workload of short connections ("web"): number of clients in each cell.
    pub count: u32,
    /// Start time of the first flow of the group.
    pub start: Span,
    /// Time between the starts of consecutive flows of the group.
    pub stagger: Span,
    /// Largest random delay added to each start. The delay is drawn uniformly for each flow of each run.
    #[serde(skip_serializing_if = "is_none")]
    pub spread: Span,
    /// Additional one-way propagation delay of the group's flows, on top of `path.delay`.
    #[serde(skip_serializing_if = "is_none")]
    pub route: Span,
    /// User that owns the flows of the group. In a cell: index of an `[[edge.user]]` table, whose users get the flows
    /// in turn.
    pub user: u32,
    /// Class of service of the flows: `name` of an `[[edge.class]]` table. Without `class`, the flows have the settings
    /// of the edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Receiver of the data: "mobile" (download) or "server" (upload). The mobile always opens the connection.
    #[serde(skip_serializing_if = "Towards::is_mobile")]
    pub towards: Towards,
    /// TCP sender: a name, or a table with `kind` and options.
    pub sender: Component<dyn SenderRow>,
    /// Size of a full packet, headers included.
    pub packet: Size,
    /// Header size of every segment in bytes, and so the size of an ACK. "real" uses the size with actual TCP options.
    pub ack_size: AckSize,
    /// Largest advertised window, in packets or bytes of payload.
    pub max_window: Size,
    /// Receive window policy. "whole": the receiver advertises the largest window from the start. "tuned": the window
    /// grows as data arrives.
    pub receive_window: WindowPolicy,
    /// Initial congestion window, in packets or bytes of payload.
    pub initial_window: Size,
    /// ACK policy of the receiver: "every" acknowledges each segment, "delayed" delays ACKs.
    pub acks: Component<dyn Acks>,
    /// Whether the receiver reports duplicate segments with D-SACK (RFC 2883). D-SACK needs a sender with SACK.
    pub dsack: Switch,
    /// Whether boxes of the network can read the headers of the transport: "clear" as with TCP, "encrypted" as with
    /// QUIC. Regulators leave the flow alone unless they only mark or drop packets, as `wait-marker`.
    #[serde(skip_serializing_if = "Headers::are_clear")]
    pub headers: Headers,
    /// Workload: "bulk", "web", "ftp", "media", or a table with `kind`.
    pub workload: Component<dyn Workload>,
}

/// Whether boxes of the network can read the headers of a flow's transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Headers {
    /// The headers can be read and changed, as those of TCP.
    #[default]
    Clear,
    /// Only the IP header can be read, as with QUIC (RFC 9000, RFC 9312).
    Encrypted,
}

impl Headers {
    pub(crate) fn are_clear(&self) -> bool {
        *self == Self::Clear
    }
}

fn is_none(span: &Span) -> bool {
    *span == Span::ZERO
}

/// Header size of a segment, as written in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AckSize(pub HeaderSize);

impl TryFrom<String> for AckSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.parse()) {
            ("real", _) => Ok(Self(HeaderSize::Real)),
            (_, Ok(Size::Bytes(bytes @ 1..=1500))) => Ok(Self(HeaderSize::Fixed(bytes as u16))),
            _ => Err(format!("`{text}` is neither \"real\" nor a size from \"1B\" to \"1500B\"")),
        }
    }
}

impl From<AckSize> for String {
    fn from(size: AckSize) -> Self {
        match size.0 {
            HeaderSize::Real => "real".to_owned(),
            HeaderSize::Fixed(bytes) => Size::Bytes(bytes.into()).to_string(),
        }
    }
}

impl Default for PathTable {
    fn default() -> Self {
        Self { rate: Rate::from_bps(100_000_000), delay: Span::from_millis(1), loss: Loss::NONE }
    }
}

impl Default for FlowGroup {
    fn default() -> Self {
        Self {
            count: 1,
            start: Span::ZERO,
            stagger: Span::ZERO,
            spread: Span::ZERO,
            route: Span::ZERO,
            user: 0,
            class: None,
            towards: Towards::Mobile,
            sender: "reno".into(),
            packet: Size::Bytes(1000),
            ack_size: AckSize(HeaderSize::Fixed(40)),
            max_window: Size::Packets(500),
            receive_window: WindowPolicy::Whole,
            initial_window: Size::Packets(1),
            acks: "every".into(),
            dsack: Switch::Off,
            headers: Headers::Clear,
            workload: "bulk".into(),
        }
    }
}

impl PathTable {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.rate == Rate::ZERO {
            return Err(ConfigError::new("rate", format!("{} is not above 0", self.rate)));
        }
        Ok(())
    }
}

/// Smallest full packet of a media flow, bytes: headers of 40 bytes and some payload.
const LEAST_MEDIA_PACKET: u16 = 100;

impl FlowGroup {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.count == 0 {
            return Err(ConfigError::new("count", "0 is not above 0"));
        }
        self.sender()?.build(self.params(FlowId(0), Time::ZERO, Seq(1))?)?;
        if self.is_media()? && self.packet_bytes() < LEAST_MEDIA_PACKET {
            let message =
                format!("{} is below {LEAST_MEDIA_PACKET}B, the smallest packet of media", self.packet);
            return Err(ConfigError::new("packet", message));
        }
        self.acks().map(drop)
    }

    /// The flow group with every key of its components.
    pub(crate) fn complete(&self) -> Result<Self, ConfigError> {
        Ok(Self {
            sender: self.sender.complete(&SENDERS).map_err(|error| error.under("sender"))?,
            acks: self.acks.complete(&ACKS).map_err(|error| error.under("acks"))?,
            workload: self.workload.complete(&WORKLOADS).map_err(|error| error.under("workload"))?,
            ..self.clone()
        })
    }

    /// The parsed sender of the flow group.
    pub(crate) fn sender(&self) -> Result<&Arc<dyn SenderRow>, ConfigError> {
        self.sender.config(&SENDERS).map_err(|error| error.under("sender"))
    }

    /// The parsed workload of the flow group.
    pub(crate) fn workload(&self) -> Result<&Arc<dyn Workload>, ConfigError> {
        self.workload.config(&WORKLOADS).map_err(|error| error.under("workload"))
    }

    /// Whether each flow of the group is one long-lived connection, not a client that opens many short connections.
    pub(crate) fn lasts(&self) -> Result<bool, ConfigError> {
        Ok(!matches!(self.course()?, Course::Client(_)))
    }

    /// Whether the flows of the group are media over UDP, not TCP.
    pub(crate) fn is_media(&self) -> Result<bool, ConfigError> {
        Ok(matches!(self.course()?, Course::Media(_)))
    }

    /// Use of connections by any flow of the group.
    fn course(&self) -> Result<Course, ConfigError> {
        let place = Place { streams: Streams::new(0, 0), start: Time::ZERO, payload: 1 };
        Ok(self.workload()?.course(&place))
    }

    /// Size of a full packet; zero if it is not given in bytes, which [`params`](Self::params) refuses.
    pub(crate) fn packet_bytes(&self) -> u16 {
        match self.packet {
            Size::Bytes(bytes) => u16::try_from(bytes).unwrap_or(0),
            _ => 0,
        }
    }

    /// The parsed ACK policy of the flow group.
    pub(crate) fn acks(&self) -> Result<&Arc<dyn Acks>, ConfigError> {
        self.acks.config(&ACKS).map_err(|error| error.under("acks"))
    }

    /// Sender parameters of one flow of the group. The flow's data starts at sequence number `first`.
    ///
    /// # Errors
    /// Returns an error if `packet` is not the size of an IP packet.
    pub fn params(&self, flow: FlowId, start: Time, first: Seq) -> Result<FlowParams, ConfigError> {
        let packet = match self.packet {
            Size::Bytes(bytes @ 1..=65_535) => bytes as u16,
            other => {
                let message = format!("{other} is not the size of a packet, \"1B\" to \"65535B\"");
                return Err(ConfigError::new("packet", message));
            }
        };
        Ok(FlowParams {
            flow,
            start,
            packet,
            header: self.ack_size.0,
            max_window: self.max_window,
            initial_window: self.initial_window,
            first,
        })
    }
}
