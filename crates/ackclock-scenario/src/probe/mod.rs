//! Optional measurements on packets between the endpoints: `measure = ["transit", "ack-gaps", "spurious"]`.

mod repairs;

use std::collections::VecDeque;

use ackclock_core::results::{AckGapResult, Distribution, FlowResult, GapResult, SpuriousResult};
use ackclock_core::{FlowId, Histogram, MAX_PORTS, Message, Port, Segment, Time, Tracer};
use ackclock_tcp::host;

use self::repairs::Repairs;
use crate::Measure;
use crate::island::boxes::Places;

/// Measures packets at fixed points of islands.
pub(crate) struct Probe {
    measures: Vec<Measure>,
    /// Measuring points, indexed by island node and port.
    points: Vec<Points>,
    /// Measurements, indexed by island and flow.
    flows: Vec<Vec<FlowProbe>>,
}

/// Measurements to take at one node and port of an island. Data and ACKs of a flow cross a port in opposite directions,
/// so a packet has only one meaning at each port.
#[derive(Clone, Copy, Debug, Default)]
struct Points {
    island: usize,
    data: Option<Point>,
    acks: Option<Place>,
}

/// Meaning of a data segment that passes a measuring point.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// The original sender or a relay has just sent the segment.
    Sent(Leg),
    /// The segment has arrived at the receiver of this connection.
    Arrived(Leg),
}

/// Measuring point of ACKs.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Measuring point where the ACK leaves the edge. For an upload, the measuring point is where the ACK arrives at
    /// the edge.
    Edge = 0,
    /// Measuring point where the ACK arrives at the data sender.
    Source = 1,
}

/// Connection of a flow: the first starts at the original sender, the second at a relay.
#[derive(Clone, Copy, Debug)]
enum Leg {
    First = 0,
    Second = 1,
}

/// Measurement results of one flow; `None` for measurements that are not enabled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// One-way delays on the original sender's connection and on the relay's connection.
    pub(crate) transit: [Option<Distribution>; 2],
    pub(crate) gaps: Option<AckGapResult>,
    pub(crate) spurious: Option<SpuriousResult>,
}

impl Measured {
    /// Writes the measurements into the result row of the flow.
    pub(crate) fn into_row(self, row: &mut FlowResult) {
        row.ack_gap_ms = self.gaps.map(Box::new);
        row.spurious = self.spurious;
        match &mut row.relay {
            None => [row.transit_ms, _] = self.transit,
            Some(relay) => {
                let [far, near] = &mut relay.legs;
                [far.transit_ms, near.transit_ms] = self.transit;
            }
        }
    }
}

/// Measurement state of one flow.
#[derive(Default)]
struct FlowProbe {
    legs: [Transits; 2],
    repairs: [Repairs; 2],
    /// Time between ACKs at the edge and at the data sender.
    gaps: [Gaps; 2],
}

/// Segments in transit, and the one-way delays of segments that arrived.
#[derive(Default)]
struct Transits {
    /// Packet number and time of each transmission, oldest first.
    sent: VecDeque<(u16, Time)>,
    spans: Histogram,
}

/// Number of later segments that may overtake a segment before its delay is left unmeasured.
const MOST_OVERTAKEN: usize = 1024;
/// Number of transmissions remembered while no segment arrives. The limit keeps 16-bit packet numbers unambiguous.
const MOST_REMEMBERED: usize = 32_768;

#[derive(Default)]
struct Gaps {
    last: Option<Time>,
    spans: Histogram,
}

impl Probe {
    pub(crate) fn new(measures: &[Measure]) -> Self {
        Self { measures: measures.to_vec(), points: Vec::new(), flows: Vec::new() }
    }

    /// Adds the measuring points of one island, whose boxes are at `places`.
    pub(crate) fn listen(&mut self, places: Places) {
        let island = self.flows.len();
        self.flows.push(Vec::new());
        if self.measures.iter().any(|measure| matches!(measure, Measure::Transit | Measure::Spurious)) {
            use ackclock_link::path::{EDGE, SERVER};
            use ackclock_tcp::relay;
            let (Places { servers, path, clients, .. }, [_, edge]) = (places, places.outer_edges());
            let (download, upload) = ((clients, host::WIRE), (servers, host::WIRE));
            self.data((path, SERVER), Point::Sent(Leg::First), island);
            self.data((edge, ackclock_edge::RADIO), Point::Sent(Leg::First), island);
            let last = if let Some([node, core]) = places.relay {
                self.data((node, relay::SERVER), Point::Arrived(Leg::First), island);
                self.data((node, relay::EDGE), Point::Arrived(Leg::First), island);
                self.data((core, SERVER), Point::Sent(Leg::Second), island);
                self.data((path, EDGE), Point::Sent(Leg::Second), island);
                Leg::Second
            } else {
                Leg::First
            };
            [download, upload].into_iter().for_each(|at| self.data(at, Point::Arrived(last), island));
        }
        if self.measures.contains(&Measure::AckGaps) {
            let beyond_edge = places.relay.map_or(places.path, |[_, core]| core);
            let at_edge =
                [(beyond_edge, ackclock_link::path::EDGE), (places.outer_edges()[0], ackclock_edge::WIRED)];
            let at_source = [(places.servers, host::WIRE), (places.clients, host::WIRE)];
            at_edge.into_iter().for_each(|at| self.acks(at, Place::Edge, island));
            at_source.into_iter().for_each(|at| self.acks(at, Place::Source, island));
        }
    }

