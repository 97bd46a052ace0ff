//! # RACK-TLP
//!
//! RACK detects losses by time: a missing segment is lost if it was sent a round trip before a segment that has
//! arrived.
//!
//! ## Source
//! RFC 8985 (RACK and the tail loss probe), and RFC 5682 with SACK (F-RTO). Where the RFCs leave options, Linux's
//! choices apply. RFC 9002 sections 6.2 and 7.6 (QUIC) with the option `probe_timeout`.
//!
//! ## What it does
//! At each acknowledgement RACK finds the latest transmission that has arrived. A segment sent earlier is lost once its
//! age exceeds the RTT of the latest transmission plus the [reordering window](super::reordering). The reordering
//! window is a multiple of a quarter of the smallest round-trip time. On a path that does not reorder, the reordering
//! window is zero in recovery and once three segments are SACKed. RACK also detects lost retransmissions.
//!
//! After two round trips without an acknowledgement RACK sends a probe: new data, or else the last segment. A timeout
//! marks as lost only the first segment and segments older than a round trip. If the next segment to arrive was never
//! retransmitted, the timeout was spurious.
//!
//! With `probe_timeout`, a timer expires a probe timeout after the last transmission: the smoothed round-trip time, four
//! times its variation and 25 ms, doubled each time. One segment is sent, and no loss is assumed. Losses that span three
//! probe timeouts, with no arrival between them, are persistent congestion.
//!
//! ## Differences from the source
//! - RACK.rtt is the RTT of the last segment that an acknowledgement reports. SACKed segments are ordered before
//!   segments below the left edge. The segment reported last may differ from the segment sent last.
//! - When a probe that retransmitted the last segment is answered and everything is acknowledged, the slow-start
//!   threshold falls. The congestion window falls at the next acknowledgement, as in RFC 8985, unless a D-SACK arrives
//!   first.
//! - With `probe_timeout`, losses are detected by RACK, not by RFC 9002 section 6.1, and a probe is one segment, not up to
//!   two. The delay that an acknowledgement reports is not subtracted from its round-trip time. The smallest round-trip
//!   time is kept after persistent congestion.
//! - With `probe_timeout`, the backoff ends with the next round-trip time sample, which an acknowledgement of a
//!   retransmission does not give without timestamps. In RFC 9002 it ends with each acknowledgement of new data.
//! - With `probe_timeout`, only the last transmission time of a segment is known. Where no new data is left, each probe
//!   sends the last segment again, so losses at the end of a file do not span the probes, and persistent congestion is
//!   hardly ever found there. A probe of QUIC is a packet of its own, whose loss counts.
//!
//! ## Validation
//! `tests/linux.rs` checks exchanges of segments. `make agree` compares the sender with the kernel's sender in many
//! scenarios.

use ackclock_core::{Seq, Span, Time};

use super::frto::SpuriousTest;
use super::order::Order;
use super::reordering::Reordering;
use super::tail_probe::{Probe, Sent};
use super::{AckFacts, Exit, Next, Recovery, Sending, Tail, Timer, Verdict, Window};
use crate::cc::{Congestion, Phase};
use crate::config::{Halves, SenderConfig, Switch};
use crate::scoreboard::{DUP_THRESH, Latest, SackMemory, Scoreboard};
use crate::sent::{Index, Marks};

/// Extra delay of a probe for a lone segment, which allows for a delayed acknowledgement (WCDelAckT in RFC 8985 section
/// 7.2).
const DELAYED_ACK: Span = Span::from_millis(200);

/// Extra delay of a probe for several segments, and of the reordering timer: two ticks of Linux's 250 Hz clock.
const TICKS: Span = Span::from_millis(8);

/// State of RACK and of the tail loss probe.
#[derive(Clone, Debug)]
pub struct Rack {
    phase: Phase,
    /// End of the data in flight when recovery started; `None` once that data is acknowledged.
    recovery_point: Option<Seq>,
    /// RACK.segment: latest transmission that has arrived. `rtt` is RACK.rtt, the RTT of the segment reported last.
    latest: Option<Latest>,
    rtt: Span,
    min_rtt: Span,
    /// Time at which segments now too young to be lost will be old enough.
    reordering_ends: Time,
    /// Time at which the tail probe is due.
    probe_at: Time,
    /// Tail probe in flight; `None` if there is none.
    probe: Option<Probe>,
    /// Segment that must be sent regardless of the window.
    due: Due,
    /// Segments in flight in transmission order; `None` until needed, and after marks were undone.
    order: Option<Box<Order>>,
    spurious_test: SpuriousTest,
    /// Whether the left edge has not advanced since the last timeout.
    in_a_row: bool,
    reordering: Reordering,
    /// Whether probe timeouts of QUIC replace tail probes and retransmission timeouts.
    probe_timeout: Switch,
    /// Transmission time of the latest segment that had arrived before the last acknowledgement with news;
    /// [`Time::NEVER`] without one.
    arrived: Time,
    /// Probe timeout without backoff.
    pto: Span,
    /// Whether the losses just found are persistent congestion.
    persistent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Nothing,
    /// Segment at the left edge, after a timeout.
    Left,
    /// First lost segment (RFC 6675 section 5 step 4.3).
    Lost,
    /// Segment that a tail probe sends.
    Probe,
}

