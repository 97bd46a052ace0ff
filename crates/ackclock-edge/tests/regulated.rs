//! How an edge treats the output of a regulator, when it calls it, and when flows start and end.

use std::sync::{Arc, Mutex};

use ackclock_core::{Copied, Ecn, Flags, FlowId, Port, Rate, Segment, Seq, Sink, Span, Streams, Time};
use ackclock_edge::{
    Edge, EdgeConfig, FlowContext, Output, RADIO, Regulator, RegulatorConfig, Surroundings, Verdict, WIRED,
};
use ackclock_link::queue::{Choose, DropTail, Place, Queue};
use ackclock_link::{
    BufferMeaning, Capacity, Cause, Change, Constant, Direction, LinkView, Load, NoFiles, PlainBearer,
    SerialLink,
};
use delegate::delegate;
use serde_json::json;

/// A call to a regulator, or to the queue of its edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Begins,
    Data,
    Queued,
    Dropped,
    /// With the rate of the link, bit/s.
    Departed(u64),
    Ack,
    Timeout,
    Ends,
    /// A call to the queue.
    Forget(FlowId),
}

use Heard::{Ack, Begins, Data, Departed, Dropped, Ends, Forget, Queued, Timeout};

type Diary = Arc<Mutex<Vec<Heard>>>;

/// A regulator that gives one verdict for everything and holds every ACK until its flow ends.
#[derive(Clone, Debug)]
struct Script {
    verdict: Verdict,
    deadline: Option<Time>,
    diary: Diary,
}

impl RegulatorConfig for Script {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        self.diary.lock().unwrap().push(Begins);
        Some(Box::new(Scripted { script: self.clone(), held: Vec::new(), output: Vec::new() }))
    }
}

struct Scripted {
    script: Script,
    held: Vec<Segment>,
    output: Vec<Segment>,
}

impl Scripted {
    fn note(&self, told: Heard) {
        self.script.diary.lock().unwrap().push(told);
    }
}

impl Regulator for Scripted {
    fn on_data(&mut self, _: Time, _: &Segment, _: LinkView) -> Verdict {
        self.note(Data);
        self.script.verdict
    }

    fn on_queued(&mut self, _: Time, _: &Segment, _: LinkView) {
        self.note(Queued);
    }

    fn on_dropped(&mut self, _: Time, _: &Segment, _: Cause, _: LinkView) {
        self.note(Dropped);
    }

    fn on_departed(&mut self, _: Time, _: &Segment, view: LinkView) {
        self.note(Departed(view.rate.as_bps()));
    }

    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        self.note(Ack);
        self.held.push(ack);
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        if self.script.deadline.is_some_and(|deadline| deadline <= now) {
            self.note(Timeout);
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop().map(Output::ToSender)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.script.deadline
    }

    fn close(&mut self, _: Time, _: FlowId) {
        self.note(Ends);
        self.output.append(&mut self.held);
    }

    fn held(&self, _: FlowId) -> usize {
        self.held.len()
    }
}

/// A queue that records which flows it is told to forget.
struct Forgetful(DropTail, Diary);

impl Queue for Forgetful {
    delegate! {
        to self.0 {
            fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause>;
            fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)>;
            fn pass(&mut self, now: Time, segment: &Segment);
            fn is_empty(&self) -> bool;
            fn poll_dropped(&mut self) -> Option<(Segment, Cause)>;
            fn oldest(&self) -> Time;
            fn remove_oldest(&mut self, now: Time) -> Option<Segment>;
            fn remove(&mut self, now: Time, flow: FlowId, choose: Choose<'_>) -> Option<Segment>;
            fn waiting(&self, flow: FlowId) -> Load;
            fn load(&self) -> Load;
            fn together(&self, a: FlowId, b: FlowId) -> bool;
            fn capacity(&self, flow: FlowId) -> Capacity;
            fn assign(&mut self, flow: FlowId, user: u32);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.1.lock().unwrap().push(Forget(flow));
    }
}

/// Output of an edge.
#[derive(Default)]
struct Seen {
    passed: Vec<(Port, Segment)>,
    discarded: Vec<Segment>,
    copied: Vec<Copied>,
}

impl Sink for Seen {
    fn pass(&mut self, port: Port, segment: &Segment) {
        self.passed.push((port, *segment));
    }

    fn discard(&mut self, segment: &Segment) {
        self.discarded.push(*segment);
    }

