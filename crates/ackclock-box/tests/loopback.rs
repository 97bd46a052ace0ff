//! Real connections over the loopback device, whose two hooks both see every packet.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use ackclock_box::clip::{Clip, Pins};
use ackclock_box::maps::{Allowance, Counts, Knobs};
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
