//! # Zhuge
//!
//! ## Source
//! Meng et al., "Achieving Consistent Low Latency for Wireless Real-Time Communications with the Shortest Control Loop"
//! (SIGCOMM 2022), as summarised in its abstract and public reviews, and its authors' simulation (ns-3.34, 2023).
//!
//! ## What it does
//! An access point predicts the queueing delay of each packet on arrival, and tells the sender at once. The prediction
//! is the queue over the rate of the last `window`, plus the time since the last departure. An ACK is delayed by what the
//! prediction has risen since the packet that it acknowledges arrived. The sender then measures the round-trip time of a
//! packet that arrives now, one queueing delay earlier than without the delay. A fall delays nothing.
//!
//! The delay is at most `max_delay`, or by default the smallest round-trip time between edge and mobile. ACKs of a flow
//! stay in order; one with data, SYN, FIN or RST releases those before it.
//!
//! ## Differences from the source
//! The paper itself was not at hand.
//!
//! - The source draws the delay of an ACK from the changes of the last 40 ms, and lets falls cancel later rises. Here
//!   each ACK is matched with its packet, which needs memory for each packet and no random numbers.
//! - Only TCP is served: the source rewrites the feedback of RTP as well.
//! - The time of a Wi-Fi aggregate is not modelled apart from the rate.
//!
//! ## Validation
//! Unit tests check predictions and delays by hand. No implementation of others was run as a judge.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{ConfigError, FlowId, Segment, Seq, Span, Time};
use ackclock_link::LinkView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Output, Regulator, RegulatorConfig, Scope, Verdict};

/// Delays ACKs by the rise of the predicted queueing delay (Zhuge, SIGCOMM 2022); not compared with other code.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time over which the rate of the link is measured.
    pub(crate) window: Span,
    /// Longest delay of an ACK; absent: the smallest round-trip time between edge and mobile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_delay: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Self { window: Span::from_millis(40), max_delay: None }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, span) in [("window", Some(self.window)), ("max_delay", self.max_delay)] {
            if let Some(span) =
                span.filter(|span| !(Span::from_millis(1)..=Span::from_secs(10)).contains(span))
            {
                return Err(ConfigError::new(key, format!("{span} is not 1ms to 10s")));
            }
        }
        Ok(())
    }
}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Zhuge::new(self.clone())))
    }

    fn scope(&self) -> Scope {
        Scope::User
    }

    fn regulates_uplinks(&self) -> Result<(), &'static str> {
        Err("`zhuge` predicts the wait before the downlink of an access point")
    }
}

/// Maximum number of packets of a flow whose predictions are kept, and of ACKs that wait.
const MOST: usize = 4096;

/// Predictor and delayed ACKs of a user.
struct Zhuge {
    config: Config,
    /// Time, bytes and busy time of the departures within the window.
    departures: VecDeque<(Time, u32, Span)>,
    /// Last departure, or the arrival at an idle link.
    busy_since: Time,
    /// Latest prediction of the queueing delay.
    predicted: Span,
    flows: BTreeMap<FlowId, Flow>,
    /// Delayed ACKs by the time at which they leave, and their number.
    waiting: BTreeMap<(Time, u64), Segment>,
    /// Number of the next ACK.
    number: u64,
    output: VecDeque<Output>,
}

#[derive(Default)]
struct Flow {
    /// End, arrival and predicted queueing delay of the packets that were not acknowledged.
    packets: VecDeque<(Seq, Time, Span)>,
    /// Highest end of a packet.
    highest: Option<Seq>,
    /// Smallest round-trip time between edge and mobile.
    min_rtt: Option<Span>,
    /// Time at which the last ACK leaves.
    leaves: Time,
    /// Number of delayed ACKs.
    held: usize,
}

impl Flow {
    /// Removes the packets below `ack`, and returns the last one that was removed.
    fn acknowledge(&mut self, ack: Seq) -> Option<(Time, Span)> {
        let mut last = None;
        while let Some((_, arrived, predicted)) = self.packets.pop_front_if(|&mut (end, ..)| !end.after(ack))
        {
            last = Some((arrived, predicted));
        }
        last
    }
}

impl Zhuge {
    fn new(config: Config) -> Self {
        Self {
            config,
            departures: VecDeque::new(),
            busy_since: Time::ZERO,
            predicted: Span::ZERO,
            flows: BTreeMap::new(),
            waiting: BTreeMap::new(),
            number: 0,
            output: VecDeque::new(),
        }
    }

    /// Queueing delay of a packet behind `bytes`; `None` before the first departure.
    fn predict(&self, now: Time, bytes: u64) -> Option<Span> {
        let sent: u64 = self.departures.iter().map(|&(_, bytes, _)| u64::from(bytes)).sum();
        let busy: f64 = self.departures.iter().map(|&(.., busy)| busy.as_secs_f64()).sum();
        let queue = (sent > 0).then(|| Span::from_secs_f64(bytes as f64 * busy / sent as f64))?;
        Some(queue + now.since(self.busy_since))
    }