    fn copied(&mut self, _: &Segment, copied: Copied) {
        self.copied.push(copied);
    }
}

/// An edge with room for one packet plus the one in transmission, which takes 10 ms on the downlink and 0 on the
/// uplink.
struct World {
    edge: Edge,
    seen: Seen,
    diary: Diary,
    now: Time,
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

impl World {
    fn new(verdict: Verdict, deadline: Option<Time>) -> Self {
        let diary = Diary::default();
        let link = |rate, queue| {
            SerialLink::new(Constant::new(Rate::from_bps(rate), Span::ZERO), queue, BufferMeaning::Waiting)
        };
        let down = Forgetful(DropTail::new(Capacity::Packets(1)), Arc::clone(&diary)).any();
        let bearer = PlainBearer::new(
            link(800_000, down),
            link(1_000_000_000_000_000, DropTail::new(Capacity::Unlimited).any()),
        );
        let script = Script { verdict, deadline, diary: Arc::clone(&diary) };
        Self {
            edge: Edge::new(bearer, std::sync::Arc::new(script), 64),
            seen: Seen::default(),
            diary,
            now: Time::ZERO,
        }
    }

    fn takes(&mut self, port: Port, segment: Segment) {
        self.edge.take(self.now, port, &segment, &mut self.seen);
        self.edge.run(self.now, &mut self.seen);
    }

    fn until(&mut self, until: Time) {
        while self.edge.due() <= until {
            self.edge.run(self.edge.due(), &mut self.seen);
        }
        self.now = until;
    }

    /// Calls since the last time.
    fn told(&mut self) -> Vec<Heard> {
        std::mem::take(&mut *self.diary.lock().unwrap())
    }

