//! Real connections over the loopback device, whose two hooks both see every packet.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use ackclock_box::clip::{Clip, Pins};
use ackclock_box::maps::{Allowance, Counts, Knobs, Record};
use ackclock_link::Side;

use crate::frames::{ACTING, ALL};
use crate::inside::inside;

/// Sends numbered bytes over a new connection; whether all of them arrive.
fn arrives(bytes: usize) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let numbered: Vec<u8> = (0..bytes).map(|at| (at / 256 + at) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = listener.accept().unwrap().0;
            server.write_all(&numbered).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        TcpStream::connect(address).unwrap().read_to_end(&mut got).unwrap();
        got == numbered
    })
}

/// A device whose link header is not as long as the box believes.
#[test]
fn with_a_wrong_header_length_all_arrives_and_nothing_is_clipped() {
    if !inside("loopback::with_a_wrong_header_length_all_arrives_and_nothing_is_clipped") {
        return;
    }
    let smaller = ["link", "set", "lo", "mtu", "1500"];
    assert!(Command::new("ip").args(smaller).status().unwrap().success());
    let pins = Pins::of("lo").unwrap();
    let (mut clip, _) = Clip::attach(&pins, Side::Mobile, false).unwrap();
    clip.cover(&[(ALL, 0, 0)]).unwrap();
    clip.allow(ALL, Allowance { at_ns: 1, bytes: 30_000, base: 0, least: 0, act: 1 }).unwrap();
    clip.set(Knobs { header: 18, ..ACTING }).unwrap();
    assert!(arrives(20_000_000));
    let Counts { clipped, refused, acks, .. } = clip.counts().unwrap();
    println!("{acks} ACKs, {refused} refused");
    assert!(clipped == 0 && refused > 10);
    // The same with the right length.
    clip.set(ACTING).unwrap();
    assert!(arrives(2_000_000));
    let right = clip.counts().unwrap();
    assert!(right.clipped > 20 && right.refused == refused, "{right:?}");
    pins.remove().unwrap();
}

/// Connections that fetch a few packets and stay open: the ACK of all data follows other ACKs within a millisecond.
#[test]
fn the_ack_of_all_data_has_a_record() {
    if !inside("loopback::the_ack_of_all_data_has_a_record") {
        return;
    }
    let pins = Pins::of("lo").unwrap();
    let (mut clip, _) = Clip::attach(&pins, Side::Mobile, false).unwrap();
    clip.cover(&[(ALL, 0, 0)]).unwrap();
    clip.set(ACTING).unwrap();
    let mut records = clip.records().unwrap();
    (0..20).for_each(|_| assert!(arrives(200_000)));
    // End of the data and of what is acknowledged, as the records of each connection tell.
    let mut known = BTreeMap::<u32, [u32; 2]>::new();
    while let Some(bytes) = records.next() {
        let record = Record::read(&bytes).unwrap();
        let [arrived, acked] = known.entry(record.flow).or_default();
        match record.kind {
            Record::DATA => *arrived = record.arrived,
            _ => *acked = record.acked,
        }
    }
    assert!(known.len() >= 20, "{known:?}");
    known.iter().for_each(|(flow, [arrived, acked])| {
        assert!(acked.wrapping_sub(*arrived) < 1 << 31, "connection {flow}: {acked} of {arrived}");
    });
    pins.remove().unwrap();
}
