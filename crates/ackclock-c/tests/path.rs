//! Two TCP connections over an edge: senders with Reno's window, and receivers that acknowledge every segment. The path
//! notes the events at the edge and the edge's decisions, in the words of `examples/host.c`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use ackclock_core::{
    Component, Copied, Flags, FlowId, Port, Rate, SackBlock, Segment, Seq, Sink, Span, Time,
};
use ackclock_edge::{Edge, RADIO, REGULATORS, WIRED};
use ackclock_link::queue::{DropTail, Queue};
use ackclock_link::{BufferMeaning, Capacity, Constant, PlainBearer, SerialLink};

pub(crate) const RATE_BPS: u64 = 1_700_000;
pub(crate) const BUFFER_PACKETS: u32 = 40;
const PAYLOAD: u16 = 960;
/// Delay between server and edge, and between edge and mobile.
const DELAY: Span = Span::from_micros(19_370);
const TIMEOUT: Span = Span::from_millis(700);
/// The mobile loses one packet in this many.
const LOSS: u32 = 397;

/// What reaches an end of the path, or a timer of a sender. Numbers are flows.
enum Event {
    Data(Segment),
    Ack(Segment),
    AckAtServer(Segment),
    Timeout(u32, u32),
}

/// Sender of a connection. It counts segments.
#[derive(Default)]
struct Sender {
    acked: u32,
    next: u32,
    window: f64,
    threshold: f64,
    allowed: u32,
    repeats: u32,
    recover: u32,
}

/// Receiver of a connection: next segment in order, and segments beyond.
#[derive(Default)]
struct Receiver {
    next: u32,
    beyond: BTreeSet<u32>,
}

