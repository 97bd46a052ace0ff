//! Configuration of a receiver.

use ackclock_core::{LARGEST_WINDOW_SCALE, Seq, Span, scaled_window};

use crate::config::HeaderSize;

/// Width of a window that Linux advertises without a shift, bits: half the range of the field.
const UNSCALED_BITS: u32 = 15;

/// When in-order arrivals are acknowledged. Segments that are out of order, fill a gap or repeat are acknowledged at
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckPolicy {
    /// Every segment.
    Every,
    /// Every `count`-th segment, or `timeout` after the first unacknowledged one (RFC 5681 section 4.2).
    Delayed {
        /// Segments per ACK.
        count: u32,
        /// Longest delay of an ACK; with `quick`, the shortest delay used when segments arrive fast.
        timeout: Span,
        /// Segments acknowledged one by one (Linux: 16) at the start, after an idle period and after repeated data.
        /// Above 0, the other rules of Linux also apply. Segments that open a tuned window or carry congestion marks
        /// are acknowledged at once. Pushed segments, and bursts that arrive together, are acknowledged as soon as they
        /// are read. SACKs are merged.
        quick: u32,
    },
}

/// Share of the largest window that is advertised.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPolicy {
    /// All of it.
    #[default]
    Whole,
    /// 64 KiB at first, growing as data arrives, as in Linux.
    Tuned,
    /// The free part of the buffer: the application reports what it has read
    /// ([`Receiver::read_up_to`](super::Receiver::read_up_to)). Not available in scenarios.
    #[serde(skip)]
    Unread,
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Active open: the receiver sends the SYN.
    Handshake,
    /// Passive open: the receiver waits for the peer's SYN.
    Awaited,
    /// Already established; the peer's first byte has this sequence number.
    Established(Seq),
}

/// Configuration of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// How the connection begins.
    pub opening: Opening,
    /// When to acknowledge.
    pub acks: AckPolicy,
    /// Size of an ACK: a fixed size (the sources count 40), or the real size with its options.
    pub ack_size: HeaderSize,
    /// Largest advertised window, bytes; at most 2^30.
    pub max_window: u32,
    /// Whether the whole window is advertised from the start.
    pub window: WindowPolicy,
    /// Payload of a full segment, bytes; the handshake offers it plus the options that every segment has (RFC 6691).
    pub mss: u16,
    /// Report data that arrived out of order (SACK, RFC 2018).
    pub sack: bool,
    /// Report data that arrived twice (D-SACK, RFC 2883); needs `sack`.
    pub dsack: bool,
    /// Send timestamps and check received ones (RFC 7323).
    pub timestamps: bool,
    /// Echo congestion marks (RFC 3168).
    pub ecn: bool,
}

impl ReceiverConfig {
    /// Window scale. A tuned window uses Linux's, computed for a buffer of which half is payload
    /// (tcp_select_initial_window).
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
            ecn: false,
        }
    }
}
