//! Measures the cost of recovery from slow-start overshoot, by window size. Every second segment of the window is lost.

use std::collections::VecDeque;

use ackclock_core::{FlowId, SackBlock, Segment, Seq, Span, Time};

use crate::config::SenderConfig;
use crate::reassembly::Reassembly;
use crate::recovery::{AckFacts, Next, Rack, Recovery, Sack, Sack1, Window};
use crate::scoreboard::{Arrivals, Scoreboard, Sendings};
use crate::sent::{Index, Marks};
use crate::work::looks_of;

const MSS: u32 = 100;
const ROUND_TRIP: Span = Span::from_millis(100);

/// A sender and its receiver, with the segments in transit and the arrival times of their acknowledgements.
struct Path<R> {
    recovery: R,
    board: Scoreboard,
    now: Time,
    ahead: Reassembly,
    next: Seq,
    transit: VecDeque<(Time, Index)>,
    /// Loss interval of retransmissions: every `lost_again`-th retransmission is lost.
    lost_again: usize,
    sent_again: usize,
}

impl<R: Recovery> Path<R> {
    /// Sends a window of segments, of which those selected by `arrives` arrive.
    fn new(segments: u64, lost_again: usize, arrives: impl Fn(Index) -> bool) -> Self {
        let mut path = Self {
            recovery: R::new(&SenderConfig::default()),
            board: Scoreboard::new(Seq(0)),
            now: Time::ZERO,
            ahead: Reassembly::default(),
            next: Seq(0),
            transit: VecDeque::new(),
            lost_again,
            sent_again: 0,
        };
        for index in 0..=segments {
            path.now += Span::from_micros(1);
            path.board.push(path.now, MSS as u16, Marks::default());
            if arrives(index) {
                path.transit.push_back((path.now + ROUND_TRIP, index));
            }
        }
        path
    }

    /// Recovers all losses, with one retransmission for each acknowledgement.
    fn repair(&mut self) {
        while !self.board.sent().is_empty() {
            match self.transit.pop_front() {
                Some((at, index)) => self.arrive(at, index),
                None => {
                    self.now += Span::from_secs(1);
                    self.recovery.on_timeout(self.now, &mut self.board);
                }
            }
            self.send();
        }
    }

    fn arrive(&mut self, at: Time, index: Index) {
        self.now = at;
        let left = Seq(index as u32 * MSS);
        self.ahead.insert(SackBlock { left, right: left + MSS }, 0, 40);
        if let Some(delivered) = self.ahead.take_front(self.next) {
            self.next = delivered.right;
        }
        let mut ack = Segment::pure_ack(FlowId(0), self.next, 40);
        self.ahead.report(&mut ack);
        let facts = self.read(&ack);
        if facts.acked > 0 {
            self.recovery.on_advance(&facts, &mut self.board);
        } else {
            self.recovery.on_duplicate(&facts, &mut self.board);
        }
    }

    fn read(&mut self, ack: &Segment) -> AckFacts {
        let sendings =
            Sendings { now: self.now, min_rtt: ROUND_TRIP, echo: None, tick: Span::from_millis(1) };
        let mut arrivals = Arrivals::default();
        let acked = self.board.acknowledge(ack.ack, |record| arrivals.pass(record, &sendings)).bytes;
        let mut sacked = 0;
        for &block in ack.sack() {
            sacked += self.board.sack(block, |record| arrivals.sack(record, &sendings)).0;
        }
        AckFacts {
            now: self.now,
            latest: arrivals.latest,
            last: arrivals.last(),
            original: arrivals.original,
            passed_repeated: arrivals.passed_repeated,
            highest_sacked: arrivals.highest_sacked,
            dsack: None,
            srtt: Some(ROUND_TRIP),
            rto: Span::from_secs(1),
            base_rto: Span::from_secs(1),
            min_rtt: Some(ROUND_TRIP),
            acked,
            sacked,
            duplicate: acked == 0,
            mss: MSS,
            cwnd: u32::MAX,
        }
    }

    fn send(&mut self) {
        let window = Window { cwnd: u32::MAX, limit: u32::MAX, mss: MSS, fresh: 0 };
        if let Some(Next::Again(index)) = self.recovery.poll(&window, &mut self.board) {
            self.board.resend(self.now, index);
            self.recovery.on_sent_again(index, &self.board);
            self.sent_again += 1;
            if !self.sent_again.is_multiple_of(self.lost_again) {
                self.transit.push_back((self.now + ROUND_TRIP, index));
            }
        }
    }
}

/// Number of records and ranges that sender and receiver examine if every second segment except the last is lost.
fn overshoot<R: Recovery>(segments: u64, lost_again: usize) -> u64 {
    let mut path = Path::<R>::new(segments, lost_again, |index| index % 2 == 0);
    looks_of(|| path.repair())
}

/// Number of records and ranges examined if the first two segments are missing and the second segment arrives in the
/// middle of the other segments.
fn closed_gap<R: Recovery>(segments: u64) -> u64 {
    let mut path = Path::<R>::new(segments, 1, |index| index >= 2);
    let middle = path.transit.len() / 2;
    path.transit.insert(middle, (path.transit[middle].0, 1));
    looks_of(|| {
        while let Some((at, index)) = path.transit.pop_front() {
            path.arrive(at, index);
            path.send();
        }
    })
}

/// Asserts that the cost per segment in a window of 64 000 segments is at most twice the cost in a window of 8000.
fn assert_flat(looks: impl Fn(u64) -> u64) {
    let [few, many] = [8000, 64_000].map(|segments| looks(segments) as f64 / segments as f64);
    assert!(many <= 2.0 * few, "{few} looks a segment of 8000, {many} of 64 000");
}

#[test]
fn by_rack_a_segment_costs_no_more_in_a_large_window() {
    assert_flat(|segments| overshoot::<Rack>(segments, usize::MAX));
    assert_flat(closed_gap::<Rack>);
}

#[test]
fn by_rack_retransmissions_that_are_lost_cost_no_more_in_a_large_window() {
    assert_flat(|segments| overshoot::<Rack>(segments, 3));
}

#[test]
fn by_sack_a_segment_costs_no_more_in_a_large_window() {
    assert_flat(|segments| overshoot::<Sack>(segments, usize::MAX));
    assert_flat(closed_gap::<Sack>);
}

#[test]
fn by_sack1_a_segment_costs_no_more_in_a_large_window() {
    assert_flat(|segments| overshoot::<Sack1>(segments, usize::MAX));
    assert_flat(closed_gap::<Sack1>);
}
