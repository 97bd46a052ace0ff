//! What a sender knows of its connection beside what is in flight.

use ackclock_core::{Repair, Seq, Span, Time};

use super::asked::Asked;
use crate::config::Switch;

/// The state of a sender's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderState {
    /// It has not begun: it waits for its start, for the peer's SYN, or for [`Sender::connect`].
    Idle,
    /// The SYN was answered, and the answer is not acknowledged.
    SynReceived,
    /// The SYN was sent, and no answer came.
    SynSent,
    /// Data may pass.
    Established,
    /// Everything is acknowledged, or the peer reset the connection.
    Closed,
}

/// What the peer has said of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// One past what its window takes.
    pub(super) edge: Seq,
    /// The largest window that it has offered, bytes.
    pub(super) largest: u32,
    /// Next number expected of it.
    pub(super) next: Seq,
    pub(super) scale: u8,
    /// Whether its SYN offered to scale windows.
    pub(super) scales: bool,
}

impl Peer {
    /// One whose SYN did not come, and who takes what lies before `edge`.
    pub(super) fn with_edge(edge: Seq) -> Self {
        Self { edge, largest: 0, next: Seq(1), scale: 0, scales: false }
    }
}

/// What has happened on the connection.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// What the estimate of the round-trip time starts again from, after a spurious timeout.
    pub(super) rtt_restart: Option<(Span, Span)>,
    /// The left edge at the last timeout, while it stands.
    pub(super) timed_out_at: Option<Seq>,
    /// The reduction of which nothing was sent again yet.
    pub(super) unrepaired: Option<Repair>,
    /// Segments that the peer says it had already (RFC 2883).
    pub(super) repeated: u32,
    pub(super) acknowledged: u64,
    /// When everything was acknowledged; [`Time::NEVER`] until then.
    pub(super) finished_at: Time,
    /// When a segment last left, be it for the first time or again.
    pub(super) sent_at: Time,
    /// The same while everything is acknowledged; [`Time::NEVER`] otherwise.
    pub(super) quiet_since: Time,
    /// What an agent at the edge has asked for.
    pub(super) asked: Asked,
}

/// What was repeated of the handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    /// How often our SYN counts as lost; in the stack of Linux only for want of an answer.
    pub(super) lost_syns: u32,
    /// When our SYN first left.
    pub(super) first_at: Time,
    /// When it last went out again because that of the peer did.
    pub(super) answered_at: Option<Time>,
}

/// Where the end of the data stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    /// The data has no end, or there is none yet.
    Absent,
    /// It goes with the last byte, or after it.
    Ahead,
    /// It left.
    Sent,
}

/// What must go out before anything else, whatever the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    Nothing,
    /// A SYN.
    Syn,
    /// The answer to the peer's SYN.
    SynAck,
    /// An acknowledgement.
    Ack,
    /// A probe of a closed window.
    Probe,
    /// What an agent at the edge has asked for.
    Repair,
}

/// Explicit congestion notification of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    pub(super) enabled: Switch,
    /// One past what was outstanding at the last reaction: an echo of that window is not a new one.
    pub(super) reacted: Option<Seq>,
    /// The next new segment tells the peer of the reaction.
    pub(super) cwr: bool,
    /// An echo came since the last reduction, and in the stack of Linux nothing takes that reduction back.
    pub(super) lasting: bool,
}

/// Timestamps of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    pub(super) tick: Span,
    /// TS.Recent: what to echo.
    pub(super) recent: u32,
    /// Whether there was one yet.
    pub(super) seen: bool,
}
