//! The kernel's TCP through the driver, between two network namespaces. Skipped, with the reason, where the machine forbids
//! them.

#![allow(clippy::print_stdout, reason = "a skipped test says why")]

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::support::{ADDRESS, ADDRESS6, Lab, MOBILE, Packets, Running, SERVER};
use ackclock_core::results::{FlowResult, Provenance};
use ackclock_core::{Size, Span};
use ackclock_edge::{EdgeConfig, REGULATORS};
use ackclock_link::Direction;
use ackclock_live::{Driver, Lost, RealClock, TunPort};
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::json;

/// A lab, unless the machine forbids it.
macro_rules! lab_or_skip {
    ($purpose:literal) => {
        match Lab::new($purpose) {
            Ok(lab) => lab,
            Err(reason) => {
                println!("skipped: {reason}");
                return;
            }
        }
    };
}

const BYTES: usize = 2_000_000;

/// A short queue in front of a link that is quick enough for a test.
fn link(regulator: &str) -> EdgeConfig {
    EdgeConfig {
        regulator: regulator.into(),
        buffer: Size::Packets(15),
        down: json!({ "kind": "variable", "rate": "40Mbit/s", "delay": "5ms + e(2ms)" }).into(),
        up: json!({ "kind": "constant", "rate": "40Mbit/s", "delay": "5ms" }).into(),
        ..EdgeConfig::default()
    }
}

/// A file from server to mobile; the mobile asks for it. What arrives is compared byte for byte.
fn download(lab: &Lab, server: IpAddr, congestion_control: &'static str) {
    let listener = lab.within(SERVER, move || TcpListener::bind((server, 0)).unwrap()).join().unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let content: Vec<u8> =
        (0..BYTES).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let expected = content.clone();
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        setsockopt(&stream, sockopt::TcpCongestion, &congestion_control.into()).unwrap();
        stream.write_all(&content).unwrap();
        // The mobile closes when it has read everything; by then its acknowledgements have passed the edge too.
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    });
    let receiver = lab.within(MOBILE, move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).unwrap();
        came
    });
    let came = receiver.join().unwrap();
    sender.join().unwrap();
    assert_eq!(came.len(), expected.len());
    assert!(came == expected, "the bytes differ");
}

/// Everything that came in went out, was dropped or discarded, or is inside still; the machine lost nothing.
fn books_balance(driver: &Driver<RealClock, TunPort>) {
    let plane = driver.plane();
    for traffic in Direction::BOTH.map(|direction| plane.traffic(direction)) {
        assert_eq!((traffic.unaccounted(), traffic.lost), (0, Lost::default()), "{traffic:?}");
    }
    assert!(plane.inside() < 100, "{} packets are inside", plane.inside());
}

#[test]
fn the_kernels_tcp_passes_every_regulator_unharmed() {
    let lab = lab_or_skip!("tcp");
    drop(lab);
    for entry in REGULATORS.entries {
        for congestion_control in ["reno", "cubic"] {
            let lab = Lab::new("tcp").unwrap();
            let running = Running::start(
                lab.tuns(Packets::Super).unwrap(),
                &link(entry.name),
                Span::ZERO,
                Span::ZERO,
                None,
            );
            download(&lab, ADDRESS[SERVER].parse().unwrap(), congestion_control);
            books_balance(&running.stop());
        }
    }
}

#[test]
fn a_device_without_virtio_headers_serves_as_well() {
    let lab = lab_or_skip!("plain");
    let running = Running::start(
        lab.tuns(Packets::Plain).unwrap(),
        &link("ack-regulator"),
        Span::ZERO,
        Span::ZERO,
        None,
    );
    for server in [ADDRESS[SERVER], ADDRESS6[SERVER]] {
        download(&lab, server.parse().unwrap(), "reno");
    }
    books_balance(&running.stop());
}

#[test]
fn both_versions_of_ip_are_regulated_and_reported() {
    let lab = lab_or_skip!("ip");
    let running = Running::start(
        lab.tuns(Packets::Super).unwrap(),
        &link("ack-regulator"),
        Span::from_millis(3),
        Span::ZERO,
        None,
    );
    for server in [ADDRESS[SERVER], ADDRESS6[SERVER]] {
        download(&lab, server.parse().unwrap(), "reno");
    }
    let mut driver = running.stop();
    books_balance(&driver);
    let provenance = Provenance::default();
    let mut account = driver.plane_mut().account().unwrap();
    let snapshot = account.snapshot(|from| Some(driver.plane_mut().page(from))).unwrap();
    let results = account.results(&snapshot, "test", 1, provenance);
    // What the kernel says of its own accord is in the row `other`.
    let is_tcp = |row: &&FlowResult| row.real.as_ref().is_some_and(|real| real.protocol == "tcp");
    let rows: Vec<_> = results.flows.iter().filter(is_tcp).filter(|row| row.delivered_bytes > 0).collect();
    assert_eq!(rows.len(), 2, "{:?}", results.flows);
    for row in rows {
        assert_eq!((row.delivered_bytes, row.regulator.as_deref()), (BYTES as u64, Some("ack-regulator")));
        // 1448 B of each 1500 at 40 Mbit/s are 38.6 Mbit/s; less than a tenth of it would be a stall.
        let goodput = row.goodput_bps.unwrap();
        assert!((3.8e6..38.7e6).contains(&goodput), "{goodput}");
        // The radio alone takes 5 + 5 ms, the path is on the other side of the edge.
        assert!(row.edge_rtt_ms.unwrap() > 10.0);
    }
    assert!(results.bottleneck.queue_ms.mean.is_some());
}

#[test]
fn what_is_not_tcp_arrives_as_it_was_sent() {
    let lab = lab_or_skip!("udp");
    let running = Running::start(
        lab.tuns(Packets::Super).unwrap(),
        &link("ack-regulator"),
        Span::ZERO,
        Span::ZERO,
        None,
    );
    let bind = |host: usize| lab.within(host, move || UdpSocket::bind((ADDRESS[host], 7000)).unwrap());
    let (server, mobile) = (bind(SERVER).join().unwrap(), bind(MOBILE).join().unwrap());
    mobile.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // 4000 bytes go as three fragments.
    for size in [0, 1, 1472, 4000] {
        let sent: Vec<u8> = (0..size).map(|at| at as u8).collect();
        server.send_to(&sent, (ADDRESS[MOBILE], 7000)).unwrap();
        let mut came = vec![0; 5000];
        let (length, from) = mobile.recv_from(&mut came).unwrap();
        assert_eq!((&came[..length], from.ip().to_string().as_str()), (&sent[..], ADDRESS[SERVER]));
    }
    books_balance(&running.stop());
}
