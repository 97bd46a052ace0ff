//! What is not known to be safe passes as it came, byte for byte.

use ackclock_box::maps::{Allowance, Knobs};
use etherparse::PacketBuilder;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use crate::frames::{
    ACK, ACTING, ALL, BARE_ACK, FIN, MOBILE, RST, SERVER, SYN, Tcp, opens, program, run, tries,
};

fn acting() -> Option<ackclock_box::clip::Clip> {
    let mut clip = program(true)?;
    clip.allow(ALL, Allowance { at_ns: 1, bytes: 3000, base: 0, least: 0, act: 1 }).unwrap();
    Some(clip)
}

/// Passes a frame both ways and says whether it came out as it went in.
fn passes(clip: &mut ackclock_box::clip::Clip, frame: &[u8]) -> bool {
    [true, false].into_iter().all(|from_mobile| run(clip, from_mobile, frame) == frame)
}

#[test]
fn a_connection_is_clipped_only_after_both_syns() {
    let Some(mut clip) = acting() else { return };
    assert!(passes(&mut clip, &BARE_ACK.frame()), "in mid-stream");
    let syn = Tcp { flags: SYN, scale: Some(7), ..BARE_ACK };
    assert!(passes(&mut clip, &syn.frame()));
    assert!(passes(&mut clip, &BARE_ACK.frame()), "one direction only");
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    assert_ne!(run(&mut clip, true, &BARE_ACK.frame()), BARE_ACK.frame());
    let counts = clip.counts().unwrap();
    assert_eq!((counts.unknown, counts.opened, counts.clipped), (2, 1, 1));
}

#[test]
fn a_multipath_connection_is_left_alone() {
    let Some(mut clip) = acting() else { return };
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(MOBILE.octets(), SERVER.octets(), 64);
    // MP_CAPABLE, version 1, without a key.
    let syn = ip.tcp(5000, 80, 0, 5000).syn().options_raw(&[3, 3, 7, 30, 4, 1, 0, 1]).unwrap();
    let mut frame = Vec::new();
    syn.write(&mut frame, &[]).unwrap();
    assert!(passes(&mut clip, &frame));
    let answer = Tcp { from_mobile: false, seq: 0, flags: SYN | ACK, scale: Some(7), ..BARE_ACK };
    run(&mut clip, false, &answer.frame());
    assert!(passes(&mut clip, &BARE_ACK.frame()));
    assert_eq!(clip.counts().unwrap().opened, 0);
}

#[test]
fn closed_windows_and_last_acks_are_the_receivers_own_affair() {
    let Some(mut clip) = acting() else { return };
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    for frame in [
        Tcp { window: 0, ..BARE_ACK },
        Tcp { flags: ACK | FIN, ..BARE_ACK },
        Tcp { flags: ACK | RST, ..BARE_ACK },
    ] {
        assert_eq!(run(&mut clip, true, &frame.frame()), frame.frame(), "{frame:?}");
    }
}

#[test]
fn a_wrong_header_length_costs_no_packet() {
    let Some(mut clip) = acting() else { return };
    for header in [0, 4, 10, 18, 40, 5000] {
        opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
        clip.set(Knobs { header, ..ACTING }).unwrap();
        assert_eq!(run(&mut clip, true, &BARE_ACK.frame()), BARE_ACK.frame(), "{header}");
    }
    let counts = clip.counts().unwrap();
    assert_eq!((counts.refused, counts.clipped), (6, 0));
}

#[test]
fn packets_that_carry_no_window_pass() {
    let Some(mut clip) = acting() else { return };
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    let (mut random, mut taken) = (Random::seed_from_u64(7), 0);
    let ip = || PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(MOBILE.octets(), SERVER.octets(), 64);
    let mut udp = Vec::new();
    ip().udp(5000, 80).write(&mut udp, &[1; 100]).unwrap();
    let mut echo = Vec::new();
    ip().icmpv4_echo_request(1, 2).write(&mut echo, &[1; 100]).unwrap();
    let mut fragment = BARE_ACK.frame();
    // More fragments follow.
    fragment[14 + 6] |= 0x20;
    for frame in [&udp, &echo, &fragment] {
        assert!(passes(&mut clip, frame));
    }
    // Noise of any length, and real frames of which bytes are changed or missing.
    for _ in 0..10_000 {
        let mut frame = if random.random() { BARE_ACK.frame() } else { Tcp { v6: true, ..BARE_ACK }.frame() };
        for _ in 0..random.random_range(1..8) {
            let at = random.random_range(12..frame.len());
            frame[at] = random.random();
        }
        frame.truncate(random.random_range(15..=frame.len()));
        if random.random_bool(0.2) {
            frame.resize(random.random_range(15..200), 0);
            random.fill_bytes(&mut frame[14..]);
        }
        let Some(out) = tries(&mut clip, true, &frame) else { continue };
        taken += 1;
        // Where it is still an ACK of the connection its window may be lowered; nothing else is touched.
        let checksum = 14 + 20 + 14..14 + 20 + 18;
        let differs: Vec<_> = (0..frame.len()).filter(|&at| out[at] != frame[at]).collect();
        assert!(
            out.len() == frame.len() && differs.iter().all(|at| checksum.contains(at)),
            "{frame:?}: {differs:?}"
        );
        assert_eq!(run(&mut clip, false, &frame), frame);
    }
    assert!(taken > 5000, "{taken}");
}

