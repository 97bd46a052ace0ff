//! What is not known to be safe passes as it came, byte for byte.

use ackclock_box::maps::{Allowance, Knobs};
use ackclock_core::{Flags, is_protecting};
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

/// A packet of the connection of `BARE_ACK` with raw TCP options.
fn with_options(from_mobile: bool, flags: u8, options: &[u8]) -> Vec<u8> {
    let of = Tcp { from_mobile, seq: 0, ack: 1, flags, ..BARE_ACK };
    let (from, to) = if from_mobile { (MOBILE, SERVER) } else { (SERVER, MOBILE) };
    let (source, destination) = if from_mobile { (5000, 80) } else { (80, 5000) };
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from.octets(), to.octets(), 64);
    let tcp = ip.tcp(source, destination, of.seq, of.window).options_raw(options).unwrap();
    let tcp = if flags & SYN == 0 { tcp } else { tcp.syn() };
    let tcp = if flags & ACK == 0 { tcp } else { tcp.ack(of.ack) };
    let mut frame = Vec::new();
    tcp.write(&mut frame, &[]).unwrap();
    frame
}

/// A SYN of the ports of `BARE_ACK` with an option that makes its connection untouchable.
fn signed_syn(seq: u32) -> Vec<u8> {
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(MOBILE.octets(), SERVER.octets(), 64);
    let syn = ip.tcp(5000, 80, seq, 5000).syn().options_raw(&[3, 3, 7, 19, 4, 1, 0, 1]).unwrap();
    let mut frame = Vec::new();
    syn.write(&mut frame, &[]).unwrap();
    frame
}

/// Window scale 7 and an option of this kind.
fn offering(kind: u8) -> Vec<u8> {
    vec![3, 3, 7, kind, 4, 0x10, 0x01]
}

/// Opens a connection whose SYN and SYN-ACK have these options, and says whether the window of an ACK with the third
/// options is lowered.
fn is_clipped(clip: &mut ackclock_box::clip::Clip, syn: &[u8], answer: &[u8], ack: &[u8]) -> bool {
    for (from_mobile, flags, options) in [(true, SYN, syn), (false, SYN | ACK, answer)] {
        let frame = with_options(from_mobile, flags, options);
        assert_eq!(run(clip, from_mobile, &frame), frame);
    }
    let frame = with_options(true, ACK, ack);
    run(clip, true, &frame) != frame
}

/// The kernel's program and the table of protecting options agree on every kind of option in every segment.
#[test]
fn options_that_forbid_a_change_are_obeyed_in_every_segment() {
    let Some(mut clip) = acting() else { return };
    let scale = [3, 3, 7];
    for kind in (0..=u8::MAX).filter(|kind| ![0, 1, 2, 3, 5, 8].contains(kind)) {
        let option = [1, kind, 4, 0x10, 0x01, 1, 1, 1];
        for (syn, answer, ack, flags) in [
            (&offering(kind)[..], &scale[..], &[][..], Flags::SYN),
            (&scale, &offering(kind), &[], Flags::SYN | Flags::ACK),
            (&offering(kind), &offering(kind), &[], Flags::SYN | Flags::ACK),
            (&scale, &scale, &option, Flags::ACK),
        ] {
            let clipped = is_clipped(&mut clip, syn, answer, ack);
            assert_eq!(clipped, !is_protecting(kind, flags), "option {kind}, {flags:?}");
        }
    }
}

#[test]
fn signed_acks_are_neither_lowered_nor_advised() {
    let Some(mut clip) = acting() else { return };
    let mut signature = vec![19, 18];
    signature.resize(18, 0xaa);
    let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let signed = [&stamps[..], &[1, 1], &signature].concat();
    assert!(is_clipped(&mut clip, &[3, 3, 7], &[3, 3, 7], &stamps), "timestamps alone");
    assert!(!is_clipped(&mut clip, &[3, 3, 7], &[3, 3, 7], &signed), "a signature after timestamps");
    assert!(!is_clipped(&mut clip, &[3, 3, 7], &[3, 3, 7], &[8, 1, 1, 1]), "options that cannot be read");
    let counts = clip.counts().unwrap();
    assert_eq!((counts.acks, counts.lower, counts.clipped, counts.protected), (1, 1, 1, 2));
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
    // Both ends agree on numbers outside the window, so these are learnt; the window that was open until then is used up.
    for (ack, is_clipped) in [(3 * far, false), (4 * far, true)] {
        let back = Tcp { ack, ..BARE_ACK };
        run(&mut clip, false, &Tcp { seq: ack - 100, ..DATA }.frame());
        assert_eq!(run(&mut clip, true, &back.frame()) != back.frame(), is_clipped, "{ack}");
    }
}

/// Data of the server to the mobile of `BARE_ACK`.
const DATA: Tcp = Tcp { from_mobile: false, payload: 100, ..BARE_ACK };

/// Field of the window of an ACK after the program.
fn window(clip: &mut ackclock_box::clip::Clip, ack: Tcp) -> u16 {
    let frame = run(clip, true, &ack.frame());
    u16::from_be_bytes([frame[14 + 34], frame[14 + 35]])
}

