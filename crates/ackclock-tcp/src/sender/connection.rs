//! State of a sender's connection, apart from the segments in flight.

use ackclock_core::{Repair, Seq, Span, Time};

use super::requests::Requests;
use crate::config::Switch;

/// State of a sender's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderState {
    /// Not begun: waiting for its start, for the peer's SYN, or for [`Sender::connect`](super::Sender::connect).
    Idle,
    /// The peer's SYN was answered, and the answer is not yet acknowledged.
    SynReceived,
    /// Our SYN was sent and is not answered yet.
    SynSent,
    /// Data can be sent.
    Established,
    /// Everything is acknowledged, or the peer reset the connection.
    Closed,
}

/// State of the peer, as reported in its segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Right edge of its advertised window: one past its last byte.
    pub(super) edge: Seq,
    /// Largest window it has advertised, bytes.
    pub(super) largest: u32,
    /// Next sequence number expected from it.
    pub(super) next: Seq,
    pub(super) scale: u8,
    /// Whether its SYN offered window scaling.
    pub(super) scales: bool,
}

impl Peer {
    /// A peer whose SYN has not arrived, with right edge `edge`.
    pub(super) fn with_edge(edge: Seq) -> Self {
        Self { edge, largest: 0, next: Seq(1), scale: 0, scales: false }
    }
}

/// History of the connection.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Smoothed round-trip time and variation from which the estimate restarts after a spurious timeout.
    pub(super) rtt_restart: Option<(Span, Span)>,
    /// Left edge at the last timeout, until it advances.
    pub(super) timed_out_at: Option<Seq>,
    /// Reduction without a retransmission so far.
    pub(super) unrepaired: Option<Repair>,
    /// Segments that the peer reported as duplicates (RFC 2883).
    pub(super) repeated: u32,
    pub(super) acknowledged: u64,
    /// When everything was acknowledged; [`Time::NEVER`] until then.
    pub(super) finished_at: Time,
    /// Time of the last transmission or retransmission.
    pub(super) sent_at: Time,
    /// Time of the last transmission while everything is acknowledged; [`Time::NEVER`] otherwise.
    pub(super) quiet_since: Time,
    /// Segments requested by an agent at the edge.
    pub(super) requests: Requests,
}

/// Retransmissions of the handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    /// Number of our SYNs counted as lost; in the Linux stack only those without an answer.
    pub(super) lost_syns: u32,
    /// When our SYN was first sent.
    pub(super) first_at: Time,
    /// When our answer was last repeated because the peer's SYN was.
    pub(super) answered_at: Option<Time>,
}

/// State of the FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    /// The data has no end, or no end yet.
    Absent,
    /// Sent with the last byte, or after it.
    Ahead,
    /// Sent.
    Sent,
}

/// Segment that must be sent first, whatever the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    Nothing,
    /// A SYN.
    Syn,
    /// Answer to the peer's SYN.
    SynAck,
    /// An acknowledgement.
    Ack,
    /// A probe of a closed window.
    Probe,
    /// Retransmission requested by an agent at the edge.
    Repair,
}

/// State of explicit congestion notification.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    pub(super) enabled: Switch,
    /// End of the data in flight at the last reaction: a further echo of that window is ignored.
    pub(super) reacted: Option<Seq>,
    /// The next new segment reports the reaction to the peer (CWR).
    pub(super) cwr: bool,
    /// An echo arrived since the last reduction; in the Linux stack that reduction is then not undone.
    pub(super) lasting: bool,
}

/// State of timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    pub(super) tick: Span,
    /// TS.Recent: timestamp to echo.
    pub(super) recent: u32,
    /// Whether a timestamp was received.
    pub(super) seen: bool,
}
