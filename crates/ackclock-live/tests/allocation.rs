//! After warm-up no packet costs an allocation, from the port to the port.

use std::io;

use ackclock_core::{PacketId, Size, Span, Time};
use ackclock_edge::{EdgeConfig, REGULATORS};
use ackclock_link::NoFiles;
use ackclock_live::capture::{Recorder, Tap};
use ackclock_live::log::{LinkLog, LogHeader};
use ackclock_live::{Came, Plane, PlaneConfig, Pool, Port, Side, Went};
use ackclock_testkit::{Counting, allocations};
use etherparse::PacketBuilder;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn packet(down: bool, port: u16, seq: u32, ack: u32, payload: usize) -> Vec<u8> {
    let (from, to) = if down { ([1; 4], [2; 4]) } else { ([2; 4], [1; 4]) };
    let (source, destination) = if down { (80, port) } else { (port, 80) };
    let mut bytes = Vec::new();
    let tcp = PacketBuilder::ipv4(from, to, 64).tcp(source, destination, seq, 4000).ack(ack);
    tcp.write(&mut bytes, &vec![0; payload]).unwrap();
    bytes
}

/// Data of three connections down and their acknowledgements up, each 20 ms later, somewhat faster than the link.
fn carry(plane: &mut Plane, buffer: &mut Box<[u8]>, packets: &[(Side, Vec<u8>)], from: u64) {
    for (number, (side, bytes)) in packets.iter().enumerate() {
        let now = Time::ZERO + Span::from_micros(900) * (from + number as u64);
        buffer[..bytes.len()].copy_from_slice(bytes);
        let packet = plane.pool_mut().claim(buffer, bytes.len()).unwrap();
        plane.arrive(now, *side, packet);
        while let Some(departure) = plane.poll_departure() {
            plane.release(departure.packet);
        }
    }
}

/// A port that takes every packet.
struct Taker;

impl Port for Taker {
    fn read(&mut self, _: &mut Pool, _: &mut Vec<PacketId>) -> io::Result<Came> {
        Ok(Came::Nothing)
    }

    fn write(&mut self, _: &[u8]) -> io::Result<Went> {
        Ok(Went::Out)
    }
}

#[test]
fn no_captured_packet_allocates_after_the_first() {
    let (recorder, _ending) = Recorder::begin(Box::new(io::sink()), "outside").unwrap();
    let mut tap = Tap::new(Taker, Some(recorder));
    tap.write(&[0x45; 1500]).unwrap();
    let before = allocations();
    for length in 40..1500 {
        tap.write(&[0x45; 1500][..length]).unwrap();
    }
    assert_eq!(allocations() - before, 0);
}

#[test]
fn no_packet_allocates_after_warm_up() {
    for entry in REGULATORS.entries {
        let edge =
            EdgeConfig { regulator: entry.name.into(), buffer: Size::Packets(10), ..EdgeConfig::default() };
        let mut plane = Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap();
        let header = LogHeader {
            link: "",
            recording: "",
            log: "",
            command_line: "",
            queue: "",
            began_ms: 0,
            shell_prefix: None,
        };
        for side in Side::BOTH {
            plane.log(side, LinkLog::begin(std::io::sink(), &header, None).unwrap().0);
        }
        let mut buffer = plane.pool().buffer();
        let packets: Vec<_> = (0..12_000u32)
            .map(|number| {
                let (port, round) = (1000 + (number / 2 % 3) as u16, number / 6);
                let seq = round * 1000;
                match number % 2 {
                    0 => (Side::Wired, packet(true, port, seq, 1, 1000)),
                    _ => (Side::Radio, packet(false, port, 1, seq.saturating_sub(4000), 0)),
                }
            })
            .collect();
        carry(&mut plane, &mut buffer, &packets[..10_000], 0);
        let before = allocations();
        carry(&mut plane, &mut buffer, &packets[10_000..], 10_000);
        assert_eq!(allocations() - before, 0, "{}", entry.name);
    }
}
