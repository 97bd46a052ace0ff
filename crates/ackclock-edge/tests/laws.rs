//! Laws that every regulator of the registry obeys under any traffic.

use std::ops::Range;
use std::sync::Arc;

use ackclock_core::{
    Ecn, Flags, FlowId, Message, Node, Outbox, Port, Rate, SackBlock, Segment, Seq, Span, Time,
};
use ackclock_edge::{
    Edge, EdgeStatistics, FlowContext, Output, RADIO, REGULATORS, Regulator, RegulatorConfig, Scope, Verdict,
    WIRED,
};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{
    BufferMeaning, Capacity, Cause, Constant, Departures, Direction, LinkView, PlainBearer, SerialLink,
};
use ackclock_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::busy::Busy;
use crate::every_bearer::{edge_over, every_table};
use crate::every_regulator::{build, every_regulator};

const PAYLOAD: u32 = 960;

/// An event at an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// The next data packet, or an earlier one retransmitted.
    Data { flow: u8, back: u8, fin: bool, ect: bool },
    /// An ACK for the data sent, less some packets.
    Ack { flow: u8, behind: u8, sack: bool },
    /// Data from the mobile, with an ACK.
    Reply { flow: u8, behind: u8 },
    /// The mobile requests a connection.
    Syn { flow: u8 },
    /// A packet that is not TCP.
    Opaque { flow: u8 },
}

pub(crate) fn operations() -> impl Strategy<Value = Vec<(u32, Operation)>> {
    let operation = prop_oneof![
        6 => (0u8..2, 0u8..4, prop::bool::weighted(0.02), any::<bool>())
            .prop_map(|(flow, back, fin, ect)| Operation::Data { flow, back: back / 3, fin, ect }),
        6 => (0u8..2, 0u8..6, any::<bool>()).prop_map(|(flow, behind, sack)| Operation::Ack { flow, behind, sack }),
        1 => (0u8..2, 0u8..6).prop_map(|(flow, behind)| Operation::Reply { flow, behind }),
        1 => (0u8..2).prop_map(|flow| Operation::Syn { flow }),
        1 => (0u8..2).prop_map(|flow| Operation::Opaque { flow }),
    ];
    prop::collection::vec((0u32..60_000, operation), 1..150)
}

fn edge(regulator: &str, rate: Rate, delay: Span) -> Edge {
    edge_with(REGULATORS.resolve(&regulator.into()).expect("a name of the registry"), rate, delay)
}

fn edge_with(regulator: Arc<dyn RegulatorConfig>, rate: Rate, delay: Span) -> Edge {
    let link = |rate, capacity| {
        SerialLink::new(Constant::new(rate, delay), DropTail::new(capacity).any(), BufferMeaning::Waiting)
    };
    let bearer = PlainBearer::new(link(rate, Capacity::Packets(4)), link(rate, Capacity::Unlimited));
    Edge::new(bearer, regulator, 64)
}

/// The edge on which regulators are tested.
fn usual_edge(regulator: Arc<dyn RegulatorConfig>) -> Edge {
    edge_with(regulator, Rate::from_bps(1_000_000), Span::from_millis(20))
}

/// Number of the next packet of each flow; converts operations to messages.
#[derive(Default)]
struct Traffic {
    next: [u32; 2],
}

impl Traffic {
    fn message(&mut self, operation: Operation) -> (Port, Segment) {
        match operation {
            Operation::Data { flow, back, fin, ect } => {
                let next = &mut self.next[usize::from(flow)];
                let number = next.saturating_sub(back.into());
                *next = (*next).max(number + 1);
                let mut segment =
                    Segment::data(FlowId(flow.into()), Seq(number * PAYLOAD), PAYLOAD as u16, 40);
                if fin {
                    segment.flags |= Flags::FIN;
                }
                if ect {
                    segment.ecn = Ecn::Ect0;
                }
                (WIRED, segment)
            }
            Operation::Ack { flow, behind, sack } => {
                let mut ack = Segment::pure_ack(FlowId(flow.into()), self.acked(flow, behind), 40);
                ack.window = 500;
                ack.set_scale(Some(7));
                if sack {
                    let left = ack.ack + PAYLOAD;
                    ack.push_sack(SackBlock { left, right: left + PAYLOAD });
                }
                (RADIO, ack)
            }
            Operation::Reply { flow, behind } => {
                let mut reply = Segment::data(FlowId(flow.into()), Seq(0), 100, 40);
                reply.ack = self.acked(flow, behind);
                (RADIO, reply)
            }
            Operation::Syn { flow } => {
                let mut syn = Segment::pure_ack(FlowId(flow.into()), Seq(0), 40);
                syn.flags = Flags::SYN;
                (RADIO, syn)
            }
            Operation::Opaque { flow } => (WIRED, Segment::opaque(FlowId(flow.into()), 500)),
        }
    }