impl Recovery for Rack {
    const USES_SACK: bool = true;
    const HALVES: Halves = Halves::Flight;
    const KNOWS_FLIGHT: bool = true;
    const FOLLOWS_ARRIVALS: bool = true;

    type InLinux = Self;

    fn new(config: &SenderConfig) -> Self {
        Self { probe_timeout: config.probe_timeout, ..Self::begin() }
    }

    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        let verdict = self.advance(ack, board);
        self.arm_probe(&Sending { now: ack.now, rto: ack.rto, srtt: ack.srtt }, ack.now, board);
        verdict
    }

    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        self.on_ack(ack, board)
    }

    fn on_timeout(&mut self, now: Time, board: &mut Scoreboard) {
        self.spurious_test = SpuriousTest::after_timeout(self.phase, self.in_a_row);
        self.in_a_row = true;
        self.phase = Phase::TimeoutRecovery;
        self.recovery_point = Some(board.max());
        self.probe_at = Time::NEVER;
        self.reordering_ends = Time::NEVER;
        self.due = Due::Left;
        let first = board.sent().first();
        if board.sent().front().is_some_and(|front| front.marks.has(Marks::SACKED)) {
            // The receiver reneged: it discarded SACKed data (RFC 2018 section 8).
            board.lose_all(SackMemory::Clear);
            self.order = None;
        }
        let mut order = self.take_order(board);
        for index in first..board.sent().end() {
            // Segments sent within the last round trip may still arrive, so they are not marked lost (RFC 8985 section
            // 6.3).
            if index == first || board.sent().get(index).sent_at + self.rtt <= now {
                order.lose(index, board);
            }
        }
        self.order = Some(order);
    }

    fn on_spurious(&mut self, _: Congestion, board: &mut Scoreboard) {
        self.recovery_point = None;
        self.phase = Phase::Open;
        self.spurious_test = SpuriousTest::None;
        self.due = Due::Nothing;
        self.order = None;
        board.undo_go_back();
    }

    fn ends_at(&mut self, point: Seq) {
        self.recovery_point = Some(point);
    }

    fn on_sent(&mut self, sending: &Sending, board: &Scoreboard) {
        let first = board.sent().front().map_or(sending.now, |first| first.sent_at);
        self.arm_probe(sending, first, board);
    }

    fn on_sent_again(&mut self, index: Index, board: &Scoreboard) {
        if let Some(order) = &mut self.order {
            order.on_sent_again(index, board);
        }
    }

    fn take_probe(&mut self) -> bool {
        self.probe.take().is_some_and(|probe| probe.tail != Sent::Fresh)
    }

    fn on_probe_timeout(&mut self) -> bool {
        let probes = self.probe_timeout == Switch::On;
        if probes {
            self.due = Due::Probe;
        }
        probes
    }

    fn on_window_probe(&mut self) {
        self.probe_at = Time::NEVER;
    }

    fn poll_timeout(&self) -> Time {
        self.reordering_ends.min(self.probe_at)
    }

    fn on_time(&mut self, now: Time, board: &mut Scoreboard) -> Verdict {
        if now >= self.probe_at {
            self.probe_at = Time::NEVER;
            if board.sent().is_empty() {
                return Verdict::Open;
            }
            self.due = Due::Probe;
            return Verdict::Partial(Timer::Restart);
        }
        if now < self.reordering_ends {
            return Verdict::Open;
        }
        self.detect(now, Span::ZERO, board);
        self.judge(board)
    }

    #[inline]
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next> {
        let fresh = window.fresh > 0 && board.outstanding() + window.fresh <= window.limit;
        if self.due != Due::Nothing
            && let Some(next) = self.take_due(if fresh { window.fresh } else { 0 }, board)
        {
            return Some(next);
        }
        let room = window.cwnd >= board.in_flight().saturating_add(window.mss);
        self.spurious_test.on_poll(room && fresh, self.recovery_point == Some(board.max()));
        if !room {
            return None;
        }
        if self.spurious_test != SpuriousTest::Testing
            && let Some(index) = self.next_lost(board)
        {
            return Some(Next::Again(index));
        }
        fresh.then_some(Next::Fresh)
    }

    fn phase(&self) -> Phase {
        self.phase
    }
}

