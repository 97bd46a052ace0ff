//! The clip in the kernel is the law in Rust, field for field.

use ackclock_box::law::{Allowed, Base, Clip as Law};
use ackclock_box::maps::{Allowance, Flow, Knobs};
use ackclock_core::{Flags, FlowId, SackBlock, Segment, Seq};
use etherparse::SlicedPacket;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use crate::frames::{ACK, ACTING, ALL, BARE_ACK, FIN, Tcp, opens, program, run};

/// Numbers of a connection so far.
struct Course {
    of: Tcp,
    law: Law,
    arrived: u32,
    acked: u32,
    offered: u16,
}

/// Drives one connection through random data, ACKs and allowances and compares after every ACK.
fn compare(clip: &mut ackclock_box::clip::Clip, random: &mut Random, port: u16, acks: usize) {
    let (scale, peer) = (random.random_range(0..=14u8), random.random_bool(0.9));
    let first = (random.random(), random.random::<u32>());
    let of = Tcp {
        v6: random.random(),
        from_mobile: true,
        mobile_port: port,
        seq: first.0,
        ack: first.1,
        flags: ACK,
        window: random.random_range(1..=65535),
        payload: 0,
        scale: None,
        sack: None,
    };
    opens(clip, of, first, (Some(scale), peer.then_some(3)));
    let scale = if peer { scale } else { 0 };
    let law = Law::new(scale, Seq(first.1), of.window);
    let mut course = Course { of, law, arrived: first.1, acked: first.1, offered: of.window };
    clip.allow(ALL, Allowance::default()).unwrap();
    let mut allowed = None;
    for number in 0..acks {
        if random.random_bool(0.1) {
            allowed = allow(clip, random);
        }
        if random.random_bool(0.6) {
            course.data(clip, random);
        }
        course.ack(clip, random, allowed, number);
    }
}

fn allow(clip: &mut ackclock_box::clip::Clip, random: &mut Random) -> Option<Allowed> {
    if random.random_bool(0.1) {
        clip.allow(ALL, Allowance::default()).unwrap();
        return None;
    }
    let base = [Base::Acked, Base::Arrived, Base::Sacked][random.random_range(0..3)];
    let bytes = 1 << random.random_range(0..=30);
    let allowed =
        Allowed { base, bytes: random.random_range(0..=bytes), least: random.random_range(0..=4 * 1448) };
    let Allowed { bytes, least, .. } = allowed;
    clip.allow(ALL, Allowance { at_ns: 1, bytes, base: base as u32, least, act: 1 }).unwrap();
    Some(allowed)
}

impl Course {
    fn data(&mut self, clip: &mut ackclock_box::clip::Clip, random: &mut Random) {
        let payload = random.random_range(1..=1448);
        // Some of it is sent again.
        let seq = match random.random_range(0..100) {
            0..20 => self.acked,
            // Other data took another path.
            20 => self.arrived.wrapping_add(random.random()),
            _ => self.arrived,
        };
        let data = Tcp { from_mobile: false, seq, ack: 0, payload, flags: ACK, ..self.of };
        assert_eq!(run(clip, false, &data.frame()), data.frame());
        self.law.on_data(Seq(seq) + payload as u32);
        self.arrived = Seq(self.arrived).max(Seq(seq) + payload as u32).0;
    }

    fn ack(
        &mut self,
        clip: &mut ackclock_box::clip::Clip,
        random: &mut Random,
        allowed: Option<Allowed>,
        number: usize,
    ) {
        let ack = match random.random_range(0..40) {
            // Data that took another path.
            0 => self.arrived.wrapping_add(random.random_range(0..3000)),
            1..16 => self.acked,
            16..20 => self.acked.wrapping_sub(random.random_range(0..3000)),
            _ => self.acked.wrapping_add(random.random_range(0..=Seq(self.arrived).since(Seq(self.acked)))),
        };
        let window = match random.random_range(0..10) {
            0 => 0,
            1..7 => self.offered,
            _ => random.random(),
        };
        self.acked = Seq(self.acked).max(Seq(ack)).0;
        self.offered = window;
        let payload = if random.random_bool(0.2) { random.random_range(1..100) } else { 0 };
        let flags = if random.random_bool(0.05) { ACK | FIN } else { ACK };
        let sack = random.random_bool(0.3).then_some((ack.wrapping_add(2000), ack.wrapping_add(4000)));
        let packet = Tcp { ack, window, payload, flags, sack, ..self.of };
        let mut segment = Segment::data(FlowId(0), Seq(packet.seq), payload as u16, 40);
        segment.ack = Seq(ack);
        segment.window = window;
        if let Some((left, right)) = sack {
            segment.push_sack(SackBlock { left: Seq(left), right: Seq(right) });
        }
        segment.flags = if flags & FIN != 0 { Flags::ACK | Flags::FIN } else { Flags::ACK };
        self.law.on_ack(&mut segment, allowed);
        let expected = Tcp { window: segment.window, ..packet };
        let got = run(clip, true, &packet.frame());
        let SlicedPacket { transport, .. } = SlicedPacket::from_ethernet(&got).unwrap();
        let Some(etherparse::TransportSlice::Tcp(tcp)) = transport else { panic!("no TCP") };
        assert_eq!(tcp.window_size(), segment.window, "ACK {number}: {packet:?} under {allowed:?}");
        // Window and checksum, and nothing else.
        assert_eq!(got, expected.frame(), "ACK {number}: {packet:?}");
    }
}

#[test]
fn the_kernel_writes_what_the_law_says() {
    let Some(mut clip) = program(true) else { return };
    let mut random = Random::seed_from_u64(1);
    for port in 0..1000 {
        compare(&mut clip, &mut random, 1024 + port, 100);
    }
    let counts = clip.counts().unwrap();
    assert_eq!((counts.refused, counts.acks), (0, 100_000), "{counts:?}");
    let branches = [counts.clipped, counts.stale, counts.unknown];
    assert!(branches.iter().all(|count| *count > 1000), "all branches were met: {counts:?}");
}

#[test]
fn measuring_writes_nothing_and_counts_what_would_be_lower() {
    let Some(mut clip) = program(false) else { return };
    let of = BARE_ACK;
    opens(&mut clip, of, (1, 1), (Some(7), Some(7)));
    clip.allow(ALL, Allowance { at_ns: 1, bytes: 10_000, base: 0, least: 0, act: 1 }).unwrap();
    assert_eq!(run(&mut clip, true, &of.frame()), of.frame());
    let counts = clip.counts().unwrap();
    assert_eq!((counts.lower, counts.clipped), (1, 0));
    let Flow { told, scale, .. } = clip.flow(of.tuple()).unwrap().unwrap();
    assert_eq!((told, scale), (1 + (5000 << 7), 7), "what the receiver itself told");
}

#[test]
fn an_allowance_that_is_too_old_opens_the_windows() {
    let Some(mut clip) = program(true) else { return };
    clip.set(Knobs { stale_ns: 1_000_000_000, ..ACTING }).unwrap();
    let of = Tcp { v6: true, ..BARE_ACK };
    opens(&mut clip, of, (1, 1), (Some(7), Some(7)));
    clip.allow(ALL, Allowance { at_ns: 1, bytes: 10_000, base: 0, least: 0, act: 1 }).unwrap();
    assert_eq!(run(&mut clip, true, &of.frame()), of.frame(), "written a second after the machine began");
    assert_eq!(clip.counts().unwrap().stale, 1);
}
