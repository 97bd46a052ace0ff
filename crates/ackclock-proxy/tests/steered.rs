//! Radio reports limit the data in flight of real connections.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ackclock_edge::STEERINGS;
use ackclock_proxy::reports::gate::Refusal;
use ackclock_proxy::reports::keys::Key;
use ackclock_proxy::reports::wire::{Report, encode};
use ackclock_proxy::server::{Options, Reports, Server};

use crate::relayed::{options, server, started};

const SECRET: [u8; 32] = [5; 32];
/// Time after which a test that waits gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time of the machine's clock, nanoseconds since 1970.
fn nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// A radio that reports the rate of its only user.
struct Radio {
    socket: UdpSocket,
    to: SocketAddr,
    next: u64,
}

impl Radio {
    fn says(&mut self, rate: u64, secret: [u8; 32]) {
        let taken = nanos();
        self.next += 1;
        let (key, change, epoch, sequence, packets, bytes) = (1, true, 0, self.next, 0, 0);
        let user = Ipv4Addr::LOCALHOST.into();
        let report = Report { key, change, epoch, sequence, taken, user, rate, packets, bytes };
        self.socket.send_to(&encode(&report, &secret), self.to).unwrap();
    }
}

/// A proxy for this machine's users. With tau = 1 s, a rate of 800 kbit/s is a window of 100 kB, and the target queue
/// adds six packets.
fn steered() -> Options {
    let key = Key { number: 1, secret: SECRET, users: vec!["127.0.0.0/8".parse().unwrap()] };
    let table = serde_json::json!({ "kind": "rnf", "tau": "1s" });
    let steering = Arc::clone(&STEERINGS.resolve(&table).unwrap());
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    Options { reports: Some(Reports { listen, keys: vec![key], steering }), ..options() }
}

/// Bytes unacknowledged or unsent in the proxy's connection to a client, as /proc/net/tcp prints them.
fn queued(proxy: SocketAddr, client: SocketAddr) -> usize {
    let [proxy, client] = [proxy, client].map(|address| format!(":{:04X}", address.port()));
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_it = |words: &Vec<&str>| words[1].ends_with(&proxy) && words[2].ends_with(&client);
    let row = words.filter(|words| words.len() > 4).find(is_it).expect("connection");
    usize::from_str_radix(row[4].split(':').next().unwrap(), 16).unwrap()
}