/// A SYN and its answer with new numbers and a new scale, over the ports of an earlier connection.
#[test]
fn a_syn_that_is_answered_begins_a_new_connection() {
    let Some(mut clip) = acting() else { return };
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    run(&mut clip, false, &DATA.frame());
    // 3000 bytes are 23 units of 128 bytes, or 750 of 4 bytes.
    assert_eq!(window(&mut clip, BARE_ACK), 23);
    let first = (70_000, 0xffff_ff00);
    let again = Tcp { seq: first.0, ack: first.1, ..BARE_ACK };
    opens(&mut clip, again, first, (Some(2), Some(7)));
    assert_eq!(window(&mut clip, again), 750);
    // Sequence numbers wrap around.
    for number in 1..20u32 {
        let ack = Tcp { ack: first.1.wrapping_add(100 * number), ..again };
        run(&mut clip, false, &Tcp { seq: ack.ack.wrapping_sub(100), ..DATA }.frame());
        assert_eq!(window(&mut clip, ack), 750, "{ack:?}");
    }
}

/// The window scale of the new connection is unknown, so it is not the one of the earlier connection.
#[test]
fn the_scale_of_an_earlier_connection_is_not_used_for_a_later_one() {
    let Some(mut clip) = acting() else { return };
    // The answer has options that make the connection untouchable, or passes elsewhere, or the server begins.
    for case in 0..3 {
        opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
        run(&mut clip, false, &DATA.frame());
        assert_eq!(window(&mut clip, BARE_ACK), 23);
        let syn = Tcp { flags: SYN, seq: 900_000, ack: 0, scale: Some(2), ..BARE_ACK };
        let server = 3_000_000_000u32;
        match case {
            0 => {
                run(&mut clip, true, &signed_syn(900_000));
                let answer = Tcp { from_mobile: false, flags: SYN | ACK, seq: server, ack: 900_001, ..syn };
                run(&mut clip, false, &answer.frame());
            }
            1 => _ = run(&mut clip, true, &syn.frame()),
            _ => {
                run(&mut clip, false, &Tcp { from_mobile: false, seq: server, ..syn }.frame());
                run(&mut clip, true, &Tcp { flags: SYN | ACK, ack: server + 1, ..syn }.frame());
            }
        }
        for number in 1..5 {
            let ack = Tcp { seq: 900_001, ack: server + 1 + 100 * number, ..BARE_ACK };
            run(&mut clip, false, &Tcp { seq: ack.ack - 100, ..DATA }.frame());
            assert_eq!(window(&mut clip, ack), BARE_ACK.window, "{case}: {ack:?}");
        }
    }
}

/// Packets of somebody who knows addresses and ports, but no numbers.
#[test]
fn a_forged_packet_changes_no_window() {
    let Some(mut clip) = acting() else { return };
    clip.allow(ALL, Allowance { at_ns: 1, bytes: 12_000, base: 1, least: 0, act: 1 }).unwrap();
    opens(&mut clip, BARE_ACK, (1, 1), (Some(7), Some(7)));
    let mut end = 1;
    let mut next = |clip: &mut ackclock_box::clip::Clip| {
        end += 100;
        run(clip, false, &Tcp { seq: end - 100, ..DATA }.frame());
        window(clip, Tcp { ack: end, ..BARE_ACK })
    };
    for _ in 0..200 {
        next(&mut clip);
    }
    // 12 000 bytes are 93 units of 128 bytes.
    assert_eq!(next(&mut clip), 93);
    let far = [0x4000_0000, 0x7fff_0000, 0xc000_0000, 1_000_000, 0x8000_0000u32];
    let both = |packet: Tcp| [true, false].map(|from_mobile| Tcp { from_mobile, ..packet });
    let forged = far.into_iter().flat_map(|number| {
        let base = Tcp { seq: number, ack: number, ..BARE_ACK };
        [
            Tcp { flags: SYN, scale: Some(3), ..base },
            Tcp { flags: SYN | ACK, scale: Some(3), ..base },
            Tcp { flags: RST, ..base },
            Tcp { flags: RST | ACK, ..base },
            Tcp { flags: FIN | ACK, ..base },
            Tcp { payload: 1400, ..base },
            Tcp { payload: 1400, seq: number.wrapping_add(500), ..base },
            Tcp { window: 65535, ..base },
            Tcp { sack: Some((number.wrapping_add(1), number.wrapping_add(90_000))), ..base },
        ]
        .into_iter()
        .flat_map(both)
    });
    for packet in forged {
        let counts = clip.counts().unwrap();
        run(&mut clip, packet.from_mobile, &packet.frame());
        assert_eq!(clip.counts().unwrap().clipped, counts.clipped, "{packet:?}");
        for _ in 0..2 {
            assert_eq!(next(&mut clip), 93, "{packet:?}");
        }
    }
    let flow = clip.flow(BARE_ACK.tuple()).unwrap().unwrap();
    assert_eq!(u64::from(flow.arrived - 1), flow.passed, "forged data is not counted");
}

/// A handshake is learnt whatever else comes between its packets.
#[test]
fn forged_packets_do_not_keep_a_connection_from_being_learnt() {
    let Some(mut clip) = acting() else { return };
    let syn = Tcp { flags: SYN, seq: 500, ack: 0, scale: Some(7), ..BARE_ACK };
    let answer = Tcp { from_mobile: false, flags: SYN | ACK, seq: 900, ack: 501, ..syn };
    for packet in [
        syn,
        Tcp { seq: 77, scale: Some(0), ..syn },
        Tcp { ack: 78_000, ..answer },
        Tcp { from_mobile: false, seq: 9, ..syn },
        answer,
        Tcp { ack: 78_000, ..answer },
    ] {
        run(&mut clip, packet.from_mobile, &packet.frame());
    }
    assert_eq!(clip.counts().unwrap().opened, 1);
    assert_eq!(window(&mut clip, Tcp { seq: 501, ack: 901, ..BARE_ACK }), 23);
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
    run(&mut clip, false, &Tcp { seq: next.ack - 100, ..DATA }.frame());
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