    fn acked(&self, flow: u8, behind: u8) -> Seq {
        Seq(self.next[usize::from(flow)].saturating_sub(behind.into()) * PAYLOAD)
    }
}

/// Runs operations through an edge until it is idle, waking it `extra` more times between them than it requests.
pub(crate) fn run(
    edge: &mut Edge,
    operations: &[(u32, Operation)],
    extra: u64,
) -> Vec<(Time, Port, Segment)> {
    let (now, mut seen) = play(edge, operations, extra);
    advance(edge, now, now + QUIET, extra, &mut Outbox::for_one_node(), &mut seen);
    seen
}

/// After this long everything has happened.
const QUIET: Span = Span::from_secs(1000);

/// Runs operations through an edge up to the last. Returns its instant and the output so far.
fn play(edge: &mut Edge, operations: &[(u32, Operation)], extra: u64) -> (Time, Vec<(Time, Port, Segment)>) {
    let (mut now, mut out, mut seen) = (Time::ZERO, Outbox::for_one_node(), Vec::new());
    let mut traffic = Traffic::default();
    for &(gap, operation) in operations {
        let next = now + Span::from_micros(gap.into());
        advance(edge, now, next, extra, &mut out, &mut seen);
        now = next;
        let (port, segment) = traffic.message(operation);
        edge.receive(now, port, &Message::Segment(segment), &mut out);
        collect(now, &mut out, &mut seen);
    }
    (now, seen)
}

/// Ends both flows from the network side.
fn end(edge: &mut Edge, now: Time, seen: &mut Vec<(Time, Port, Segment)>) {
    let mut out = Outbox::for_one_node();
    for flow in 0..2 {
        let mut reset = Segment::pure_ack(FlowId(flow), Seq(0), 40);
        reset.flags |= Flags::RST;
        edge.receive(now, WIRED, &Message::Segment(reset), &mut out);
        collect(now, &mut out, seen);
    }
}

fn held(edge: &Edge) -> usize {
    (0..2).map(|flow| edge.held(FlowId(flow))).sum()
}

fn kept(edge: &Edge) -> usize {
    (0..2).map(|flow| edge.kept(FlowId(flow))).sum()
}

/// Copies that were kept and not freed.
fn out(edge: &Edge) -> i64 {
    edge.statistics().kept as i64 - edge.statistics().released as i64
}

/// ACKs that came off the radio or were generated, and are neither passed on nor discarded.
fn missing(edge: &Edge, operations: &[(u32, Operation)], seen: &[(Time, Port, Segment)]) -> i64 {
    let mut traffic = Traffic::default();
    let came = operations.iter().filter(|(_, operation)| traffic.message(*operation).0 == RADIO).count();
    let passed = seen.iter().filter(|(_, port, _)| *port == WIRED).count();
    let (counts, up) = (edge.statistics(), Direction::Up as usize);
    came as i64 + counts.made[up] as i64 - passed as i64 - counts.discarded[up] as i64
}