impl Rack {
    /// Creates the recovery of a new connection.
    pub fn begin() -> Self {
        Self {
            phase: Phase::Open,
            recovery_point: None,
            latest: None,
            rtt: Span::ZERO,
            min_rtt: Span::ZERO,
            reordering_ends: Time::NEVER,
            probe_at: Time::NEVER,
            probe: None,
            due: Due::Nothing,
            order: None,
            spurious_test: SpuriousTest::None,
            in_a_row: false,
            reordering: Reordering::default(),
            probe_timeout: Switch::Off,
            arrived: Time::ZERO,
            pto: Span::ZERO,
            persistent: false,
        }
    }

    /// Handles an acknowledgement that advances the left window edge.
    fn advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        self.in_a_row = false;
        if self.recovery_point.is_some_and(|point| board.una().before(point)) {
            let verdict = self.on_ack(ack, board);
            let repairs = self.phase == Phase::FastRecovery && verdict == Verdict::Open;
            return if repairs { Verdict::Partial(Timer::Restart) } else { verdict };
        }
        self.recovery_point = None;
        self.spurious_test = SpuriousTest::None;
        let left = std::mem::replace(&mut self.phase, Phase::Open);
        if left != Phase::Open {
            self.reordering.on_repaired();
        }
        if left != Phase::FastRecovery {
            return self.on_ack(ack, board);
        }
        if self.learn(ack, board) {
            self.detect(ack.now, self.reordering_window(ack, board), board);
        }
        match self.judge(board) {
            Verdict::Enter => Verdict::Again,
            Verdict::Persistent => Verdict::Persistent,
            _ => Verdict::Leave(Exit::Grow),
        }
    }

    /// Schedules the tail probe at each transmission and each advance (RFC 8985 section 7.2). The probe is due two
    /// round trips from now, or when the retransmission timer expires if the expiry is earlier. `since` is the start of
    /// the retransmission timer. In Linux the retransmission timer starts at the last advance of the left edge. After a
    /// later transmission, the retransmission timer starts at the transmission time of the first segment in flight.
    fn arm_probe(&mut self, sending: &Sending, since: Time, board: &Scoreboard) {
        self.probe_at = Time::NEVER;
        let tail = board.sent().end() - board.sent().first();
        if self.probe_timeout == Switch::On
            || tail == 0
            || self.phase != Phase::Open
            || self.probe.is_some()
            || board.sacked() > 0
        {
            return;
        }
        let lone = if tail == 1 { DELAYED_ACK } else { TICKS };
        let wait = sending.srtt.map_or(Span::from_secs(1), |srtt| srtt * 2 + lone);
        let (probe, timer) = (sending.now + wait, since + sending.rto);
        self.probe_at = if timer > sending.now { probe.min(timer) } else { probe };
    }

    /// Processes an acknowledgement that does not end a recovery.
    fn on_ack(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        let told = self.learn(ack, board);
        if let Some(verdict) = self.judge_probe(ack, board) {
            return verdict;
        }
        if let (Phase::TimeoutRecovery, Some(point)) = (self.phase, &mut self.recovery_point)
            && self.spurious_test.on_ack(ack, ack.original, point, board)
        {
            return Verdict::Spurious;
        }
        if told {
            self.detect(ack.now, self.reordering_window(ack, board), board);
        }
        self.judge(board)
    }

    /// Updates RACK.segment and RACK.rtt (RFC 8985 section 6.2 steps 1 to 3). Returns whether the acknowledgement shows
    /// a new arrival.
    fn learn(&mut self, ack: &AckFacts, board: &Scoreboard) -> bool {
        self.min_rtt = ack.min_rtt.unwrap_or(Span::ZERO);
        let of_probe =
            ack.dsack.is_some_and(|block| self.probe.is_some_and(|probe| probe.end == block.right));
        self.reordering.on_ack(ack, of_probe, board);
        let Some(latest) = ack.latest else { return false };
        if let Some(last) = ack.last {
            self.rtt = ack.now.since(last.sent_at);
        }
        self.arrived = self.latest.map_or(Time::NEVER, |latest| latest.sent_at);
        self.pto = ack.base_rto;
        self.latest = Some(Latest::later_of(self.latest, latest));
        true
    }

    /// Reordering window by RFC 8985 section 6.2 step 4.
    fn reordering_window(&self, ack: &AckFacts, board: &Scoreboard) -> Span {
        let enough = self.phase != Phase::Open || board.sacked() >= DUP_THRESH * ack.mss;
        if enough && !self.reordering.seen {
            return Span::ZERO;
        }
        (self.min_rtt / 4 * u64::from(self.reordering.steps)).min(ack.srtt.unwrap_or(Span::ZERO))
    }

    /// Evaluates the answer to a tail probe (RFC 8985 section 7.4.2).
    fn judge_probe(&mut self, ack: &AckFacts, board: &Scoreboard) -> Option<Verdict> {
        let probe = self.probe.filter(|probe| !board.una().before(probe.end))?;
        self.probe = None;
        let arrived = ack.dsack.is_some_and(|block| block.right == probe.end);
        if probe.tail == Sent::Fresh || arrived || (ack.acked == 0 && ack.duplicate) {
            return (probe.tail == Sent::Repaired).then_some(Verdict::Probed(Tail::Arrived));
        }
        if board.una().after(probe.end) {
            return (probe.tail == Sent::Repaired).then_some(Verdict::Probed(Tail::Lost));
        }
        self.probe = Some(Probe { tail: Sent::Repaired, ..probe });
        (probe.tail == Sent::Again && ack.acked > 0).then_some(Verdict::Probed(Tail::Repaired))
    }

    /// Detects lost segments (RFC 8985 section 6.2 step 5).
    fn detect(&mut self, now: Time, window: Span, board: &mut Scoreboard) {
        self.reordering_ends = Time::NEVER;
        let Some(latest) = self.latest else { return };
        let mut order = self.take_order(board);
        order.overtake(latest, board);
        let old = |sent_at: Time| sent_at + self.rtt + window;
        let lost = order.lose_old(board, self.arrived, |sent_at| old(sent_at) <= now);
        self.persistent = self.probe_timeout == Switch::On
            && lost.is_some_and(|(first, last)| self.is_persistent(first, last, board));
        if let Some(sent_at) = order.last_overtaken(board) {
            // The youngest overtaken segment sets the reordering timer, as in Linux.
            self.reordering_ends = old(sent_at) + TICKS;
        }
        self.order = Some(order);
    }

    /// Whether losses from `first` to `last` are persistent congestion: they span three probe timeouts, and nothing sent
    /// in between has arrived (RFC 9002 section 7.6.2).
    fn is_persistent(&self, first: Time, last: Time, board: &Scoreboard) -> bool {
        const THRESHOLD: u64 = 3;
        let between = |index| {
            let record = board.sent().get(index);
            let sent_at = record.sent_at;
            record.marks.has(Marks::SACKED) && first < sent_at && sent_at < last
        };
        last.since(first) > self.pto * THRESHOLD && !(board.sent().first()..board.sent().end()).any(between)
    }

    fn take_order(&mut self, board: &Scoreboard) -> Box<Order> {
        self.order.take().unwrap_or_else(|| Box::new(Order::of(board)))
    }

    /// First lost segment that was not retransmitted after the loss.
    fn next_lost(&mut self, board: &Scoreboard) -> Option<Index> {
        self.order.as_mut()?.next_lost(board)
    }

    /// Verdict on whether recovery starts.
    fn judge(&mut self, board: &Scoreboard) -> Verdict {
        let persistent = std::mem::take(&mut self.persistent);
        if (self.phase != Phase::Open && !persistent) || board.lost() == 0 {
            return Verdict::Open;
        }
        self.recovery_point = Some(board.max());
        // After persistent congestion the window grows again during the recovery, as after a timeout.
        self.phase = if persistent { Phase::TimeoutRecovery } else { Phase::FastRecovery };
        self.probe_at = Time::NEVER;
        self.due = Due::Lost;
        if persistent { Verdict::Persistent } else { Verdict::Enter }
    }

    fn take_due(&mut self, fresh: u32, board: &Scoreboard) -> Option<Next> {
        let due = std::mem::replace(&mut self.due, Due::Nothing);
        let (first, end) = (board.sent().first(), board.sent().end());
        if first == end {
            return None;
        }
        match due {
            Due::Nothing => None,
            Due::Left => Some(Next::Again(first)),
            Due::Lost => self.next_lost(board).map(Next::Again),
            Due::Probe => {
                let tail = if fresh > 0 { Sent::Fresh } else { Sent::Again };
                if self.probe_timeout == Switch::Off {
                    self.probe = Some(Probe { end: board.max() + fresh, tail });
                }
                if fresh > 0 {
                    return Some(Next::Fresh);
                }
                let unsacked = |index: &Index| !board.sent().get(*index).marks.has(Marks::SACKED);
                (first..end).rev().find(unsacked).map(Next::Again)
            }
        }
    }
}
