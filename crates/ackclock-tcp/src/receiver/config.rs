//! What a receiver can and may do.

use ackclock_core::{LARGEST_WINDOW_SCALE, Seq, Span, scaled_window};

use crate::config::HeaderSize;

/// Bits of a window that Linux counts on without a shift: half of what the field can say.
const TELLABLE: u32 = 15;

/// When arrivals in order are acknowledged. Whatever is out of order, fills a gap or repeats is acknowledged at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckPolicy {
    /// Every segment.
    Every,
    /// Every `count`-th segment, or `timeout` after the first that was not acknowledged (RFC 5681 section 4.2).
    Delayed {
        /// Segments to an ACK.
        count: u32,
        /// Longest delay of an ACK; with `quick` the least one, where segments come fast.
        timeout: Span,
        /// Segments that are acknowledged one by one (Linux: 16) at the beginning, after a silence and after data that had arrived
        /// before; with any, the other rules of Linux hold too: at once is acknowledged what lets a tuned window grow and what tells of
        /// congestion; what is pushed, and a bunch that arrives together, as soon as it is read; and SACKs are merged.
        quick: u32,
    },
}

/// What of the largest window is advertised.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPolicy {
    /// All of it.
    #[default]
    Whole,
    /// 64 KiB, and more as data arrives, as Linux does.
    Tuned,
    /// What of it is free: the application tells what it has read ([`Receiver::read_up_to`](super::Receiver::read_up_to)). No
    /// scenario can ask for it.
    #[serde(skip)]
    Unread,
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// By a handshake, which the receiver begins.
    Handshake,
    /// By a handshake, for which the receiver waits: the peer begins it.
    Awaited,
    /// The connection exists; the first byte of the peer has this number.
    Established(Seq),
}

/// What the receiver can and may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// How the connection begins.
    pub opening: Opening,
    /// When to acknowledge.
    pub acks: AckPolicy,
    /// Size of an ACK: always the same (the sources count 40), or what its options really take.
    pub ack_size: HeaderSize,
    /// Window to advertise, bytes; at most 2^30.
    pub max_window: u32,
    /// Whether all of it is advertised from the beginning.
    pub window: WindowPolicy,
    /// Payload of a full segment, bytes; the handshake offers it with the options that every segment carries (RFC 6691).
    pub mss: u16,
    /// Report what arrived out of order (RFC 2018).
    pub sack: bool,
    /// Report what arrived twice (RFC 2883); needs `sack`.
    pub dsack: bool,
    /// Send timestamps and check those that come (RFC 7323).
    pub timestamps: bool,
    /// Echo congestion experienced (RFC 3168).
    pub ecn: bool,
}

impl ReceiverConfig {
    /// The shift of windows. Where the window grows it is that of Linux, for memory of which half is payload
    /// (tcp_select_initial_window).
    pub(super) fn scale(&self) -> u8 {
        match self.window {
            WindowPolicy::Tuned => {
                let memory = (2 * u64::from(self.max_window)).max(1);
                memory.ilog2().saturating_sub(TELLABLE).min(LARGEST_WINDOW_SCALE.into()) as u8
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