/// What the edge has done at one instant.
#[derive(Default)]
struct Done(Vec<(&'static str, Segment)>);

impl Sink for Done {
    fn pass(&mut self, port: Port, segment: &Segment) {
        self.0.push((if port == WIRED { "sender" } else { "mobile" }, *segment));
    }

    fn discard(&mut self, segment: &Segment) {
        self.0.push(("discard", *segment));
    }

    fn copied(&mut self, segment: &Segment, copied: Copied) {
        match copied {
            Copied::Kept => self.0.push(("keep", *segment)),
            Copied::Released => self.0.push(("release", *segment)),
            Copied::Sent | Copied::Duplicated => {}
        }
    }
}

/// The path, its events in order of time, and what it has noted.
pub(crate) struct Path {
    edge: Edge,
    events: BTreeMap<(Time, u32), Event>,
    scheduled: u32,
    senders: [Sender; 2],
    receivers: [Receiver; 2],
    delivered: u32,
    /// Time of the latest event.
    now: Time,
    /// Events at the edge, one a line.
    pub(crate) log: String,
    /// Decisions of the edge, one a line.
    pub(crate) decisions: String,
}

impl Path {
    /// Runs the path for `span` with the regulator of a table.
    pub(crate) fn run(table: &str, span: Span) -> Self {
        let link = |rate, capacity| {
            let medium = Constant::new(Rate::from_bps(rate), Span::ZERO);
            SerialLink::new(medium, DropTail::new(capacity).any(), BufferMeaning::Waiting)
        };
        let up = link(1_000_000_000_000_000, Capacity::Unlimited);
        let bearer = PlainBearer::new(link(RATE_BPS, Capacity::Packets(BUFFER_PACKETS)), up);
        let component = Component::from(toml::from_str::<serde_json::Value>(table).unwrap());
        let regulator = Arc::clone(component.config(&REGULATORS).unwrap());
        let mut path = Self {
            edge: Edge::new(bearer, regulator, 64),
            events: BTreeMap::new(),
            scheduled: 0,
            senders: Default::default(),
            receivers: Default::default(),
            delivered: 0,
            now: Time::ZERO,
            log: "0 open 0 0\n0 open 1 0\n".to_owned(),
            decisions: String::new(),
        };
        for flow in 0..2 {
            path.senders[flow as usize] =
                Sender { window: 4.0, threshold: 64.0, allowed: 20, ..Sender::default() };
            path.schedule(Time::ZERO + Span::from_millis(311 * u64::from(flow)), Event::Timeout(flow, 0));
        }
        path.run_until(Time::ZERO + span);
        path.reset_both(Time::ZERO + span);
        path.run_until(Time::ZERO + span + TIMEOUT);
        writeln!(path.log, "{} run 0", (Time::ZERO + span + TIMEOUT).as_nanos()).unwrap();
        path
    }

    /// The server resets both connections, while ACKs are held and packets are queued.
    fn reset_both(&mut self, now: Time) {
        for flow in 0..2 {
            let mut reset = Segment::data(FlowId(flow), Seq(0), 0, 40);
            (reset.flags, _) = (Flags::RST | Flags::ACK, reset.set_scale(Some(0)));
            writeln!(self.log, "{} data {flow} 0 0 {}", now.as_nanos(), reset.flags.0).unwrap();
            writeln!(self.log, "{} close {flow}", now.as_nanos()).unwrap();
            self.take(now, WIRED, &reset);
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.scheduled += 1;
        self.events.insert((at, self.scheduled), event);
    }

    fn run_until(&mut self, end: Time) {
        loop {
            let next = self.events.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let due = self.edge.due().max(self.now);
            if next.min(due) > end {
                return;
            }
            if due <= next {
                self.run_edge(due);
            } else if let Some(((at, _), event)) = self.events.pop_first() {
                self.now = at;
                self.happen(at, event);
            }
        }
    }

    fn happen(&mut self, at: Time, event: Event) {
        match event {
            Event::Data(segment) => {
                let (flow, seq) = (segment.flow.0, segment.seq.0);
                writeln!(self.log, "{} data {flow} {seq} {PAYLOAD}", at.as_nanos()).unwrap();
                self.take(at, WIRED, &segment);
            }
            Event::Ack(ack) => {
                self.log_ack(at, &ack);
                self.take(at, RADIO, &ack);
            }
            Event::AckAtServer(ack) => self.on_ack(at, &ack),
            Event::Timeout(flow, acked) => self.on_timeout(at, flow, acked),
        }
    }

    fn log_ack(&mut self, at: Time, ack: &Segment) {
        let block = ack.sack().first().copied().unwrap_or_default();
        let (flow, left, right) = (ack.flow.0, block.left.0, block.right.0);
        writeln!(self.log, "{} ack {flow} {} {} {left} {right}", at.as_nanos(), ack.ack.0, ack.window)
            .unwrap();
    }

    fn take(&mut self, now: Time, port: Port, segment: &Segment) {
        let mut done = Done::default();
        self.edge.take(now, port, segment, &mut done);
        self.note(now, done);
        self.run_edge(now);
    }

    fn run_edge(&mut self, now: Time) {
        self.now = now;
        let mut done = Done::default();
        self.edge.run(now, &mut done);
        self.note(now, done);
    }

    fn note(&mut self, now: Time, done: Done) {
        for (what, segment) in done.0 {
            let (flow, seq, ack) = (segment.flow.0, segment.seq.0, segment.ack.0);
            let (at, window, made) = (now.as_nanos(), segment.window, u8::from(segment.is_made()));
            writeln!(self.decisions, "{at} {what} {flow} {seq} {ack} {window} {made}").unwrap();
            match what {
                "sender" => self.schedule(now + DELAY, Event::AckAtServer(segment)),
                "mobile" => self.deliver(now, &segment),
                _ => {}
            }
        }
    }

    fn deliver(&mut self, now: Time, segment: &Segment) {
        self.delivered += 1;
        if self.delivered.is_multiple_of(LOSS) {
            return;
        }
        let receiver = &mut self.receivers[segment.flow.index()];
        let number = segment.seq.0 / u32::from(PAYLOAD);
        if number >= receiver.next {
            receiver.beyond.insert(number);
        }
        while receiver.beyond.remove(&receiver.next) {
            receiver.next += 1;
        }
        let seq = |number: u32| Seq(number * u32::from(PAYLOAD));
        let mut ack = Segment::pure_ack(segment.flow, seq(receiver.next), 40);
        (ack.window, _) = (60_000, ack.set_scale(Some(0)));
        if number > receiver.next {
            ack.push_sack(SackBlock { left: seq(number), right: seq(number + 1) });
        }
        self.schedule(now + DELAY, Event::Ack(ack));
    }

    fn on_ack(&mut self, now: Time, ack: &Segment) {
        let sender = &mut self.senders[ack.flow.index()];
        let acked = ack.ack.0 / u32::from(PAYLOAD);
        sender.allowed = u32::from(ack.window) / u32::from(PAYLOAD);
        let mut resend = None;
        if acked > sender.acked {
            (sender.acked, sender.repeats) = (acked, 0);
            sender.next = sender.next.max(acked);
            let grown = if sender.window < sender.threshold { 1.0 } else { 1.0 / sender.window };
            sender.window += grown;
            resend = Some(acked).filter(|&acked| acked < sender.recover);
            self.schedule(now + TIMEOUT, Event::Timeout(ack.flow.0, acked));
        } else {
            sender.repeats += 1;
            if sender.repeats == 3 && acked >= sender.recover {
                sender.threshold = (sender.window / 2.0).max(2.0);
                (sender.window, sender.recover) = (sender.threshold, sender.next);
                resend = Some(acked);
            }
        }
        resend.inspect(|&number| self.send(now, ack.flow, number));
        self.fill(now, ack.flow);
    }

    /// A retransmission timeout, unless the sender has made progress since the timer started.
    fn on_timeout(&mut self, now: Time, flow: u32, acked: u32) {
        let sender = &mut self.senders[flow as usize];
        if sender.acked == acked {
            (sender.window, sender.recover) = (if sender.next == 0 { sender.window } else { 1.0 }, 0);
            (sender.next, sender.repeats) = (acked, 0);
            self.fill(now, FlowId(flow));
            self.schedule(now + TIMEOUT, Event::Timeout(flow, acked));
        }
    }

    fn fill(&mut self, now: Time, flow: FlowId) {
        loop {
            let sender = &mut self.senders[flow.index()];
            if sender.next >= sender.acked + sender.allowed.min(sender.window as u32).max(1) {
                return;
            }
            sender.next += 1;
            let number = sender.next - 1;
            self.send(now, flow, number);
        }
    }

    fn send(&mut self, now: Time, flow: FlowId, number: u32) {
        let mut segment = Segment::data(flow, Seq(number * u32::from(PAYLOAD)), PAYLOAD, 40);
        segment.set_scale(Some(0));
        self.schedule(now + DELAY, Event::Data(segment));
    }
}
