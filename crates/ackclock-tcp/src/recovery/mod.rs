//! Loss recovery: decides which segments are lost and what is sent next.
//!
//! [Congestion control](crate::cc) limits the bytes in flight. A recovery processes every acknowledgement after the
//! [`Scoreboard`], returns a verdict, and then chooses segments one by one while the window allows.

pub mod counted;
mod frto;
pub mod linux;
pub mod ncr;
pub mod newreno;
mod order;
pub mod rack;
pub mod reno;
mod reordering;
pub mod sack;
pub mod sack1;
mod tail_probe;

use ackclock_core::{SackBlock, Seq, Span, Time};

use crate::cc::{Congestion, Phase};
use crate::config::{SenderConfig, Switch};
use crate::scoreboard::{Latest, Scoreboard};
use crate::sent::Index;

pub use crate::dup_thresh::DupThresh;
pub use counted::Counted;
pub use linux::Linux;
pub use newreno::NewReno;
pub use rack::Rack;
pub use reno::Reno;
pub use sack::Sack;
pub use sack1::Sack1;

/// Loss detection and retransmission.
pub trait Recovery: Send {
    /// Whether it reads SACK blocks.
    const USES_SACK: bool;

    /// Quantity halved at a loss by default: the window, as in the classic agents, or the bytes in flight (RFC 5681
    /// (4)).
    const HALVES: crate::config::Halves;

    /// Whether its DupThresh can adapt to the bytes in flight.
    const ADAPTS_DUP_THRESH: bool = false;

    /// Whether it needs to know which segments an acknowledgement newly shows to have arrived ([`AckFacts::latest`]).
    const FOLLOWS_ARRIVALS: bool = false;

    /// Whether [`in_flight`](Self::in_flight) and [`delivered`](Self::delivered) are accurate during recovery, so that
    /// a reduction can be spread over it (PRR).
    const KNOWS_FLIGHT: bool = false;

    /// Replacement in the Linux stack.
    type InLinux: Recovery + 'static;

    /// Creates the recovery of a new connection.
    fn new(config: &SenderConfig) -> Self;

    /// An acknowledgement advanced the left edge.
    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict;

    /// A duplicate acknowledgement arrived.
    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict;

    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Time, board: &mut Scoreboard);

    /// The last timeout or fast retransmit was spurious. After a timeout, the data sent before it is still in transit
    /// (RFC 4015 section 3.2 step SPTO). After a fast retransmit, retransmissions due to an earlier timeout remain due.
    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard);

    /// The recovery that has just begun continues a reduction that lasts until `point` is acknowledged, and ends there.
    fn ends_at(&mut self, _point: Seq) {}

    /// A segment was sent.
    fn on_sent(&mut self, _sending: &Sending, _board: &Scoreboard) {}

    /// A complete record was retransmitted.
    fn on_sent_again(&mut self, _index: Index, _board: &Scoreboard) {}

    /// A reduction begins: turns an outstanding tail probe that retransmitted the last segment into a plain
    /// retransmission. Returns whether there was one.
    fn take_probe(&mut self) -> bool {
        false
    }

    /// The segment sent is a probe of the peer's window.
    fn on_window_probe(&mut self) {}

    /// The handshake showed whether the peer sends SACK.
    fn agree(&mut self, _sack: Switch) {}

    /// When [`on_time`](Self::on_time) is due; [`Time::NEVER`] if no timer is set.
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// The timer of [`poll_timeout`](Self::poll_timeout) expired. A verdict that restarts the timer asks for a probe.
    fn on_time(&mut self, _now: Time, _board: &mut Scoreboard) -> Verdict {
        Verdict::Open
    }

    /// Bytes in flight, as estimated by this recovery.
    #[inline(always)]
    fn in_flight(&self, board: &Scoreboard) -> u32 {
        board.in_flight()
    }

    /// Bytes delivered by the last acknowledgement, of which it acknowledged or SACKed `told`.
    fn delivered(&self, told: u32) -> u32 {
        told
    }

    /// DupThresh, if it was raised to the reordering seen on the path; 0 otherwise.
    fn reordered(&self) -> u32 {
        0
    }

    /// Bytes in flight before more was sent than the window allows; `None` if that did not happen.
    fn flight_before(&self) -> Option<u32> {
        None
    }

    /// Chooses what to send next if the window allows. The caller must send it.
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next>;

    /// Phase of loss recovery.
    fn phase(&self) -> Phase;

    /// Whether all data in flight when recovery began is acknowledged, while recovery continues until more is.
    fn is_repaired(&self, _: &Scoreboard) -> bool {
        false
    }

    /// Whether duplicate acknowledgements hint at a loss.
    fn has_duplicates(&self) -> bool {
        false
    }
}

