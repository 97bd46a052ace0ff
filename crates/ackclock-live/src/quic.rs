//! # Observing QUIC
//!
//! ## Source
//! RFC 8999 (properties of all versions), RFC 9000 sections 17.2 and 17.4 (long headers, spin bit), RFC 9369 (version
//! 2), RFC 9312 section 3.8 (RTT at an observer).
//!
//! ## What it does
//! A UDP flow is QUIC after a long header of version 1 or 2, or after a long header of any version that the peer
//! answered: the answer has the same version or is a version negotiation, and names the first packet's source
//! connection ID as its destination.
//!
//! The observer is at the wired end of the link. The client inverts the spin bit of the server, and the server copies
//! the spin bit of the client, so the bit of each direction changes once per round trip. The time between two changes
//! in the packets from the wired side is one sample of the RTT. The time from a change from the wired side to the next
//! change from the mobile side is the RTT between the wired end of the link and the mobile.
//!
//! Packet numbers are encrypted, but the two directions order the changes: the client cannot show the inverse of a
//! value that the server has not sent, and the server cannot show a value that the client has not sent. A packet with
//! such a value was overtaken by later packets and is ignored. If many packets show impossible values, an end does not
//! use the spin bit, and there is no RTT.
//!
//! An application that pauses lengthens a sample. Therefore a pause without packets inside the link that lasts longer
//! than the handshake ends the current sample.
//!
//! ## Differences from the source
//! Only the first packet of a datagram is read. A change of the connection ID resets the spin bit, which disturbs one
//! sample.
//!
//! ## Validation
//! Unit tests with hand-made datagrams and property tests with random bytes; `tests/quic.rs` compares with the delays
//! of a link; `tests/python/test_quic.py` runs real connections.

use ackclock_core::results::Distribution;
use ackclock_core::{Histogram, Span, Time};

use crate::port::Side;

/// Observer of a UDP flow.
#[derive(Clone, Debug, Default)]
pub(crate) enum Observer {
    /// No datagram has had a long header.
    #[default]
    Unknown,
    /// A datagram had a long header of an unknown version, which the peer has not answered.
    Greeted { at: Time, from: Side, version: u32, source: Box<[u8]> },
    /// The flow is a QUIC connection.
    Quic(Box<Connection>),
}

/// Measurements of a QUIC connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    client: Side,
    handshake: Handshake,
    spin: Spin,
}

/// Progress of the handshake, by which the duration of the first round trip is measured.
#[derive(Clone, Copy, Debug)]
enum Handshake {
    /// The client's first packet passed at this time.
    Begun(Time),
    /// The server has answered the client's packet of this time.
    Answered(Time),
    /// The client has continued after this round trip.
    Continued(Span),
}

/// State of the spin bit in the two directions. Arrays are indexed by [`Side`].
#[derive(Clone, Debug, Default)]
struct Spin {
    values: [bool; 2],
    /// Times of the last changes in the current sample.
    changed: [Option<Time>; 2],
    /// Number of packets with a spin bit.
    packets: u64,
    /// Number of packets with a value that its sender could not have yet.
    impossible: u64,
    rtt: Histogram,
    link_rtt: Histogram,
}

/// Fields of a long header that all versions have (RFC 8999 section 5.1).
struct LongHeader<'a> {
    version: u32,
    destination: &'a [u8],
    source: &'a [u8],
}

/// Versions whose first packet is recognised without an answer: RFC 9000 and RFC 9369.
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
/// Version field of a version negotiation.
const NEGOTIATION: u32 = 0;
/// Maximum length of a connection ID of these versions, bytes.
const LONGEST_ID: usize = 20;
/// Bits of the first byte (RFC 9000 section 17).
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
/// The spin bit is in use if fewer than one in this many packets has an impossible value. Values drawn at random are
/// impossible in about half of the packets.
const IMPOSSIBLE_SHARE: u64 = 8;