#[test]
fn connections_of_which_one_direction_passes_elsewhere_are_left_alone() {
    let Some(mut clip) = acting() else { return };
    let syn = Tcp { flags: SYN, ack: 0, scale: Some(7), ..BARE_ACK };
    let answer = Tcp { from_mobile: false, flags: SYN | ACK, ..syn };
    // Only what the mobile sends, then only what the server sends.
    let (of_mobile, of_server) = ([syn, BARE_ACK, Tcp { ack: 5000, ..BARE_ACK }], [answer, DATA, DATA]);
    for (mobile_port, packets) in [(1, of_mobile), (2, of_server)] {
        for packet in packets {
            let packet = Tcp { mobile_port, ..packet };
            assert_eq!(run(&mut clip, packet.from_mobile, &packet.frame()), packet.frame(), "{packet:?}");
        }
        assert_eq!(clip.flow(Tcp { mobile_port, ..BARE_ACK }.tuple()).unwrap(), None);
    }
    // Both, until ACKs show that data takes another path; a FIN is no data. Then data comes back.
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    run(&mut clip, false, &DATA.frame());
    let far = 5000 << 7;
    for (ack, is_clipped) in [(101, true), (102, true), (103, false), (far, false)] {
        let ack = Tcp { ack, ..BARE_ACK };
        assert_eq!(run(&mut clip, true, &ack.frame()) != ack.frame(), is_clipped, "{ack:?}");
    }
    let back = Tcp { ack: 3 * far, ..BARE_ACK };
    run(&mut clip, false, &Tcp { seq: back.ack, ..DATA }.frame());
    assert_ne!(run(&mut clip, true, &back.frame()), back.frame());
}

/// Data of the server to the mobile of `BARE_ACK`.
const DATA: Tcp = Tcp { from_mobile: false, payload: 100, ..BARE_ACK };

#[test]
fn a_new_syn_ends_what_was_known_of_its_ports() {
    let Some(mut clip) = acting() else { return };
    for from_mobile in [true, false] {
        opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
        run(&mut clip, false, &DATA.frame());
        assert_ne!(run(&mut clip, true, &BARE_ACK.frame()), BARE_ACK.frame());
        // Whatever scale was agreed on now, the answer did not pass here.
        let syn = Tcp { from_mobile, flags: SYN, ack: 0, scale: Some(2), ..BARE_ACK };
        run(&mut clip, from_mobile, &syn.frame());
        assert_eq!(run(&mut clip, true, &BARE_ACK.frame()), BARE_ACK.frame(), "{from_mobile}");
    }
}

#[test]
fn connections_that_never_had_data_evict_none_that_had() {
    let Some(mut clip) = acting() else { return };
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    run(&mut clip, false, &DATA.frame());
    for (mobile_port, v6) in (1..=32_000).flat_map(|port| [(port, false), (port, true)]) {
        if mobile_port != BARE_ACK.mobile_port {
            let scanned = Tcp { mobile_port, v6, ..BARE_ACK };
            opens(&mut clip, scanned, (1, 1), (Some(7), Some(7)));
            run(&mut clip, true, &scanned.frame());
        }
    }
    assert_ne!(run(&mut clip, true, &BARE_ACK.frame()), BARE_ACK.frame());
}

/// Packets that a device joined beyond 64 KiB have 0 for their length.
#[test]
fn data_longer_than_a_header_can_say_arrives_to_its_end() {
    let Some(mut clip) = acting() else { return };
    for (v6, length) in [(false, 14 + 2), (true, 14 + 4)] {
        let of = Tcp { v6, ..BARE_ACK };
        opens(&mut clip, of, (1, 1), (Some(7), Some(7)));
        let mut frame = Tcp { v6, ..DATA }.frame();
        frame[length..length + 2].fill(0);
        run(&mut clip, false, &frame);
        assert_eq!(clip.flow(of.tuple()).unwrap().unwrap().arrived, 101, "{v6}");
    }
}

#[test]
fn what_is_bypassed_passes() {
    let Some(mut clip) = acting() else { return };
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    clip.set(Knobs { bypass: 1, ..ACTING }).unwrap();
    assert_eq!(run(&mut clip, true, &BARE_ACK.frame()), BARE_ACK.frame());
    clip.set(ACTING).unwrap();
    let next = Tcp { ack: 1 + (5000 << 7), ..BARE_ACK };
    run(&mut clip, false, &Tcp { seq: next.ack, ..DATA }.frame());
    assert_ne!(run(&mut clip, true, &next.frame()), next.frame());
}

#[test]
fn bytes_are_counted_by_what_a_box_can_do_for_them() {
    let Some(mut clip) = acting() else { return };
    let ip = || PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(SERVER.octets(), MOBILE.octets(), 64);
    let (mut quic, mut udp, mut esp) = (Vec::new(), Vec::new(), Vec::new());
    ip().udp(443, 5000).write(&mut quic, &[1; 100]).unwrap();
    ip().udp(53, 5000).write(&mut udp, &[1; 200]).unwrap();
    ip().write(&mut esp, 50.into(), &[1; 300]).unwrap();
    for frame in [&quic, &udp, &esp] {
        run(&mut clip, false, frame);
    }
    let counts = clip.counts().unwrap();
    let bytes = [counts.in_bytes, counts.in_quic_bytes, counts.in_udp_bytes, counts.in_esp_bytes];
    assert_eq!(bytes, [42 + 100 + 42 + 200 + 34 + 300, 142, 242, 334]);
}
