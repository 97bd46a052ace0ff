//! Crowds: packets that wait one way leave room for those of the other, and connections that come and go for those that stay.

use ackclock_core::results::Provenance;
use ackclock_core::{Flags, Size, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::{Direction, NoFiles};
use ackclock_live::hostile::conserves;
use ackclock_live::{Crowd, FlowReport, Plane, PlaneConfig, Rest, Side};
use etherparse::PacketBuilder;
use serde_json::json;

fn arrive(plane: &mut Plane, from: Side) {
    let mut buffer = plane.pool().buffer();
    let packet = plane.pool_mut().claim(&mut buffer, 100).unwrap();
    plane.arrive(Time::ZERO, from, packet);
}

#[test]
fn a_crowd_one_way_loses_its_own_packets_alone() {
    let way = json!({ "kind": "constant", "rate": "8kbit/s", "delay": "0ms" });
    let edge = EdgeConfig {
        down: way.clone().into(),
        up: way.into(),
        buffer: Size::Packets(1000),
        ..EdgeConfig::default()
    };
    let config = PlaneConfig { packets: 64, ..PlaneConfig::new(&edge) };
    let mut plane = Plane::new(&config, &NoFiles).unwrap();
    (0..100).for_each(|_| arrive(&mut plane, Side::Radio));
    let lost = |plane: &Plane| Direction::BOTH.map(|direction| plane.traffic(direction).lost.no_room);
    // n + n + n < 48, three quarters of all: half of its side.
    assert_eq!((plane.inside(), lost(&plane)), (16, [0, 84]));
    let crowd = Crowd { inside: 16, waiting: 15, held: 0, kept: 0 };
    assert_eq!(plane.crowd(), Some(crowd), "one is in transmission");
    // They are of no connection, as those of the other side are: n + (16 + n) + (16 + n) < 48.
    (0..5).for_each(|_| arrive(&mut plane, Side::Wired));
    assert_eq!((plane.inside(), lost(&plane)), (21, [0, 84]));
    conserves(&plane, 105, 0).unwrap();
}

fn packet(down: bool, port: u16, flags: Flags, [seq, ack]: [u32; 2], payload: usize) -> Vec<u8> {
    let (from, to) = if down { ([1; 4], [2; 4]) } else { ([2; 4], [1; 4]) };
    let (source, destination) = if down { (80, port) } else { (port, 80) };
    let mut tcp = PacketBuilder::ipv4(from, to, 64).tcp(source, destination, seq, 4000);
    if flags.contains(Flags::SYN) {
        tcp = tcp.syn();
    }
    if flags.contains(Flags::ACK) {
        tcp = tcp.ack(ack);
    }
    let mut bytes = Vec::new();
    tcp.write(&mut bytes, &vec![0; payload]).unwrap();
    bytes
}

fn send(plane: &mut Plane, ms: u64, from: Side, bytes: &[u8]) {
    let mut buffer = plane.pool().buffer();
    buffer[..bytes.len()].copy_from_slice(bytes);
    let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
    plane.arrive(Time::ZERO + Span::from_millis(ms), from, packet);
    while let Some(departure) = plane.poll_departure() {
        plane.release(departure.packet);
    }
}

/// All connections that a plane knows.
fn known(plane: &mut Plane) -> Vec<FlowReport> {
    let (mut flows, mut from) = (Vec::new(), 0);
    loop {
        let page = plane.page(from);
        flows.extend(page.flows);
        match page.rest {
            Rest::From(next) => from = next,
            Rest::Nothing(_) => return flows,
        }
    }
}

#[test]
fn a_scan_from_outside_does_not_take_a_regulated_connection_from_its_regulator() {
    let way = json!({ "kind": "constant", "rate": "1Gbit/s", "delay": "0ms" });
    let edge = EdgeConfig {
        down: way.clone().into(),
        up: way.into(),
        regulator: "wrs".into(),
        ..EdgeConfig::default()
    };
    let mut plane = Plane::new(&PlaneConfig { flows: 1000, ..PlaneConfig::new(&edge) }, &NoFiles).unwrap();
    let ack = Flags::ACK;
    send(&mut plane, 0, Side::Radio, &packet(false, 9, Flags::SYN, [99, 0], 0));
    send(&mut plane, 1, Side::Wired, &packet(true, 9, Flags::SYN | ack, [999, 100], 0));
    send(&mut plane, 2, Side::Radio, &packet(false, 9, ack, [100, 1000], 0));
    send(&mut plane, 3, Side::Wired, &packet(true, 9, ack, [1000, 100], 1000));
    // Between two packets of the connection come 42 000 of a scan, which is more than there are numbers.
    for port in 1_000..43_000 {
        send(&mut plane, 4, Side::Wired, &packet(true, port, Flags::SYN, [7, 0], 0));
    }
    send(&mut plane, 5, Side::Radio, &packet(false, 9, ack, [100, 2000], 0));
    let flows = known(&mut plane);
    assert_eq!(flows.len(), 1000);
    let of_port: Vec<_> = flows.iter().filter(|flow| flow.ends.unwrap().radio.port == 9).collect();
    assert_eq!(of_port.iter().map(|flow| flow.id).collect::<Vec<_>>(), [0]);
    assert_eq!(of_port[0].ways[Side::Wired as usize].delivered_bytes, 1000);
}

#[test]
fn however_many_connections_there_were_a_page_has_few_of_them_and_the_account_all() {
    let edge = EdgeConfig::default();
    let mut plane = Plane::new(&PlaneConfig { flows: 300, ..PlaneConfig::new(&edge) }, &NoFiles).unwrap();
    let mut account = plane.account().unwrap();
    for port in 1..=5_000 {
        send(&mut plane, port.into(), Side::Wired, &packet(true, port, Flags::ACK, [1, 1], 10));
    }
    let pages = std::cell::Cell::new(0);
    let mut ask = |from| {
        let page = plane.page(from);
        assert!(page.flows.len() <= 64);
        pages.set(pages.get() + 1);
        Some(page)
    };
    let snapshot = account.snapshot(&mut ask).unwrap();
    // 301 numbers, with that of no connection, are five pages of 64; 4 700 connections have lost theirs.
    assert_eq!((pages.get(), snapshot.flows.len(), snapshot.totals.flows), (5, 300, 5_000));
    let provenance = Provenance::default();
    let snapshot = account.snapshot(&mut ask).unwrap();
    let results = account.results(&snapshot, "test", 1, provenance);
    let ids: Vec<_> = results.flows.iter().map(|flow| flow.id).collect();
    assert_eq!(ids, (0..5_000).collect::<Vec<_>>());
    let real = results.flows[4_999].real.as_ref().unwrap();
    assert_eq!(
        (real.protocol.as_str(), real.from.as_deref(), real.to.as_deref()),
        ("tcp", Some("1.1.1.1:80"), Some("2.2.2.2:5000"))
    );
    assert_eq!((real.start_s, real.end_s), (5.0, 5.0));
}

#[test]
fn packets_that_overflow_a_queue_are_counted_as_removed() {
    let way = json!({ "kind": "constant", "rate": "8kbit/s", "delay": "0ms" });
    let edge = EdgeConfig {
        down: way.clone().into(),
        up: way.into(),
        buffer: Size::Packets(5),
        ..EdgeConfig::default()
    };
    let mut plane = Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap();
    (0..30).for_each(|_| arrive(&mut plane, Side::Wired));
    // One packet is in transmission and five wait.
    let traffic = plane.traffic(Direction::Down);
    assert_eq!((traffic.arrived, traffic.removed, traffic.inside), (30, 24, 6));
    assert_eq!(plane.traffic(Direction::Up).removed, 0);
}

#[test]
fn a_syn_with_another_number_begins_a_connection_between_the_same_ports() {
    let mut plane = Plane::new(&PlaneConfig::new(&EdgeConfig::default()), &NoFiles).unwrap();
    let mut account = plane.account().unwrap();
    let mut connect = |ms, seq| {
        send(&mut plane, ms, Side::Radio, &packet(false, 9, Flags::SYN, [seq, 0], 0));
        send(&mut plane, ms + 1, Side::Radio, &packet(false, 9, Flags::ACK, [seq + 1, 1], 10));
        let snapshot = account.snapshot(|from| Some(plane.page(from))).unwrap();
        (snapshot.flows.iter().map(|flow| flow.id).collect::<Vec<_>>(), snapshot.totals.flows)
    };
    assert_eq!(connect(0, 100), (vec![0], 1));
    assert_eq!(connect(10, 100), (vec![0], 1), "the SYN is a retransmission");
    assert_eq!(connect(20, 70_000), (vec![1], 2));
}

#[test]
fn a_row_counts_the_bytes_that_left_the_link() {
    let way = json!({ "kind": "constant", "rate": "1Mbit/s", "delay": "5ms" });
    let edge = EdgeConfig { down: way.clone().into(), up: way.into(), ..EdgeConfig::default() };
    let mut plane = Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap();
    let data = packet(true, 9, Flags::ACK, [1, 1], 1000);
    send(&mut plane, 0, Side::Wired, &data);
    let left = |plane: &mut Plane| known(plane)[0].ways.map(|way| way.left_bytes);
    assert_eq!(left(&mut plane), [0, 0]);
    plane.advance(Time::ZERO + Span::from_millis(100));
    while let Some(departure) = plane.poll_departure() {
        plane.release(departure.packet);
    }
    assert_eq!(left(&mut plane), [data.len() as u64, 0]);
}