/// Facts about an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckFacts {
    /// Time of arrival.
    pub now: Time,
    /// Among the segments newly shown to have arrived by their latest transmission, the one sent last.
    pub latest: Option<Latest>,
    /// Among those segments, the last in sequence below the new left edge; if there is none, the last one SACKed.
    pub last: Option<Latest>,
    /// End of the lowest segment newly shown to have arrived that was sent only once.
    pub original: Option<Seq>,
    /// Whether the left edge passed a retransmitted segment.
    pub passed_repeated: bool,
    /// End of the highest segment that it SACKs.
    pub highest_sacked: Option<Seq>,
    /// Data that the receiver reports as a duplicate (RFC 2883).
    pub dsack: Option<SackBlock>,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Retransmission timeout.
    pub rto: Span,
    /// Smallest round-trip time.
    pub min_rtt: Option<Span>,
    /// Bytes by which the left edge advanced.
    pub acked: u32,
    /// Bytes newly SACKed.
    pub sacked: u32,
    /// Whether it is a duplicate acknowledgement in the sense of RFC 5681 section 2.
    pub duplicate: bool,
    /// Full segment, bytes.
    pub mss: u32,
    /// Congestion window before the acknowledgement, bytes.
    pub cwnd: u32,
}

/// Meaning of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No loss: the window follows the usual rules.
    Open,
    /// A loss was found: reduce the window, restart the timer.
    Enter,
    /// Part of the data in flight at the loss is acknowledged; recovery continues.
    Partial(Timer),
    /// Recovery is over.
    Leave(Exit),
    /// Packets were only reordered, while more was sent than the window allows: set the window to these values, bytes.
    Reordered {
        /// The congestion window.
        cwnd: u32,
        /// The slow-start threshold.
        ssthresh: u32,
    },
    /// Recovery is over, and a further loss begins the next one.
    Again,
    /// The last timeout was spurious: undo the reduction.
    Spurious,
    /// A tail probe that retransmitted the last segment is answered.
    Probed(Tail),
}

/// Meaning of the answer to a tail probe (RFC 8985 section 7.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The probe seems to have repaired a loss: the threshold falls.
    Repaired,
    /// More was acknowledged since without a sign of the original: the window falls to the threshold.
    Lost,
    /// The original had arrived after all: undo the reduction.
    Arrived,
}

/// State passed to a recovery when a segment is sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Time of transmission.
    pub now: Time,
    /// Retransmission timeout.
    pub rto: Span,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
}

/// Effect of a partial acknowledgement on the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// The timer restarts.
    Restart,
    /// The timer keeps running.
    Keep,
}

/// Effect on the window of the acknowledgement that ends recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The window grows as by any other acknowledgement.
    Grow,
    /// The window stays unchanged.
    Hold,
    /// The window is limited to this, bytes.
    Cap(u32),
}

/// Limits on sending.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The congestion window, bytes.
    pub cwnd: u32,
    /// Bytes above the left edge that the peer and the configured maximum allow.
    pub limit: u32,
    /// Full segment, bytes.
    pub mss: u32,
    /// Payload of the segment of new data that could be sent now, bytes; 1 for a lone FIN; 0 if there is none or the
    /// peer's window is too small.
    pub fresh: u32,
}

/// What to send next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// New data.
    Fresh,
    /// Retransmission of this record.
    Again(Index),
}

/// Next segment in sequence, as chosen by senders without SACK, within `usable` bytes and the other limits, counted
/// from the left edge.
#[inline]
pub(crate) fn in_sequence(window: &Window, usable: u32, board: &Scoreboard) -> Option<Next> {
    let usable = usable.min(window.limit);
    let index = board.next();
    if index < board.sent().end() {
        let record = board.sent().get(index);
        // A FIN needs no room in the window (RFC 9293 section 3.8.6 counts it, but no congestion window does).
        let end = record.seq.since(board.una()) + u32::from(record.payload());
        return (end <= usable).then_some(Next::Again(index));
    }
    (window.fresh > 0 && board.outstanding() + window.fresh <= usable).then_some(Next::Fresh)
}
