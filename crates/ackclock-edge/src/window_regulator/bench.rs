//! Test bench: a Window Regulator with a queue that a test fills and empties by hand. Numbers in this bench are packets
//! of 1000 bytes.

use std::collections::VecDeque;

use ackclock_core::{Flags, FlowId, Rate, Segment, Seq, SynOptions, Time};
use ackclock_link::{Capacity, Cause, LinkView, Load};

use crate::{FlowContext, Output, REGULATORS, Regulator, RegulatorConfig};

const PAYLOAD: u32 = 1000;

pub(super) struct Bench {
    pub(super) regulator: Box<dyn Regulator>,
    /// Packets in the queue of the bench. The head of the queue is in transmission.
    queue: VecDeque<Segment>,
    capacity: Capacity,
    pub(super) now: Time,
    /// ACK numbers and windows sent to the sender, bytes.
    sent: Vec<(u32, u32)>,
}

impl Bench {
    /// Creates a bench whose queue has room for `capacity` packets plus the packet in transmission.
    pub(super) fn new(regulator: Box<dyn Regulator>, capacity: u32) -> Self {
        Self::with_buffer(regulator, Capacity::Packets(capacity))
    }

    /// Creates a bench with the regulator of the configuration `config`.
    pub(super) fn of(config: &dyn RegulatorConfig, capacity: u32) -> Self {
        let regulator = config.build(FlowContext { flow: FlowId(0), user: 0 });
        Self::new(regulator.expect("every table builds a regulator"), capacity)
    }

    pub(super) fn with_buffer(regulator: Box<dyn Regulator>, capacity: Capacity) -> Self {
        Self { regulator, queue: VecDeque::new(), capacity, now: Time::ZERO, sent: Vec::new() }
    }

    pub(super) fn view(&self) -> LinkView {
        let load = |packets: usize| Load { packets: packets as u32, bytes: packets as u64 * 1040 };
        LinkView {
            waiting: load(self.queue.len().saturating_sub(1)),
            in_transmission: load(self.queue.len().min(1)),
            unacknowledged: Load::NONE,
            occupied: load(self.queue.len().saturating_sub(1)),
            capacity: self.capacity,
            rate: Rate::from_bps(200_000),
        }
    }

    /// Creates the data packet with this number.
    pub(super) fn data(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number * PAYLOAD), PAYLOAD as u16, 40)
    }

    /// Creates an ACK of the first `packets` packets, from a receiver with a window of 60 packets.
    pub(super) fn pure_ack(packets: u32) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(packets * PAYLOAD), 40);
        ack.window = 60_000;
        ack.set_scale(Some(0));
        ack
    }

    /// Lets packet `number` arrive at the queue. Returns whether the packet was queued.
    pub(super) fn arrive(&mut self, number: u32) -> bool {
        self.take(Self::data(number))
    }

    /// Lets `count` half-size packets arrive. The first small packet starts at the first byte of packet `number`.
    pub(super) fn arrive_small(&mut self, number: u32, count: u32) {
        let half = PAYLOAD / 2;
        for small in 0..count {
            self.take(Segment::data(FlowId(0), Seq(number * PAYLOAD + small * half), half as u16, 40));
        }
    }

    /// Lets a segment arrive at the queue. Returns whether the segment was queued.
    pub(super) fn take(&mut self, segment: Segment) -> bool {
        self.regulator.on_data(self.now, &segment, self.view());
        if self.queue.len() as u32 > self.capacity.packets(PAYLOAD + 40) {
            self.regulator.on_dropped(self.now, &segment, Cause::Full, self.view());
            return false;
        }
        self.queue.push_back(segment);
        self.regulator.on_queued(self.now, &segment, self.view());
        true
    }

    pub(super) fn arrive_all(&mut self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            assert!(self.arrive(number), "packet {number} was refused");
        }
    }

    /// Lets the head of the queue depart.
    pub(super) fn depart(&mut self) {
        let Some(segment) = self.queue.pop_front() else { return };
        self.regulator.on_departed(self.now, &segment, self.view());
        if self.queue.is_empty() {
            self.regulator.on_idle(self.now, self.view());
        }
    }

    /// Lets the head of the queue depart and loses it on the radio.
    pub(super) fn lose(&mut self) {
        let Some(segment) = self.queue.pop_front() else { return };
        self.regulator.on_dropped(self.now, &segment, Cause::Medium, self.view());
    }

    /// Lets an ACK of the first `packets` packets arrive.
    pub(super) fn ack(&mut self, packets: u32) {
        self.handle(Self::pure_ack(packets));
    }

    pub(super) fn handle(&mut self, ack: Segment) {
        self.regulator.handle_ack(self.now, ack, self.view());
        self.drain();
    }

    /// Lets the regulator's safety timer expire.
    pub(super) fn expire(&mut self) {
        self.regulator.handle_timeout(self.now, self.view());
        self.drain();
    }

    /// ACK numbers and windows sent to the sender since the last call, packets.
    pub(super) fn sent(&mut self) -> Vec<(u32, u32)> {
        self.drain();
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().map(|(ack, window)| (ack / PAYLOAD, window / PAYLOAD)).collect()
    }

    /// Windows sent to the sender since the last call, bytes.
    pub(super) fn windows(&mut self) -> Vec<u32> {
        self.drain();
        std::mem::take(&mut self.sent).into_iter().map(|(_, window)| window).collect()
    }

    /// Drains the regulator's output, as the edge does after every call.
    fn drain(&mut self) {
        while let Some(output) = self.regulator.poll_output(self.now) {
            if let Output::ToSender(ack) = output {
                self.sent.push((ack.ack.0, ack.window.into()));
            }
        }
    }
}

