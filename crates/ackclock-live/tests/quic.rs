//! RTT of QUIC connections through a link whose delays are known.

use ackclock_core::results::{Provenance, RunResult};
use ackclock_core::{Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::NoFiles;
use ackclock_live::{Plane, PlaneConfig, Side};
use etherparse::PacketBuilder;
use serde_json::json;

/// First bytes of a long header of version 1 with empty connection IDs, and of short headers by spin bit.
const LONG: [u8; 7] = [0xc0, 0, 0, 0, 1, 0, 0];
const SHORT: [[u8; 1]; 2] = [[0x40], [0x60]];

/// Time that the server needs to answer.
const SERVER: Span = Span::from_millis(35);

/// A connection whose client, at the mobile, answers at once.
struct Trial {
    plane: Plane,
    /// Spin bits of the ends, by side; an end with a long header has none yet.
    spin: [Option<bool>; 2],
    /// Answers of the server that are due, oldest first.
    due: Vec<Time>,
}

impl Trial {
    /// A link with 20 ms downlink and 10 ms uplink.
    fn new() -> Self {
        let edge: EdgeConfig = serde_json::from_value(json!({
            "down": { "kind": "constant", "rate": "100Mbit/s", "delay": "20ms" },
            "up": { "kind": "constant", "rate": "100Mbit/s", "delay": "10ms" },
        }))
        .unwrap();
        Self {
            plane: Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap(),
            spin: [None; 2],
            due: Vec::new(),
        }
    }

    fn send(&mut self, now: Time, from: Side) {
        let payload = self.spin[from as usize].map_or(&LONG[..], |value| &SHORT[usize::from(value)]);
        let [near, far] = if from == Side::Wired { [1, 2] } else { [2, 1] };
        let (source, destination) = if from == Side::Wired { (443, 5000) } else { (5000, 443) };
        let mut bytes = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, near], [10, 0, 0, far], 64).udp(source, destination);
        ip.write(&mut bytes, payload).unwrap();
        let mut buffer = self.plane.pool().buffer();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let packet = self.plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
        self.plane.arrive(now, from, packet);
    }

    /// Runs the connection until `end`. Each end answers each packet; the ends exchange long headers once.
    fn run(&mut self, end: Time) {
        while let Some(now) = self.plane.next_wake().into_iter().chain(self.due.first().copied()).min()
            && now < end
        {
            self.plane.advance(now);
            while let Some(departure) = self.plane.poll_departure() {
                let bit = self.plane.bytes(departure.packet).last().map(|first| first & 0x20 != 0);
                self.plane.release(departure.packet);
                match departure.side {
                    Side::Wired => {
                        if self.spin[0].is_some() || self.spin[1].is_some() {
                            self.spin[Side::Wired as usize] = bit;
                        }
                        self.due.push(departure.at + SERVER);
                    }
                    Side::Radio => {
                        self.spin[Side::Radio as usize] = bit.map(|bit| !bit);
                        self.send(departure.at, Side::Radio);
                    }
                }
            }
            if self.due.first().is_some_and(|&due| due <= now) {
                self.due.remove(0);
                self.send(now, Side::Wired);
            }
        }
        self.plane.advance(end);
    }

    fn results(&mut self) -> RunResult {
        let mut account = self.plane.account().unwrap();
        let snapshot = account.snapshot(|from| Some(self.plane.page(from))).unwrap();
        account.results(&snapshot, "test", 1, Provenance::default())
    }
}

#[test]
fn the_rtt_of_a_connection_is_that_of_link_and_server() {
    let mut trial = Trial::new();
    trial.send(Time::ZERO, Side::Radio);
    trial.run(Time::ZERO + Span::from_secs(5));
    let results = trial.results();
    let [flow] = results.flows.as_slice() else { panic!("{:?}", results.flows) };
    assert_eq!(flow.real.as_ref().unwrap().protocol, "quic");
    // 20 ms down, 10 ms up and 35 ms at the server; the transmission of a small packet adds 3 us.
    let [rtt, link] = [flow.rtt_ms.mean.unwrap(), flow.edge_rtt_ms.unwrap()];
    assert!((rtt - 65.0).abs() < 0.02 && (link - 30.0).abs() < 0.02, "{rtt} {link}");
}
