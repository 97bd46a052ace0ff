//! Any bytes as a client's request, as the bodies and answers of HTTP, as a radio report, as a key file, and as the
//! kernel's answer about a queue.
#![no_main]

use ackclock_proxy::asked::{Asked, read};
use ackclock_proxy::file::File;
use ackclock_proxy::http::body::Body;
use ackclock_proxy::http::exchange::Exchange;
use ackclock_proxy::reports::gate::Gate;
use ackclock_proxy::reports::wire::{LENGTH, Report, decode, encode};
use ackclock_proxy::reports::{keys, qdisc};
use libfuzzer_sys::fuzz_target;

const SECRET: [u8; 32] = [7; 32];

/// A request says how many of its bytes it used, and these bytes alone are the same request.
fn request(bytes: &[u8], greeted: bool) {
    match read(bytes, greeted) {
        Asked::Connect(wish) => {
            assert!(!wish.host.is_empty() && wish.used <= bytes.len());
            if wish.exchange.is_some() {
                let forward = String::from_utf8_lossy(&wish.forward).to_ascii_lowercase();
                let count = |name: &str| forward.matches(&format!("\r\n{name}:")).count();
                assert_eq!(
                    (count("host"), count("connection"), forward.matches("\r\n\r\n").count()),
                    (1, 1, 1)
                );
                assert!(count("content-length") + count("transfer-encoding") <= 1);
            }
            assert_eq!(read(&bytes[..wish.used], greeted), Asked::Connect(wish));
        }
        Asked::Say(answer, used) => {
            assert!(used > 0 && used <= bytes.len());
            assert_eq!(read(&bytes[..used], greeted), Asked::Say(answer, used));
        }
        Asked::More | Asked::Refuse(_) => {}
    }
}

/// The parts in which a body or an answer arrives make no difference, and nothing follows its end.
fn exchange(bytes: &[u8]) {
    let Some((&length, text)) = bytes.split_first() else { return };
    let in_parts = |mut exchange: Exchange, length: usize, is_answer: bool| {
        let mut to = Vec::new();
        for part in text.chunks(length) {
            let (is_over, before) = (exchange.has_answer(), to.len());
            let passed = if is_answer {
                exchange.pass_answer(part, &mut to)
            } else {
                exchange.pass_request(part, &mut to)
            };
            if passed.is_err() {
                return None;
            }
            assert!(!is_answer || !is_over || to.len() == before);
        }
        Some(to)
    };
    for is_answer in [false, true] {
        let new = || Exchange::new("POST", Some(Body::chunked()), false);
        let [whole, parts] =
            [text.len().max(1), usize::from(length).max(1)].map(|n| in_parts(new(), n, is_answer));
        assert_eq!(whole, parts);
    }
}

/// A datagram without the signature is not admitted; a decoded report has one encoding.
fn report(bytes: &[u8]) {
    let [key] = &keys::parse(&format!("1 {} ::/0", "07".repeat(32))).expect("key file")[..] else { return };
    let mut gate = Gate::new(vec![key.clone()]);
    let Some(fields) = bytes.first_chunk::<62>() else { return };
    let unsigned: Vec<u8> = [&b"RNF1"[..], &[0, 1], &fields[..58], &[0; 16]].concat();
    assert!(gate.admit(&unsigned, 0).is_err());
    let number = |at: usize| fields[at..].first_chunk().copied().map_or(0, u64::from_be_bytes);
    let user = std::net::Ipv6Addr::from(u128::from(number(0)) << 64 | u128::from(number(8))).to_canonical();
    let report = Report {
        key: 1,
        change: fields[61] % 2 == 1,
        epoch: number(16),
        sequence: number(24),
        taken: number(32),
        user,
        rate: number(40),
        packets: number(48) as u32,
        bytes: (number(48) >> 32) as u32,
    };
    let datagram: [u8; LENGTH] = encode(&report, &SECRET);
    assert_eq!(decode(&datagram, &SECRET), Some(report));
    let is_admitted = gate.admit(&datagram, report.taken).is_ok();
    assert_eq!(is_admitted, report.epoch <= report.taken && user.is_ipv6());
    assert!(gate.admit(&datagram, report.taken).is_err(), "admitted twice");
}

fuzz_target!(|bytes: &[u8]| {
    for greeted in [false, true] {
        request(bytes, greeted);
    }
    exchange(bytes);
    report(bytes);
    let _ = qdisc::parse(bytes, 1);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = keys::parse(text);
        let _ = File::parse(text);
    }
});
