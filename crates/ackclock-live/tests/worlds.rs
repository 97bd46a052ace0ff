//! Live = simulated: one recording of arrivals through virtual time and through the driver, with a clock and ports that are
//! made up, gives the same departures, byte for byte and nanosecond for nanosecond.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use ackclock_core::results::Provenance;
use ackclock_core::{Config, FlowId, Segment, Size, Span, Streams, Time};
use ackclock_edge::QUEUES;
use ackclock_edge::{EdgeConfig, FlowContext, Output, Place, REGULATORS, Regulator, RegulatorConfig, Scope};
use ackclock_link::{Change, Direction, LinkView, NoFiles};
use ackclock_live::hostile::conserves;
use ackclock_live::{Came, Clock, Driver, Orders, Plane, PlaneConfig, Pool, Port, Ready, Side, Went};
use etherparse::{PacketBuilder, TcpOptionElement};
use serde_json::json;

use crate::busy::Busy;

/// When, where and what.
type Event = (Time, Side, Vec<u8>);

/// What has yet to arrive and what has departed.
#[derive(Default)]
struct World {
    now: Time,
    arrivals: VecDeque<Event>,
    departures: Vec<Event>,
}

#[derive(Clone)]
struct MadeUpClock(Rc<RefCell<World>>);

impl Clock for MadeUpClock {
    fn now(&mut self) -> Time {
        self.0.borrow().now
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<Ready> {
        let mut world = self.0.borrow_mut();
        let next = world.arrivals.front().map_or(Time::NEVER, |&(at, ..)| at);
        world.now = world.now.max(next.min(until.unwrap_or(Time::NEVER)));
        let here =
            |side| world.arrivals.iter().take_while(|(at, ..)| *at <= world.now).any(|event| event.1 == side);
        Ok(Ready { ports: Side::BOTH.map(here), order: false })
    }
}

struct MadeUpPort(Rc<RefCell<World>>, Side);

impl Port for MadeUpPort {
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<ackclock_core::PacketId>) -> io::Result<Came> {
        let mut world = self.0.borrow_mut();
        let now = world.now;
        let here =
            world.arrivals.iter().take_while(|(at, ..)| *at <= now).position(|event| event.1 == self.1);
        let Some((.., bytes)) = here.and_then(|index| world.arrivals.remove(index)) else {
            return Ok(Came::Nothing);
        };
        into.extend(claim(pool, &bytes));
        Ok(Came::Packets { lost: 0 })
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<Went> {
        let mut world = self.0.borrow_mut();
        let event = (world.now, self.1, packet.to_vec());
        world.departures.push(event);
        Ok(Went::Out)
    }
}

fn claim(pool: &mut Pool, bytes: &[u8]) -> Option<ackclock_core::PacketId> {
    let mut buffer = pool.buffer();
    buffer[..bytes.len()].copy_from_slice(bytes);
    pool.claim(&mut buffer, bytes.len())
}

/// The engine jumps from arrival to arrival.
fn in_virtual_time(mut plane: Plane, arrivals: &[Event], end: Time) -> Vec<Event> {
    let mut departures = Vec::new();
    for (at, side, bytes) in arrivals {
        let packet = claim(plane.pool_mut(), bytes).expect("the pool is large");
        plane.arrive(*at, *side, packet);
    }
    plane.advance(end);
    while let Some(departure) = plane.poll_departure() {
        departures.push((departure.at, departure.side, plane.bytes(departure.packet).to_vec()));
        plane.release(departure.packet);
    }
    conserves(&plane, arrivals.len() as u64, departures.len() as u64).unwrap();
    departures
}

fn through_the_driver(plane: Plane, arrivals: &[Event], end: Time) -> Vec<Event> {
    let world =
        Rc::new(RefCell::new(World { arrivals: arrivals.iter().cloned().collect(), ..World::default() }));
    let ports = Side::BOTH.map(|side| MadeUpPort(world.clone(), side));
    let (orders, _remote) = Orders::new().unwrap();
    let mut driver = Driver::new(plane, MadeUpClock(world.clone()), ports);
    driver.run(&orders, Some(end)).unwrap();
    std::mem::take(&mut world.borrow_mut().departures)
}

/// Eight connections, each with its handshake, data down in bursts, ACKs up (some of them duplicates with SACK), an ECN pair
/// among them; and UDP and noise in both directions.
fn recording() -> Vec<Event> {
    let mut chance = Streams::new(7, 0).stream("recording");
    let mut events: Vec<Event> = Vec::new();
    for flow in 0..8u8 {
        let port = 5000 + u16::from(flow);
        let mut at = Time::ZERO + Span::from_micros(chance.bits() % 50_000);
        let build = |down: bool, syn: bool, seq: u32, ack: u32, sack: bool, payload: usize| {
            let (from, to) =
                if down { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
            let (source, destination) = if down { (80, port) } else { (port, 80) };
            let ip = if flow % 2 == 0 {
                PacketBuilder::ipv4(from, to, 64)
            } else {
                PacketBuilder::ipv6([from[3]; 16], [to[3]; 16], 64)
            };
            let mut options = vec![TcpOptionElement::Timestamp(seq, ack)];
            options.extend(syn.then_some(TcpOptionElement::WindowScale(7)));
            options.extend(
                sack.then_some(TcpOptionElement::SelectiveAcknowledgement((ack + 9, ack + 99), [None; 3])),
            );
            let mut tcp = ip.tcp(source, destination, seq, 4000).options(&options).unwrap();
            tcp = if syn { tcp.syn() } else { tcp };
            tcp = if down || !syn { tcp.ack(ack) } else { tcp };
            let mut bytes = Vec::new();
            tcp.write(&mut bytes, &vec![flow; payload]).unwrap();
            bytes
        };
        events.push((at, Side::Radio, build(false, true, 1, 0, false, 0)));
        events.push((at + Span::from_millis(1), Side::Wired, build(true, true, 100, 2, false, 0)));
        let (mut sent, mut acknowledged) = (101u32, 101u32);
        for _ in 0..60 {
            at += Span::from_micros(chance.bits() % 8_000);
            if chance.chance(0.6) {
                for _ in 0..chance.bits() % 5 {
                    events.push((at, Side::Wired, build(true, false, sent, 2, false, 1000)));
                    sent += 1000;
                }
            } else {
                let news = !chance.chance(0.3);
                acknowledged = if news { sent.min(acknowledged + 2000) } else { acknowledged };
                events.push((at, Side::Radio, build(false, false, 2, acknowledged, !news, 0)));
            }
        }
    }
    for number in 0..100u8 {
        let at = Time::ZERO + Span::from_micros(chance.bits() % 300_000);
        let side = if number % 2 == 0 { Side::Wired } else { Side::Radio };
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([9; 4], [8; 4], 1)
            .udp(number.into(), 53)
            .write(&mut bytes, &[number; 90])
            .unwrap();
        events.push((at, side, if number % 3 == 0 { vec![number; 70] } else { bytes }));
    }
    // What comes at one instant is taken from the wired side first.
    events.sort_by_key(|&(at, side, _)| (at, side));
    events
}

fn check(edge: &EdgeConfig, delay: Span) -> Vec<Event> {
    let config = PlaneConfig { delay, ..PlaneConfig::new(edge) };
    check_planes(|| Plane::new(&config, &NoFiles).unwrap())
}

fn check_planes(plane: impl Fn() -> Plane) -> Vec<Event> {
    let (arrivals, end) = (recording(), Time::ZERO + Span::from_secs(20));
    let simulated = in_virtual_time(plane(), &arrivals, end);
    let live = through_the_driver(plane(), &arrivals, end);
    assert_eq!(simulated.len(), live.len());
    for (simulated, live) in simulated.iter().zip(&live) {
        assert_eq!(simulated, live);
    }
    assert!(simulated.len() > arrivals.len() / 2, "{} of {}", simulated.len(), arrivals.len());
    simulated
}

#[test]
fn every_regulator_gives_the_same_departures_in_both_worlds() {
    for entry in REGULATORS.entries {
        let edge = EdgeConfig { regulator: entry.name.into(), ..poor_link() };
        check(&edge, Span::ZERO);
        check(&edge, Span::from_millis(7));
        // The uplink regulated too, with the downlink's properties.
        let up = EdgeConfig {
            up: edge.down.clone(),
            up_buffer: Some(edge.buffer),
            up_regulator: Some(entry.name.into()),
            ..edge
        };
        if up.check().is_ok() {
            check(&up, Span::ZERO);
            check(&up, Span::from_millis(7));
        }
    }
}

#[test]
fn a_box_that_observes_gives_the_same_departures_in_both_worlds_and_loses_nothing() {
    for side in ["network", "mobile"] {
        for regulator in ["none", "wrs", "wrd"] {
            let edge = EdgeConfig {
                bearer: json!({ "kind": "observed", "side": side }).into(),
                regulator: regulator.into(),
                behind: Some(Box::new(poor_link())),
                ..EdgeConfig::default()
            };
            check(&edge, Span::ZERO);
            check(&edge, Span::from_millis(7));
        }
    }
}

/// A link on which packets wait and are lost.
fn poor_link() -> EdgeConfig {
    let down = json!({ "kind": "variable", "rate": "u(8Mbit/s, 2Mbit/s)", "delay": "e(10ms)", "loss": 0.02 });
    EdgeConfig { buffer: Size::Packets(20), down: down.into(), ..EdgeConfig::default() }
}

#[test]
fn a_regulator_that_does_everything_gives_the_same_departures_in_both_worlds_in_any_scope() {
    for scope in [Scope::Flow, Scope::User, Scope::Queue] {
        for delay in [Span::ZERO, Span::from_millis(7)] {
            let edge = poor_link();
            let config = PlaneConfig { delay, ..PlaneConfig::new(&edge) };
            let plane =
                || Plane::with_regulator(&config, std::sync::Arc::new(Busy(scope)), &NoFiles).unwrap();
            let departures = check_planes(plane);
            assert!(departures.iter().all(|(.., bytes)| is_sound(bytes)), "{scope:?}");
            let mut plane = plane();
            recording().iter().for_each(|(at, side, bytes)| {
                let packet = claim(plane.pool_mut(), bytes).expect("the pool is large");
                plane.arrive(*at, *side, packet);
            });
            plane.advance(Time::ZERO + Span::from_secs(20));
            let departed = std::iter::from_fn(|| {
                let departure = plane.poll_departure()?;
                plane.release(departure.packet);
                Some(departure)
            });
            let departed = departed.count();
            conserves(&plane, recording().len() as u64, departed as u64).unwrap();
            let (counts, pool) = (plane.edge().statistics(), plane.pool());
            let traffic = Direction::BOTH.map(|direction| plane.traffic(direction));
            let unbuilt: u64 = traffic.iter().map(|traffic| traffic.lost.unbuilt).sum();
            let built: u64 = traffic.iter().map(|traffic| traffic.built).sum();
            assert_eq!((pool.in_use(), pool.copies(), unbuilt), (0, 0, 0), "{scope:?}");
            assert!(built > 20 && counts.resent > 20 && counts.kept > 20, "{counts:?}");
        }
    }
}

/// Whether the checksums of a packet are those of a full computation; of what is no TCP nothing is known.
fn is_sound(bytes: &[u8]) -> bool {
    use smoltcp::wire::{Ipv4Packet, Ipv6Packet, TcpPacket};
    if let Ok(ip) = Ipv4Packet::new_checked(bytes)
        && ip.version() == 4
        && ip.next_header() == smoltcp::wire::IpProtocol::Tcp
    {
        let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
        return ip.verify_checksum() && TcpPacket::new_unchecked(ip.payload()).verify_checksum(&from, &to);
    }
    if let Ok(ip) = Ipv6Packet::new_checked(bytes)
        && ip.version() == 6
        && ip.next_header() == smoltcp::wire::IpProtocol::Tcp
    {
        let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
        return TcpPacket::new_unchecked(ip.payload()).verify_checksum(&from, &to);
    }
    true
}

/// A regulator that makes what nobody can build: of each ACK a packet with a payload, and an ACK of a connection that is not
/// known.
#[derive(Debug)]
struct Fanciful;

#[derive(Default)]
struct Fancies(Vec<Output>);

impl RegulatorConfig for Fanciful {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::<Fancies>::default())
    }
}

