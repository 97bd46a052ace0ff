//! What packets do between the ends, measured where a scenario asks for it: `measure = ["transit", "ack-gaps"]`.

use std::collections::VecDeque;

use ackclock_core::results::{AckGapResult, Distribution, FlowResult, GapResult};
use ackclock_core::{FlowId, Histogram, MAX_PORTS, Message, Port, Segment, Time, Tracer};
use ackclock_tcp::host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::island::Places;

/// Something that is measured only where it is asked for, because it costs time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// How long data segments travel from their sender to its peer (`transit_ms`).
    Transit,
    /// Gaps between the ACKs of a flow where they leave the edge and where they reach the server (`ack_gap_ms`).
    AckGaps,
}

/// Measures what passes the wires of islands.
pub(crate) struct Probe {
    measures: Vec<Measure>,
    /// What a message at a node and port means, and of which island.
    points: Vec<Option<(Point, usize)>>,
    /// By island and flow.
    flows: Vec<Vec<FlowProbe>>,
}

/// What it means that a message arrives somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// Data was sent: at a server, or by a relay.
    Sent(Leg),
    /// Data has reached the peer of its sender.
    Arrived(Leg),
    /// An ACK has left the edge.
    LeftEdge,
    /// An ACK has reached the server.
    ReachedServer,
}

/// A connection of a flow: that of the server, or that of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    Far = 0,
    Near = 1,
}

/// What was measured of one flow, as results; `None` for what was not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Of the connection of the server, and of that of a relay.
    pub(crate) transit: [Option<Distribution>; 2],
    pub(crate) gaps: Option<AckGapResult>,
}

impl Measured {
    /// Writes it into the row of the flow.
    pub(crate) fn into_row(self, row: &mut FlowResult) {
        row.ack_gap_ms = self.gaps.map(Box::new);
        match &mut row.relay {
            None => [row.transit_ms, _] = self.transit,
            Some(relay) => {
                let [far, near] = &mut relay.legs;
                [far.transit_ms, near.transit_ms] = self.transit;
            }
        }
    }
}

/// What is noted of one flow.
#[derive(Default)]
struct FlowProbe {
    legs: [Transits; 2],
    /// Where ACKs leave the edge, and where they reach the server.
    gaps: [Gaps; 2],
}

/// Segments on their way.
#[derive(Default)]
struct Transits {
    /// Number and instant of each sending, the oldest first.
    sent: VecDeque<(u16, Time)>,
    spans: Histogram,
}

/// A segment that this many later ones have overtaken is not measured.
const MOST_OVERTAKEN: usize = 1024;
/// Sendings that are remembered while nothing arrives; their numbers are apart.
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

    /// Listens to an island too, whose boxes stand at these places.
    pub(crate) fn listen(&mut self, places: Places) {
        let island = self.flows.len();
        self.flows.push(Vec::new());
        if self.measures.contains(&Measure::Transit) {
            let near = places.relay.map(|[relay, core]| {
                [
                    ((relay, ackclock_tcp::relay::SERVER), Point::Arrived(Leg::Far)),
                    ((core, ackclock_link::path::SERVER), Point::Sent(Leg::Near)),
                    ((places.clients, host::WIRE), Point::Arrived(Leg::Near)),
                ]
            });
            let far = [((places.clients, host::WIRE), Point::Arrived(Leg::Far))];
            let sent = ((places.path, ackclock_link::path::SERVER), Point::Sent(Leg::Far));
            let arrivals = near.as_ref().map_or(&far[..], |near| &near[..]);
            [sent].iter().chain(arrivals).for_each(|&(at, point)| self.place(at, point, island));
        }
        if self.measures.contains(&Measure::AckGaps) {
            let beyond_edge = places.relay.map_or(places.path, |[_, core]| core);
            self.place((beyond_edge, ackclock_link::path::EDGE), Point::LeftEdge, island);
            self.place((places.servers, host::WIRE), Point::ReachedServer, island);
        }
    }

    fn place(&mut self, (node, port): (usize, Port), point: Point, island: usize) {
        let place = node * MAX_PORTS + usize::from(port);
        if self.points.len() <= place {
            self.points.resize(place + 1, None);
        }
        self.points[place] = Some((point, island));
    }

    /// What was measured of a flow so far.
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
        Measured { transit: legs, gaps }
    }
}

impl Tracer for Probe {
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message) {
        let place = node * MAX_PORTS + usize::from(port);
        let (Some(&Some((point, island))), Message::Segment(segment)) = (self.points.get(place), message)
        else {
            return;
        };
        let flows = &mut self.flows[island];
        let number = segment.flow.index();
        if flows.len() <= number {
            flows.resize_with(number + 1, FlowProbe::default);
        }
        flows[number].note(now, point, segment);
    }
}

impl FlowProbe {
    fn note(&mut self, now: Time, point: Point, segment: &Segment) {
        match point {
            Point::Sent(leg) if segment.payload > 0 => self.legs[leg as usize].sent(now, segment.sending),
            Point::Arrived(leg) if segment.payload > 0 => {
                self.legs[leg as usize].arrived(now, segment.sending);
            }
            Point::LeftEdge if segment.is_pure_ack() => self.gaps[0].note(now),
            Point::ReachedServer if segment.is_pure_ack() => self.gaps[1].note(now),
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
        // Numbers follow each other, but for what was sent without payload between them: the place is no later than this.
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
        GapResult { ms: Distribution::from(&self.spans), compressed }
    }
}