/// Creates one bench for each of the three regulators with default settings.
fn each(capacity: Capacity) -> impl Iterator<Item = (&'static str, Bench)> {
    ["wrs", "wrd", "wrb"].into_iter().map(move |name| {
        let config = REGULATORS.resolve(&name.into()).expect("a name of the registry");
        let regulator =
            config.build(FlowContext { flow: FlowId(0), user: 0 }).expect("none leaves flows alone");
        (name, Bench::with_buffer(regulator, capacity))
    })
}

/// Creates one bench for each of the two regulators that follow departures from the queue.
fn dynamic(capacity: u32) -> impl Iterator<Item = (&'static str, Bench)> {
    each(Capacity::Packets(capacity)).filter(|(name, _)| *name != "wrs")
}

/// Creates a SYN from the network. The sequence space starts so that the first data byte belongs to packet 0.
pub(super) fn syn(mss: Option<u16>) -> Segment {
    let mut syn = Segment::pure_ack(FlowId(0), Seq(0), 40);
    (syn.seq, syn.flags) = (Seq(u32::MAX), Flags::SYN | Flags::ACK);
    syn.set_syn_options(SynOptions { mss, window_scale: Some(0), sack_permitted: true });
    syn
}

#[test]
fn the_windows_of_syn_and_rst_pass_as_they_came() {
    for (name, mut bench) in each(Capacity::Packets(5)) {
        bench.arrive_all(0..5);
        bench.ack(0);
        for flags in [Flags::SYN, Flags::RST] {
            let mut control = Bench::pure_ack(0);
            control.flags |= flags;
            bench.handle(control);
        }
        assert_eq!(bench.sent(), [(0, 5), (0, 60), (0, 60)], "{name}");
    }
}

#[test]
fn a_syn_of_the_network_begins_anew() {
    for (name, mut bench) in each(Capacity::Packets(5)) {
        bench.arrive_all(0..5);
        (0..5).for_each(|_| bench.depart());
        bench.ack(5);
        assert_eq!(bench.sent(), [(5, 5)], "{name}");
        bench.take(syn(Some(1000)));
        bench.depart();
        bench.arrive_all(0..2);
        bench.ack(0);
        // No packet of this connection has left the queue. The right edge of 10 belonged to the previous connection.
        assert_eq!(bench.sent(), [(0, 5)], "{name}");
    }
}

#[test]
fn until_a_packet_has_come_it_is_as_large_as_the_syn_says() {
    // The default MSS is 536 bytes if the SYN has no MSS option (RFC 9293 section 3.7.1).
    for (mss, window) in [(Some(1000), 5 * 1000), (None, 5 * 536)] {
        for (name, mut bench) in each(Capacity::Packets(5)) {
            bench.take(syn(mss));
            bench.depart();
            bench.ack(0);
            assert_eq!(bench.windows(), [window], "{name}");
        }
    }
}

#[test]
fn the_least_window_is_of_packets_as_large_as_the_syn_says() {
    for (name, mut bench) in each(Capacity::Packets(1)) {
        bench.take(syn(Some(1000)));
        bench.depart();
        bench.arrive_small(0, 1);
        bench.ack(0);
        // The buffer is one packet of 500 bytes. A sender that waits for a window of 1000 bytes would stall, so the
        // window is larger.
        assert_eq!(bench.windows(), [2000], "{name}");
    }
}

