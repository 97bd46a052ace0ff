//! State of a sender's connection, apart from the segments in flight.

use ackclock_core::{Repair, Seq, Span, Time};

use super::feedback::Feedback;
use super::requests::Requests;
use crate::ecn::EcnMode;

/// State of a sender's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderState {
    /// The connection has not started. The sender waits for its start, for the peer's SYN, or for
    /// [`Sender::connect`](super::Sender::connect).
    Idle,
    /// The sender has answered the peer's SYN, and the SYN-ACK is not yet acknowledged.
    SynReceived,
    /// The sender's SYN was sent and is not answered yet.
    SynSent,
    /// The connection is open for data.
    Established,
    /// The connection has ended: everything is acknowledged, or the peer reset it.
    Closed,
}

/// State of the peer, as reported in its segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Right edge of the peer's advertised window: the sequence number after the window's last byte.
    pub(super) edge: Seq,
    /// Largest window that the peer has advertised, bytes.
    pub(super) largest: u32,
    /// Sequence number that the sender expects next from the peer.
    pub(super) next: Seq,
    pub(super) scale: u8,
    /// Whether the peer's SYN offered window scaling.
    pub(super) scales: bool,
}

impl Peer {
    /// State of a peer whose SYN has not arrived. `edge` is the right edge of the peer's window.
    pub(super) fn with_edge(edge: Seq) -> Self {
        Self { edge, largest: 0, next: Seq(1), scale: 0, scales: false }
    }
}

/// History of the sender's connection.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Smoothed round-trip time and variation, from which the estimate restarts after a spurious timeout.
    pub(super) rtt_restart: Option<(Span, Span)>,
    /// Left edge at the last timeout; `None` once the left edge has advanced.
    pub(super) timed_out_at: Option<Seq>,
    /// Cause of a window reduction that no retransmission has followed yet.
    pub(super) unrepaired: Option<Repair>,
    /// Number of segments that the peer reported as duplicates (RFC 2883).
    pub(super) repeated: u32,
    pub(super) acknowledged: u64,
    /// Time at which everything was acknowledged; [`Time::NEVER`] until then.
    pub(super) finished_at: Time,
    /// Time of the last transmission or retransmission.
    pub(super) sent_at: Time,
    /// Time of the last transmission, if everything is acknowledged; otherwise [`Time::NEVER`].
    pub(super) quiet_since: Time,
    /// Retransmissions that an agent at the edge has requested.
    pub(super) requests: Requests,
}

/// State that few connections have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    /// Retransmissions during the handshake; `None` without retransmissions.
    pub(super) repeated: Option<Repeated>,
    /// Congestion marks that the peer reported, if it reports all marks.
    pub(super) feedback: Feedback,
}

/// Retransmissions during the handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    /// Number of our SYNs counted as lost. In the Linux stack only SYNs without an answer count.
    pub(super) lost_syns: u32,
    /// Time of the first transmission of our SYN.
    pub(super) first_at: Time,
    /// Time at which our SYN-ACK was last repeated because the peer repeated its SYN.
    pub(super) answered_at: Option<Time>,
}

/// State of the sender's FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    /// The data has no end, or its end is not known yet.
    Absent,
    /// The FIN will be sent with the last byte or after it.
    Ahead,
    /// The FIN was sent.
    Sent,
}

/// Segment that must be sent first, regardless of the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    Nothing,
    /// A SYN that opens the connection.
    Syn,
    /// A SYN-ACK that answers the peer's SYN.
    SynAck,
    /// An acknowledgement without data.
    Ack,
    /// The acknowledgement of the peer's SYN-ACK.
    SynAckAck,
    /// A probe of a closed window.
    Probe,
    /// A retransmission that an agent at the edge requested.
    Repair,
}

/// State of explicit congestion notification (ECN) at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    pub(super) mode: EcnMode,
    /// End of the data in flight at the last ECN reaction. ECN echoes are ignored until this data is acknowledged.
    pub(super) reacted: Option<Seq>,
    /// Whether the next new segment must report the reaction to the peer (CWR).
    pub(super) cwr: bool,
    /// Whether an ECN echo arrived since the last reduction. In the Linux stack, a reduction that an ECN echo follows
    /// is not undone.
    pub(super) lasting: bool,
}

/// State of the timestamps option at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    pub(super) tick: Span,
    /// TS.Recent: last timestamp of the peer, to be echoed.
    pub(super) recent: u32,
    /// Whether a timestamp of the peer was received.
    pub(super) seen: bool,
}
