//! Laws of the rows of results: a row carries no more than the link could in its time, one packet shows no rate, and the rows of a
//! direction add up to what left the link.

use std::sync::Arc;

use ackclock_core::results::{FlowResult, Provenance, RealFlow, RealTraffic, RunResult, Towards};
use ackclock_core::{Size, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::Files;
use ackclock_live::hostile::conserves;
use ackclock_live::{Plane, PlaneConfig, Side};
use ackclock_testkit::cases;
use etherparse::PacketBuilder;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A recording with an opportunity of 1500 bytes, 1504 with the header of mm-link, every 10 ms.
struct ARecording;

impl Files for ARecording {
    fn read(&self, _: &str) -> Result<Arc<[u8]>, String> {
        Ok(b"10\n"[..].into())
    }
}

/// Bits of an opportunity, or of the largest packet.
const OPPORTUNITY: f64 = 1504.0 * 8.0;

/// A link of one direction with its rate, bit/s.
fn link(recorded: bool) -> (Value, f64) {
    if recorded {
        return (json!({ "kind": "trace", "file": "a", "delay": "2ms" }), OPPORTUNITY * 100.0);
    }
    (json!({ "kind": "constant", "rate": "2Mbit/s", "delay": "2ms" }), 2e6)
}

/// What a packet is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Udp,
    Fragment,
    Ping,
    /// With this number, acknowledging everything up to that one.
    Tcp(u32, u32),
    Noise,
}

/// A packet of one of a few connections with so many bytes behind its headers.
fn packet(from: Side, kind: Kind, port: u16, payload: usize) -> Vec<u8> {
    let [near, far] = if from == Side::Wired { [1, 2] } else { [2, 1] };
    let ip = PacketBuilder::ipv4([10, 0, 0, near], [10, 0, 0, far], 64);
    let (source, destination) = if from == Side::Wired { (80, port) } else { (port, 80) };
    let (mut bytes, payload) = (Vec::new(), vec![0; payload]);
    match kind {
        Kind::Udp | Kind::Fragment => ip.udp(source, destination).write(&mut bytes, &payload).unwrap(),
        Kind::Ping => ip.icmpv4_echo_request(7, port).write(&mut bytes, &payload).unwrap(),
        Kind::Tcp(seq, ack) => {
            ip.tcp(source, destination, seq, 4000).ack(ack).write(&mut bytes, &payload).unwrap()
        }
        Kind::Noise => bytes.resize(payload.len() + 1, 0xff),
    }
    if matches!(kind, Kind::Fragment) {
        // More fragments follow; the checksum is to be that of the changed header (RFC 1624).
        bytes[6] |= 0x20;
        let sum = u32::from(u16::from_be_bytes([bytes[10], bytes[11]])) + 0xffff - 0x6000;
        let sum = (sum & 0xffff) + (sum >> 16);
        bytes[10..12].copy_from_slice(&(sum as u16).to_be_bytes());
    }
    bytes
}

/// How much later a packet comes than the one before (us), where, what it is, its port and its payload.
type Arrival = (u64, Side, Kind, u16, usize);

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let kind = prop_oneof![
        Just(Kind::Udp),
        Just(Kind::Fragment),
        Just(Kind::Ping),
        Just(Kind::Noise),
        (0u32..8, 0u32..8).prop_map(|(seq, ack)| Kind::Tcp(seq * 700, ack * 700)),
    ];
    let side = prop_oneof![Just(Side::Wired), Just(Side::Radio)];
    let wait = prop_oneof![3 => Just(0u64), 1 => 0u64..30_000];
    prop::collection::vec((wait, side, kind, 1u16..4, 0usize..1400), 0..120)
}

/// Results of a link over these arrivals, and the plane so long after the last of them.
fn run(edge: &EdgeConfig, arrivals: &[Arrival], patience: Span) -> (RunResult, Plane) {
    let mut plane = Plane::new(&PlaneConfig::new(edge), &ARecording).unwrap();
    let mut account = plane.account().unwrap();
    let mut now = Time::ZERO;
    let mut departed = 0;
    for &(wait, side, kind, port, payload) in arrivals {
        now += Span::from_micros(wait);
        let bytes = packet(side, kind, port, payload);
        let mut buffer = plane.pool().buffer();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
        plane.arrive(now, side, packet);
        departed += write_all(&mut plane);
    }
    plane.advance(now + patience);
    departed += write_all(&mut plane);
    conserves(&plane, arrivals.len() as u64, departed).unwrap();
    let snapshot = account.snapshot(|from| Some(plane.page(from))).unwrap();
    (account.results(&snapshot, "test", 1, Provenance::default()), plane)
}

fn write_all(plane: &mut Plane) -> u64 {
    let mut departed = 0;
    while let Some(departure) = plane.poll_departure() {
        plane.release(departure.packet);
        departed += 1;
    }
    departed
}

fn real(row: &FlowResult) -> &RealFlow {
    row.real.as_ref().unwrap()
}