impl Observer {
    /// Reads the payload of a datagram from side `from` that passes the wired end of the link.
    pub(crate) fn on_datagram(&mut self, now: Time, from: Side, payload: &[u8]) {
        let Some(&first) = payload.first() else { return };
        if first & LONG != 0 {
            self.on_long_header(now, from, first, payload);
        } else if let Self::Quic(connection) = self {
            connection.handshake.on_datagram(now, from == connection.client);
            if first & FIXED != 0 {
                connection.spin.on_value(now, from, connection.client, first & SPIN != 0);
            }
        }
    }

    /// Learns that the connection was silent for this long before a packet, with none of its packets inside the link.
    pub(crate) fn on_silence(&mut self, lasted: Span) {
        if let Self::Quic(connection) = self
            && let Handshake::Continued(first) = connection.handshake
            && lasted > first
        {
            connection.spin.changed = [None; 2];
        }
    }

    /// Distribution of the RTT between the two ends; empty if the spin bit is not in use. `None` if the flow is not
    /// QUIC.
    pub(crate) fn rtt(&self) -> Option<Distribution> {
        match self {
            Self::Quic(connection) if connection.spin.is_used() => {
                Some(Distribution::from(&connection.spin.rtt))
            }
            Self::Quic(_) => Some(Distribution::default()),
            _ => None,
        }
    }

    /// Mean RTT between the wired end of the link and the mobile.
    pub(crate) fn link_rtt(&self) -> Option<Span> {
        match self {
            Self::Quic(connection) if connection.spin.is_used() => connection.spin.link_rtt.mean(),
            _ => None,
        }
    }

    fn on_long_header(&mut self, now: Time, from: Side, first: u8, payload: &[u8]) {
        let Some(header) = LongHeader::parse(payload) else { return };
        match self {
            Self::Quic(connection) => {
                connection.handshake.on_datagram(now, from == connection.client);
                // The packets after a handshake start with the spin bit 0.
                connection.spin.restart();
            }
            _ if header.is_known(first) => {
                *self = Self::Quic(Box::new(Connection::new(from, Handshake::Begun(now))))
            }
            Self::Greeted { at, from: client, version, source }
                if from != *client && header.answers(*version, source) =>
            {
                *self = Self::Quic(Box::new(Connection::new(*client, Handshake::Answered(*at))));
            }
            _ => {
                let LongHeader { version, source, .. } = header;
                *self = Self::Greeted { at: now, from, version, source: source.into() };
            }
        }
    }
}

impl Connection {
    fn new(client: Side, handshake: Handshake) -> Self {
        Self { client, handshake, spin: Spin::default() }
    }
}

impl Handshake {
    fn on_datagram(&mut self, now: Time, from_client: bool) {
        *self = match *self {
            Self::Begun(at) if !from_client => Self::Answered(at),
            Self::Answered(at) if from_client => Self::Continued(now.since(at)),
            state => state,
        };
    }
}

impl Spin {
    /// Reads the spin bit of a packet from side `from`.
    fn on_value(&mut self, now: Time, from: Side, client: Side, value: bool) {
        self.packets += 1;
        let (here, there) = (from as usize, from.other() as usize);
        if value == self.values[here] {
            return;
        }
        // The client inverts the server's value, and the server copies the client's value.
        if value != (self.values[there] ^ (from == client)) {
            self.impossible += 1;
            return;
        }
        self.values[here] = value;
        let before = self.changed[here].replace(now);
        match (from, before, self.changed[there]) {
            (Side::Wired, Some(before), _) => self.rtt.record(now.since(before)),
            (Side::Radio, _, Some(wired)) => self.link_rtt.record(now.since(wired)),
            _ => {}
        }
    }

    /// Forgets the current values, not the samples.
    fn restart(&mut self) {
        (self.values, self.changed) = ([false; 2], [None; 2]);
    }

    fn is_used(&self) -> bool {
        self.impossible * IMPOSSIBLE_SHARE < self.packets
    }
}

