//! Connections split by a relay: data delivered, data held, and their end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_core::{
    Engine, Flags, FlowId, Holds, Message, Node, NodeId, NullTracer, Outbox, Port, Segment, Seq, Sink, Size,
    Span, Stream, Streams, Time,
};
use ackclock_tcp::receiver::{AckPolicy, Opening, WindowPolicy};
use ackclock_tcp::{
    FlowParams, HeaderSize, Host, Receiver, ReceiverConfig, Relay, SENDERS, Sender, Supply, host, relay,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const FLOW: FlowId = FlowId(0);

/// One stretch of the path, equal in both directions.
#[derive(Clone, Debug)]
struct Stretch {
    /// Packets leave at least this far apart.
    spacing: Span,
    /// Each takes 10 ms plus up to this much more.
    jitter: Span,
    loss: f64,
    repeat: f64,
}

/// A stretch as a node: packets entering at one port leave at the other.
struct Wire {
    stretch: Stretch,
    chance: Stream,
    /// When each direction becomes free.
    free: [Time; 2],
    underway: BinaryHeap<Reverse<(Time, usize, Port)>>,
    segments: Vec<Segment>,
}

impl Wire {
    fn new(stretch: Stretch, seed: u64) -> Self {
        let chance = Streams::new(seed, 0).stream("wire");
        Self { stretch, chance, free: [Time::ZERO; 2], underway: BinaryHeap::new(), segments: Vec::new() }
    }
}

impl Node for Wire {
    fn receive(&mut self, now: Time, port: Port, message: &Message, _: &mut Outbox) {
        let Message::Segment(segment) = message else { return };
        let copies = match () {
            () if self.chance.chance(self.stretch.loss) => 0,
            () if self.chance.chance(self.stretch.repeat) => 2,
            () => 1,
        };
        for _ in 0..copies {
            let free = &mut self.free[usize::from(port)];
            *free = now.max(*free) + self.stretch.spacing;
            let late = self.chance.unit() * self.stretch.jitter.as_nanos() as f64;
            let arrives = *free + Span::from_millis(10) + Span::from_nanos(late as u64);
            self.underway.push(Reverse((arrives, self.segments.len(), 1 - port)));
            self.segments.push(*segment);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        while let Some(&Reverse((at, number, port))) = self.underway.peek()
            && at <= now
        {
            self.underway.pop();
            out.pass(port, &self.segments[number]);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.underway.peek().map(|Reverse((at, ..))| *at)
    }
}

ackclock_core::nodes! {
    enum AnyNode {
        Host(Host),
        Wire(Wire),
        Relay(Relay),
    }
}

/// A download over a relay: servers - core - relay - radio - clients.
#[derive(Clone, Debug)]
struct Case {
    senders: [Value; 2],
    bytes: u64,
    buffer: u32,
    core: Stretch,
    radio: Stretch,
    seed: u64,
}

struct Download {
    engine: Engine<AnyNode>,
    servers: NodeId,
    relay: NodeId,
    clients: NodeId,
}

impl Download {
    fn new(case: &Case) -> Self {
        let [far, near] = case.senders.clone().map(sender);
        let (mut servers, mut clients, mut split) = (Host::new(), Host::new(), Relay::new());
        let config = |row: &Value| {
            let row = SENDERS.resolve(row).expect("a row and options of the table");
            ReceiverConfig {
                opening: match row.config().handshake {
                    ackclock_tcp::config::Switch::On => Opening::Handshake,
                    ackclock_tcp::config::Switch::Off => Opening::Established(Seq(1)),
                },
                max_window: 64_000,
                sack: row.uses_sack(),
                ..ReceiverConfig::default()
            }
        };
        let held = ReceiverConfig {
            max_window: case.buffer,
            window: WindowPolicy::Unread,
            ..config(&case.senders[0])
        };
        split.split(FLOW, ackclock_tcp::relay::SERVER, Receiver::new(held, FLOW), near);
        let mut far = far;
        far.supply(Supply::Bytes(case.bytes));
        servers.add_sender(FLOW, far);
        clients.add_receiver(FLOW, Time::ZERO, Receiver::new(config(&case.senders[1]), FLOW));
        let mut engine = Engine::new(NullTracer);
        let servers = engine.add(servers.into());
        let core = engine.add(Wire::new(case.core.clone(), case.seed).into());
        let relay = engine.add(split.into());
        let radio = engine.add(Wire::new(case.radio.clone(), case.seed + 1).into());
        let clients = engine.add(clients.into());
        engine.connect((servers, host::WIRE), (core, 0));
        engine.connect((core, 1), (relay, relay::SERVER));
        engine.connect((relay, relay::EDGE), (radio, 0));
        engine.connect((radio, 1), (clients, host::WIRE));
        Self { engine, servers, relay, clients }
    }

    fn relay(&self) -> &Relay {
        self.engine.node(self.relay).held().unwrap()
    }

    fn host(&self, node: NodeId) -> &Host {
        self.engine.node(node).held().unwrap()
    }

    fn delivered(&self) -> u64 {
        self.host(self.clients).receiver(FLOW).unwrap().delivered_bytes()
    }

    fn sent(&self) -> &dyn Sender {
        self.host(self.servers).sender(FLOW).unwrap()
    }
}

fn sender(row: Value) -> Box<dyn Sender> {
    let params = FlowParams {
        header: HeaderSize::Real,
        initial_window: Size::Packets(4),
        max_window: Size::Packets(64),
        ..FlowParams::new(FLOW)
    };
    SENDERS.resolve(&row).expect("a row of the table").build(params).expect("the packet has room for data")
}

const CLEAN: Stretch = Stretch { spacing: Span::ZERO, jitter: Span::ZERO, loss: 0.0, repeat: 0.0 };

fn clean(handshake: &str) -> Case {
    let sender = json!({"kind": "sack", "handshake": handshake, "rto": {"min": "200ms"}});
    let radio = Stretch { spacing: Span::from_millis(20), ..CLEAN };
    Case { senders: [sender.clone(), sender], bytes: 500_000, buffer: 20_000, core: CLEAN, radio, seed: 1 }
}

fn case() -> impl Strategy<Value = Case> {
    let stretch = || {
        (0u64..5, 0u64..40, 0.0f64..0.15, 0.0f64..0.1).prop_map(|(spacing, jitter, loss, repeat)| Stretch {
            spacing: Span::from_millis(spacing),
            jitter: Span::from_millis(jitter),
            loss,
            repeat,
        })
    };
    let row = || prop::sample::select(SENDERS.entries.iter().map(|entry| entry.name).collect::<Vec<_>>());
    let handshake = prop::sample::select(vec!["on", "off"]);
    (row(), row(), handshake, 1u64..100_000, 3_000u32..60_000, stretch(), stretch(), any::<u32>()).prop_map(
        |(far, near, handshake, bytes, buffer, core, radio, seed)| {
            let senders = [far, near]
                .map(|kind| json!({"kind": kind, "handshake": handshake, "rto": {"min": "200ms"}}));
            Case { senders, bytes, buffer, core, radio, seed: seed.into() }
        },
    )
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_the_buffer_holds(case in case()) {
        let mut download = Download::new(&case);
        let mut limit = 0;
        while !download.relay().has_ended(FLOW) || download.sent().finished_at().is_none() {
            let Some(next) = download.engine.next_wake() else { break };
            download.engine.advance(next);
            limit += 1;
            prop_assert!(limit < 2_000_000, "it never ends");
        }
        prop_assert_eq!(download.delivered(), case.bytes);
        prop_assert!(download.host(download.clients).receiver(FLOW).unwrap().finished_at().is_some());
        prop_assert!(download.relay().most_buffered_bytes(FLOW) <= case.buffer.into());
        prop_assert_eq!(download.relay().buffered_bytes(FLOW), 0);
    }
}

#[test]
fn a_slow_mobile_slows_the_server() {
    for handshake in ["on", "off"] {
        let case = clean(handshake);
        let mut download = Download::new(&case);
        download.engine.advance(Time::ZERO + Span::from_secs(4));
        // A packet with 960 bytes of payload leaves towards the mobile every 20 ms: 192 kB in 4 s, less the first round
        // trips.
        let delivered = download.delivered();
        assert!((180_000..=192_000).contains(&delivered), "{handshake}: {delivered}");
        // The server is ahead by the buffer, filled up to two segments of 1460 bytes (below which no window update is
        // sent), and by data that the mobile has but has not acknowledged to the relay.
        let ahead = download.sent().acknowledged() - delivered;
        assert!((16_000..=22_000).contains(&ahead), "{handshake}: {ahead}");
        assert!(download.relay().most_buffered_bytes(FLOW) <= 20_000);
    }
}

#[test]
fn a_mobile_that_reads_nothing_stops_the_server_and_nothing_is_lost() {
    let mut case = clean("off");
    case.radio.loss = 1.0;
    let mut download = Download::new(&case);
    download.engine.advance(Time::ZERO + Span::from_secs(30));
    let relay = download.relay();
    // Full segments of 960 bytes: 20 of them fit, and the rest of the window is too small for one.
    assert_eq!(relay.buffered_bytes(FLOW), 20 * 960 + 800);
    assert_eq!(download.sent().acknowledged(), 20_000);
}

#[test]
fn a_reset_of_the_mobile_reaches_the_server_and_ends_both() {
    let mut download = Download::new(&clean("off"));
    download.engine.advance(Time::ZERO + Span::from_secs(1));
    let mut reset = Segment::pure_ack(FLOW, Seq(1), 40);
    reset.seq = Seq(1);
    reset.flags = Flags::RST;
    let now = download.engine.now();
    let relay = download.relay;
    download.engine.inject(now, relay, relay::EDGE, Message::Segment(reset));
    assert!(download.relay().has_ended(FLOW));
    download.engine.advance(now + Span::from_secs(1));
    assert_eq!(download.sent().state(), ackclock_tcp::sender::SenderState::Closed);
}

/// A relay with one download, without a path: segments are put in by hand.
fn bare_relay(handshake: &str) -> Relay {
    let row = json!({"kind": "sack", "handshake": handshake, "rto": {"min": "200ms"}});
    let opening = if handshake == "on" { Opening::Handshake } else { Opening::Established(Seq(1)) };
    let config = ReceiverConfig {
        opening,
        acks: AckPolicy::Delayed { count: 2, timeout: Span::from_millis(200), quick: 0 },
        max_window: 20_000,
        window: WindowPolicy::Unread,
        ..ReceiverConfig::default()
    };
    let mut split = Relay::new();
    split.split(FLOW, relay::SERVER, Receiver::new(config, FLOW), sender(row));
    split
}

/// What a relay sends in answer to a segment: ports and segments.
fn answers(split: &mut Relay, now: Time, port: Port, segment: Segment) -> Vec<(Port, Segment)> {
    let mut out = Outbox::for_one_node();
    split.receive(now, port, &Message::Segment(segment), &mut out);
    sent_by(&mut out)
}

fn sent_by(out: &mut Outbox) -> Vec<(Port, Segment)> {
    let segment_of = |message| match message {
        Message::Segment(segment) => Some(segment),
        Message::Report(_) => None,
    };
    std::iter::from_fn(|| out.take())
        .filter_map(|(port, message)| segment_of(message).map(|segment| (port, segment)))
        .collect()
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[test]
fn the_end_of_a_connection_to_the_mobile_is_reported_once() {
    let mut split = bare_relay("off");
    let mut last = Segment::data(FLOW, Seq(1), 960, 40);
    last.flags |= Flags::FIN;
    answers(&mut split, at(0), relay::SERVER, last);
    answers(&mut split, at(10), relay::EDGE, Segment::pure_ack(FLOW, Seq(961), 40));
    assert_eq!((split.has_ended(FLOW), split.poll_ended()), (false, None), "the FIN is not acknowledged");
    answers(&mut split, at(20), relay::EDGE, Segment::pure_ack(FLOW, Seq(962), 40));
    assert!(split.has_ended(FLOW));
    assert_eq!((split.poll_ended(), split.poll_ended()), (Some(FLOW), None));
}

#[test]
fn a_syn_of_a_sending_mobile_opens_the_other_connection_and_a_syn_ack_does_not() {
    for (flags, opens) in [(Flags::SYN, true), (Flags::SYN | Flags::ACK, false)] {
        let mut split = bare_relay("on");
        let mut syn = Segment::pure_ack(FLOW, Seq(0), 40);
        syn.flags = flags;
        let sent = answers(&mut split, at(0), relay::SERVER, syn);
        let onward =
            sent.iter().any(|(port, segment)| *port == relay::EDGE && segment.flags.contains(Flags::SYN));
        assert_eq!(onward, opens, "{flags:?}: {sent:?}");
    }
}

#[test]
fn a_delayed_ack_of_the_relay_reaches_the_server_when_its_timer_expires() {
    let mut split = bare_relay("off");
    let sent = answers(&mut split, at(0), relay::SERVER, Segment::data(FLOW, Seq(1), 960, 40));
    assert!(sent.iter().all(|(port, _)| *port == relay::EDGE), "{sent:?}");
    let mut acks = Vec::new();
    while let Some(due) = split.next_wake().filter(|due| *due <= at(1000)) {
        let mut out = Outbox::for_one_node();
        split.wake(due, &mut out);
        acks.extend(sent_by(&mut out).into_iter().filter(|(port, _)| *port == relay::SERVER));
    }
    assert_eq!(acks.iter().map(|(_, ack)| ack.ack).collect::<Vec<_>>(), [Seq(961)]);
}

#[test]
fn the_largest_buffer_is_kept_when_the_buffer_drains() {
    let mut split = bare_relay("off");
    answers(&mut split, at(0), relay::SERVER, Segment::data(FLOW, Seq(1), 960, 40));
    answers(&mut split, at(1), relay::SERVER, Segment::data(FLOW, Seq(961), 960, 40));
    answers(&mut split, at(20), relay::EDGE, Segment::pure_ack(FLOW, Seq(1921), 40));
    answers(&mut split, at(30), relay::SERVER, Segment::data(FLOW, Seq(1921), 960, 40));
    assert_eq!((split.buffered_bytes(FLOW), split.most_buffered_bytes(FLOW)), (960, 1920));
}
