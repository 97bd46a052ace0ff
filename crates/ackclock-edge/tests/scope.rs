//! One regulator per flow, per user or per queue.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ackclock_core::{Copied, Flags, FlowId, Port, Rate, Segment, Seq, Sink, Span, Time};
use ackclock_edge::{Edge, FlowContext, Output, RADIO, Regulator, RegulatorConfig, Scope, Verdict, WIRED};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{BufferMeaning, Capacity, Constant, LinkView, PlainBearer, SerialLink};
use proptest::prelude::*;

use crate::laws::{early_timeouts_change_nothing, operations, what_is_held_comes_back};

/// First flow and user of each regulator, in order of creation.
type Built = Arc<Mutex<Vec<(u32, u32)>>>;

const NOTHING: [u32; 0] = [];

const SCOPES: [Scope; 3] = [Scope::Flow, Scope::User, Scope::Queue];

/// Regulators that hold each ACK for 50 ms, or until data of any of their flows arrives.
#[derive(Clone, Debug)]
struct Pooling(Scope, Built);

struct Pool {
    held: VecDeque<(Time, Segment)>,
    output: VecDeque<Segment>,
}

impl RegulatorConfig for Pooling {
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>> {
        self.1.lock().unwrap().push((context.flow.0, context.user));
        Some(Box::new(Pool { held: VecDeque::new(), output: VecDeque::new() }))
    }

    fn scope(&self) -> Scope {
        self.0
    }
}

impl Pool {
    /// Releases the entries that `goes` selects, in order.
    fn release(&mut self, goes: impl Fn(&(Time, Segment)) -> bool) {
        let (going, staying) = std::mem::take(&mut self.held).into_iter().partition(goes);
        self.held = staying;
        let going: VecDeque<_> = going;
        self.output.extend(going.into_iter().map(|(_, ack)| ack));
    }
}

impl Regulator for Pool {
    fn on_data(&mut self, _: Time, _: &Segment, _: LinkView) -> Verdict {
        self.release(|_| true);
        Verdict::Forward
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, _: LinkView) {
        self.held.push_back((now + Span::from_millis(50), ack));
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        self.release(|(due, _)| *due <= now);
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front().map(Output::ToSender)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.held.front().map(|(due, _)| *due)
    }

    fn close(&mut self, _: Time, flow: FlowId) {
        self.release(|(_, ack)| ack.flow == flow);
    }

    fn held(&self, flow: FlowId) -> usize {
        self.held.iter().filter(|(_, ack)| ack.flow == flow).count()
    }
}

/// Flows of the ACKs that reached the network since the last call.
#[derive(Default)]
struct Servers(Vec<u32>);

impl Sink for Servers {
    fn pass(&mut self, port: Port, segment: &Segment) {
        self.0.extend((port == WIRED).then_some(segment.flow.0));
    }

    fn discard(&mut self, _: &Segment) {}

    fn copied(&mut self, _: &Segment, _: Copied) {}
}

struct World {
    edge: Edge,
    servers: Servers,
    built: Built,
    now: Time,
}

impl World {
    /// Flows 0 and 1 are of user 5, flow 2 of user 7; at most `most` flows are regulated.
    fn new(scope: Scope, most: usize) -> Self {
        let link = || {
            let medium = Constant::new(Rate::from_bps(1_000_000_000_000_000), Span::ZERO);
            SerialLink::new(medium, DropTail::new(Capacity::Unlimited).any(), BufferMeaning::Waiting)
        };
        let built = Built::default();
        let regulator = Pooling(scope, Arc::clone(&built));
        let mut edge = Edge::new(PlainBearer::new(link(), link()), std::sync::Arc::new(regulator), most);
        [(0, 5), (1, 5), (2, 7)].into_iter().for_each(|(flow, user)| edge.assign(FlowId(flow), user));
        Self { edge, servers: Servers::default(), built, now: Time::ZERO }
    }

    fn takes(&mut self, port: Port, segment: Segment) {
        self.edge.take(self.now, port, &segment, &mut self.servers);
        self.edge.run(self.now, &mut self.servers);
    }

    fn data(&mut self, flow: u32) {
        self.takes(WIRED, Segment::data(FlowId(flow), Seq(0), 960, 40));
    }

    fn ack(&mut self, flow: u32) {
        self.takes(RADIO, Segment::pure_ack(FlowId(flow), Seq(0), 40));
    }

    /// The mobile's reset, which carries no ACK.
    fn reset(&mut self, flow: u32) {
        let mut reset = Segment::pure_ack(FlowId(flow), Seq(0), 40);
        reset.flags = Flags::RST;
        self.takes(RADIO, reset);
    }