/// Every segment that arrives, is generated or is retransmitted is delivered, dropped, discarded or held.
pub(crate) fn nothing_is_lost(
    name: &str,
    table: &Value,
    build: &dyn Fn() -> Arc<dyn RegulatorConfig>,
    operations: &[(u32, Operation)],
) -> Result<(), TestCaseError> {
    for mut edge in [Some(usual_edge(build())), edge_over(table, 4, build())].into_iter().flatten() {
        let seen = run(&mut edge, operations, 0);
        let came = |port| {
            let mut traffic = Traffic::default();
            operations.iter().filter(|(_, operation)| traffic.message(*operation).0 == port).count() as u64
        };
        let left = |port| seen.iter().filter(|(_, p, _)| *p == port).count() as u64;
        let EdgeStatistics { dropped, dropped_up, discarded, made, resent, .. } = *edge.statistics();
        let impaired = edge.statistics().impaired[0].clone().unwrap_or_default();
        let down = came(WIRED) + made[0] + resent + impaired.duplicated;
        let gone = dropped + discarded[0] + impaired.corrupted;
        prop_assert_eq!(down, left(RADIO) + gone, "{} downwards, {}", name, table);
        let up = came(RADIO) + made[1];
        prop_assert_eq!(
            up,
            left(WIRED) + held(&edge) as u64 + dropped_up + discarded[1],
            "{} upwards, {}",
            name,
            table
        );
    }
    Ok(())
}

/// ACKs of a flow leave the edge in the order in which they came.
pub(crate) fn acks_keep_their_order(
    name: &str,
    edge: &mut Edge,
    operations: &[(u32, Operation)],
) -> Result<(), TestCaseError> {
    let seen = run(edge, operations, 0);
    // A reply with data may overtake held ACKs, which are then discarded; a SYN overtakes them.
    let overtakes = |operation| matches!(operation, Operation::Reply { .. } | Operation::Syn { .. });
    if operations.iter().any(|&(_, operation)| overtakes(operation)) {
        return Ok(());
    }
    let mut traffic = Traffic::default();
    let all = operations.iter().map(|&(_, operation)| traffic.message(operation));
    let sent: Vec<_> = all.filter(|(port, _)| *port == RADIO).map(|(_, segment)| segment).collect();
    for flow in (0..2).map(FlowId) {
        let mut came = sent.iter().filter(|segment| segment.flow == flow).map(|segment| segment.ack);
        let mut last = None;
        for (.., segment) in seen.iter().filter(|(_, port, segment)| *port == WIRED && segment.flow == flow) {
            // A generated ACK repeats the last one passed, or acknowledges a part of the next.
            let repeats = segment.is_made() && last == Some(segment.ack);
            let splits = segment.is_made()
                && last.is_none_or(|last| segment.ack.after(last))
                && came.clone().any(|ack| segment.ack.before(ack));
            let in_order = repeats || splits || came.any(|ack| ack == segment.ack);
            prop_assert!(in_order, "{} reordered {:?}", name, segment.ack);
            last = Some(segment.ack);
        }
    }
    Ok(())
}

/// An edge behaves the same however often it is woken.
pub(crate) fn extra_wakes_change_nothing(
    name: &str,
    table: &Value,
    build: &dyn Fn() -> Arc<dyn RegulatorConfig>,
    operations: &[(u32, Operation)],
) -> Result<(), TestCaseError> {
    let edges = edge_over(table, 4, build()).zip(edge_over(table, 4, build()));
    if let Some((mut once, mut often)) = edges {
        prop_assert_eq!(
            run(&mut once, operations, 0),
            run(&mut often, operations, 7),
            "{} over {}",
            name,
            table
        );
    }
    Ok(())
}

