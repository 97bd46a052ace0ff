//! What the kernel's program does for each of many subscribers.

use std::net::Ipv6Addr;

use ackclock_box::clip::Clip;
use ackclock_box::maps::Allowance;
use etherparse::PacketBuilder;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use crate::frames::{ACK, BARE_ACK, MOBILE, SERVER, SYN, Tcp, program, run};

const ALLOWED: Allowance = Allowance { at_ns: 1, bytes: 3000, base: 0, least: 0, act: 1 };

/// The frame of a packet, with the last byte of the mobile's address replaced.
fn frame(packet: Tcp, host: u8) -> Vec<u8> {
    let mut frame = packet.frame();
    let at = match (packet.v6, packet.from_mobile) {
        (false, true) => 14 + 15,
        (false, false) => 14 + 19,
        (true, true) => 14 + 23,
        (true, false) => 14 + 39,
    };
    frame[at] = host;
    frame
}

fn opens(clip: &mut Clip, of: Tcp, host: u8) {
    let syn = Tcp { seq: 0, ack: 0, flags: SYN, scale: Some(7), ..of };
    let answer = Tcp { from_mobile: false, seq: 0, ack: 1, flags: SYN | ACK, scale: Some(7), ..of };
    for packet in [syn, answer] {
        run(clip, packet.from_mobile, &frame(packet, host));
    }
}