impl Regulator for Fancies {
    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        let data = Segment::data(ack.flow, ack.ack, 10, 40).made();
        let unknown = Segment::pure_ack(FlowId(1_000_000), ack.ack, 40).made();
        self.0.push(Output::ToReceiver { segment: data, place: Place::Back });
        self.0.push(Output::ToSender(unknown));
        self.0.push(Output::ToSender(ack));
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.0.pop()
    }
}

#[test]
fn what_a_regulator_makes_and_nobody_can_build_is_counted() {
    let edge = EdgeConfig { buffer: Size::Packets(100_000), ..EdgeConfig::default() };
    let config = PlaneConfig::new(&edge);
    let mut plane = Plane::with_regulator(&config, std::sync::Arc::new(Fanciful), &NoFiles).unwrap();
    let arrivals = recording();
    for (at, side, bytes) in &arrivals {
        let packet = claim(plane.pool_mut(), bytes).expect("the pool is large");
        plane.arrive(*at, *side, packet);
    }
    plane.advance(Time::ZERO + Span::from_secs(20));
    let mut departed = 0;
    while let Some(departure) = plane.poll_departure() {
        plane.release(departure.packet);
        departed += 1;
    }
    let [down, up] = plane.edge().statistics().made;
    assert!(down > 100 && up == down, "{down} {up}");
    let traffic = Direction::BOTH.map(|direction| plane.traffic(direction));
    assert_eq!(traffic.map(|traffic| (traffic.lost.unbuilt, traffic.built)), [(down, 0), (up, 0)]);
    assert_eq!(departed, arrivals.len());
}