    /// Nothing arrives for `millis`.
    fn wait(&mut self, millis: u64) {
        let until = self.now + Span::from_millis(millis);
        while self.edge.due() <= until {
            self.edge.run(self.edge.due(), &mut self.servers);
        }
        self.now = until;
    }

    fn passed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.servers.0)
    }

    fn built(&self) -> Vec<(u32, u32)> {
        self.built.lock().unwrap().clone()
    }
}

#[test]
fn a_regulator_is_built_for_each_flow_user_or_queue() {
    let built = |scope| {
        let mut world = World::new(scope, 64);
        (0..3).for_each(|flow| world.data(flow));
        (0..3).for_each(|flow| world.data(flow));
        world.built()
    };
    assert_eq!(built(Scope::Flow), [(0, 5), (1, 5), (2, 7)]);
    assert_eq!(built(Scope::User), [(0, 5), (2, 7)]);
    assert_eq!(built(Scope::Queue), [(0, 5)]);
}

#[test]
fn what_happens_to_one_flow_lets_go_what_is_held_of_the_others() {
    // The ACKs of all three are held when data of flow 1 arrives.
    for (scope, passed) in [(Scope::Flow, vec![1]), (Scope::User, vec![0, 1]), (Scope::Queue, vec![0, 1, 2])]
    {
        let mut world = World::new(scope, 64);
        (0..3).for_each(|flow| world.ack(flow));
        assert_eq!(world.passed(), NOTHING);
        world.data(1);
        assert_eq!(world.passed(), passed, "{scope:?}");
    }
}

#[test]
fn a_flow_that_ends_takes_its_own_with_it_and_the_others_stay() {
    for scope in [Scope::User, Scope::Queue] {
        let mut world = World::new(scope, 64);
        [0, 1, 0].into_iter().for_each(|flow| world.ack(flow));
        world.reset(0);
        assert_eq!(world.passed(), [0, 0, 0], "what was held, and the reset");
        assert_eq!([0, 1].map(|flow| world.edge.held(FlowId(flow))), [0, 1]);
        world.ack(0);
        assert_eq!(world.passed(), [0], "a flow that has ended is left alone");
        world.wait(50);
        assert_eq!(world.passed(), [1]);
        // The regulator is removed with its last flow, and the next flow has a new one.
        world.ack(1);
        world.reset(1);
        assert_eq!(world.passed(), [1, 1]);
        assert_eq!(world.edge.due(), Time::NEVER, "no deadline stays behind");
        let before = world.built().len();
        world.data(2);
        assert_eq!(world.built().len(), before + 1, "{scope:?}");
    }
}

#[test]
fn a_flow_for_which_there_is_no_place_loses_nothing_and_takes_nothing_with_it() {
    let mut world = World::new(Scope::Queue, 2);
    world.ack(0);
    world.wait(10);
    world.ack(1);
    world.wait(10);
    world.ack(2);
    // Flow 0 had been idle longest when data of a third flow came; all held ACKs were released.
    world.data(2);
    assert_eq!(world.passed(), [0, 1, 2]);
    world.ack(0);
    assert_eq!(world.passed(), [0], "it is left alone");
    world.ack(1);
    world.ack(2);
    assert_eq!(world.passed(), NOTHING);
    world.wait(50);
    assert_eq!(world.passed(), [1, 2]);
}

#[test]
fn a_flow_that_was_seen_only_from_the_mobile_can_be_given_up() {
    let mut world = World::new(Scope::Flow, 1);
    let mut syn = Segment::pure_ack(FlowId(9), Seq(0), 40);
    syn.flags = Flags::SYN;
    world.takes(RADIO, syn);
    world.wait(1);
    world.data(0);
    world.ack(9);
    world.ack(0);
    // The SYN, and the ACK of an unregulated flow.
    assert_eq!(world.passed(), [9, 9]);
}

#[test]
fn a_number_that_goes_to_another_connection_leaves_its_regulator_to_the_others() {
    let mut world = World::new(Scope::Queue, 64);
    world.data(0);
    world.ack(1);
    world.edge.forget(world.now, FlowId(0));
    assert_eq!(world.edge.held(FlowId(1)), 1);
    world.wait(50);
    assert_eq!(world.passed(), [1]);
    world.edge.forget(world.now, FlowId(1));
    assert_eq!(world.edge.due(), Time::NEVER);
}

proptest! {
    #[test]
    fn regulators_of_any_scope_keep_the_laws(operations in operations()) {
        for scope in SCOPES {
            let build = || Arc::new(Pooling(scope, Built::default())) as Arc<dyn RegulatorConfig>;
            what_is_held_comes_back("pooling", &build, &operations)?;
            early_timeouts_change_nothing("pooling", &build, &operations)?;
        }
    }
}