impl<'a> LongHeader<'a> {
    fn parse(payload: &'a [u8]) -> Option<Self> {
        let (fields, rest) = payload.split_at_checked(6)?;
        let (destination, rest) = rest.split_at_checked(fields[5].into())?;
        let (&length, rest) = rest.split_first()?;
        let version = u32::from_be_bytes([fields[1], fields[2], fields[3], fields[4]]);
        Some(Self { version, destination, source: rest.get(..length.into())? })
    }

    /// Whether this is a packet of a known version.
    fn is_known(&self, first: u8) -> bool {
        let short = self.destination.len() <= LONGEST_ID && self.source.len() <= LONGEST_ID;
        VERSIONS.contains(&self.version) && first & FIXED != 0 && short
    }

    /// Whether this answers a packet with this version and source connection ID.
    fn answers(&self, version: u32, source: &[u8]) -> bool {
        let expected = [version, NEGOTIATION].contains(&self.version);
        expected && version != NEGOTIATION && self.destination == source
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLIENT: Side = Side::Radio;
    const SERVER: Side = Side::Wired;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn long(version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
        let mut bytes = vec![LONG | FIXED];
        bytes.extend(version.to_be_bytes());
        for id in [destination, source] {
            bytes.push(id.len() as u8);
            bytes.extend(id);
        }
        bytes.resize(1200, 0);
        bytes
    }

    fn short(value: bool) -> [u8; 30] {
        [FIXED | if value { SPIN } else { 0 }; 30]
    }

    /// Observer of a connection whose handshake took 100 ms.
    fn begun() -> Observer {
        let mut observer = Observer::default();
        for (ms, from) in [(0, CLIENT), (40, SERVER), (100, CLIENT)] {
            observer.on_datagram(at(ms), from, &long(1, b"there", b"here"));
        }
        observer
    }

    /// Shows spin bits, as (time in ms, side, value).
    fn show(observer: &mut Observer, packets: &[(u64, Side, u8)]) {
        for &(ms, from, value) in packets {
            observer.on_datagram(at(ms), from, &short(value == 1));
        }
    }

    /// Two round trips of 100 ms, 60 ms of them over the link, with 20 packets that change nothing.
    const TWO_ROUNDS: [(u64, Side, u8); 7] = [
        (200, SERVER, 0),
        (260, CLIENT, 1),
        (300, SERVER, 1),
        (360, CLIENT, 0),
        (400, SERVER, 0),
        (460, CLIENT, 1),
        (500, SERVER, 1),
    ];

    fn mean_rtt(observer: &Observer) -> Option<f64> {
        observer.rtt().unwrap().mean
    }

    #[test]
    fn versions_1_and_2_are_recognised_at_the_first_packet() {
        for version in VERSIONS {
            let mut observer = Observer::default();
            observer.on_datagram(at(0), CLIENT, &long(version, b"12345678", b""));
            assert!(observer.rtt().is_some(), "{version:#x}");
        }
    }

    #[test]
    fn another_version_is_recognised_by_its_answer() {
        let greeting = long(0x1a2a_3a4a, b"there", b"here");
        for (answer, is_quic) in [
            (long(0x1a2a_3a4a, b"here", b"there"), true),
            (long(NEGOTIATION, b"here", b"there"), true),
            (long(0x1a2a_3a4a, b"elsewhere", b"there"), false),
            (long(7, b"here", b"there"), false),
        ] {
            let mut observer = Observer::default();
            observer.on_datagram(at(0), CLIENT, &greeting);
            assert_eq!(observer.rtt(), None);
            observer.on_datagram(at(0), CLIENT, &answer);
            assert_eq!(observer.rtt(), None, "the same side does not answer");
            observer.on_datagram(at(0), CLIENT, &greeting);
            observer.on_datagram(at(40), SERVER, &answer);
            assert_eq!(observer.rtt().is_some(), is_quic);
        }
    }

    #[test]
    fn other_protocols_over_udp_are_not_quic() {
        // DNS query and response with the same id 0xc001, and RTP packets in both directions.
        let dns = |response: u8| vec![0xc0, 1, response, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        let rtp = |sequence: u8| vec![0x80, 0, 0, sequence, 0, 0, 0, 160, 1, 2, 3, 4, 5, 6, 7, 8];
        for packets in [[dns(0), dns(0x80)], [rtp(1), rtp(2)]] {
            let mut observer = Observer::default();
            observer.on_datagram(at(0), CLIENT, &packets[0]);
            observer.on_datagram(at(1), SERVER, &packets[1]);
            assert_eq!(observer.rtt(), None, "{packets:?}");
        }
    }

    #[test]
    fn a_change_per_round_trip_is_a_sample() {
        let mut observer = begun();
        show(&mut observer, &TWO_ROUNDS);
        assert_eq!(mean_rtt(&observer), Some(100.0));
        assert_eq!(observer.link_rtt(), Some(Span::from_millis(60)));
    }

    #[test]
    fn a_packet_that_was_overtaken_changes_nothing() {
        let mut observer = begun();
        let mut packets = TWO_ROUNDS.to_vec();
        packets.extend((0..20).map(|_| (300, SERVER, 1)));
        packets.extend([(301, SERVER, 0), (302, SERVER, 1), (361, CLIENT, 1), (362, CLIENT, 0)]);
        packets.sort_by_key(|(ms, ..)| *ms);
        show(&mut observer, &packets);
        assert_eq!(mean_rtt(&observer), Some(100.0));
        assert_eq!(observer.link_rtt(), Some(Span::from_millis(60)));
    }

    #[test]
    fn a_pause_of_the_application_is_no_round_trip() {
        let mut observer = begun();
        show(&mut observer, &TWO_ROUNDS);
        observer.on_silence(Span::from_millis(4500));
        show(&mut observer, &[(5060, CLIENT, 0), (5100, SERVER, 0), (5160, CLIENT, 1), (5200, SERVER, 1)]);
        assert_eq!(mean_rtt(&observer), Some(100.0));
        assert_eq!(observer.link_rtt(), Some(Span::from_millis(60)));
    }

    #[test]
    fn ends_that_do_not_use_the_spin_bit_have_no_rtt() {
        for constant in [0, 1] {
            let mut observer = begun();
            for ms in 0..100 {
                show(&mut observer, &[(200 + ms, SERVER, constant), (200 + ms, CLIENT, 1 - constant)]);
            }
            assert_eq!(mean_rtt(&observer), None, "constant {constant}");
        }
        let (mut observer, mut random) = (begun(), 1u32);
        for ms in 0..1000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let values = [(random >> 30 & 1) as u8, (random >> 29 & 1) as u8];
            show(&mut observer, &[(200 + ms, SERVER, values[0]), (200 + ms, CLIENT, values[1])]);
        }
        assert_eq!((mean_rtt(&observer), observer.link_rtt()), (None, None), "random values");
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_observer(packets in prop::collection::vec(
            (any::<bool>(), 0u64..1000, prop::sample::select(vec![0u8, FIXED, FIXED | SPIN, LONG, LONG | FIXED]),
             prop::sample::select(vec![0u8, 1]), prop::collection::vec(0u8..6, 0..40)),
            0..50,
        )) {
            let (mut observer, mut now) = (Observer::default(), Time::ZERO);
            for (wired, wait, first, version, rest) in packets {
                now += Span::from_millis(wait);
                let side = if wired { SERVER } else { CLIENT };
                observer.on_datagram(now, side, &rest);
                observer.on_datagram(now, side, &[&[first, 0, 0, 0, version][..], &rest].concat());
                observer.on_silence(Span::from_millis(wait));
            }
            let most = now.since(Time::ZERO).as_millis_f64();
            prop_assert!(observer.rtt().and_then(|rtt| rtt.mean).is_none_or(|mean| mean <= most));
        }
    }
}
