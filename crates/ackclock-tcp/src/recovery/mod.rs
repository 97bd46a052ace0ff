//! Loss recovery: decides which segments are lost and what is sent next.
//!
//! [Congestion control](crate::cc) limits the bytes in flight. The [`Scoreboard`] processes every acknowledgement
//! first. The recovery then returns a verdict, and chooses segments one by one while the window allows.

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
    /// Whether the recovery reads SACK blocks.
    const USES_SACK: bool;

    /// Quantity that a loss halves by default: the window, as in the classic agents, or the bytes in flight (RFC 5681
    /// (4)).
    const HALVES: crate::config::Halves;

    /// Whether the DupThresh of this recovery can adapt to the bytes in flight.
    const ADAPTS_DUP_THRESH: bool = false;

    /// Whether the recovery needs to know which segments an acknowledgement newly shows to have arrived
    /// ([`AckFacts::latest`]).
    const FOLLOWS_ARRIVALS: bool = false;

    /// Whether [`in_flight`](Self::in_flight) and [`delivered`](Self::delivered) are accurate during recovery, so that
    /// PRR can spread a reduction over the recovery.
    const KNOWS_FLIGHT: bool = false;

    /// Options of [`SenderConfig`] that this recovery reads, of those that not every recovery reads.
    const OPTIONS: &'static [&'static str] = &[];

    /// Recovery type that replaces the implementing type in the Linux stack.
    type InLinux: Recovery + 'static;

    /// Creates the recovery of a new connection.
    fn new(config: &SenderConfig) -> Self;

    /// Handles an acknowledgement that advanced the left edge.
    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict;

    /// Handles a duplicate acknowledgement.
    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict;

    /// Handles an expired retransmission timer.
    fn on_timeout(&mut self, now: Time, board: &mut Scoreboard);

    /// Handles proof that the last timeout or fast retransmit was spurious. After a timeout, the data sent before the
    /// timeout is still in transit (RFC 4015 section 3.2 step SPTO). After a fast retransmit, retransmissions due to an
    /// earlier timeout remain due.
    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard);

    /// Sets the end of a recovery that has just started. The recovery continues a window reduction; the recovery and
    /// the reduction end when `point` is acknowledged.
    fn ends_at(&mut self, _point: Seq) {}

    /// Called after a segment was sent.
    fn on_sent(&mut self, _sending: &Sending, _board: &Scoreboard) {}

    /// Called after a complete record was retransmitted.
    fn on_sent_again(&mut self, _index: Index, _board: &Scoreboard) {}

    /// Called when a window reduction starts. Turns a tail probe in flight that retransmitted the last segment into a
    /// plain retransmission. Returns whether a tail probe was in flight.
    fn take_probe(&mut self) -> bool {
        false
    }

    /// Handles an expired timer as a probe timeout: one segment is sent regardless of the window. Returns `false` if the
    /// timer is a retransmission timer.
    fn on_probe_timeout(&mut self) -> bool {
        false
    }

    /// Called if the segment just sent is a probe of the peer's window.
    fn on_window_probe(&mut self) {}

    /// Sets whether the peer sends SACK, as the handshake showed.
    fn agree(&mut self, _sack: Switch) {}

    /// Time at which [`on_time`](Self::on_time) is due; [`Time::NEVER`] if no timer is set.
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Handles an expired timer of [`poll_timeout`](Self::poll_timeout). A verdict that restarts the timer requests a
    /// probe.
    fn on_time(&mut self, _now: Time, _board: &mut Scoreboard) -> Verdict {
        Verdict::Open
    }

    /// Bytes in flight, as this recovery estimates them.
    #[inline(always)]
    fn in_flight(&self, board: &Scoreboard) -> u32 {
        board.in_flight()
    }

    /// Bytes delivered by the last acknowledgement. The acknowledgement itself acknowledged or SACKed `told` bytes.
    fn delivered(&self, told: u32) -> u32 {
        told
    }

    /// DupThresh if it was raised because of reordering on the path; otherwise 0.
    fn reordered(&self) -> u32 {
        0
    }

    /// Bytes in flight before the sender exceeded the window; `None` if the sender did not exceed the window.
    fn flight_before(&self) -> Option<u32> {
        None
    }

    /// Chooses the next segment to send, if the window allows one. The caller must send the chosen segment.
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next>;

    /// Phase of loss recovery.
    fn phase(&self) -> Phase;

    /// Whether all data in flight at the start of recovery is acknowledged, while recovery waits for more to be
    /// acknowledged.
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
    /// Arrival time of the acknowledgement.
    pub now: Time,
    /// Latest sent segment among the segments newly shown to have arrived by their last transmission.
    pub latest: Option<Latest>,
    /// Newly arrived segment that is last in sequence below the new left edge. If no such segment exists, the field is
    /// the segment that was SACKed last.
    pub last: Option<Latest>,
    /// End of the lowest newly arrived segment that was sent only once.
    pub original: Option<Seq>,
    /// Whether the left edge passed a retransmitted segment.
    pub passed_repeated: bool,
    /// End of the highest segment that the acknowledgement SACKs.
    pub highest_sacked: Option<Seq>,
    /// Data that the receiver reports as a duplicate (D-SACK, RFC 2883).
    pub dsack: Option<SackBlock>,
    /// Smoothed round-trip time of the connection.
    pub srtt: Option<Span>,
    /// Current retransmission timeout.
    pub rto: Span,
    /// Retransmission timeout without backoff.
    pub base_rto: Span,
    /// Smallest round-trip time of the connection.
    pub min_rtt: Option<Span>,
    /// Bytes by which the acknowledgement advanced the left edge.
    pub acked: u32,
    /// Bytes that the acknowledgement newly SACKed.
    pub sacked: u32,
    /// Whether the segment is a duplicate acknowledgement by RFC 5681 section 2.
    pub duplicate: bool,
    /// Size of a full segment, bytes.
    pub mss: u32,
    /// Congestion window before the acknowledgement, bytes.
    pub cwnd: u32,
}