    /// Time by which an ACK is delayed, by what the prediction has risen.
    fn delay(&mut self, now: Time, ack: &Segment) -> Span {
        let Some(flow) = self.flows.get_mut(&ack.flow) else { return Span::ZERO };
        let Some((arrived, predicted)) = flow.acknowledge(ack.ack) else { return Span::ZERO };
        let rtt = now.since(arrived);
        let min_rtt = *flow.min_rtt.insert(flow.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.predicted.saturating_sub(predicted).min(self.config.max_delay.unwrap_or(min_rtt))
    }

    /// Releases the first delayed ACK.
    fn release_first(&mut self) {
        if let Some((_, ack)) = self.waiting.pop_first() {
            if let Some(flow) = self.flows.get_mut(&ack.flow) {
                flow.held -= 1;
            }
            self.output.push_back(Output::ToSender(ack));
        }
    }

    /// Releases the delayed ACKs of a flow in their order.
    fn release_all_of(&mut self, now: Time, id: FlowId) {
        let output = &mut self.output;
        self.waiting.retain(|_, ack| {
            let stays = ack.flow != id;
            if !stays {
                output.push_back(Output::ToSender(*ack));
            }
            stays
        });
        if let Some(flow) = self.flows.get_mut(&id) {
            (flow.held, flow.leaves) = (0, now);
        }
    }
}

impl Regulator for Zhuge {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        if view.is_idle() {
            self.busy_since = now;
        }
        let Some(predicted) = self.predict(now, view.waiting.bytes).filter(|_| segment.has_data()) else {
            return Verdict::Forward;
        };
        self.predicted = predicted;
        let flow = self.flows.entry(segment.flow).or_default();
        // A retransmission does not tell which transmission its ACK answers.
        if flow.highest.is_none_or(|highest| segment.end().after(highest)) {
            flow.highest = Some(segment.end());
            flow.packets.push_back((segment.end(), now, predicted));
            if flow.packets.len() > MOST {
                flow.packets.pop_front();
            }
        }
        Verdict::Forward
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, _: LinkView) {
        self.departures.push_back((now, segment.wire_bytes(), now.since(self.busy_since)));
        self.busy_since = now;
        let window = self.config.window;
        while self.departures.front().is_some_and(|&(at, ..)| now.since(at) >= window) {
            self.departures.pop_front();
        }
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, _: LinkView) {
        let delay = self.delay(now, &ack);
        if !ack.is_pure_ack() {
            self.release_all_of(now, ack.flow);
            self.output.push_back(Output::ToSender(ack));
            return;
        }
        let flow = self.flows.entry(ack.flow).or_default();
        flow.leaves = flow.leaves.max(now + delay);
        if flow.leaves <= now {
            self.output.push_back(Output::ToSender(ack));
            return;
        }
        flow.held += 1;
        self.waiting.insert((flow.leaves, self.number), ack);
        self.number += 1;
        if self.waiting.len() > MOST {
            self.release_first();
        }
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        while self.waiting.first_key_value().is_some_and(|(&(leaves, _), _)| leaves <= now) {
            self.release_first();
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|(&(leaves, _), _)| leaves)
    }

    fn close(&mut self, now: Time, flow: FlowId) {
        self.release_all_of(now, flow);
        self.flows.remove(&flow);
    }

    fn held(&self, flow: FlowId) -> usize {
        self.flows.get(&flow).map_or(0, |flow| flow.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Flags;
    use ackclock_link::Load;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn view(bytes: u64) -> LinkView {
        LinkView { waiting: Load { packets: (bytes / 1000) as u32, bytes }, ..LinkView::NOTHING }
    }

    fn data(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number * 960), 960, 40)
    }

    fn ack(number: u32) -> Segment {
        Segment::pure_ack(FlowId(0), Seq((number + 1) * 960), 40)
    }

    /// A link that has sent 1000 bytes each 2 ms until 100 ms: 0.5 MB/s.
    fn steady(max_delay: Option<Span>) -> Zhuge {
        let mut zhuge = Zhuge::new(Config { max_delay, ..Config::default() });
        (0..=50).for_each(|number| zhuge.on_departed(at(2 * number), &data(0), view(5000)));
        zhuge
    }

    /// Times in milliseconds at which the ACKs leave.
    fn leave(zhuge: &mut Zhuge, acks: &[(u64, Segment)]) -> Vec<(u64, u32)> {
        let mut left = Vec::new();
        let mut note = |zhuge: &mut Zhuge, now: Time| {
            while let Some(Output::ToSender(ack)) = zhuge.poll_output(now) {
                left.push((now.as_nanos() / 1_000_000, ack.ack.0 / 960 - 1));
            }
        };
        for &(millis, ack) in acks {
            while let Some(due) = zhuge.poll_timeout().filter(|&due| due <= at(millis)) {
                zhuge.handle_timeout(due, view(0));
                note(zhuge, due);
            }
            zhuge.handle_ack(at(millis), ack, view(0));
            note(zhuge, at(millis));
        }
        while let Some(due) = zhuge.poll_timeout() {
            zhuge.handle_timeout(due, view(0));
            note(zhuge, due);
        }
        left
    }