fn is_clipped(clip: &mut Clip, of: Tcp, host: u8) -> bool {
    let frame = frame(of, host);
    run(clip, true, &frame) != frame
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A program for the subscribers of 10.0.0.0/28 and of 2001:db8::/48.
fn of_many(act: bool) -> Option<Clip> {
    let mut clip = program(act)?;
    clip.cover(&[(address("::ffff:10.0.0.0"), 124, 128), (address("2001:db8::"), 48, 64)]).unwrap();
    Some(clip)
}

#[test]
fn an_allowance_is_of_one_subscriber() {
    let Some(mut clip) = of_many(true) else { return };
    clip.allow(address("::ffff:10.0.0.3"), ALLOWED).unwrap();
    clip.allow(address("::ffff:10.0.0.4"), Allowance { act: 0, ..ALLOWED }).unwrap();
    clip.allow(address("2001:db8::"), ALLOWED).unwrap();
    // 10.0.0.99 is no subscriber, though it has an allowance.
    clip.allow(address("::ffff:10.0.0.99"), ALLOWED).unwrap();
    for (v6, host, expected) in [
        (false, 2, false),
        (false, 3, true),
        (false, 4, false),
        (false, 99, false),
        (true, 2, true),
        (true, 3, true),
    ] {
        opens(&mut clip, Tcp { v6, ..BARE_ACK }, host);
        assert_eq!(is_clipped(&mut clip, Tcp { v6, ..BARE_ACK }, host), expected, "{v6} {host}");
    }
    let counts = clip.counts().unwrap();
    assert_eq!((counts.clipped, counts.unknown, counts.opened), (3, 1, 5));
    // The law's lower window is counted of subscribers who are left alone too.
    assert_eq!(counts.lower, 4);
    clip.dismiss(address("::ffff:10.0.0.3")).unwrap();
    let next = Tcp { ack: 1 + (5000 << 7), ..BARE_ACK };
    run(&mut clip, false, &frame(Tcp { from_mobile: false, seq: next.ack, payload: 100, ..BARE_ACK }, 3));
    assert!(!is_clipped(&mut clip, next, 3));
}

#[test]
fn networks_can_be_replaced() {
    let Some(mut clip) = of_many(true) else { return };
    clip.cover(&[(address("::ffff:10.0.0.96"), 123, 128)]).unwrap();
    for (host, expected) in [(3, false), (99, true)] {
        clip.allow(address(&format!("::ffff:10.0.0.{host}")), ALLOWED).unwrap();
        opens(&mut clip, BARE_ACK, host);
        assert_eq!(is_clipped(&mut clip, BARE_ACK, host), expected, "{host}");
    }
}

#[test]
fn all_bytes_of_a_listed_subscriber_are_counted() {
    let Some(mut clip) = of_many(false) else { return };
    let subscriber = address("::ffff:10.0.0.2");
    opens(&mut clip, BARE_ACK, 2);
    let data = frame(Tcp { from_mobile: false, payload: 1000, ..BARE_ACK }, 2);
    run(&mut clip, false, &data);
    assert_eq!(clip.totals().unwrap(), [], "the box lists subscribers, not packets");
    let mut scan = frame(Tcp { from_mobile: false, payload: 1000, mobile_port: 9, ..BARE_ACK }, 9);
    run(&mut clip, false, &scan);
    run(&mut clip, false, &scan);
    assert_eq!(clip.unlisted().unwrap(), [(address("::ffff:10.0.0.9"), 2 * scan.len() as u64)]);
    clip.admit(address("::ffff:10.0.0.9")).unwrap();
    clip.dismiss(address("::ffff:10.0.0.9")).unwrap();
    assert_eq!(clip.unlisted().unwrap(), []);
    clip.cover(&[(address("::ffff:10.0.0.0"), 104, 128)]).unwrap();
    for host in 0..20_000u16 {
        scan[14 + 18..14 + 20].copy_from_slice(&host.to_be_bytes());
        run(&mut clip, false, &scan);
    }
    assert!(clip.unlisted().unwrap().len() <= 2048, "a scan evicts other addresses of a scan");
    clip.admit(subscriber).unwrap();
    run(&mut clip, false, &data);
    clip.admit(subscriber).unwrap();
    let mut udp = Vec::new();
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(SERVER.octets(), MOBILE.octets(), 64);
    ip.udp(443, 5000).write(&mut udp, &[1; 500]).unwrap();
    run(&mut clip, false, &udp);
    // A fragment has no ports.
    let mut fragment = udp.clone();
    fragment[14 + 7] = 5;
    run(&mut clip, false, &fragment);
    // To another subscriber.
    run(&mut clip, false, &frame(Tcp { from_mobile: false, payload: 1000, ..BARE_ACK }, 3));
    let [(key, totals)] = clip.totals().unwrap()[..] else { panic!("one subscriber") };
    assert_eq!(key, subscriber);
    assert_eq!(
        (totals.in_flow_bytes, totals.in_bytes),
        (data.len() as u64, (data.len() + 2 * udp.len()) as u64)
    );
}

#[test]
fn a_box_that_measures_changes_no_byte() {
    let Some(mut clip) = of_many(false) else { return };
    let mut random = Random::seed_from_u64(3);
    for host in 0..16 {
        clip.allow(address(&format!("::ffff:10.0.0.{host}")), ALLOWED).unwrap();
        opens(&mut clip, BARE_ACK, host);
    }
    for _ in 0..20_000 {
        let packet = Tcp {
            from_mobile: random.random(),
            ack: random.random_range(1..100_000),
            seq: random.random_range(1..100_000),
            payload: random.random_range(0..3) * 700,
            window: random.random(),
            ..BARE_ACK
        };
        let frame = frame(packet, random.random_range(0..32));
        assert_eq!(run(&mut clip, packet.from_mobile, &frame), frame);
    }
    let counts = clip.counts().unwrap();
    assert!(counts.lower > 1000 && counts.clipped == 0 && counts.refused == 0, "{counts:?}");
}

/// Tuples of a scan, by which side asks, and whether the other side answers.
#[test]
fn a_scan_evicts_no_connection_with_data() {
    let Some(mut clip) = of_many(true) else { return };
    let hosts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    for host in hosts {
        clip.allow(address(&format!("::ffff:10.0.0.{host}")), ALLOWED).unwrap();
        opens(&mut clip, BARE_ACK, host);
        run(&mut clip, false, &frame(Tcp { from_mobile: false, payload: 100, ..BARE_ACK }, host));
    }
    for number in 0..30_000u32 {
        let of = Tcp { mobile_port: 10_000 + (number % 50_000) as u16, ..BARE_ACK };
        let host = (number % 16) as u8;
        opens(&mut clip, of, host);
        // From outside, to ports where nobody listens.
        let asked = Tcp { from_mobile: false, mobile_port: (number % 4000) as u16, ack: 0, flags: SYN, ..of };
        run(&mut clip, false, &frame(asked, host));
        run(&mut clip, true, &frame(Tcp { mobile_port: 1, flags: ACK, ..of }, host));
    }
    for host in hosts {
        let flow = clip.flow(Tcp { ..BARE_ACK }.tuple()).unwrap().unwrap();
        assert_eq!((flow.scale, flow.arrived), (7, 101));
        assert!(is_clipped(&mut clip, BARE_ACK, host), "{host}");
    }
}
