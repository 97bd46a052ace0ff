//! Outputs of a regulator other than held ACKs: segments to the mobile, kept copies, and generated segments.

use ackclock_core::{Copied, Flags, FlowId, Port, Rate, Segment, Seq, Sink, Span, Time};
use ackclock_edge::{
    Edge, FlowContext, Output, Place, RADIO, Regulator, RegulatorConfig, Scope, Verdict, WIRED,
};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{
    BufferMeaning, Capacity, Cause, Constant, Departures, LinkView, PlainBearer, SerialLink,
};

use crate::busy::Busy;

/// A regulator that keeps the first packet and retransmits it, at a place, for every ACK. It encodes the calls that it
/// received in the window of generated ACKs.
#[derive(Clone, Copy, Debug)]
struct Repeating(Place, Departures);

struct Repeater {
    place: Place,
    kept: Option<Segment>,
    output: Vec<Output>,
}

const SYN: u16 = 1;
const QUEUED: u16 = 2;
const REFUSED: u16 = 3;

impl RegulatorConfig for Repeating {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Repeater { place: self.0, kept: None, output: Vec::new() }))
    }

    fn departures(&self) -> Departures {
        self.1
    }
}

impl Repeater {
    fn say(&mut self, what: u16) {
        let mut said = Segment::pure_ack(FlowId(0), Seq(0), 40).made();
        said.window = what;
        self.output.push(Output::ToSender(said));
    }
}

impl Regulator for Repeater {
    fn on_data(&mut self, _: Time, segment: &Segment, _: LinkView) -> Verdict {
        if self.kept.is_some() {
            return Verdict::Forward;
        }
        self.kept = Some(*segment);
        Verdict::ForwardKeep
    }

    fn on_syn(&mut self, _: Time, _: &Segment, _: LinkView) {
        self.say(SYN);
    }

    fn on_queued(&mut self, _: Time, _: &Segment, _: LinkView) {
        self.say(QUEUED);
    }

    fn on_dropped(&mut self, _: Time, _: &Segment, cause: Cause, _: LinkView) {
        assert_eq!(cause, Cause::Full);
        self.say(REFUSED);
    }

    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        self.output.push(Output::Discard(ack));
        let place = self.place;
        self.output.extend(self.kept.map(|segment| Output::ToReceiver { segment, place }));
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        if self.output.is_empty() { None } else { Some(self.output.remove(0)) }
    }

    fn close(&mut self, _: Time, _: FlowId) {
        self.output.extend(self.kept.take().map(Output::Release));
    }

    fn kept(&self, _: FlowId) -> usize {
        usize::from(self.kept.is_some())
    }
}

/// Numbers of the packets that left for the mobile, the regulator's messages, and the events of copies.
#[derive(Default)]
struct Seen {
    left: Vec<u32>,
    said: Vec<u16>,
    copied: Vec<Copied>,
}

impl Sink for Seen {
    fn pass(&mut self, port: Port, segment: &Segment) {
        match port {
            RADIO => self.left.push(segment.seq.0),
            _ => self.said.push(segment.window),
        }
    }

    fn discard(&mut self, _: &Segment) {}

    fn copied(&mut self, _: &Segment, copied: Copied) {
        self.copied.push(copied);
    }
}

/// A packet takes 10 ms; three may be queued.
fn edge(regulator: impl RegulatorConfig + 'static) -> Edge {
    let link = |rate, capacity| {
        let medium = Constant::new(Rate::from_bps(rate), Span::ZERO);
        SerialLink::new(medium, DropTail::new(capacity).any(), BufferMeaning::Waiting)
    };
    let up = link(1_000_000_000_000_000, Capacity::Unlimited);
    Edge::new(PlainBearer::new(link(800_000, Capacity::Packets(3)), up), std::sync::Arc::new(regulator), 64)
}

fn data(number: u32) -> Segment {
    Segment::data(FlowId(0), Seq(number), 960, 40)
}

fn takes(edge: &mut Edge, seen: &mut Seen, port: Port, segment: Segment) {
    edge.take(Time::ZERO, port, &segment, seen);
    edge.run(Time::ZERO, seen);
}

