//! Tests of one connection with hostile neighbours on the same plane: properties that hold for arbitrary packets of
//! seven other connections.

use std::net::Ipv4Addr;

use ackclock_core::{Component, Flags, Seq, Size, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::{BearerConfig, Direction, NoFiles};
use serde_json::json;
use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, TcpPacket};

use crate::parse::parse;
use crate::{Plane, PlaneConfig, Side};

/// Edge under test, with the performance of a steady connection alone on it.
#[derive(Debug)]
pub struct Neighbours {
    edge: EdgeConfig,
    alone: Achieved,
}

/// Results of a test run of the neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Achieved {
    /// Number of the steady connection's packets that reached its mobile.
    delivered: u64,
    /// Payload of the steady connection acknowledged at its server, bytes.
    acknowledged: u32,
    /// Number of engine events of the run.
    events: u64,
    /// Number of neighbours' packets that were read and assigned to a flow.
    entered: u64,
}

/// The steady connection sends a packet of 100 bytes every 20 ms for 3 s: 40 kbit/s.
const PACKETS: u32 = 150;
const PAYLOAD: u16 = 100;
const INTERVAL: Span = Span::from_millis(20);
/// Time for packets in transit or held at the end of the run to arrive.
const PATIENCE: Span = Span::from_secs(3);

/// Number of bytes per packet in a script; the next constant is the maximum number of packets in a script.
const RECORD: usize = 8;
const MOST: usize = 200;

/// Maximum number of events that one neighbour's packet may cause: up to ten retransmissions, over bearers with several
/// blocks per packet.
const EVENTS_PER_PACKET: u64 = 200;
/// Maximum number of events of timers that run only while neighbours' packets are inside the link.
const EVENTS_OF_TIMERS: u64 = 5_000;

impl Neighbours {
    /// Prepares tests of regulators with much state, over bearers whose state depends on the two directions.
    ///
    /// # Errors
    /// Fails under the same conditions as [`Neighbours::on`].
    pub fn on_all_edges() -> Result<Vec<Self>, String> {
        let plain = EdgeConfig::default().bearer;
        let air = json!({ "kind": "dedicated", "errors": "5%", "errors_by": "pdu" });
        let rlc = json!({ "kind": "radio-access", "air": { "down": air, "up": air } }).into();
        let observed = json!({ "kind": "observed", "side": "network" }).into();
        let pairs = [
            ("snoop", &plain),
            ("snoop", &rlc),
            ("forecast", &plain),
            ("forecast", &rlc),
            ("forecast", &observed),
            ("ack-regulator", &plain),
            ("ack-regulator", &rlc),
            ("wrb", &plain),
        ];
        pairs.into_iter().map(|(regulator, bearer)| Self::on(edge(regulator, bearer))).collect()
    }

    /// Runs the steady connection alone on an edge.
    ///
    /// # Errors
    /// Fails if the edge cannot be built, or delivers nothing even to a single connection.
    pub fn on(edge: EdgeConfig) -> Result<Self, String> {
        let alone = Run::new(&edge)?.play(&[])?;
        if alone.delivered < u64::from(PACKETS / 2) || alone.acknowledged < PACKETS / 2 * u32::from(PAYLOAD) {
            return Err(format!("{}: a connection alone comes to {alone:?}", edge.regulator));
        }
        Ok(Self { edge, alone })
    }

    /// Plays up to 200 packets of seven other connections, eight bytes per packet. Every packet must be accounted for,
    /// the number of events per packet is bounded, and the steady connection must achieve at least half of its
    /// performance alone. Returns the number of neighbours' packets that were assigned to a flow.
    ///
    /// # Errors
    /// Returns a description of the violated property.
    pub fn play(&self, script: &[u8]) -> Result<u64, String> {
        let beside = Run::new(&self.edge)?.play(script)?;
        let (alone, sent) = (self.alone, (script.len() / RECORD).min(MOST) as u64);
        let allowed = alone.events + sent * EVENTS_PER_PACKET + EVENTS_OF_TIMERS;
        if beside.events > allowed {
            return Err(format!("{} events beside {sent} packets, {} alone", beside.events, alone.events));
        }
        if beside.delivered * 2 < alone.delivered || beside.acknowledged * 2 < alone.acknowledged {
            return Err(format!("{}: {beside:?} beside neighbours, {alone:?} alone", self.edge.regulator));
        }
        Ok(beside.entered)
    }
}

fn edge(regulator: &str, bearer: &Component<dyn BearerConfig>) -> EdgeConfig {
    let way = Component::from(json!({ "kind": "constant", "rate": "400kbit/s", "delay": "5ms" }));
    let ([down, up], bearer, regulator) = ([way.clone(), way], bearer.clone(), regulator.into());
    EdgeConfig { down, up, bearer, regulator, buffer: Size::Packets(20), ..EdgeConfig::default() }
}