    #[test]
    fn the_prediction_is_the_queue_over_the_rate_and_the_stall() {
        let zhuge = steady(None);
        assert_eq!(zhuge.predict(at(100), 5000), Some(Span::from_millis(10)));
        assert_eq!(zhuge.predict(at(107), 5000), Some(Span::from_millis(17)));
        assert_eq!(Zhuge::new(Config::default()).predict(at(0), 5000), None);
    }

    /// The rate of the last 40 ms counts: after 20 departures of 4 ms it is 0.25 MB/s.
    #[test]
    fn the_rate_is_that_of_the_window() {
        let mut zhuge = steady(None);
        (1..=20).for_each(|number| zhuge.on_departed(at(100 + 4 * number), &data(0), view(5000)));
        assert_eq!(zhuge.predict(at(180), 5000), Some(Span::from_millis(20)));
    }

    /// Packet 0 arrives behind 1000 B (2 ms), packet 1 behind 9000 B (18 ms): the ACK of packet 0 is 16 ms late, as the
    /// round-trip time of packet 1 will be. The ACK of packet 1 is not.
    #[test]
    fn an_ack_is_delayed_by_the_rise_of_the_prediction() {
        let mut zhuge = steady(Some(Span::from_millis(100)));
        zhuge.on_data(at(100), &data(0), view(1000));
        zhuge.on_data(at(100), &data(1), view(9000));
        assert_eq!(leave(&mut zhuge, &[(110, ack(0)), (150, ack(1))]), [(126, 0), (150, 1)]);
    }

    #[test]
    fn acks_stay_in_order_and_a_fall_delays_nothing() {
        let mut zhuge = steady(Some(Span::from_millis(100)));
        zhuge.on_data(at(100), &data(0), view(1000));
        zhuge.on_data(at(100), &data(1), view(9000));
        assert_eq!(leave(&mut zhuge, &[(110, ack(0)), (111, ack(1))]), [(126, 0), (126, 1)]);
        zhuge.on_data(at(100), &data(2), view(9000));
        zhuge.on_data(at(100), &data(3), view(1000));
        assert_eq!(leave(&mut zhuge, &[(140, ack(2))]), [(140, 2)]);
    }

    #[test]
    fn the_delay_is_at_most_the_smallest_round_trip_time_or_the_limit() {
        for (max_delay, left) in [(None, 120), (Some(Span::from_millis(5)), 115)] {
            let mut zhuge = steady(max_delay);
            zhuge.on_data(at(100), &data(0), view(1000));
            zhuge.on_data(at(100), &data(1), view(90_000));
            assert_eq!(leave(&mut zhuge, &[(110, ack(0))]), [(left, 0)]);
        }
    }

    #[test]
    fn a_retransmission_and_a_duplicate_ack_are_not_delayed() {
        let mut zhuge = steady(Some(Span::from_millis(100)));
        zhuge.on_data(at(100), &data(0), view(1000));
        assert_eq!(leave(&mut zhuge, &[(105, ack(0))]), [(105, 0)]);
        zhuge.on_data(at(106), &data(0), view(9000));
        zhuge.on_data(at(106), &data(1), view(20_000));
        assert_eq!(leave(&mut zhuge, &[(110, ack(0))]), [(110, 0)]);
    }

    #[test]
    fn a_fin_releases_the_acks_before_it_and_closing_all_of_them() {
        let mut zhuge = steady(Some(Span::from_millis(100)));
        let mut fin = ack(1);
        fin.flags |= Flags::FIN;
        for last in [Some(fin), None] {
            zhuge.on_data(at(100), &data(0), view(1000));
            zhuge.on_data(at(100), &data(1), view(9000));
            zhuge.handle_ack(at(110), ack(0), view(0));
            assert_eq!((zhuge.held(FlowId(0)), zhuge.poll_output(at(110))), (1, None));
            match last {
                Some(fin) => zhuge.handle_ack(at(111), fin, view(0)),
                None => zhuge.close(at(111), FlowId(0)),
            }
            assert_eq!(zhuge.poll_output(at(111)), Some(Output::ToSender(ack(0))));
            assert_eq!(zhuge.poll_output(at(111)), last.map(Output::ToSender));
            assert_eq!((zhuge.held(FlowId(0)), zhuge.poll_timeout()), (0, None));
            zhuge.flows.clear();
        }
    }

    #[test]
    fn an_impossible_value_is_refused() {
        use ackclock_core::Config as _;
        let config = Config { max_delay: Some(Span::from_secs(20)), ..Config::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "max_delay: 20s is not 1ms to 10s");
    }
}