fn finish(edge: &mut Edge, seen: &mut Seen) {
    while edge.due() != Time::NEVER {
        edge.run(edge.due(), seen);
    }
}

#[test]
fn a_copy_goes_to_the_front_or_the_back_of_the_queue() {
    // Packet 0 is in transmission, 1 and 2 are queued. With unwatched departures the link had planned all of them.
    for departures in [Departures::Watched, Departures::Unwatched] {
        for (place, left) in [(Place::Front, [0, 0, 1, 2]), (Place::Back, [0, 1, 2, 0])] {
            let (mut edge, mut seen) = (edge(Repeating(place, departures)), Seen::default());
            (0..3).for_each(|number| takes(&mut edge, &mut seen, WIRED, data(number)));
            takes(&mut edge, &mut seen, RADIO, Segment::pure_ack(FlowId(0), Seq(0), 40));
            finish(&mut edge, &mut seen);
            assert_eq!(seen.left, left, "{place:?}");
            assert_eq!(seen.said, [QUEUED; 4]);
            assert_eq!((edge.kept(FlowId(0)), seen.copied), (1, vec![Copied::Kept, Copied::Sent]));
        }
    }
}

#[test]
fn a_copy_for_which_there_is_no_room_is_lost_and_the_regulator_hears_of_it() {
    let (mut edge, mut seen) = (edge(Repeating(Place::Front, Departures::Watched)), Seen::default());
    (0..4).for_each(|number| takes(&mut edge, &mut seen, WIRED, data(number)));
    takes(&mut edge, &mut seen, RADIO, Segment::pure_ack(FlowId(0), Seq(0), 40));
    assert_eq!(seen.said, [QUEUED, QUEUED, QUEUED, QUEUED, REFUSED]);
    let counts = edge.statistics();
    assert_eq!((counts.dropped, counts.resent, edge.flow_statistics(FlowId(0)).unwrap().dropped), (1, 1, 1));
}

#[test]
fn a_copy_is_given_back_when_its_flow_ends() {
    let (mut edge, mut seen) = (edge(Repeating(Place::Back, Departures::Watched)), Seen::default());
    takes(&mut edge, &mut seen, WIRED, data(0));
    let mut reset = Segment::pure_ack(FlowId(0), Seq(0), 40);
    reset.flags = Flags::RST;
    takes(&mut edge, &mut seen, RADIO, reset);
    assert_eq!(seen.copied, [Copied::Kept, Copied::Released]);
    assert_eq!((edge.kept(FlowId(0)), edge.statistics().kept, edge.statistics().released), (0, 1, 1));
}

#[test]
fn the_syn_of_a_mobile_is_seen_and_passes() {
    let (mut edge, mut seen) = (edge(Repeating(Place::Back, Departures::Watched)), Seen::default());
    let mut syn = Segment::pure_ack(FlowId(0), Seq(0), 40);
    (syn.flags, syn.window) = (Flags::SYN, 500);
    takes(&mut edge, &mut seen, RADIO, syn);
    assert_eq!(seen.said, [SYN, 500]);
    assert_eq!(edge.statistics().made, [0, 1]);
}

#[test]
fn whoever_does_everything_does_some_of_each() {
    for scope in [Scope::Flow, Scope::User, Scope::Queue] {
        let (mut edge, mut seen) = (edge(Busy(scope)), Seen::default());
        for number in 0..100 {
            takes(&mut edge, &mut seen, WIRED, data(number));
            takes(&mut edge, &mut seen, RADIO, Segment::pure_ack(FlowId(0), Seq(number), 40));
        }
        let counts = edge.statistics();
        let each = [counts.kept, counts.resent, counts.made[0], counts.made[1], counts.discarded[0]];
        assert!(each.iter().all(|&count| count > 0) && counts.discarded[1] > 0, "{counts:?}");
        assert!(edge.held(FlowId(0)) > 0 && edge.kept(FlowId(0)) > 0);
    }
}
