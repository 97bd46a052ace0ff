//! Real sockets through the proxy.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ackclock_core::Prefix;
use ackclock_proxy::pair::reset;
use ackclock_proxy::server::refusals::Refusal;
use ackclock_proxy::server::{Counts, Options, Server, StartError};

/// A proxy in a thread of its own.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// Address for radio reports.
    pub(crate) reports: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counts>>,
}

pub(crate) fn options() -> Options {
    Options {
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        transparent: Vec::new(),
        allow: Vec::new(),
        max_connections: 1024,
        reports: None,
    }
}

pub(crate) fn started(options: Options) -> Running {
    started_by(options, Instant::now)
}

fn started_by(options: Options, clock: impl Fn() -> Instant + Send + 'static) -> Running {
    let mut server = Server::start(options, clock()).unwrap();
    let reports = server.reports_address().unwrap();
    let (address, stop) = (server.addresses().unwrap()[0], Arc::new(AtomicBool::new(false)));
    let asked = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        while !asked.load(Ordering::Relaxed) {
            server.turn(clock(), Duration::from_millis(20)).unwrap();
        }
        server.counts()
    });
    Running { address, reports, stop, thread: Some(thread) }
}

impl Running {
    pub(crate) fn ends(mut self) -> Counts {
        // What was closed a moment ago is noticed.
        thread::sleep(Duration::from_millis(200));
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }

    fn tunnel(&self, to: SocketAddr) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        write!(client, "CONNECT {to} HTTP/1.1\r\n\r\n").unwrap();
        let mut head = [0; 39];
        client.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 Connection established\r\n\r\n");
        client
    }

    fn socks(&self, to: SocketAddr) -> (TcpStream, u8) {
        let mut client = TcpStream::connect(self.address).unwrap();
        // Everything at once, as a client may that knows its proxy.
        let SocketAddr::V4(to) = to else { panic!("an IPv4 address") };
        let request = [&[5, 1, 0, 5, 1, 0, 1][..], &to.ip().octets(), &to.port().to_be_bytes()].concat();
        client.write_all(&request).unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..3], [5, 0, 5]);
        (client, answer[3])
    }
}

/// A server that does something with each connection.
pub(crate) fn server(each: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, each) = (listener.local_addr().unwrap(), Arc::new(each));
    thread::spawn(move || {
        for connection in listener.incoming() {
            let each = Arc::clone(&each);
            thread::spawn(move || each(connection.unwrap()));
        }
    });
    address
}

fn echo(mut connection: TcpStream) {
    let mut reader = connection.try_clone().unwrap();
    let _ = io::copy(&mut reader, &mut connection);
    let _ = connection.shutdown(Shutdown::Write);
}