/// Packets with data that arrived from the row's sender with the row's ports, or without any.
fn packets(arrivals: &[Arrival], row: &FlowResult) -> usize {
    let RealFlow { protocol, from, to, .. } = real(row);
    let sender = if row.towards == Towards::Server { Side::Radio } else { Side::Wired };
    let is_of = |(_, side, kind, port, payload): &&Arrival| match kind {
        _ if *side != sender || (matches!(kind, Kind::Tcp(..)) && *payload == 0) => false,
        Kind::Udp | Kind::Tcp(..) => {
            let name = format!("10.0.0.2:{port}");
            let named = [from, to].into_iter().flatten().any(|end| *end == name);
            named && protocol == if matches!(kind, Kind::Udp) { "udp" } else { "tcp" }
        }
        _ => protocol == "other",
    };
    arrivals.iter().filter(is_of).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200)))]

    #[test]
    fn a_row_has_no_more_than_its_time_and_all_rows_have_everything(
        arrivals in arrivals(),
        patience in 0u64..600,
        recorded in any::<bool>(),
        packets_of_buffer in 1u32..40,
    ) {
        let (way, rate) = link(recorded);
        let buffer = Size::Packets(packets_of_buffer);
        let edge = EdgeConfig { down: way.clone().into(), up: way.into(), buffer, ..EdgeConfig::default() };
        let (results, _) = run(&edge, &arrivals, Span::from_millis(patience));
        for row in &results.flows {
            let RealFlow { start_s, end_s, up_bytes, down_bytes, .. } = *real(row);
            let sent = if row.towards == Towards::Server { up_bytes } else { down_bytes };
            let most = rate * (end_s - start_s) + OPPORTUNITY;
            prop_assert!(row.delivered_bytes as f64 * 8.0 <= most && sent as f64 * 8.0 <= most, "{row:?}");
            prop_assert!(row.delivered_bytes <= sent, "{row:?}");
            prop_assert!(row.goodput_bps.is_none() || packets(&arrivals, row) != 1, "{row:?}");
        }
        let sum = |of: fn(&RealFlow) -> u64| results.flows.iter().map(|row| of(real(row))).sum::<u64>();
        let left = [&results.bottleneck, &results.uplink].map(|way| way.real.as_ref().unwrap().delivered_bytes);
        prop_assert_eq!([sum(|flow| flow.down_bytes), sum(|flow| flow.up_bytes)], left);
    }
}

#[test]
fn what_was_sent_is_delivered_dropped_or_waiting_at_any_instant() {
    let (way, _) = link(false);
    let edge = EdgeConfig {
        down: way.clone().into(),
        up: way.into(),
        buffer: Size::Packets(5),
        ..EdgeConfig::default()
    };
    let arrivals: Vec<_> = (0..30).map(|_| (0, Side::Wired, Kind::Udp, 1, 1000)).collect();
    for (ms, expected) in [(0, [0, 6]), (20, [4, 2]), (100, [6, 0])] {
        let (results, _) = run(&edge, &arrivals, Span::from_millis(ms));
        let RealTraffic { sent, delivered, waiting, .. } = *results.bottleneck.real.as_ref().unwrap();
        // One is in transmission and five wait; a packet takes 4.112 ms, and 2 ms of delay.
        assert_eq!((sent, results.bottleneck.drops, [delivered, waiting]), (30, 24, expected), "{ms} ms");
    }
}

#[test]
fn fragments_pings_and_noise_are_one_row_behind_those_of_connections() {
    let (way, _) = link(false);
    let edge = EdgeConfig { down: way.clone().into(), up: way.into(), ..EdgeConfig::default() };
    let of = |kind, payload| (0, Side::Radio, kind, 1, payload);
    let arrivals = [
        of(Kind::Fragment, 100),
        of(Kind::Ping, 100),
        of(Kind::Noise, 99),
        of(Kind::Udp, 100),
        of(Kind::Tcp(0, 0), 100),
    ];
    let (results, _) = run(&edge, &arrivals, Span::from_millis(500));
    let rows: Vec<_> =
        results.flows.iter().map(|row| (row.id, real(row).protocol.as_str(), real(row).up_bytes)).collect();
    // IP has 20 bytes, UDP and ICMP 8, TCP 20.
    assert_eq!(rows, [(0, "udp", 128), (1, "tcp", 140), (2, "other", 128 + 128 + 100)]);
    let other = &results.flows[2];
    assert_eq!((&real(other).from, &real(other).to, other.delivered_bytes), (&None, &None, 356));
    assert_eq!(results.flows[0].goodput_bps, None, "one packet");
    assert!(other.goodput_bps.is_some());
}

