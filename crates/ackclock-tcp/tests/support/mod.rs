//! One download over the topology of CR02: server - wired path - edge with a drop-tail queue - radio link - client.
//!
//! A calculation instead of a simulator: links are FIFO, so the times of a packet are known when it arrives.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Rate, Segment, Span, Stream, Streams, Time};
use ackclock_tcp::{FlowParams, Receiver, ReceiverConfig, SENDERS, Sender, Supply};
use serde_json::Value;

/// A link that delivers in order: the delay of a packet never lets it overtake another.
pub(crate) struct Pipe {
    rate: Box<dyn FnMut() -> Rate>,
    delay: Box<dyn FnMut() -> Span>,
    /// Packets that can queue, in addition to the one in transmission.
    pub(crate) buffer: usize,
    departures: VecDeque<Time>,
    last_arrival: Time,
    arrivals: VecDeque<(Time, Segment)>,
    pub(crate) drops: u64,
}

impl Pipe {
    pub(crate) fn new(
        rate: impl FnMut() -> Rate + 'static,
        delay: impl FnMut() -> Span + 'static,
        buffer: usize,
    ) -> Self {
        Self {
            rate: Box::new(rate),
            delay: Box::new(delay),
            buffer,
            departures: VecDeque::new(),
            last_arrival: Time::ZERO,
            arrivals: VecDeque::new(),
            drops: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Time, segment: Segment) {
        while self.departures.front().is_some_and(|&departure| departure <= at) {
            self.departures.pop_front();
        }
        if self.departures.len() > self.buffer {
            self.drops += 1;
            return;
        }
        let start = self.departures.back().copied().unwrap_or(at).max(at);
        let departure = start + (self.rate)().time_for(segment.wire_bytes().into());
        self.departures.push_back(departure);
        self.last_arrival = self.last_arrival.max(departure + (self.delay)());
        self.arrivals.push_back((self.last_arrival, segment));
    }

    pub(crate) fn next(&self) -> Time {
        self.arrivals.front().map_or(Time::NEVER, |(time, _)| *time)
    }

    pub(crate) fn pop(&mut self) -> Option<Segment> {
        self.arrivals.pop_front().map(|(_, segment)| segment)
    }
}

/// State of the download.
pub(crate) struct Download {
    pub(crate) sender: Box<dyn Sender>,
    pub(crate) receiver: Receiver,
    pub(crate) wire: Pipe,
    pub(crate) down: Pipe,
    pub(crate) up: Pipe,
    pub(crate) now: Time,
}

/// CR02 Table 1 item 1, or another item by its parameters: mean of the exponential part of the forward delay, fixed
/// part, reverse delay, standard deviation of the rate.
pub(crate) struct Item {
    pub(crate) exponential: Span,
    pub(crate) fixed: Span,
    pub(crate) reverse: Span,
    pub(crate) rate_deviation: f64,
}

pub(crate) const ITEM_1: Item = Item {
    exponential: Span::ZERO,
    fixed: Span::from_millis(200),
    reverse: Span::from_millis(200),
    rate_deviation: 0.0,
};

impl Item {
    pub(crate) fn down(&self, seed: u64, buffer: usize) -> Pipe {
        let streams = Streams::new(seed, 0);
        let (mut rates, mut delays) = (streams.stream("rate"), streams.stream("delay"));
        let (mean, fixed) = (self.exponential.as_secs_f64(), self.fixed);
        let half_width = self.rate_deviation * 3f64.sqrt();
        let rate = move || Rate::from_bps_f64(200e3 + half_width * (2.0 * rates.unit() - 1.0));
        let delay = move || fixed + exponential(&mut delays, mean);
        Pipe::new(rate, delay, buffer)
    }
}

fn exponential(stream: &mut Stream, mean: f64) -> Span {
    if mean == 0.0 { Span::ZERO } else { Span::from_secs_f64(-mean * libm::log(stream.unit())) }
}

impl Download {
    /// Creates a download with the packets and windows of the sources.
    pub(crate) fn new(sender: &Value, item: &Item, seed: u64, buffer: usize, supply: Supply) -> Self {
        let row = SENDERS.resolve(sender).unwrap();
        let mut sender = row.build(FlowParams::new(FlowId(0))).unwrap();
        sender.supply(supply);
        let config = ReceiverConfig {
            max_window: 500 * 960,
            sack: row.uses_sack(),
            timestamps: row.config().timestamps == Some(ackclock_tcp::config::Switch::On),
            ecn: row.config().ecn.unwrap_or_default(),
            ..ReceiverConfig::default()
        };
        let reverse = item.reverse;
        Self {
            sender,
            receiver: Receiver::new(config, FlowId(0)),
            wire: Pipe::new(|| Rate::from_bps(100_000_000), || Span::from_millis(1), usize::MAX - 1),
            down: item.down(seed, buffer),
            up: Pipe::new(|| Rate::from_bps(64_000), move || reverse, usize::MAX - 1),
            now: Time::ZERO,
        }
    }

    /// Runs until `end`.
    pub(crate) fn run(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    /// Processes the next event, unless it is after `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        let timer = self.sender.poll_timeout().unwrap_or(Time::NEVER);
        let ack_timer = self.receiver.poll_timeout().unwrap_or(Time::NEVER);
        let next = [self.wire.next(), self.down.next(), self.up.next(), timer, ack_timer];
        let at = next.into_iter().min().unwrap();
        if at > end || at == Time::NEVER {
            return false;
        }
        assert!(at >= self.now, "time goes back");
        self.now = at;
        let mut acks = Vec::new();
        if at == self.wire.next() {
            let segment = self.wire.pop().unwrap();
            self.down.push(at, segment);
        } else if at == self.down.next() {
            let segment = self.down.pop().unwrap();
            self.receiver.on_segment(at, &segment, &mut |ack| acks.push(*ack));
        } else if at == self.up.next() {
            let segment = self.up.pop().unwrap();
            self.sender.on_segment(at, &segment);
        } else if at == ack_timer {
            self.receiver.on_timeout(at, &mut |ack| acks.push(*ack));
        } else {
            self.sender.on_timeout(at);
        }
        for ack in acks {
            self.up.push(at, ack);
        }
        while let Some(segment) = self.sender.poll_segment(at) {
            self.wire.push(at, segment);
        }
        true
    }

    /// Bits per second of packets delivered in order, headers included.
    pub(crate) fn wire_goodput(&self) -> f64 {
        self.receiver.delivered_wire_bytes() as f64 * 8.0 / self.now.as_secs_f64()
    }
}