#[test]
fn every_queue_gives_the_same_departures_in_both_worlds() {
    for entry in QUEUES.entries {
        let edge =
            EdgeConfig { queue: entry.name.into(), buffer: Size::Bytes(30_000), ..EdgeConfig::default() };
        check(&edge, Span::ZERO);
    }
}

#[test]
fn results_have_both_directions_and_what_each_could_carry_over_its_changes() {
    let link = |rate: &str| json!({ "kind": "constant", "rate": rate, "delay": "2ms" });
    let edge =
        |down, up| EdgeConfig { down: link(down).into(), up: link(up).into(), ..EdgeConfig::default() };
    let mut plane = Plane::new(&PlaneConfig::new(&edge("8Mbit/s", "2Mbit/s")), &NoFiles).unwrap();
    let (arrivals, at) = (recording(), |seconds| Time::ZERO + Span::from_secs(seconds));
    let bytes = |side| -> f64 {
        arrivals.iter().filter(|event| event.1 == side).map(|event| event.2.len() as f64).sum()
    };
    for (time, side, bytes) in &arrivals {
        let packet = claim(plane.pool_mut(), bytes).expect("the pool is large");
        plane.arrive(*time, *side, packet);
    }
    assert!(arrivals.last().unwrap().0 < at(4));
    plane.advance(at(4));
    let streams = Streams::new(1, 0);
    for (rate, seconds) in [("4Mbit/s", 8), ("0bit/s", 10)] {
        let changed = edge(rate, "2Mbit/s").medium(Direction::Down, "change", &streams, &NoFiles).unwrap();
        plane.change(Direction::Down, Change::Medium(changed));
        plane.advance(at(seconds));
    }
    let provenance = Provenance::default();
    let mut account = plane.account().unwrap();
    let snapshot = account.snapshot(|from| Some(plane.page(from))).unwrap();
    let results = account.results(&snapshot, "test", 1, provenance);
    // 8 Mbit/s for 4 s, 4 for 4 s and nothing for 2 s.
    assert_eq!(results.bottleneck.capacity_bps, Some(4.8e6));
    assert_eq!(results.uplink.capacity_bps, Some(2e6));
    assert_eq!(
        (results.uplink.drops, results.uplink.utilisation),
        (0, Some(bytes(Side::Radio) * 8.0 / 10.0 / 2e6))
    );
    assert!(results.uplink.queue_ms.mean.is_some());
}