/// Waits until `done`, while the radio repeats its rate.
fn until(radio: &mut Radio, rate: Option<u64>, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "nothing changed");
        if let Some(rate) = rate {
            radio.says(rate, SECRET);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_window_follows_the_reported_rate_and_silence_releases_it() {
    let proxy = started(steered());
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut radio = Radio { socket, to: proxy.reports.unwrap(), next: 0 };

    const SENT: usize = 20_000_000;
    let origin = server(|mut connection| {
        let _ = connection.write_all(&vec![7; SENT]);
    });
    radio.says(800_000_000_000, [6; 32]);
    radio.says(800_000, SECRET);
    // The client reads nothing, so that its receive buffer fills and the window then bounds what the proxy queues.
    let mut client = TcpStream::connect(proxy.address).unwrap();
    write!(client, "CONNECT {origin} HTTP/1.1\r\n\r\n").unwrap();
    let (at, from) = (proxy.address, client.local_addr().unwrap());
    let (mut last, mut still) = (0, 0);
    until(&mut radio, Some(800_000), || {
        let now = queued(at, from);
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
        still == 25
    });
    // Packets of the loopback interface have 65483 bytes of payload.
    assert!(last <= 100_000 + 7 * 65_535, "{last} bytes exceed the window");
    until(&mut radio, None, || queued(at, from) > 100_000 + 7 * 65_535);

    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    let head = b"HTTP/1.1 200 Connection established\r\n\r\n".len();
    assert_eq!(all.len(), SENT + head);
    assert!(all[head..].iter().all(|&byte| byte == 7));
    let counts = proxy.ends();
    assert!(counts.reports > 25);
    assert_eq!(counts.refused_reports.of(Refusal::Forged), 1, "the report with a wrong secret");
}

/// Starts a proxy with one connected client whose server sends endlessly.
fn with_client() -> (Server, TcpStream) {
    let mut proxy = Server::start(steered(), Instant::now()).unwrap();
    let origin = server(|mut connection| while connection.write_all(&[7; 65_536]).is_ok() {});
    let mut client = TcpStream::connect(proxy.addresses().unwrap()[0]).unwrap();
    write!(client, "CONNECT {origin} HTTP/1.1\r\n\r\n").unwrap();
    turn_until(&mut proxy, |proxy| proxy.counts().opened == 1);
    (proxy, client)
}

fn turn_until(proxy: &mut Server, done: impl Fn(&Server) -> bool) {
    let start = Instant::now();
    while !done(proxy) {
        assert!(start.elapsed() < PATIENCE, "nothing changed: {:?}", proxy.counts());
        proxy.turn(Instant::now(), Duration::from_millis(20)).unwrap();
    }
}

#[test]
fn bad_reports_leave_the_window_unchanged_and_a_restart_accepts_no_late_report() {
    let (mut proxy, _client) = with_client();
    let radio = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let now = nanos();
    let good = Report {
        key: 1,
        change: true,
        epoch: now - 10_000_000_000,
        sequence: 5,
        taken: now,
        user: Ipv4Addr::LOCALHOST.into(),
        rate: 800_000,
        packets: 0,
        bytes: 0,
    };
    radio.send_to(&encode(&good, &SECRET), proxy.reports_address().unwrap().unwrap()).unwrap();
    turn_until(&mut proxy, |proxy| !proxy.windows().is_empty());
    let windows = proxy.windows();

    let high = Report { rate: 80_000_000, sequence: 6, ..good };
    let late = encode(&Report { taken: now - 6_000_000_000, ..high }, &SECRET);
    let bad = [
        (Refusal::Forged, encode(&high, &[6; 32]).to_vec()),
        (Refusal::Forged, encode(&Report { key: 2, ..high }, &SECRET).to_vec()),
        (Refusal::Replayed, encode(&Report { sequence: 5, ..high }, &SECRET).to_vec()),
        (Refusal::Replayed, encode(&Report { epoch: good.epoch - 1, ..high }, &SECRET).to_vec()),
        (Refusal::Stale, late.to_vec()),
        (Refusal::User, encode(&Report { user: "10.0.0.9".parse().unwrap(), ..high }, &SECRET).to_vec()),
        (Refusal::Malformed, encode(&high, &SECRET)[..79].to_vec()),
    ];
    for (number, (reason, datagram)) in (1..).zip(bad) {
        let before = proxy.counts().refused_reports.of(reason);
        radio.send_to(&datagram, proxy.reports_address().unwrap().unwrap()).unwrap();
        turn_until(&mut proxy, |proxy| proxy.counts().refused_reports.total() == number);
        assert_eq!(proxy.counts().refused_reports.of(reason), before + 1, "{reason:?}");
        assert_eq!(proxy.windows(), windows, "{reason:?}");
    }
    assert_eq!(proxy.counts().reports, 1);

    drop(proxy);
    let (mut proxy, _client) = with_client();
    radio.send_to(&late, proxy.reports_address().unwrap().unwrap()).unwrap();
    turn_until(&mut proxy, |proxy| proxy.counts().refused_reports.of(Refusal::Stale) == 1);
    assert_eq!(proxy.windows(), [], "the restarted proxy took an old report");
    // A restarted radio begins a new epoch, and its sequence numbers start again.
    let restarted = Report { epoch: now, taken: nanos(), sequence: 0, ..good };
    for report in [Report { sequence: 9, ..good }, restarted] {
        let report = encode(&Report { taken: nanos(), ..report }, &SECRET);
        radio.send_to(&report, proxy.reports_address().unwrap().unwrap()).unwrap();
    }
    turn_until(&mut proxy, |proxy| proxy.counts().reports == 2);
    assert!(!proxy.windows().is_empty(), "the reports of the restarted radio are accepted");
}