/// State of a single test run.
struct Run {
    plane: Plane,
    now: Time,
    arrived: u64,
    departed: u64,
    achieved: Achieved,
    /// Next unsent byte of each connection, by sending side.
    next: [[u32; 2]; 8],
}

/// Number of the tested connection.
const STEADY: usize = 0;
/// Initial sequence number of all connections.
const FIRST: u32 = 1000;

impl Run {
    fn new(edge: &EdgeConfig) -> Result<Self, String> {
        let config = PlaneConfig { flows: 16, packets: 256, packet_bytes: 400, ..PlaneConfig::new(edge) };
        let plane = Plane::new(&config, &NoFiles).map_err(|error| error.to_string())?;
        let next = [[FIRST; 2]; 8];
        Ok(Self { plane, now: Time::ZERO, arrived: 0, departed: 0, achieved: Achieved::default(), next })
    }

    fn play(mut self, script: &[u8]) -> Result<Achieved, String> {
        let mut records = script.as_chunks::<RECORD>().0.iter().take(MOST);
        let mut record = records.next();
        let mut due = Time::ZERO;
        for number in 0..PACKETS {
            let at = Time::ZERO + INTERVAL * u64::from(number);
            while let Some(hostile) = record.filter(|_| due <= at) {
                self.advance(due);
                self.send_hostile(hostile);
                record = records.next();
                due += Span::from_micros(u64::from(record.map_or(0, |record| record[1])) * 100);
            }
            self.advance(at);
            let seq = FIRST + number * u32::from(PAYLOAD);
            self.send(Packet { seq, ack: FIRST, payload: PAYLOAD, ..Packet::new(STEADY, Side::Wired) });
        }
        self.advance(self.now + PATIENCE);
        self.achieved.events = self.plane.events();
        self.check_books().map(|()| self.achieved)
    }

    /// Sends the packet that a record describes: usually the next packet of its connection, with arbitrary flags.
    fn send_hostile(&mut self, record: &[u8; RECORD]) {
        let [who, _, seq, ack, window, payload, flags, options] = *record;
        let connection = 1 + usize::from(who % 7);
        let from = if who & 0x80 == 0 { Side::Wired } else { Side::Radio };
        let near = |next: u32, step: u8| next.wrapping_add_signed(i32::from(step as i8) * 16);
        let [own, other] = [from, from.other()].map(|side| self.next[connection][side as usize]);
        let packet = Packet {
            seq: near(own, seq),
            ack: near(other, ack),
            window: u16::from(window) << 8,
            payload: payload.into(),
            flags: if flags < 0x80 { Flags::ACK } else { Flags(flags & 0x3f) },
            sack: (options & 1 != 0).then(|| near(other, options)),
            ..Packet::new(connection, from)
        };
        let end = packet.seq.wrapping_add(u32::from(packet.payload));
        if Seq(end).after(Seq(own)) {
            self.next[connection][from as usize] = end;
        }
        let refused = self.refused();
        self.send(packet);
        // The table has more flow numbers than this test has connections, so each parsed packet gets a flow number.
        let is_read = parse(&packet.bytes()).segment.is_tcp();
        self.achieved.entered += u64::from(is_read && self.refused() == refused);
    }

    /// Number of packets refused so far for lack of room.
    fn refused(&self) -> u64 {
        Direction::BOTH.map(|direction| self.plane.traffic(direction).lost.no_room).iter().sum()
    }

    fn send(&mut self, packet: Packet) {
        let bytes = packet.bytes();
        let mut buffer = self.plane.pool().buffer();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let Some(id) = self.plane.pool_mut().claim(&mut buffer, bytes.len()) else { return };
        self.arrived += 1;
        self.plane.arrive(self.now, packet.from, id);
        self.depart();
    }

    fn advance(&mut self, until: Time) {
        while let Some(due) = self.plane.next_wake().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.plane.advance(due);
            self.depart();
        }
        self.now = self.now.max(until);
        self.plane.advance(self.now);
        self.depart();
    }

    /// Takes departing packets from the plane. The steady connection's mobile acknowledges all data that it has
    /// received.
    fn depart(&mut self) {
        while let Some(departure) = self.plane.poll_departure() {
            self.departed += 1;
            let bytes = self.plane.bytes(departure.packet);
            let segment = parse(bytes).segment;
            let is_steady =
                bytes.get(20..24).is_some_and(|ports| ports == ports_of(STEADY, departure.side.other()));
            self.plane.release(departure.packet);
            match departure.side {
                Side::Radio if is_steady && segment.has_data() => {
                    self.achieved.delivered += 1;
                    let seen = &mut self.next[STEADY][Side::Wired as usize];
                    *seen = Seq(*seen).max(segment.end()).0;
                    let ack = *seen;
                    self.send(Packet { seq: FIRST, ack, ..Packet::new(STEADY, Side::Radio) });
                }
                Side::Wired if is_steady => {
                    let acknowledged = segment.ack.0.wrapping_sub(FIRST);
                    self.achieved.acknowledged = self.achieved.acknowledged.max(acknowledged);
                }
                _ => {}
            }
        }
    }

    fn check_books(&self) -> Result<(), String> {
        super::conserves(&self.plane, self.arrived, self.departed)
    }
}