/// Held ACKs are counted, released in time, and released when their flow ends. A failure names the method.
pub(crate) fn what_is_held_comes_back(
    name: &str,
    build: &dyn Fn() -> Arc<dyn RegulatorConfig>,
    operations: &[(u32, Operation)],
) -> Result<(), TestCaseError> {
    let mut edge = usual_edge(build());
    let (now, mut seen) = play(&mut edge, operations, 0);
    let (held_then, missing_then) = (held(&edge), missing(&edge, operations, &seen));
    let (kept, out_then) = (kept(&edge), out(&edge));
    prop_assert!(out_then == kept as i64, "{name}: `kept` says {kept} where {out_then} copies are kept");
    end(&mut edge, now, &mut seen);
    let back = missing_then - missing(&edge, operations, &seen);
    advance(&mut edge, now, now + QUIET, 0, &mut Outbox::for_one_node(), &mut seen);
    let kept = missing(&edge, operations, &seen);
    prop_assert!(kept == 0, "{name}: `close` gives back {kept} ACKs too few of those that `handle_ack` took");
    let copies = out(&edge);
    prop_assert!(copies == 0, "{name}: `close` gives back {copies} copies too few of those that were kept");
    prop_assert!(back == held_then as i64, "{name}: `held` says {held_then} where {back} ACKs are held");

    // The queue is shared: the last packet to leave may be of the other flow, or not TCP.
    let mut edge = usual_edge(build());
    let seen = run(&mut edge, operations, 0);
    let (missing, held) = (missing(&edge, operations, &seen), held(&edge));
    prop_assert!(
        missing == held as i64,
        "{name}: `close` gives back ACKs too few, or `held` is wrong: {missing} are missing and {held} held"
    );
    prop_assert!(
        held == 0,
        "{name}: `poll_timeout` names no deadline at which the {held} ACKs go that are held for ever"
    );
    let copies = out(&edge);
    prop_assert!(
        copies == 0,
        "{name}: `poll_timeout` names no deadline at which {copies} copies go that are kept for ever, or `handle_timeout` keeps them"
    );
    Ok(())
}

/// Early and repeated calls of `handle_timeout` change nothing. A failure names the method.
pub(crate) fn early_timeouts_change_nothing(
    name: &str,
    build: &dyn Fn() -> Arc<dyn RegulatorConfig>,
    operations: &[(u32, Operation)],
) -> Result<(), TestCaseError> {
    let plain = run(&mut usual_edge(build()), operations, 0);
    let asked = run(&mut usual_edge(std::sync::Arc::new(Impatient(build()))), operations, 0);
    let differs = plain.iter().zip(&asked).find(|(plain, asked)| plain != asked);
    prop_assert!(
        plain == asked,
        "{name}: `handle_timeout` acts before the deadline of `poll_timeout`: {differs:?} where it is asked early"
    );
    Ok(())
}

/// Calls a regulator's timeout before every other call, unless it is due.
#[derive(Debug)]
struct Impatient(Arc<dyn RegulatorConfig>);

impl RegulatorConfig for Impatient {
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>> {
        self.0.build(context).map(|regulator| Box::new(Asked(regulator)) as Box<dyn Regulator>)
    }

    fn scope(&self) -> Scope {
        self.0.scope()
    }

    fn departures(&self) -> Departures {
        self.0.departures()
    }
}

struct Asked(Box<dyn Regulator>);

impl Asked {
    fn ask(&mut self, now: Time, view: LinkView) {
        if self.0.poll_timeout().is_none_or(|deadline| deadline > now) {
            self.0.handle_timeout(now, view);
            self.0.handle_timeout(now, view);
        }
    }
}

impl Regulator for Asked {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        self.ask(now, view);
        self.0.on_data(now, segment, view)
    }

    fn on_syn(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.ask(now, view);
        self.0.on_syn(now, segment, view);
    }

    fn on_queued(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.ask(now, view);
        self.0.on_queued(now, segment, view);
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, view: LinkView) {
        self.ask(now, view);
        self.0.on_dropped(now, segment, cause, view);
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.ask(now, view);
        self.0.on_departed(now, segment, view);
    }

    fn on_freed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.ask(now, view);
        self.0.on_freed(now, segment, view);
    }

    fn on_idle(&mut self, now: Time, view: LinkView) {
        self.ask(now, view);
        self.0.on_idle(now, view);
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        self.ask(now, view);
        self.0.handle_ack(now, ack, view);
    }

    fn handle_timeout(&mut self, now: Time, view: LinkView) {
        self.ask(now, view);
        self.0.handle_timeout(now, view);
    }

    fn poll_output(&mut self, now: Time) -> Option<Output> {
        self.0.poll_output(now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }

    fn close(&mut self, now: Time, flow: FlowId) {
        self.0.close(now, flow);
    }

    fn held(&self, flow: FlowId) -> usize {
        self.0.held(flow)
    }

    fn kept(&self, flow: FlowId) -> usize {
        self.0.kept(flow)
    }
}