#[test]
fn without_a_regulator_every_packet_leaves_bit_for_bit_as_it_came() {
    let edge = EdgeConfig { buffer: Size::Packets(100_000), ..EdgeConfig::default() };
    let mut departed: Vec<Vec<u8>> = check(&edge, Span::ZERO).into_iter().map(|(.., bytes)| bytes).collect();
    let mut arrived: Vec<Vec<u8>> = recording().into_iter().map(|(.., bytes)| bytes).collect();
    departed.sort();
    arrived.sort();
    assert_eq!(departed, arrived);
}

#[test]
fn impaired_packets_are_the_same_in_both_worlds_and_one_bit_of_a_corrupt_one_is_wrong() {
    let impaired = |keys: serde_json::Value| {
        let mut down = json!({ "kind": "constant", "rate": "100Mbit/s", "delay": "1ms" });
        down.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        EdgeConfig { down: down.into(), buffer: Size::Packets(1000), ..EdgeConfig::default() }
    };
    let of_down = |events: Vec<Event>| -> Vec<Vec<u8>> {
        let down = events.into_iter().filter(|event| event.1 == Side::Radio);
        down.map(|(.., bytes)| bytes).collect()
    };
    let plain = of_down(check(&impaired(json!({})), Span::ZERO));
    let twice: Vec<_> = plain.iter().flat_map(|bytes| [bytes.clone(), bytes.clone()]).collect();
    assert_eq!(of_down(check(&impaired(json!({ "duplicate": 1 })), Span::ZERO)), twice);
    let corrupt = of_down(check(&impaired(json!({ "corrupt": 1, "duplicate": 1 })), Span::ZERO));
    let is_udp = |bytes: &[u8]| bytes[0] >> 4 == 4 && bytes[9] == 17;
    let mut wrong = 0;
    for (bytes, right) in corrupt.iter().zip(&twice) {
        let flipped: u32 = bytes.iter().zip(right).map(|(one, other)| (one ^ other).count_ones()).sum();
        assert!(flipped <= 1 && bytes.len() == right.len(), "{flipped} bits");
        assert!(flipped == 0 || is_udp(right) || !is_sound(bytes), "the checksum does not show it");
        wrong += flipped;
    }
    assert!(corrupt.len() == twice.len() && wrong > 100, "{wrong} of {}", corrupt.len());
    let mixed = json!({ "reorder": { "share": 0.2, "extra": "9ms" }, "duplicate": 0.2, "corrupt": 0.2 });
    check(&impaired(mixed), Span::from_millis(7));
}