#[test]
fn headers_take_room_in_a_buffer_of_bytes() {
    for (name, mut bench) in each(Capacity::Bytes(10_000)) {
        bench.arrive_all(0..1);
        bench.ack(0);
        // 10 000 / 1040 = 9.6, so the buffer has room for the payload of 9 packets.
        assert_eq!(bench.sent(), [(0, 9)], "{name}");
    }
}

#[test]
fn a_buffer_without_limit_regulates_nothing() {
    for (name, mut bench) in each(Capacity::Unlimited) {
        bench.arrive_all(0..5);
        bench.ack(0);
        let mut smaller = Bench::pure_ack(1);
        smaller.window = 50_000;
        bench.handle(smaller);
        // The receiver reduced its window, and no ACK is held to compensate for the reduction.
        assert_eq!(bench.sent(), [(0, 60), (1, 50)], "{name}");
    }
}

#[test]
fn a_window_that_the_receiver_closes_is_closed_at_once() {
    for (name, mut bench) in each(Capacity::Packets(5)) {
        bench.arrive_all(0..5);
        bench.ack(0);
        bench.depart();
        let mut closed = Bench::pure_ack(1);
        closed.window = 0;
        bench.handle(closed);
        assert_eq!(bench.sent(), [(0, 5), (1, 0)], "{name}");
        bench.ack(1);
        assert_eq!(bench.sent(), [(1, 5)], "{name} opens it again");
    }
}

#[test]
fn window_updates_and_data_of_the_mobile_are_no_duplicates() {
    for (name, mut bench) in dynamic(5) {
        bench.arrive_all(0..5);
        bench.depart();
        bench.ack(1);
        bench.depart();
        bench.depart();
        bench.ack(1);
        // The first ACK advertised the right edge 1 + 5. Three packets have left the queue since then, but a duplicate
        // ACK repeats the advertised window.
        assert_eq!(bench.sent(), [(1, 5), (1, 5)], "{name}");
        let mut update = Bench::pure_ack(1);
        update.window = 50_000;
        bench.handle(update);
        assert_eq!(bench.sent(), [(1, 7)], "{name}: 3 + 5");
        bench.depart();
        update.payload = 100;
        bench.handle(update);
        assert_eq!(bench.sent(), [(1, 8)], "{name}: 4 + 5");
    }
}

#[test]
fn a_packet_that_the_air_lost_has_left_the_queue() {
    for (name, mut bench) in dynamic(5) {
        bench.arrive_all(0..5);
        bench.depart();
        bench.lose();
        bench.depart();
        bench.ack(1);
        // The right edge is packet 8 (3 + 5), which an ACK with number 1 advertises as a window of 7 packets.
        assert_eq!(bench.sent(), [(1, 7)], "{name}");
    }
}

/// Simulates a sender 20 ms away from a link that serves a window instantly. The sender sends one burst per round trip,
/// and the link is idle between bursts. Returns the bench, the acknowledged packets and the right edge after four
/// bursts; three packets are queued.
fn after_bursts(name: &str, floor: bool) -> (Bench, u32, u32) {
    let table = serde_json::json!({ "kind": name, "floor": floor });
    let config = REGULATORS.resolve(&table).expect("what the table may say");
    let context = FlowContext { flow: FlowId(0), user: 0 };
    let mut bench = Bench::new(config.build(context).expect("none leaves flows alone"), 3);
    let (mut acked, mut end) = (0, 1);
    bench.arrive(0);
    for _ in 0..4 {
        (acked..end).for_each(|_| bench.depart());
        acked = end;
        bench.ack(acked);
        let windows = bench.sent();
        end = acked + windows.last().map_or(0, |(_, window)| *window);
        bench.now += ackclock_core::Span::from_millis(20);
        // The sender omits the packets for which the test's queue of three packets has no room.
        bench.arrive_all(acked..end.min(acked + 3));
    }
    (bench, acked, end)
}

#[test]
fn with_a_floor_the_window_grows_where_it_keeps_the_link_idle() {
    for name in ["wrs", "wrd", "wrb"] {
        for (floor, window) in [(false, 3), (true, 24)] {
            let (_, acked, end) = after_bursts(name, floor);
            assert_eq!(end - acked, window, "{name}");
        }
    }
}

#[test]
fn where_the_floor_tells_more_than_the_buffer_no_ack_is_held() {
    for (floor, held) in [(false, 1), (true, 0)] {
        let (mut bench, acked, _) = after_bursts("wrb", floor);
        (0..2).for_each(|_| bench.depart());
        bench.ack(acked + 1);
        bench.ack(acked + 2);
        assert_eq!(bench.regulator.held(FlowId(0)), held, "floor = {floor}");
    }
}
