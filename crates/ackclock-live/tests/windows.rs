//! The Window Regulators on real headers: the scale of the handshake, the field, the checksum.

use ackclock_core::{Size, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::NoFiles;
use ackclock_live::{Plane, PlaneConfig, Side};
use etherparse::{PacketBuilder, TcpHeaderSlice, TcpOptionElement};
use serde_json::{Value, json};

const PAYLOAD: usize = 1000;
/// First numbers of the server's data and of the mobile's.
const SERVER: u32 = 5_000_000;
const MOBILE: u32 = 77;

/// A server, a link of 1 Mbit/s with room for four packets of 1040 bytes, and a mobile.
struct World {
    plane: Plane,
    now: Time,
    /// What reached the server: bytes of TCP segments behind their IP header.
    at_server: Vec<Vec<u8>>,
}

impl World {
    fn new(regulator: Value) -> Self {
        let way = json!({ "kind": "constant", "rate": "1Mbit/s", "delay": "0ms" });
        let edge = EdgeConfig {
            down: way.clone().into(),
            up: way.into(),
            buffer: Size::Packets(4),
            regulator: regulator.into(),
            ..EdgeConfig::default()
        };
        let plane = Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap();
        Self { plane, now: Time::ZERO, at_server: Vec::new() }
    }

    /// A packet comes in; nothing else happens for `millis`.
    fn send(&mut self, from: Side, bytes: &[u8], millis: u64) {
        let mut buffer = self.plane.pool().buffer();
        buffer[..bytes.len()].copy_from_slice(bytes);
        let packet = self.plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
        self.plane.arrive(self.now, from, packet);
        self.collect();
        let until = self.now + Span::from_millis(millis);
        while let Some(wake) = self.plane.next_wake().filter(|&wake| wake <= until) {
            self.plane.advance(wake);
            self.collect();
        }
        self.now = until;
    }

    fn collect(&mut self) {
        while let Some(departure) = self.plane.poll_departure() {
            if departure.side == Side::Wired {
                let bytes = self.plane.bytes(departure.packet);
                assert_sound(bytes);
                self.at_server.push(bytes[20..].to_vec());
            }
            self.plane.release(departure.packet);
        }
    }

    /// The mobile asks, the server answers, each with a scale.
    fn shake_hands(&mut self, mobile: u8, server: u8) {
        let scale =
            |shift| [TcpOptionElement::MaximumSegmentSize(1460), TcpOptionElement::WindowScale(shift)];
        let mut syn = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64);
        let tcp = ip.tcp(4000, 80, MOBILE - 1, 65_000).syn().options(&scale(mobile)).unwrap();
        tcp.write(&mut syn, &[]).unwrap();
        self.send(Side::Radio, &syn, 5);
        let mut answer = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let tcp = ip.tcp(80, 4000, SERVER - 1, 65_000).syn().ack(MOBILE).options(&scale(server)).unwrap();
        tcp.write(&mut answer, &[]).unwrap();
        self.send(Side::Wired, &answer, 5);
        assert_eq!(self.windows(), [(u32::MAX, 65_000)], "the window of a SYN has no scale");
    }

    /// Data packet `number`, and 8.32 ms for it on the link.
    fn data(&mut self, number: u32, millis: u64) {
        let mut bytes = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let seq = SERVER + number * PAYLOAD as u32;
        ip.tcp(80, 4000, seq, 500).ack(MOBILE).write(&mut bytes, &[1; PAYLOAD]).unwrap();
        self.send(Side::Wired, &bytes, millis);
    }

    fn ack(&mut self, packets: u32, window: u16) {
        let mut bytes = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64);
        let ack = SERVER + packets * PAYLOAD as u32;
        ip.tcp(4000, 80, MOBILE, window).ack(ack).write(&mut bytes, &[]).unwrap();
        self.send(Side::Radio, &bytes, 1);
    }

    /// ACKs, in packets, and window fields that reached the server since it was asked last.
    fn windows(&mut self) -> Vec<(u32, u16)> {
        let segments = std::mem::take(&mut self.at_server);
        let read = segments.iter().map(|bytes| {
            let tcp = TcpHeaderSlice::from_slice(bytes).unwrap();
            let packets = tcp.acknowledgment_number().wrapping_sub(SERVER) / PAYLOAD as u32;
            (if tcp.syn() { u32::MAX } else { packets }, tcp.window_size())
        });
        read.collect()
    }
}

/// The checksum is that of a full computation.
fn assert_sound(bytes: &[u8]) {
    let ip = etherparse::Ipv4HeaderSlice::from_slice(bytes).unwrap();
    let tcp = TcpHeaderSlice::from_slice(&bytes[20..]).unwrap();
    let payload = &bytes[20 + tcp.slice().len()..];
    let expected = tcp.to_header().calc_checksum_ipv4(&ip.to_header(), payload).unwrap();
    assert_eq!(tcp.checksum(), expected);
}

#[test]
fn the_window_is_told_in_units_of_the_handshake() {
    let mut world = World::new("wrd".into());
    world.shake_hands(7, 2);
    world.ack(0, 500);
    // Before there is data the SYN speaks of 1460 bytes: 4 x 1460 / 128 = 45.6.
    assert_eq!(world.windows(), [(0, 45)]);
    for number in 0..3 {
        world.data(number, 0);
    }
    world.data(3, 20);
    // Two packets have left the queue, 4 more than that are allowed: from 1 on 5000 / 128 = 39.06; but 5760 were told.
    world.ack(1, 500);
    assert_eq!(world.windows(), [(1, 39)]);
    world.data(4, 50);
    // All five have left: from 5 on 4000 / 128 = 31.25.
    world.ack(5, 500);
    assert_eq!(world.windows(), [(5, 31)]);
    // The receiver offers less; then nothing.
    world.data(5, 20);
    world.ack(6, 20);
    world.data(6, 20);
    world.ack(7, 0);
    assert_eq!(world.windows(), [(6, 20), (7, 0)]);
}

#[test]
fn an_ack_is_held_and_leaves_with_the_window_of_its_release() {
    let mut world = World::new("wrb".into());
    world.shake_hands(0, 0);
    world.ack(0, 60_000);
    for number in 0..4 {
        world.data(number, 0);
    }
    world.data(4, 18);
    // Two have left when the first ACK comes: from 1 on 5000, and the next would have 4000.
    world.ack(1, 60_000);
    world.ack(2, 60_000);
    let windows = world.windows();
    assert_eq!(windows[0], (0, 5840));
    // 5840 were told while a packet was taken to be 1460 bytes: the first waits for a departure as well.
    assert_eq!(world.plane.inside(), 2 + 3 - (windows.len() - 1), "two ACKs, and three packets on their way");
    world.data(5, 60);
    let released: Vec<_> = world.windows().into_iter().chain(windows).map(|(ack, _)| ack).collect();
    assert!(released.contains(&1) && released.contains(&2));
    assert_eq!(world.plane.inside(), 0);
}

#[test]
fn a_flow_met_in_mid_stream_is_left_alone_unless_a_scale_is_assumed() {
    for (regulator, expected) in [
        (json!("wrs"), 500),
        (json!("wrd"), 500),
        (json!("wrb"), 500),
        // 4 x 1000 bytes in units of 64.
        (json!({ "kind": "wrs", "assumed_scale": 6 }), 62),
    ] {
        let mut world = World::new(regulator.clone());
        world.data(10, 20);
        world.ack(11, 500);
        assert_eq!(world.windows(), [(11, expected)], "{regulator}");
    }
}