fn noise(length: usize) -> Vec<u8> {
    (0..length as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn every_byte_comes_back_and_an_end_of_data_goes_on() {
    let (proxy, to) = (started(options()), server(echo));
    for mut client in [proxy.tunnel(to), proxy.socks(to).0] {
        let (sent, mut writer) = (noise(3_000_000), client.try_clone().unwrap());
        let expected = sent.clone();
        let writes = thread::spawn(move || {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        writes.join().unwrap();
        assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
    }
    let counts = proxy.ends();
    assert_eq!((counts.connections, counts.opened, counts.broken, counts.bytes), (0, 2, 0, 12_000_000));
}

#[test]
fn a_plain_request_reaches_its_server_in_origin_form() {
    let to = server(|mut connection| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", head.len()).unwrap();
        connection.write_all(&head).unwrap();
    });
    let proxy = started(options());
    let mut client = TcpStream::connect(proxy.address).unwrap();
    write!(client, "GET http://{to}/page HTTP/1.1\r\nHost: {to}\r\nProxy-Connection: keep-alive\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let expected = format!("GET /page HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with(&expected), "{answer}");
}

#[test]
fn a_reset_stays_a_reset() {
    // A reset before the proxy notices the connection would be a refusal.
    let to = server(|mut connection| {
        connection.read_exact(&mut [0]).unwrap();
        reset(&connection);
    });
    let proxy = started(options());
    let mut client = proxy.tunnel(to);
    client.write_all(&[7]).unwrap();
    let outcome = client.read(&mut [0; 10]).map_err(|error| error.kind());
    assert_eq!(outcome, Err(ErrorKind::ConnectionReset));
    // The other way round.
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let to = server(move |mut connection| {
        let outcome = connection.read(&mut [0; 10]).map_err(|error| error.kind());
        tell.lock().unwrap().send(outcome).unwrap();
    });
    reset(&proxy.tunnel(to));
    assert_eq!(told.recv().unwrap(), Err(ErrorKind::ConnectionReset));
    assert_eq!(proxy.ends().broken, 2);
}

/// Reads slowly; returns the number of bytes, and whether a reset followed.
fn reads_slowly(mut connection: &TcpStream) -> (usize, bool) {
    let (mut got, mut buffer) = (0, vec![0; 65_536]);
    loop {
        match connection.read(&mut buffer) {
            Ok(0) => return (got, false),
            Ok(more) => got += more,
            Err(_) => return (got, true),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends as much as the peer acknowledges, and resets the connection: the number of acknowledged bytes.
fn sends_and_resets(mut connection: &TcpStream) -> usize {
    connection.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut sent = 0;
    while sent < 4 << 20
        && let Ok(more) = connection.write(&[7; 65_536])
    {
        sent += more;
    }
    // The kernel acknowledges what it has received.
    thread::sleep(Duration::from_millis(300));
    let acknowledged = sent - ackclock_proxy::kernel::outstanding(connection).unwrap();
    reset(connection);
    acknowledged
}

#[test]
fn what_a_peer_acknowledged_before_a_reset_is_delivered() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let to = server(move |connection| tell.lock().unwrap().send(sends_and_resets(&connection)).unwrap());
    let proxy = started(options());
    let client = proxy.tunnel(to);
    let acknowledged = told.recv().unwrap();
    let (got, is_reset) = reads_slowly(&client);
    assert!(acknowledged > 1 << 20 && got >= acknowledged && is_reset, "{got} of {acknowledged}, {is_reset}");
    // The other way round.
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let to = server(move |connection| {
        thread::sleep(Duration::from_secs(1));
        tell.lock().unwrap().send(reads_slowly(&connection)).unwrap();
    });
    let client = proxy.tunnel(to);
    let acknowledged = sends_and_resets(&client);
    drop(client);
    let (got, is_reset) = told.recv().unwrap();
    assert!(acknowledged > 1 << 20 && got >= acknowledged && is_reset, "{got} of {acknowledged}, {is_reset}");
    assert_eq!(proxy.ends().broken, 2);
}

#[test]
fn a_server_that_closes_without_reading_an_upload_is_heard() {
    let to = server(|mut connection| {
        connection.read_exact(&mut [0; 10]).unwrap();
        connection.write_all(b"too large").unwrap();
        thread::sleep(Duration::from_millis(200));
    });
    let proxy = started(options());
    let mut client = proxy.tunnel(to);
    let mut writer = client.try_clone().unwrap();
    let writes = thread::spawn(move || while writer.write_all(&[7; 65_536]).is_ok() {});
    let mut answer = [0; 9];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"too large");
    let _ = client.shutdown(Shutdown::Both);
    writes.join().unwrap();
}

#[test]
fn a_source_waits_for_a_reader_and_nothing_is_kept_beside_a_buffer() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let to = server(move |mut connection| {
        connection.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut sent = 0;
        while let Ok(more) = connection.write(&[7; 65536]) {
            sent += more;
        }
        tell.lock().unwrap().send(sent).unwrap();
    });
    let proxy = started(options());
    let client = proxy.tunnel(to);
    // Four buffers of sockets, which the kernel bounds, and one of the proxy.
    let sent = told.recv().unwrap();
    assert!(sent < 64 << 20, "{sent} bytes went to a client that reads nothing");
    drop(client);
}

#[test]
fn what_cannot_be_reached_is_told_in_the_words_of_the_client() {
    let proxy = started(options());
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let (_, code) = proxy.socks(nobody);
    assert_eq!(code, 5, "connection refused");
    let answer = |request: &str| {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(answer(&format!("CONNECT {nobody} HTTP/1.1\r\n\r\n")).starts_with("HTTP/1.1 502 "));
    assert!(
        answer("CONNECT nosuch.invalid:80 HTTP/1.1\r\n\r\n").contains("the name of the server is unknown")
    );
    assert!(answer("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert_eq!(proxy.ends().connections, 0);
}

#[test]
fn two_hundred_at_once_and_a_full_proxy_refuses() {
    // Time stands still, so that no connection is idle.
    let start = Instant::now();
    let full = Options { max_connections: 200, ..options() };
    let (proxy, to) = (started_by(full, move || start), server(echo));
    let clients: Vec<_> = (0..200).map(|_| proxy.tunnel(to)).collect();
    let mut one_more = TcpStream::connect(proxy.address).unwrap();
    // The reset is reported once: by the write, or by the read.
    let written = one_more.write_all(b"CONNECT x:80 HTTP/1.1\r\n\r\n");
    assert!(written.is_err() || one_more.read(&mut [0; 10]).is_err(), "it is reset");
    for (number, mut client) in clients.into_iter().enumerate() {
        client.write_all(&[number as u8]).unwrap();
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        assert_eq!(byte[0], number as u8);
    }
    let counts = proxy.ends();
    assert_eq!((counts.connections, counts.opened, counts.refused.of(Refusal::Limit)), (0, 200, 1));
}

#[test]
fn an_address_of_others_needs_clients_that_are_named() {
    let open = Options { listen: vec![(Ipv4Addr::UNSPECIFIED, 0).into()], ..options() };
    assert!(matches!(Server::start(open, Instant::now()), Err(StartError::Open(..))));
    let prefix = |text: &str| text.parse::<Prefix>();
    assert!(prefix("192.0.2.0/24").unwrap().contains("192.0.2.7".parse().unwrap()));
    assert!(prefix("192.0.2.0/24").unwrap().contains("::ffff:192.0.2.7".parse().unwrap()));
    assert!(!prefix("192.0.2.0/24").unwrap().contains("192.0.3.7".parse().unwrap()));
    assert!(!prefix("0.0.0.0/0").unwrap().contains("2001:db8::1".parse().unwrap()));
    assert!(prefix("2001:db8::/56").unwrap().contains("2001:db8:0:ff::1".parse().unwrap()));
    assert!(prefix("0.0.0.0/0").unwrap().contains("8.8.8.8".parse().unwrap()));
    for wrong in ["192.0.2.0/33", "192.0.2/24", "x", "::/129", "1.2.3.4/"] {
        assert!(prefix(wrong).is_err(), "{wrong}");
    }
}