    fn data(&mut self, at: (usize, Port), point: Point, island: usize) {
        self.at(at, island).data = Some(point);
    }

    fn acks(&mut self, at: (usize, Port), place: Place, island: usize) {
        self.at(at, island).acks = Some(place);
    }

    fn at(&mut self, (node, port): (usize, Port), island: usize) -> &mut Points {
        let place = node * MAX_PORTS + usize::from(port);
        if self.points.len() <= place {
            self.points.resize(place + 1, Points::default());
        }
        let points = &mut self.points[place];
        points.island = island;
        points
    }

    /// Measurements of a flow so far.
    pub(crate) fn measured(&self, island: usize, flow: FlowId) -> Measured {
        let Some(of) = self.flows.get(island).and_then(|flows| flows.get(flow.index())) else {
            return Measured::default();
        };
        let transit = self.measures.contains(&Measure::Transit);
        let legs = of.legs.each_ref().map(|leg| transit.then(|| Distribution::from(&leg.spans)));
        let gaps = self.measures.contains(&Measure::AckGaps).then(|| {
            let [edge, server] = of.gaps.each_ref().map(Gaps::result);
            AckGapResult { edge, server }
        });
        let spurious = self.measures.contains(&Measure::Spurious).then(|| {
            let [first, second] = of.repairs.each_ref().map(Repairs::result);
            SpuriousResult {
                timeouts: first.timeouts + second.timeouts,
                fast_retransmits: first.fast_retransmits + second.fast_retransmits,
            }
        });
        Measured { transit: legs, gaps, spurious }
    }
}

impl Tracer for Probe {
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message) {
        let place = node * MAX_PORTS + usize::from(port);
        let (Some(points), Message::Segment(segment)) = (self.points.get(place), message) else { return };
        if points.data.is_none() && points.acks.is_none() {
            return;
        }
        let flows = &mut self.flows[points.island];
        let number = segment.flow.index();
        if flows.len() <= number {
            flows.resize_with(number + 1, FlowProbe::default);
        }
        flows[number].note(now, points, segment);
    }
}

impl FlowProbe {
    fn note(&mut self, now: Time, points: &Points, segment: &Segment) {
        match (points.data, points.acks) {
            (Some(Point::Sent(leg)), _) if segment.payload > 0 => {
                self.legs[leg as usize].sent(now, segment.sending);
                self.repairs[leg as usize].sent(segment);
            }
            (Some(Point::Arrived(leg)), _) if segment.payload > 0 => {
                self.legs[leg as usize].arrived(now, segment.sending);
                self.repairs[leg as usize].arrived(segment.sending);
            }
            (_, Some(place)) if segment.is_pure_ack() => self.gaps[place as usize].note(now),
            _ => {}
        }
    }
}

impl Transits {
    fn sent(&mut self, now: Time, number: u16) {
        if self.sent.len() == MOST_REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((number, now));
    }

    fn arrived(&mut self, now: Time, number: u16) {
        // The difference of the packet numbers is an upper bound of the segment's index in `sent`. Packet numbers
        // increase by more than one if segments without payload were sent in between.
        let Some(&(first, _)) = self.sent.front() else { return };
        let last = usize::from(number.wrapping_sub(first));
        let upper = (last + 1).min(self.sent.len());
        if let Some(place) = self.sent.range(..upper).rposition(|&(sent, _)| sent == number) {
            self.spans.record(now.since(self.sent[place].1));
            self.sent.drain(..place.saturating_sub(MOST_OVERTAKEN));
        }
    }
}

impl Gaps {
    fn note(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            self.spans.record(now.since(last));
        }
    }

    fn result(&self) -> GapResult {
        let half_of_median = self.spans.quantile(0.5).map(|median| median / 2);
        let compressed = half_of_median.and_then(|half| self.spans.share_below(half));
        GapResult { ms: Distribution::with_cdf(&self.spans), compressed }
    }
}
