//! Flows take turns if two packets of each flow are more than the queue needs.
//!
//! A sender is allowed at least two packets, because a receiver delays the ACK of a single packet. With many flows over
//! a slow link, two packets of each flow exceed the expected service. When flows take turns, the ACKs of a flow are
//! held until its turn. The turn of a flow comes when the queue, plus the triggered data still in transit, is at most
//! the share of one flow. In one turn, a flow may send two packets. When both packets have left the queue, the flow
//! queues for its next turn. Turns are given in the order of queueing.
//!
//! Turns replace queueing delay by an equal delay of the ACKs, so the RTT that the sender measures is unchanged. A
//! sender times out only if the link fades. Retransmissions after a timeout contain acknowledged data and are
//! discarded. A flow gets its turn in any case after the link could have served four turns of all flows.

use std::collections::VecDeque;

use ackclock_core::Time;

use super::super::Shared;
use super::budget::Look;
use super::{Flow, MOST_HELD};

/// Number of rounds after which a flow gets its turn even without room in the queue. In one round, the link serves two
/// packets of each flow. A limit of rounds is necessary because flows that are not window-limited may keep the queue
/// full indefinitely.
const ROUNDS: f64 = 4.0;

/// Flows that wait for their turn, and data that earlier turns have triggered.
#[derive(Debug, Default)]
pub(in super::super) struct Turns {
    /// Indices of waiting flows in the order of queueing, with the total service in bytes at the time each flow began
    /// to wait.
    line: VecDeque<(usize, f64)>,
    /// Triggered data in transit: its arrival time at the queue, and its bytes.
    coming: VecDeque<(Time, u32)>,
    /// Sum of the bytes in `coming`.
    sum: f64,
}

impl Turns {
    /// Index of the flow that is first in line.
    pub(in super::super) fn first(&self) -> Option<usize> {
        self.line.front().map(|(place, _)| *place)
    }

    /// Time at which the flow first in line may take its turn even if no packet leaves the queue, because triggered
    /// data has not arrived.
    pub(in super::super) fn due(&self) -> Option<Time> {
        self.line.front()?;
        self.coming.front().map(|(comes, _)| *comes)
    }

    /// Returns whether the link served `enough` bytes since the flow first in line began to wait. `served` is the total
    /// service so far.
    fn is_overdue(&self, served: f64, enough: f64) -> bool {
        self.line.front().is_some_and(|(_, before)| served - before >= enough)
    }

    fn leave(&mut self, place: usize) {
        self.line.retain(|(waits, _)| *waits != place);
    }

    fn on_told(&mut self, comes: Time, bytes: u32) {
        self.coming.push_back((comes, bytes));
        self.sum += f64::from(bytes);
    }

    /// Number of triggered bytes that have not arrived at the queue yet.
    pub(in super::super) fn coming(&mut self, now: Time) -> f64 {
        while let Some((_, bytes)) = self.coming.pop_front_if(|(comes, _)| *comes <= now) {
            self.sum -= f64::from(bytes);
        }
        self.sum
    }
}

impl Flow {
    /// Returns whether two packets are more than the flow's share of the budget, so that the flow takes turns.
    pub(super) fn takes_turns(&self, look: &Look, shared: &Shared) -> bool {
        let least = f64::from(self.advertiser.least());
        self.may_keep(look, shared)
            && look.total < least * f64::from(shared.shares.flows())
            && shared.shares.of(&self.share, look.total) < least
    }

    /// Allows two packets if it is the flow's turn. If it is not the flow's turn, the flow queues for its next turn.
    pub(super) fn take_turn(&mut self, now: Time, look: &Look, shared: &mut Shared) {
        let is_over = self.inside() == 0;
        let is_first = shared.turns.first().is_none_or(|first| first == self.place);
        let may_go = is_first && (self.has_room(now, shared) || self.has_waited_for_all(shared));
        if (is_over || self.in_line) && may_go {
            self.leave_line(shared);
            let before = self.advertiser.law.edge();
            self.release_all(now, shared);
            self.update(now, look, shared);
            if let (Some(before), Some(told)) = (before, self.advertiser.law.edge()) {
                shared.turns.on_told(now + self.source.wired(), told.since(before));
            }
        } else if is_over && !self.held.is_empty() && !self.in_line {
            self.in_line = true;
            shared.turns.line.push_back((self.place, shared.link.served()));
        }
        while self.held.len() > MOST_HELD {
            self.pass_head(now, look, shared);
        }
    }

    /// Removes the flow from the line of waiting flows.
    pub(super) fn leave_line(&mut self, shared: &mut Shared) {
        if std::mem::take(&mut self.in_line) {
            shared.turns.leave(self.place);
        }
    }

    /// Returns whether the link could have served all flows [`ROUNDS`] times while the flow first in line waited.
    fn has_waited_for_all(&self, shared: &Shared) -> bool {
        let all = f64::from(self.advertiser.least()) * f64::from(shared.shares.flows());
        shared.turns.is_overdue(shared.link.served(), ROUNDS * all)
    }

