//! Frames as an interface shows them, and the program under test.

use std::net::{Ipv4Addr, Ipv6Addr};

use ackclock_box::clip::Clip;
use ackclock_box::maps::{Knobs, Tuple};
use aya::programs::{TestRun, TestRunOptions};
use etherparse::{PacketBuilder, PacketBuilderStep, TcpOptionElement};

pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;
pub(crate) const FIN: u8 = 1;

/// Windows are lowered, and no allowance is too old.
pub(crate) const ACTING: Knobs = Knobs { stale_ns: u64::MAX, act: 1, header: 14, bypass: 0, unused: 0 };

/// The only subscriber of a box without a list of networks.
pub(crate) const ALL: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// The program, or `None` with the reason where this machine loads none.
pub(crate) fn program(act: bool) -> Option<Clip> {
    match Clip::load() {
        Ok(mut clip) => {
            clip.set(Knobs { act: act.into(), ..ACTING }).unwrap();
            clip.cover(&[(ALL, 0, 0)]).unwrap();
            Some(clip)
        }
        Err(error) => {
            println!("skipped: no BPF program can be loaded here: {error}");
            None
        }
    }
}

/// A TCP packet between one mobile and one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp {
    pub(crate) v6: bool,
    pub(crate) from_mobile: bool,
    pub(crate) mobile_port: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) payload: usize,
    /// Of a SYN.
    pub(crate) scale: Option<u8>,
    pub(crate) sack: Option<(u32, u32)>,
}

pub(crate) const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MOBILE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

/// An ACK without data or options.
pub(crate) const BARE_ACK: Tcp = Tcp {
    v6: false,
    from_mobile: true,
    mobile_port: 5000,
    seq: 1,
    ack: 1,
    flags: ACK,
    window: 5000,
    payload: 0,
    scale: None,
    sack: None,
};

impl Tcp {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let mut options = Vec::new();
        if self.flags & SYN != 0 {
            options.push(TcpOptionElement::MaximumSegmentSize(1460));
            options.extend(self.scale.map(TcpOptionElement::WindowScale));
        }
        options.extend(self.sack.map(|block| TcpOptionElement::SelectiveAcknowledgement(block, [None; 3])));
        let tcp = |ip: PacketBuilderStep<etherparse::IpHeaders>| {
            let (from, to) = if self.from_mobile { (self.mobile_port, 80) } else { (80, self.mobile_port) };
            let mut tcp = ip.tcp(from, to, self.seq, self.window).options(&options).unwrap();
            for (bit, set) in [
                (SYN, PacketBuilderStep::<etherparse::TcpHeader>::syn as fn(_) -> _),
                (FIN, PacketBuilderStep::<etherparse::TcpHeader>::fin as fn(_) -> _),
                (RST, PacketBuilderStep::<etherparse::TcpHeader>::rst as fn(_) -> _),
            ] {
                if self.flags & bit != 0 {
                    tcp = set(tcp);
                }
            }
            if self.flags & ACK != 0 {
                tcp = tcp.ack(self.ack);
            }
            let mut bytes = Vec::new();
            tcp.write(&mut bytes, &vec![7; self.payload]).unwrap();
            bytes
        };
        match (self.v6, self.from_mobile) {
            (false, true) => tcp(ethernet.ipv4(MOBILE.octets(), SERVER.octets(), 64)),
            (false, false) => tcp(ethernet.ipv4(SERVER.octets(), MOBILE.octets(), 64)),
            (true, true) => tcp(ethernet.ipv6(MOBILE6.octets(), SERVER6.octets(), 64)),
            (true, false) => tcp(ethernet.ipv6(SERVER6.octets(), MOBILE6.octets(), 64)),
        }
    }

    pub(crate) fn tuple(&self) -> Tuple {
        let words = |octets: [u8; 16]| {
            let word = |at: usize| u32::from_ne_bytes(octets[4 * at..4 * at + 4].try_into().unwrap());
            [word(0), word(1), word(2), word(3)]
        };
        let first = |octets: [u8; 4]| [u32::from_ne_bytes(octets), 0, 0, 0];
        let (mobile, server) = if self.v6 {
            (words(MOBILE6.octets()), words(SERVER6.octets()))
        } else {
            (first(MOBILE.octets()), first(SERVER.octets()))
        };
        Tuple { mobile, server, mobile_port: self.mobile_port.to_be(), server_port: 80u16.to_be() }
    }
}

/// What the program makes of a frame.
pub(crate) fn run(clip: &mut Clip, from_mobile: bool, frame: &[u8]) -> Vec<u8> {
    tries(clip, from_mobile, frame).expect("a frame that the kernel takes")
}

/// What the program makes of a frame; `None` where the kernel makes no packet of it, as of one without a whole header.
pub(crate) fn tries(clip: &mut Clip, from_mobile: bool, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; frame.len() + 64];
    let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), ..TestRunOptions::new() };
    let program = clip.program(if from_mobile { "clip_acks" } else { "clip_data" }).unwrap();
    let result = program.test_run(options).ok()?;
    assert_eq!(result.return_value, u32::MAX, "the next program decides");
    out.truncate(result.data_size_out as usize);
    Some(out)
}

/// The handshake of a connection; returns the numbers of its first bytes, mobile and server.
pub(crate) fn opens(clip: &mut Clip, of: Tcp, first: (u32, u32), scales: (Option<u8>, Option<u8>)) {
    let syn = Tcp {
        from_mobile: true,
        seq: first.0.wrapping_sub(1),
        flags: SYN,
        scale: scales.0,
        payload: 0,
        sack: None,
        ..of
    };
    let answer = Tcp {
        from_mobile: false,
        seq: first.1.wrapping_sub(1),
        ack: first.0,
        flags: SYN | ACK,
        scale: scales.1,
        payload: 0,
        sack: None,
        ..of
    };
    for packet in [syn, answer] {
        assert_eq!(run(clip, packet.from_mobile, &packet.frame()), packet.frame(), "{packet:?}");
    }
}