fn advance(
    edge: &mut Edge,
    from: Time,
    to: Time,
    extra: u64,
    out: &mut Outbox,
    seen: &mut Vec<(Time, Port, Segment)>,
) {
    let mut extras = (1..=extra).map(|i| from + (to.since(from) / (extra + 1)) * i).peekable();
    loop {
        let due = edge.next_wake().filter(|&due| due <= to);
        let early = extras.peek().copied();
        let Some(now) = due.into_iter().chain(early).min() else { return };
        if early == Some(now) {
            extras.next();
        }
        edge.wake(now, out);
        collect(now, out, seen);
    }
}

fn collect(now: Time, out: &mut Outbox, seen: &mut Vec<(Time, Port, Segment)>) {
    while let Some((port, message)) = out.take() {
        if let Message::Segment(segment) = message {
            seen.push((now, port, segment));
        }
    }
}

proptest! {
    #[test]
    fn what_every_regulator_holds_is_counted_goes_in_time_and_comes_back(operations in operations()) {
        for regulator in every_regulator() {
            what_is_held_comes_back(&regulator.to_string(), &|| build(&regulator), &operations)?;
        }
    }

    #[test]
    fn asking_any_regulator_early_changes_nothing(operations in operations()) {
        for regulator in every_regulator() {
            early_timeouts_change_nothing(&regulator.to_string(), &|| build(&regulator), &operations)?;
        }
    }

    #[test]
    fn a_regulator_that_does_everything_keeps_the_laws_in_any_scope(
        operations in operations(), table in select(every_table()),
    ) {
        for scope in [Scope::Flow, Scope::User, Scope::Queue] {
            let (name, build) = (format!("{scope:?}"), || Arc::new(Busy(scope)) as Arc<dyn RegulatorConfig>);
            nothing_is_lost(&name, &table, &build, &operations)?;
            what_is_held_comes_back(&name, &build, &operations)?;
            early_timeouts_change_nothing(&name, &build, &operations)?;
            extra_wakes_change_nothing(&name, &table, &build, &operations)?;
        }
    }

    #[test]
    fn acks_of_a_flow_reach_the_sender_in_the_order_in_which_they_came(operations in operations()) {
        for regulator in every_regulator() {
            acks_keep_their_order(&regulator.to_string(), &mut usual_edge(build(&regulator)), &operations)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(128)))]

    #[test]
    fn extra_wakes_change_nothing_over_any_bearer(operations in operations(), turn in turns()) {
        for (regulator, table) in pairings(turn) {
            extra_wakes_change_nothing(&regulator.to_string(), &table, &|| build(&regulator), &operations)?;
        }
    }

    #[test]
    fn every_segment_is_delivered_dropped_discarded_or_held(operations in operations(), turn in turns()) {
        for (regulator, table) in pairings(turn) {
            nothing_is_lost(&regulator.to_string(), &table, &|| build(&regulator), &operations)?;
        }
    }
}

/// Every regulator, each over another bearer; each `turn` pairs them otherwise.
fn pairings(turn: usize) -> impl Iterator<Item = (Value, Value)> {
    let tables = every_table().into_iter().cycle().skip(turn);
    every_regulator().into_iter().zip(tables)
}

/// Values of `turn` in [`pairings`].
fn turns() -> Range<usize> {
    0..every_table().len()
}

#[test]
fn without_a_regulator_and_without_delay_an_edge_is_the_identity() {
    let mut edge = edge("none", Rate::from_bps(1_000_000_000_000_000), Span::ZERO);
    let operations: Vec<_> = (0..50)
        .map(|i| {
            (
                1,
                if i % 2 == 0 {
                    Operation::Data { flow: 0, back: 0, fin: false, ect: false }
                } else {
                    Operation::Ack { flow: 0, behind: 0, sack: false }
                },
            )
        })
        .collect();
    let seen = run(&mut edge, &operations, 0);
    let mut traffic = Traffic::default();
    let (mut now, mut expected) = (Time::ZERO, Vec::new());
    for &(gap, operation) in &operations {
        now += Span::from_micros(gap.into());
        let (port, segment) = traffic.message(operation);
        expected.push((now, if port == WIRED { RADIO } else { WIRED }, segment));
    }
    // 1000 B at 1e15 bit/s take 8 ps, rounded to zero.
    assert_eq!(seen, expected);
}