/// Conclusion that the recovery draws from an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No loss was found: the window follows the usual rules.
    Open,
    /// A loss was found: reduce the window and restart the timer.
    Enter,
    /// Part of the data in flight at the loss is acknowledged, and recovery continues.
    Partial(Timer),
    /// Recovery has ended.
    Leave(Exit),
    /// Packets were only reordered, but the sender exceeded the window: set window and threshold to `cwnd` and
    /// `ssthresh`.
    Reordered {
        /// The congestion window, bytes.
        cwnd: u32,
        /// The slow-start threshold, bytes.
        ssthresh: u32,
    },
    /// Recovery has ended, and a further loss starts the next recovery.
    Again,
    /// The last timeout was spurious: undo the reduction of the window.
    Spurious,
    /// Everything sent within three probe timeouts was lost: reduce the window to its minimum (RFC 9002 section 7.6).
    Persistent,
    /// An acknowledgement answers a tail probe that retransmitted the last segment.
    Probed(Tail),
}

/// Meaning of the answer to a tail probe (RFC 8985 section 7.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The probe seems to have repaired a loss: reduce the slow-start threshold.
    Repaired,
    /// Later data was acknowledged without a sign that the original segment arrived: reduce the window to the
    /// threshold.
    Lost,
    /// The original segment had arrived after all: undo the reduction.
    Arrived,
}

/// State of the sender that a recovery gets when a segment is sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Transmission time of the segment.
    pub now: Time,
    /// Current retransmission timeout.
    pub rto: Span,
    /// Smoothed round-trip time of the connection.
    pub srtt: Option<Span>,
}

/// Effect of a partial acknowledgement on the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// The retransmission timer restarts.
    Restart,
    /// The retransmission timer keeps running.
    Keep,
}

/// Change of the window by the acknowledgement that ends recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The window grows as with any other acknowledgement.
    Grow,
    /// The window stays unchanged.
    Hold,
    /// The window is limited to the given number of bytes.
    Cap(u32),
}

/// Limits on the data that may be sent.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Bytes beyond the left edge that the peer's window and the configured maximum allow.
    pub limit: u32,
    /// Size of a full segment, bytes.
    pub mss: u32,
    /// Payload of the new segment that could be sent now, bytes: 1 for a lone FIN, 0 without new data or if the peer's
    /// window is too small.
    pub fresh: u32,
}

/// Kind of segment to send next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A segment of new data.
    Fresh,
    /// Retransmission of the record with this index.
    Again(Index),
}

/// Next segment in sequence, for senders without SACK. The segment must be within `usable` bytes from the left edge and
/// within the limits of `window`.
#[inline]
pub(crate) fn in_sequence(window: &Window, usable: u32, board: &Scoreboard) -> Option<Next> {
    let usable = usable.min(window.limit);
    let index = board.next();
    if index < board.sent().end() {
        let record = board.sent().get(index);
        // A FIN needs no room in the window. RFC 9293 section 3.8.6 counts the FIN in the peer's window, but congestion
        // windows never count a FIN.
        let end = record.seq.since(board.una()) + u32::from(record.payload());
        return (end <= usable).then_some(Next::Again(index));
    }
    (window.fresh > 0 && board.outstanding() + window.fresh <= usable).then_some(Next::Fresh)
}