    /// Returns whether the queue plus the triggered data in transit is at most the share of one flow.
    fn has_room(&self, now: Time, shared: &mut Shared) -> bool {
        let payload = f64::from(self.advertiser.accounts.payload());
        let there = shared.inside as f64 * payload + shared.turns.coming(now);
        there <= self.served(now, shared) + f64::from(shared.config.packets) * payload
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Segment, Span};
    use ackclock_link::Capacity;

    use super::super::super::{Config, Forecast};
    use crate::window_regulator::bench::Bench;

    /// Returns the segment with the given flow number.
    fn of(flow: u32, mut segment: Segment) -> Segment {
        segment.flow = FlowId(flow);
        segment
    }

    /// Creates a bench with two packets of each of eight flows in the queue. The first ACK of each flow was sent.
    fn eight() -> Bench {
        let config = Config { updates: 0.0, learning: 0.0, ..Config::default() };
        let mut bench = Bench::with_buffer(Box::new(Forecast::new(config)), Capacity::Packets(100));
        (0..8).for_each(|flow| assert!(bench.take(of(flow, Bench::data(0)))));
        (0..8).for_each(|flow| bench.handle(of(flow, Bench::pure_ack(0))));
        assert_eq!(bench.sent(), [(0, 2); 8]);
        // A round trip later, each flow sends the data that its window allows, so each flow is window-limited.
        bench.now += Span::from_millis(120);
        (0..8).for_each(|flow| assert!(bench.take(of(flow, Bench::data(1)))));
        bench
    }

    /// Returns the flows whose ACKs are held.
    fn kept(bench: &Bench) -> Vec<u32> {
        (0..8).filter(|flow| bench.regulator.held(FlowId(*flow)) > 0).collect()
    }

    #[test]
    fn flows_go_in_order_when_no_more_waits_than_one_would_be_told() {
        let mut bench = eight();
        // One packet of each flow leaves, followed by the second packets of flows 0 to 3. Flows 0 to 2 then acknowledge
        // two packets.
        (0..12).for_each(|_| bench.depart());
        assert_eq!((bench.sent(), kept(&bench)), (vec![], vec![]));
        for flow in [2, 0, 1] {
            bench.handle(of(flow, Bench::pure_ack(2)));
        }
        // Four packets are queued, fewer than the five packets of one flow's share. Flow 2 is allowed two packets,
        // which are still in transit.
        assert_eq!((bench.sent(), kept(&bench)), (vec![(2, 2)], vec![0, 1]));
        bench.depart();
        assert_eq!((bench.sent(), kept(&bench)), (vec![(2, 2)], vec![1]), "three, and two to come");
        // No packet leaves the queue, but the data triggered for flow 2 is overdue.
        let due = bench.regulator.poll_timeout().unwrap();
        assert_eq!(due, bench.now + Span::from_millis(120), "the round trip of the wire");
        bench.now = due;
        bench.expire();
        assert_eq!(kept(&bench), [0; 0]);
    }

    #[test]
    fn a_turn_is_over_when_both_packets_have_left() {
        let mut bench = eight();
        (0..8).for_each(|_| bench.depart());
        bench.handle(of(0, Bench::pure_ack(1)));
        assert_eq!(kept(&bench), [0]);
        (0..2).for_each(|_| bench.depart());
        assert_eq!((bench.sent(), kept(&bench)), (vec![], vec![0]), "its second packet has left, six wait");
        bench.handle(of(7, Bench::pure_ack(1)));
        bench.depart();
        assert_eq!((bench.sent(), kept(&bench)), (vec![(1, 3)], vec![7]), "that of 7 is not over");
    }

    #[test]
    fn a_flow_goes_when_all_could_have_gone_four_times_whatever_others_have_in_the_queue() {
        let mut bench = eight();
        (0..10).for_each(|_| bench.depart());
        bench.handle(of(0, Bench::pure_ack(2)));
        assert_eq!((bench.sent(), kept(&bench)), (vec![], vec![0]), "six wait");
        // Flow 7 keeps the queue full.
        for number in 2..65 {
            assert!(bench.take(of(7, Bench::data(number))));
            bench.depart();
        }
        assert_eq!((bench.sent(), kept(&bench)), (vec![], vec![0]), "63 packets");
        bench.take(of(7, Bench::data(65)));
        bench.depart();
        assert_eq!((bench.sent(), kept(&bench)), (vec![(2, 2)], vec![]), "four times two of eight flows");
    }

    #[test]
    fn what_is_sent_again_while_an_ack_waits_for_its_turn_is_discarded_and_the_ack_stays() {
        let mut bench = eight();
        (0..10).for_each(|_| bench.depart());
        bench.handle(of(0, Bench::pure_ack(2)));
        assert_eq!((bench.sent(), kept(&bench)), (vec![], vec![0]));
        let again = of(0, Bench::data(0));
        assert_eq!(bench.regulator.on_data(bench.now, &again, bench.view()), crate::Verdict::Drop);
        assert_eq!((bench.sent(), kept(&bench)), (vec![], vec![0]));
        bench.regulator.close(bench.now, FlowId(0));
        assert_eq!((bench.sent().len(), kept(&bench)), (1, vec![]), "its end lets it go");
    }
}
