//! Many connections between two hosts, and their allocations.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use ackclock_core::{FlowId, Message, Node, Outbox, Segment, Seq, Size, Span, Time};
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::sender::SenderState;
use ackclock_tcp::{FlowParams, Host, Receiver, ReceiverConfig, SENDERS, Supply};
use ackclock_testkit::{Counting, allocations};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two hosts and a path of 50 ms each way that loses every `loss`-th data segment.
struct Pair {
    server: Host,
    client: Host,
    now: Time,
    flights: [VecDeque<(Time, Segment)>; 2],
    outboxes: [Outbox; 2],
    loss: u64,
    sent: u64,
}

impl Pair {
    fn new(server: Host, client: Host, loss: u64) -> Self {
        Self {
            server,
            client,
            now: Time::ZERO,
            flights: [VecDeque::new(), VecDeque::new()],
            outboxes: [Outbox::for_one_node(), Outbox::for_one_node()],
            loss,
            sent: 0,
        }
    }

    fn run(&mut self, end: Time) {
        loop {
            let arrival =
                |flight: &VecDeque<(Time, Segment)>| flight.front().map_or(Time::NEVER, |(at, _)| *at);
            let wake = |host: &Host| host.next_wake().unwrap_or(Time::NEVER);
            let nexts = [
                arrival(&self.flights[0]),
                arrival(&self.flights[1]),
                wake(&self.server),
                wake(&self.client),
            ];
            let next = nexts.into_iter().min().unwrap().max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            for (side, host) in [&mut self.client, &mut self.server].into_iter().enumerate() {
                while let Some((_, segment)) =
                    self.flights[side].front().copied().filter(|(at, _)| *at <= next)
                {
                    self.flights[side].pop_front();
                    host.receive(next, 0, &Message::Segment(segment), &mut self.outboxes[side]);
                }
                if host.next_wake().is_some_and(|at| at <= next) {
                    host.wake(next, &mut self.outboxes[side]);
                }
            }
            for side in 0..2 {
                while let Some((_, message)) = self.outboxes[side].take() {
                    let Message::Segment(segment) = message else { continue };
                    self.sent += u64::from(segment.payload > 0);
                    if segment.payload == 0 || !self.sent.is_multiple_of(self.loss) {
                        // The client sends to the server and vice versa.
                        self.flights[1 - side].push_back((next + Span::from_millis(50), segment));
                    }
                }
            }
        }
    }
}

fn pair(flows: u32, kinds: &[&str], supply: Supply, loss: u64) -> Pair {
    let (mut server, mut client) = (Host::new(), Host::new());
    for flow in (0..flows).map(FlowId) {
        let kind = kinds[flow.index() % kinds.len()];
        let config = json!({"kind": kind, "handshake": "on", "timestamps": "on"});
        let params = FlowParams { max_window: Size::Packets(20), ..FlowParams::new(flow) };
        let mut sender = SENDERS.resolve(&config).unwrap().build(params).unwrap();
        sender.supply(supply);
        server.add_sender(flow, sender);
        let config = ReceiverConfig {
            opening: Opening::Handshake,
            timestamps: true,
            mss: 960,
            max_window: 20 * 960,
            ..ReceiverConfig::default()
        };
        client.add_receiver(
            flow,
            Time::ZERO + Span::from_millis(u64::from(flow.0)),
            Receiver::new(config, flow),
        );
    }
    Pair::new(server, client, loss)
}

const ALL: [&str; 7] = ["reno", "newreno", "sack", "sack1", "eifel", "cubic", "bbr"];

#[test]
fn seventy_files_arrive_whole_and_every_connection_ends() {
    let mut pair = pair(70, &ALL, Supply::Bytes(123_456), 23);
    pair.run(Time::ZERO + Span::from_secs(600));
    for flow in (0..70).map(FlowId) {
        let (sender, receiver) = (pair.server.sender(flow).unwrap(), pair.client.receiver(flow).unwrap());
        assert_eq!(sender.state(), SenderState::Closed, "{flow:?}");
        assert_eq!(receiver.delivered_bytes(), 123_456, "{flow:?}");
        assert!(receiver.finished_at().unwrap() <= sender.finished_at().unwrap());
    }
    assert_eq!(pair.server.next_wake(), None, "nothing is left to do");
}

#[test]
fn nothing_is_allocated_once_warm() {
    let mut pair = pair(7, &ALL, Supply::Endless, 97);
    pair.run(Time::ZERO + Span::from_secs(300));
    let (before, sent) = (allocations(), pair.sent);
    pair.run(Time::ZERO + Span::from_secs(400));
    assert!(pair.sent - sent > 10_000);
    assert_eq!(allocations() - before, 0);
}

#[test]
fn a_segment_of_an_unknown_flow_is_left_alone() {
    let mut host = Host::new();
    let mut out = Outbox::for_one_node();
    let stray = Segment::data(FlowId(9), Seq(1), 100, 40);
    host.receive(Time::ZERO, 0, &Message::Segment(stray), &mut out);
    assert!(out.take().is_none());
    assert_eq!(host.next_wake(), None);
}