/// Rows over a link down with these impairments: 100 datagrams of 1000 B, each with its number. Also the numbers that
/// left intact.
fn impaired(impairments: &[(&str, &str)]) -> (RunResult, std::collections::BTreeSet<u8>) {
    let (mut way, _) = link(false);
    impairments.iter().for_each(|(key, share)| way[*key] = (*share).into());
    let edge = EdgeConfig { down: way.into(), up: link(false).0.into(), ..EdgeConfig::default() };
    let mut plane = Plane::new(&PlaneConfig::new(&edge), &ARecording).unwrap();
    let mut account = plane.account().unwrap();
    let datagram = |number| {
        let mut bytes = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        ip.udp(80, 1).write(&mut bytes, &[number; 1000]).unwrap();
        bytes
    };
    for number in 0..100 {
        let (bytes, mut buffer) = (datagram(number), plane.pool().buffer());
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
        plane.arrive(Time::ZERO + Span::from_millis(10 * u64::from(number)), Side::Wired, packet);
    }
    plane.advance(Time::ZERO + Span::from_secs(10));
    let mut intact = std::collections::BTreeSet::new();
    while let Some(departure) = plane.poll_departure() {
        let bytes = plane.bytes(departure.packet);
        intact.extend((0..100).find(|number| datagram(*number) == bytes));
        plane.release(departure.packet);
    }
    let snapshot = account.snapshot(|from| Some(plane.page(from))).unwrap();
    (account.results(&snapshot, "test", 1, Provenance::default()), intact)
}

#[test]
fn a_datagram_is_delivered_once_and_only_intact() {
    for (impairments, some_arrive) in [
        (&[("duplicate", "50%")][..], true),
        (&[("corrupt", "50%")], true),
        (&[("corrupt", "100%")], false),
        (&[("corrupt", "50%"), ("duplicate", "50%")], true),
    ] {
        let (results, intact) = impaired(impairments);
        let expected = intact.len() as u64 * 1000;
        assert_eq!(results.flows[0].delivered_bytes, expected, "{impairments:?}");
        assert_eq!(!intact.is_empty(), some_arrive, "{impairments:?}");
        assert_eq!(results.flows[0].segments_sent, 100, "{impairments:?}");
    }
}

#[test]
fn a_segment_that_cannot_be_read_is_no_payload_of_its_connection() {
    let edge = EdgeConfig { down: link(false).0.into(), up: link(false).0.into(), ..EdgeConfig::default() };
    let mut plane = Plane::new(&PlaneConfig::new(&edge), &ARecording).unwrap();
    let mut account = plane.account().unwrap();
    let data = |seq| packet(Side::Wired, Kind::Tcp(seq, 0), 1, 1000);
    let mut wrong = data(1000);
    *wrong.last_mut().unwrap() ^= 1;
    // Nothing of the last connection can be read.
    let mut alone = wrong.clone();
    alone[23] = 2;
    let acknowledgement = packet(Side::Radio, Kind::Tcp(0, 2000), 1, 0);
    let arrivals = [data(0), wrong, data(1000)].map(|bytes| (Side::Wired, bytes)).into_iter();
    for (second, (from, bytes)) in
        (0..).zip(arrivals.chain([(Side::Radio, acknowledgement), (Side::Wired, alone)]))
    {
        let mut buffer = plane.pool().buffer();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
        plane.arrive(Time::ZERO + Span::from_secs(second), from, packet);
        plane.advance(Time::ZERO + Span::from_millis(1000 * second + 900));
        write_all(&mut plane);
    }
    let snapshot = account.snapshot(|from| Some(plane.page(from))).unwrap();
    let rows = account.results(&snapshot, "test", 1, Provenance::default()).flows;
    let of = |row: &FlowResult| (real(row).protocol.clone(), row.delivered_bytes, row.retransmits);
    let expected = [("tcp".to_owned(), 2000, Some(0)), ("other".to_owned(), 2 * 1040, None)];
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn every_regulator_leaves_nothing_unaccounted_for() {
    use ackclock_edge::REGULATORS;
    let (plain, _) = link(false);
    let mut impaired = plain.clone();
    for (key, value) in [
        ("reorder", json!({ "share": "20%", "extra": "9ms" })),
        ("duplicate", "20%".into()),
        ("corrupt", "20%".into()),
    ] {
        impaired[key] = value;
    }
    for (entry, way) in REGULATORS.entries.iter().flat_map(|entry| [(entry, &plain), (entry, &impaired)]) {
        let buffer = Size::Packets(10);
        let edge = EdgeConfig {
            down: way.clone().into(),
            up: way.clone().into(),
            buffer,
            regulator: entry.name.into(),
            ..EdgeConfig::default()
        };
        let data = (0..60).map(|number| (2000, Side::Wired, Kind::Tcp(number * 700, 0), 1, 700));
        let acks = (0..60).map(|number| (500, Side::Radio, Kind::Tcp(0, number * 700), 1, 0));
        let both: Vec<_> = data.zip(acks).flat_map(|(data, ack)| [data, ack]).collect();
        let (results, _) = run(&edge, &both, Span::from_secs(60));
        for (way, link) in [("down", &results.bottleneck), ("up", &results.uplink)] {
            let RealTraffic { sent, delivered, waiting, .. } = *link.real.as_ref().unwrap();
            let duplicated = link.impaired.as_ref().map_or(0, |impaired| impaired.duplicated);
            let came = sent + link.made + link.resent + duplicated;
            assert_eq!(came, delivered + link.drops + link.discarded + waiting, "{} {way}", entry.name);
        }
    }
}
