//! Configuration of a receiver.

use ackclock_core::{LARGEST_WINDOW_SCALE, Seq, Span, scaled_window};

use crate::config::HeaderSize;
use crate::ecn::EcnMode;

/// Bits of a window that Linux advertises without a shift: half the range of the header field.
const UNSCALED_BITS: u32 = 15;

/// Rule for when in-order segments are acknowledged. Segments that are out of order, fill a gap or repeat data are
/// acknowledged at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckPolicy {
    /// Acknowledge every segment.
    Every,
    /// Acknowledge every `count`-th segment, or `timeout` after the first unacknowledged segment (RFC 5681 section
    /// 4.2).
    Delayed {
        /// Number of segments per ACK.
        count: u32,
        /// Longest delay of an ACK; with `quick`, the shortest delay used when segments arrive fast.
        timeout: Span,
        /// Number of segments acknowledged one by one (Linux: 16) at the start, after an idle period and after repeated
        /// data. A number above 0 also enables the other ACK rules of Linux. Segments that open a tuned window or carry
        /// congestion marks are acknowledged at once. Pushed segments, and bursts that arrive together, are
        /// acknowledged as soon as the program has read them. ACKs with SACK blocks are merged.
        quick: u32,
    },
}

/// Policy for the part of the largest window that the receiver advertises.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPolicy {
    /// Advertises the largest window from the start.
    #[default]
    Whole,
    /// Advertises 64 KiB at first; the window grows as data arrives, as in Linux.
    Tuned,
    /// Advertises the free part of the buffer. The application reports how much it has read
    /// ([`Receiver::read_up_to`](super::Receiver::read_up_to)). Scenarios cannot use this policy.
    #[serde(skip)]
    Unread,
}

/// Opening of a connection by the receiver: active, passive, or without a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Active open: the receiver sends the SYN.
    Handshake,
    /// Passive open: the receiver waits for the peer's SYN.
    Awaited,
    /// No handshake: the connection is established, and the peer's first byte has this sequence number.
    Established(Seq),
}

/// Configuration of a TCP receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// Opening of the connection: active, passive, or without a handshake.
    pub opening: Opening,
    /// Rule for when to acknowledge segments.
    pub acks: AckPolicy,
    /// Size of an ACK: a fixed size (the papers count 40 bytes), or the real size with options.
    pub ack_size: HeaderSize,
    /// Largest advertised window, bytes; at most 2^30.
    pub max_window: u32,
    /// Policy that sets the advertised window.
    pub window: WindowPolicy,
    /// Payload of a full segment, bytes. The handshake offers the payload size plus the size of the options that every
    /// segment has (RFC 6691).
    pub mss: u16,
    /// Report data that arrived out of order (SACK, RFC 2018).
    pub sack: bool,
    /// Report data that arrived twice (D-SACK, RFC 2883); needs `sack`.
    pub dsack: bool,
    /// Send timestamps and check received timestamps (RFC 7323).
    pub timestamps: bool,
    /// Feedback of congestion marks.
    pub ecn: EcnMode,
    /// Encrypt the headers of ACKs.
    pub encrypted: bool,
}

impl ReceiverConfig {
    /// Window scale that the receiver offers in its SYN. A tuned window uses the scale that Linux computes for a buffer
    /// of which half is payload (tcp_select_initial_window).
    pub(super) fn scale(&self) -> u8 {
        match self.window {
            WindowPolicy::Tuned => {
                let memory = (2 * u64::from(self.max_window)).max(1);
                memory.ilog2().saturating_sub(UNSCALED_BITS).min(LARGEST_WINDOW_SCALE.into()) as u8
            }
            WindowPolicy::Whole | WindowPolicy::Unread => scaled_window(self.max_window).0,
        }
    }
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            opening: Opening::Established(Seq(1)),
            acks: AckPolicy::Every,
            ack_size: HeaderSize::Fixed(40),
            max_window: 65_535,
            window: WindowPolicy::Whole,
            mss: 1460,
            sack: true,
            dsack: false,
            timestamps: false,
            ecn: EcnMode::Off,
            encrypted: false,
        }
    }
}
