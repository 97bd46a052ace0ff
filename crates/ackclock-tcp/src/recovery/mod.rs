//! Loss recovery: which segment is lost, and what is sent next.
//!
//! How much may be in flight is [congestion control](crate::cc)'s business. A recovery sees every acknowledgement after
//! the [`Scoreboard`] has taken it in, says what it means, and then chooses segment after segment while the window lasts.

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

pub use counted::Counted;
pub use linux::Linux;
pub use ncr::DupThresh;
pub use newreno::NewReno;
pub use rack::Rack;
pub use reno::Reno;
pub use sack::Sack;
pub use sack1::Sack1;

/// How losses are found and repaired.
pub trait Recovery: Send {
    /// Whether it reads SACK blocks.
    const USES_SACK: bool;

    /// What halves by default at a loss: the window, as the classic agents do, or what is outstanding (RFC 5681 (4)).
    const HALVES: crate::config::Halves;

    /// Whether its DupThresh can adapt to what is outstanding.
    const ADAPTS_DUP_THRESH: bool = false;

    /// Whether it wants to know which segments an acknowledgement shows to have arrived ([`AckFacts::latest`]).
    const FOLLOWS_ARRIVALS: bool = false;

    /// Whether [`in_flight`](Self::in_flight) and [`delivered`](Self::delivered) hold while losses are repaired, so that a
    /// reduction can be spread by them (PRR).
    const KNOWS_FLIGHT: bool = false;

    /// What takes its place where losses are repaired as Linux does.
    type InLinux: Recovery + 'static;

    /// As the options say, at the beginning of a connection.
    fn new(config: &SenderConfig) -> Self;

    /// The left edge advanced.
    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict;

    /// A duplicate acknowledgement.
    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict;

    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Time, board: &mut Scoreboard);

    /// The last timeout or fast retransmit was for nothing. After a timeout what was sent is on its way (RFC 4015 section 3.2
    /// step SPTO); a fast retransmit says nothing of what an earlier timeout has still to send again.
    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard);

    /// The repair that has just begun goes on with a reduction that lasts until `point` is acknowledged, and ends there.
    fn ends_at(&mut self, _point: Seq) {}

    /// Something was sent.
    fn on_sent(&mut self, _sending: &Sending, _board: &Scoreboard) {}

    /// A record was sent again as a whole.
    fn on_sent_again(&mut self, _index: Index, _board: &Scoreboard) {}

    /// Whether a probe that sent the last segment again is out, as a reduction begins: from then on it is no probe any more.
    fn take_probe(&mut self) -> bool {
        false
    }

    /// What was sent is a probe of the peer's window.
    fn on_window_probe(&mut self) {}

    /// The handshake says whether the peer sends SACK.
    fn agree(&mut self, _sack: Switch) {}

    /// When [`on_time`](Self::on_time) is due; [`Time::NEVER`] where nothing is waited for.
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Does what was waited for. A verdict that restarts the timer calls for a probe.
    fn on_time(&mut self, _now: Time, _board: &mut Scoreboard) -> Verdict {
        Verdict::Open
    }

    /// Bytes in flight, as this recovery sees it.
    #[inline(always)]
    fn in_flight(&self, board: &Scoreboard) -> u32 {
        board.in_flight()
    }

    /// Bytes that the last acknowledgement delivered, of which `told` are acknowledged or SACKed by it.
    fn delivered(&self, told: u32) -> u32 {
        told
    }

    /// Duplicates that make a loss, where their number has risen to what the path seems to reorder; 0 otherwise.
    fn reordered(&self) -> u32 {
        0
    }

    /// What was outstanding before it let more out than the window allows, bytes; `None` where it did not.
    fn flight_before(&self) -> Option<u32> {
        None
    }

    /// What to send next, if the window allows. What it gives is sent.
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next>;

    /// Where recovery stands.
    fn phase(&self) -> Phase;

    /// Whether all that was outstanding when repair began is acknowledged, while repair goes on until more is.
    fn is_repaired(&self, _: &Scoreboard) -> bool {
        false
    }

    /// Whether duplicate acknowledgements hint at a loss.
    fn has_duplicates(&self) -> bool {
        false
    }
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub struct AckFacts {
    /// When it came.
    pub now: Time,
    /// The segment sent last among those that it shows to have arrived as they were sent last.
    pub latest: Option<Latest>,
    /// The last of those of them that the left edge passed, in their order; if there is none, the last that it SACKs.
    pub last: Option<Latest>,
    /// End of the lowest segment that it shows to have arrived and that was sent but once.
    pub original: Option<Seq>,
    /// Whether the left edge passed a segment that was sent more than once.
    pub passed_repeated: bool,
    /// End of the highest segment that it SACKs.
    pub highest_sacked: Option<Seq>,
    /// What the receiver says to have had already (RFC 2883).
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
    /// The window before the acknowledgement, bytes.
    pub cwnd: u32,
}

/// What an acknowledgement means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing: the window follows the usual rules.
    Open,
    /// A loss was found: reduce the window, restart the timer.
    Enter,
    /// Part of what was outstanding at the loss is acknowledged; recovery goes on.
    Partial(Timer),
    /// Recovery is over.
    Leave(Exit),
    /// Packets only overtook each other, while more was sent than the window allows: it takes these values, bytes.
    Reordered {
        /// The congestion window.
        cwnd: u32,
        /// The slow-start threshold.
        ssthresh: u32,
    },
    /// Recovery is over, and what else is lost begins the next one.
    Again,
    /// The last timeout was for nothing: take the reduction back.
    Spurious,
    /// A probe that sent the last segment again is answered.
    Probed(Tail),
}

/// What the answer to a probe of the tail means (RFC 8985 section 7.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// It seems that the probe repaired a loss: the threshold falls.
    Repaired,
    /// More was acknowledged since, and nothing spoke for the original: the window falls to the threshold.
    Lost,
    /// The original had arrived after all: what fell is given back.
    Arrived,
}

/// What a recovery is told when something is sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// When.
    pub now: Time,
    /// Retransmission timeout.
    pub rto: Span,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
}

/// What a partial acknowledgement does to the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// It starts anew.
    Restart,
    /// It runs on.
    Keep,
}

/// What the acknowledgement that ends recovery does to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It counts as any other.
    Grow,
    /// The window stays.
    Hold,
    /// The window is at most this, bytes.
    Cap(u32),
}

/// What may be sent.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The congestion window, bytes.
    pub cwnd: u32,
    /// Bytes above the left edge that the peer and the configured maximum allow.
    pub limit: u32,
    /// Full segment, bytes.
    pub mss: u32,
    /// Payload of the segment of new data that could go out now, one for a lone FIN; zero where there is none or the
    /// peer's window does not take it.
    pub fresh: u32,
}

/// What to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// New data.
    Fresh,
    /// This record again.
    Again(Index),
}

/// The next segment in sequence, as senders without SACK choose it: of `usable` bytes, and the other limits, counted from
/// the left edge.
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
