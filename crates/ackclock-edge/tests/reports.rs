//! Reports of the radio reach the regulators that ask for them.

use std::sync::{Arc, Mutex};

use ackclock_core::{Copied, FlowId, Port, RadioReport, Rate, Segment, Seq, Sink, Span, Streams, Time};
use ackclock_edge::{Edge, FlowContext, Output, Regulator, RegulatorConfig, Reports, WIRED};
use ackclock_link::queue::{DropTail, DropTailConfig, Queue};
use ackclock_link::{
    BufferMeaning, Capacity, Constant, LINKS, LinkContext, LinkView, NoFiles, PlainBearer, QueuePlan,
    SerialLink,
};
use serde_json::json;

/// What a regulator was told, with the rate that its view had at that instant.
type Heard = Arc<Mutex<Vec<(RadioReport, LinkView)>>>;

#[derive(Debug)]
struct Listening(Reports, Heard);

struct Listener(Heard);

impl RegulatorConfig for Listening {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Listener(Arc::clone(&self.1))))
    }

    fn reports(&self) -> Reports {
        self.0
    }
}

impl Regulator for Listener {
    fn handle_ack(&mut self, _: Time, _: Segment, _: LinkView) {}

    fn on_report(&mut self, _: Time, report: &RadioReport, view: LinkView) {
        self.0.lock().unwrap().push((*report, view));
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        None
    }
}

/// Segments that leave the edge go nowhere.
struct Nowhere;

impl Sink for Nowhere {
    fn pass(&mut self, _: Port, _: &Segment) {}

    fn discard(&mut self, _: &Segment) {}

    fn copied(&mut self, _: &Segment, _: Copied) {}
}

/// What is told while 100 kB go to one user of a cell.
fn heard(reports: Reports) -> Vec<(RadioReport, LinkView)> {
    let streams = Streams::new(1, 0);
    let queue =
        QueuePlan::new(Box::new(DropTailConfig::default()), Capacity::Unlimited, &streams, "q".to_owned());
    let context = LinkContext {
        queue,
        meaning: BufferMeaning::Waiting,
        streams: &streams,
        name: "down",
        files: &NoFiles,
    };
    let down = LINKS.resolve(&json!({"kind": "cell"})).unwrap().build(context).unwrap();
    let up = SerialLink::new(
        Constant::new(Rate::from_bps(64_000), Span::ZERO),
        DropTail::new(Capacity::Unlimited).any(),
        BufferMeaning::Waiting,
    );
    let heard = Heard::default();
    let mut edge = Edge::new(PlainBearer::new(down, up), Box::new(Listening(reports, Arc::clone(&heard))), 8);
    for number in 0..100 {
        let segment = Segment::data(FlowId(0), Seq(number * 960), 960, 40);
        edge.take(Time::ZERO, WIRED, &segment, &mut Nowhere);
    }
    while edge.due() != Time::NEVER {
        edge.run(edge.due(), &mut Nowhere);
    }
    drop(edge);
    Arc::try_unwrap(heard).unwrap().into_inner().unwrap()
}

#[test]
fn a_regulator_hears_of_rates_as_they_are() {
    let heard = heard(Reports::Heard);
    // 100 kB take a second or two, in which a channel of 30 Hz crosses some thresholds.
    assert!(heard.len() > 5, "{heard:?}");
    assert!(heard.iter().all(|(report, view)| report.rate == view.rate && report.user == Some(0)));
    assert!(heard.windows(2).all(|pair| pair[0].0.rate != pair[1].0.rate));
}

#[test]
fn one_that_does_not_ask_hears_nothing() {
    assert!(heard(Reports::Ignored).is_empty());
}
