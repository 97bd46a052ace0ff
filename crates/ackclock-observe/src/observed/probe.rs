//! A probe closes the windows to two packets until the queue is empty, if no loop near the minimum was measured for a
//! long time. A probe distinguishes a longer loop over a new route from a standing queue.

use ackclock_core::{FlowId, Span, Time};

use super::flow::Flow;
use super::user::User;
use super::vocabulary::{Probe, Run};
use ackclock_link::Side;

/// Maximum duration of a probe.
const LONGEST: Span = Span::from_secs(5);
/// Number of packets in flight up to which the queue of a flow counts as empty.
const FEW_PACKETS: u64 = 4;
/// Number of samples after which a probe ends.
const SAMPLES: u32 = 10;
const SAMPLED_FOR: Span = Span::from_millis(200);

impl User {
    /// Starts, continues or ends a probe after a sample of `flow`; `low` is set if the sample was near the minimum.
    pub(super) fn run_probe(&mut self, now: Time, flow: FlowId, low: bool) {
        let Some(after) = self.probe.after else { return };
        let Some(mut run) = self.probe.runs else {
            if self.is_high(now, flow, after) {
                self.probe = Probe {
                    runs: Some(Run { since: now, empty: None }),
                    begun: self.probe.begun + 1,
                    ..self.probe
                };
                self.floor.begin_probe();
                self.flows.values_mut().for_each(|flow| flow.floor.begin_probe());
            }
            return;
        };
        if run.empty.is_none() && self.under_way() <= self.few() {
            run.empty = Some(now);
        }
        let full = run.empty.is_some_and(|empty| now.since(empty) >= SAMPLED_FOR) && self.has_samples();
        let given_up = now.since(run.since) > LONGEST;
        let over = full || given_up || (low && self.is_cleared(now, after));
        if full {
            self.rise(now, after);
        }
        if over && (full || given_up || self.side == Side::Network) {
            self.floor.note_low(now);
            self.flows.values_mut().for_each(|flow| flow.floor.note_low(now));
        }
        self.probe.runs = Some(run).filter(|_| !over);
    }

    /// Whether the last sample near the minimum is older than `after`: any sample on the network side, a sample of the
    /// flow on the mobile side. A flow that sends little has too few samples for a probe.
    fn is_high(&self, now: Time, flow: FlowId, after: Span) -> bool {
        match self.side {
            Side::Network => self.floor.high_for(now) > after,
            Side::Mobile => self
                .flows
                .get(&flow)
                .is_some_and(|flow| flow.floor.high_for(now) > after && self.has_full_share(now, flow)),
        }
    }

    /// Whether each flow that shares the queue has a recent sample near the minimum.
    fn is_cleared(&self, now: Time, after: Span) -> bool {
        let has_low = |flow: &Flow| !self.has_full_share(now, flow) || flow.floor.high_for(now) < after;
        self.side == Side::Network || self.flows.values().all(has_low)
    }

    fn has_samples(&self) -> bool {
        match self.side {
            Side::Network => self.floor.count() >= SAMPLES,
            Side::Mobile => {
                let count: u32 = self.flows.values().map(|flow| flow.floor.count()).sum();
                f64::from(count) >= f64::from(SAMPLES) * self.active()
            }
        }
    }

    fn rise(&mut self, now: Time, after: Span) {
        self.floor.rise();
        let high = self.flows.values_mut().filter(|flow| flow.floor.high_for(now) > after);
        high.for_each(|flow| flow.floor.rise());
    }

    /// Number of bytes in flight: data that passed and is not acknowledged (network side), or data that was triggered
    /// and has not arrived (mobile side).
    fn under_way(&self) -> u64 {
        let of_flow = |flow: &Flow| match self.side {
            Side::Network => flow.unacknowledged(),
            Side::Mobile => flow.called_for(),
        };
        self.flows.values().map(of_flow).sum()
    }

    fn few(&self) -> u64 {
        ((FEW_PACKETS * u64::from(self.payload())) as f64 * self.active()) as u64
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{Segment, Seq};

    use super::super::vocabulary::Timing;
    use super::*;

    const FLOW: FlowId = FlowId(0);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A user whose flow has this many packets of 1000 bytes in flight, and in whose queue a probe began at 1001 ms.
    fn probed(packets: u32) -> User {
        let mut user = User::new(Time::ZERO, Side::Network, Probe::new(Some(Span::from_secs(1))));
        for number in 0..packets {
            let data = Segment::data(FLOW, Seq(1000 * number), 1000, 40);
            let flow = user.flow(at(900), FLOW);
            let passage = flow.on_data(at(900), &data);
            flow.remember(at(900), &data, passage, Timing::Exact);
            user.note_data(at(900), &data);
        }
        user.run_probe(at(1000), FLOW, false);
        assert!(!user.probe.runs(), "1 s without a low sample is not more than 1 s");
        user.run_probe(at(1001), FLOW, false);
        assert!(user.probe.runs());
        user
    }

    fn queue_is_empty(user: &User) -> bool {
        user.probe.runs.is_some_and(|run| run.empty.is_some())
    }

    #[test]
    fn the_queue_counts_as_empty_when_four_packets_are_in_flight() {
        let mut user = probed(10);
        for (acked, empty) in [(0, false), (5, false), (6, true)] {
            user.flow(at(1100), FLOW).on_ack(
                at(1100),
                &Segment::pure_ack(FLOW, Seq(1000 * acked), 40),
                |_| (),
            );
            user.run_probe(at(1100), FLOW, false);
            assert_eq!(queue_is_empty(&user), empty, "{acked} packets acknowledged");
        }
    }

    #[test]
    fn a_probe_that_does_not_empty_the_queue_is_given_up_after_5_s() {
        let mut user = probed(10);
        user.run_probe(at(6001), FLOW, false);
        assert!(user.probe.runs());
        user.run_probe(at(6002), FLOW, false);
        assert!(!user.probe.runs());
        user.run_probe(at(6003), FLOW, false);
        assert!(!user.probe.runs(), "the next probe needs another second without a low sample");
    }

    #[test]
    fn a_probe_ends_after_ten_samples_over_200_ms_and_raises_the_least_round_trip() {
        let mut user = probed(2);
        user.floor.on_sample(Span::from_millis(50), false);
        user.run_probe(at(1100), FLOW, false);
        for sample in 0..10 {
            assert!(user.probe.runs());
            user.floor.on_sample(Span::from_millis(80), true);
            user.run_probe(at(1300 + sample), FLOW, false);
        }
        assert!(!user.probe.runs());
        assert_eq!(user.floor.get(), Span::from_millis(80));
    }
}