/// Packet of a test connection.
#[derive(Clone, Copy)]
struct Packet {
    connection: usize,
    from: Side,
    seq: u32,
    ack: u32,
    window: u16,
    payload: u16,
    flags: Flags,
    /// Left edge of the packet's SACK block of 100 bytes.
    sack: Option<u32>,
}

impl Packet {
    fn new(connection: usize, from: Side) -> Self {
        let flags = Flags::ACK;
        Self { connection, from, seq: FIRST, ack: FIRST, window: 60_000, payload: 0, flags, sack: None }
    }

    /// Bytes of the packet, with checksums. Connections with even numbers share one mobile, and connections with odd
    /// numbers share a second mobile.
    fn bytes(&self) -> Vec<u8> {
        let header = if self.sack.is_some() { 32 } else { 20 };
        let length = 20 + header + usize::from(self.payload);
        let mut bytes = vec![0; length];
        let ends = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(10, 0, 0, 1 + (self.connection % 2) as u8)];
        let [source, destination] = if self.from == Side::Wired { ends } else { [ends[1], ends[0]] };
        let (ip, tcp) = bytes.split_at_mut(20);
        tcp[..4].copy_from_slice(&ports_of(self.connection, self.from));
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[12..14].copy_from_slice(&[(header as u8 / 4) << 4, self.flags.0]);
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        if let Some(left) = self.sack {
            tcp[20..24].copy_from_slice(&[1, 1, 5, 10]);
            tcp[24..28].copy_from_slice(&left.to_be_bytes());
            tcp[28..32].copy_from_slice(&left.wrapping_add(100).to_be_bytes());
        }
        TcpPacket::new_unchecked(tcp).fill_checksum(&IpAddress::Ipv4(source), &IpAddress::Ipv4(destination));
        let mut ip = Ipv4Packet::new_unchecked(ip);
        ip.set_version(4);
        ip.set_header_len(20);
        ip.set_total_len(length as u16);
        ip.set_hop_limit(64);
        ip.set_next_header(IpProtocol::Tcp);
        ip.set_src_addr(source);
        ip.set_dst_addr(destination);
        ip.fill_checksum();
        bytes
    }
}

/// Source and destination ports of packets from a side.
fn ports_of(connection: usize, from: Side) -> [u8; 4] {
    let [[a, b], [c, d]] = [80, 5000 + connection as u16].map(u16::to_be_bytes);
    if from == Side::Wired { [a, b, c, d] } else { [c, d, a, b] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_edge::REGULATORS;
    use ackclock_testkit::cases;
    use proptest::prelude::*;

    /// Packets from one side, of `connections` connections: tiny data that is never acknowledged, or duplicate ACKs
    /// with ever more SACK blocks.
    fn flood(from: Side, connections: u8) -> Vec<u8> {
        let side = if from == Side::Wired { 0 } else { 0x80 };
        let payload = if from == Side::Wired { 1 } else { 0 };
        let record = |n: u8| [side | (n % connections), 20, 0, 0, 100, payload, 0, 1 | (n << 1)];
        (0..200).flat_map(record).collect()
    }

    #[test]
    fn beside_hostile_connections_another_keeps_half_under_every_regulator() {
        for entry in REGULATORS.entries {
            let neighbours = Neighbours::on(edge(entry.name, &EdgeConfig::default().bearer)).unwrap();
            for from in Side::BOTH {
                for connections in [1, 7] {
                    let entered = neighbours.play(&flood(from, connections));
                    assert!(
                        entered.is_ok_and(|entered| entered > 50),
                        "{}, {from:?}, {connections}",
                        entry.name
                    );
                }
            }
        }
    }

    #[test]
    fn whatever_neighbours_send_over_whatever_bearer_the_laws_hold() {
        let edges = Neighbours::on_all_edges().unwrap();
        let script = prop::collection::vec(any::<u8>(), 0..RECORD * MOST);
        proptest!(ProptestConfig::with_cases(cases(20)), |(script in script, which in 0..edges.len())| {
            let entered = edges[which].play(&script);
            prop_assert!(entered.as_ref().is_ok_and(|&entered| entered <= MOST as u64), "{entered:?}");
        });
    }
}