    /// Segments that left at a port since the last call.
    fn left(&mut self, port: Port) -> Vec<Segment> {
        let (left, rest) = std::mem::take(&mut self.seen.passed).into_iter().partition(|(to, _)| *to == port);
        self.seen.passed = rest;
        left.into_iter().map(|(_, segment): (Port, Segment)| segment).collect()
    }
}

/// 1000 bytes including headers.
fn data() -> Segment {
    let mut segment = Segment::data(FlowId(0), Seq(0), 960, 40);
    segment.ecn = Ecn::Ect0;
    segment
}

fn ack(number: u32) -> Segment {
    Segment::pure_ack(FlowId(0), Seq(number), 40)
}

fn with(mut segment: Segment, flags: Flags) -> Segment {
    segment.flags |= flags;
    segment
}

#[test]
fn forward_passes_a_packet_as_it_came() {
    let mut world = World::new(Verdict::Forward, None);
    world.takes(WIRED, data());
    world.until(at(10));
    assert_eq!(world.left(RADIO), [data()]);
    assert_eq!(world.told(), [Begins, Data, Queued, Departed(800_000)]);
}

#[test]
fn mark_ce_passes_a_packet_that_has_met_congestion() {
    let mut world = World::new(Verdict::MarkCe, None);
    world.takes(WIRED, data());
    world.until(at(10));
    let mut marked = data();
    marked.ecn = Ecn::Ce;
    assert_eq!(world.left(RADIO), [marked]);
    assert_eq!(world.told(), [Begins, Data, Queued, Departed(800_000)]);
}

#[test]
fn drop_discards_a_packet_before_the_queue() {
    let mut world = World::new(Verdict::Drop, None);
    world.takes(WIRED, data());
    world.until(at(10));
    assert_eq!((world.left(RADIO), std::mem::take(&mut world.seen.discarded)), (Vec::new(), vec![data()]));
    assert_eq!(world.told(), [Begins, Data]);
    let counts = world.edge.statistics();
    assert_eq!((counts.entered, counts.discarded, counts.dropped), (1, [1, 0], 0));
}

#[test]
fn a_regulator_is_told_of_a_packet_that_found_the_queue_full() {
    let mut world = World::new(Verdict::Forward, None);
    // One in transmission, one queued, one too many.
    (0..3).for_each(|_| world.takes(WIRED, data()));
    assert_eq!(world.told(), [Begins, Data, Queued, Data, Queued, Data, Dropped]);
    assert_eq!(world.edge.statistics().dropped, 1);
}

#[test]
fn packets_that_are_not_tcp_pass_beside_the_regulator() {
    let mut world = World::new(Verdict::Drop, None);
    let opaque = Segment::opaque(FlowId(0), 1000);
    world.takes(WIRED, opaque);
    // ACK flags of a packet that is not TCP are ignored.
    world.takes(RADIO, with(opaque, Flags::ACK | Flags::RST));
    world.until(at(10));
    assert_eq!((world.left(RADIO).len(), world.left(WIRED).len()), (1, 1));
    // The edge cannot avoid watching the departure of the packet in transmission.
    assert_eq!(world.told(), [Begins, Departed(800_000)]);
}

#[test]
fn a_flow_ends_by_a_rst_from_either_side_and_gives_back_what_is_held() {
    for port in [WIRED, RADIO] {
        let mut world = World::new(Verdict::Forward, Some(at(500)));
        world.takes(WIRED, data());
        world.takes(RADIO, ack(0));
        assert_eq!((world.edge.held(FlowId(0)), world.left(WIRED).len()), (1, 0));
        world.told();
        world.takes(port, with(ack(0), Flags::RST));
        let told = world.told();
        assert!(told.ends_with(&[Ends, Forget(FlowId(0))]), "{told:?}");
        // Its ACK, and the RST if that was held too.
        assert_eq!(world.left(WIRED).len(), if port == RADIO { 2 } else { 1 });
        world.until(at(100));
        assert_eq!(world.edge.due(), Time::NEVER, "its deadline went with it");
        world.takes(RADIO, ack(960));
        assert_eq!(world.left(WIRED), [ack(960)], "what comes after the end passes");
    }
}

/// RFC 9293 section 3.5.2: the answer to a segment with an ACK takes its sequence number from there, and carries no
/// ACK itself.
#[test]
fn a_flow_ends_by_a_rst_without_an_ack_which_follows_what_is_held() {
    let mut world = World::new(Verdict::Forward, Some(at(500)));
    world.takes(WIRED, data());
    world.takes(RADIO, ack(0));
    let mut reset = Segment::pure_ack(FlowId(0), Seq(0), 40);
    reset.flags = Flags::RST;
    world.told();
    world.takes(RADIO, reset);
    let told = world.told();
    assert!(told.ends_with(&[Ends, Forget(FlowId(0))]), "{told:?}");
    assert!(!told.contains(&Ack), "it acknowledges nothing: {told:?}");
    assert_eq!(world.left(WIRED), [ack(0), reset]);
    world.until(at(100));
    assert_eq!(world.edge.due(), Time::NEVER, "its deadline went with it");
}

#[test]
fn a_deadline_is_kept_while_the_flow_lasts() {
    let mut world = World::new(Verdict::Forward, Some(at(500)));
    world.takes(WIRED, data());
    world.until(at(499));
    assert!(!world.told().contains(&Timeout));
    world.until(at(500));
    assert_eq!(world.told(), [Timeout]);
}

#[test]
fn a_flow_ends_when_its_fin_is_acknowledged_and_no_earlier() {
    let mut world = World::new(Verdict::Forward, None);
    world.takes(WIRED, with(data(), Flags::FIN));
    world.until(at(10));
    world.takes(RADIO, ack(960));
    assert_eq!(world.edge.held(FlowId(0)), 1, "all but the FIN, which is the byte behind");
    world.told();
    world.takes(RADIO, ack(961));
    assert_eq!(world.told(), [Ack, Ends, Forget(FlowId(0))]);
    assert_eq!(world.left(WIRED).len(), 2);
}

#[test]
fn a_new_connection_under_the_number_of_one_that_ended_has_a_regulator_and_other_packets_have_none() {
    let mut world = World::new(Verdict::Forward, None);
    world.takes(WIRED, with(data(), Flags::FIN));
    world.takes(RADIO, ack(961));
    world.until(at(10));
    world.told();
    world.takes(WIRED, data());
    world.until(at(20));
    assert_eq!(world.told(), [], "a packet that was late begins nothing");
    world.takes(WIRED, with(ack(0), Flags::SYN));
    world.takes(RADIO, ack(0));
    let told = world.told();
    assert!(told.contains(&Begins) && told.ends_with(&[Ack]), "{told:?}");
    // The FIN of the old connection does not end the new one.
    world.takes(RADIO, ack(961));
    assert_eq!((world.told(), world.edge.held(FlowId(0))), (vec![Ack], 2));
}

/// The live driver may be late: everything then arrives in one call.
#[test]
fn what_departed_before_a_step_is_told_with_the_link_as_it_was() {
    let mut world = World::new(Verdict::Forward, None);
    world.takes(WIRED, data());
    world.takes(WIRED, data());
    world.told();
    let slower = Constant::new(Rate::from_bps(400_000), Span::ZERO);
    world.edge.change(at(15), Direction::Down, Change::Medium(Box::new(slower)));
    world.edge.run(at(100), &mut world.seen);
    assert_eq!(world.told(), [Departed(800_000), Departed(400_000)]);
    assert_eq!(world.left(RADIO).len(), 2);
}

#[test]
fn no_more_flows_than_max_flows_have_their_acks_held() {
    // A packet takes a second.
    let down = json!({ "kind": "constant", "rate": "8kbit/s" });
    let config = json!({ "buffer": "1p", "regulator": "ack-regulator", "max_flows": 2, "down": down });
    let config: EdgeConfig = serde_json::from_value(config).unwrap();
    let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
    let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around).unwrap();
    let mut seen = Seen::default();
    for flow in (0..3).map(FlowId) {
        // The queue is full, so nothing is released.
        for number in 0..2 {
            edge.take(Time::ZERO, WIRED, &Segment::data(flow, Seq(960 * number), 960, 40), &mut seen);
        }
    }
    for flow in (0..3).map(FlowId) {
        edge.take(Time::ZERO, RADIO, &Segment::pure_ack(flow, Seq(960), 40), &mut seen);
    }
    while edge.due() < at(30) {
        edge.run(edge.due(), &mut seen);
    }
    // The first flow came first, and had been idle longest when the third came.
    assert_eq!([0, 1, 2].map(|flow| edge.held(FlowId(flow))), [0, 1, 1]);
}
