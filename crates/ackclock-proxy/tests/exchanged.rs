//! Plain HTTP through the proxy, with hostile servers and clients.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::relayed::{options, server, started};

/// All that a peer sends until it closes or resets the connection.
fn read_all(mut connection: &TcpStream) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    loop {
        match connection.read(&mut buffer) {
            Ok(1..) if text.len() > 1 << 20 => break,
            Ok(count @ 1..) => text.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the connection stays open after {:?}", String::from_utf8_lossy(&text))
            }
            Ok(0) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Reads a request's head; `None` at the end of the connection.
fn head(connection: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Whatever a server answers, and however clients send: each server receives the requests for itself only, and a client
/// receives from each connection one answer, of the server that it named.
#[test]
fn no_server_receives_or_answers_the_request_for_another_one() {
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nSITE",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nSITEHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nSITE",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nSITE\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nSITE",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nX-Site: SITE\r\n\r\nHTTP/1.1 200 OK\r\n\r\nSITE",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nSITE",
        "SITE",
    ];
    let proxy = started(options());
    for answer in answers {
        let seen = Arc::new(Mutex::new(BTreeMap::<&str, Vec<String>>::new()));
        let site = |name: &'static str| {
            let seen = Arc::clone(&seen);
            // The server ignores `Connection: close`, and answers whatever arrives.
            server(move |mut connection| {
                while let Some(head) = head(&mut connection) {
                    seen.lock().unwrap().entry(name).or_default().push(head);
                    let _ = connection.write_all(answer.replace("SITE", name).as_bytes());
                }
            })
        };
        let sites = [("<A1>", site("<A1>")), ("<B1>", site("<B1>"))];
        let request = |(name, to): (&str, SocketAddr)| {
            format!("GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\nCookie: of={name}\r\n\r\n")
        };
        for (first, second) in [(0, 1), (1, 0)] {
            for is_pipelined in [true, false] {
                let mut client = TcpStream::connect(proxy.address).unwrap();
                let (first, second) = (sites[first], sites[second]);
                if is_pipelined {
                    client.write_all((request(first) + &request(second)).as_bytes()).unwrap();
                } else {
                    client.write_all(request(first).as_bytes()).unwrap();
                    let mut byte = [0];
                    client.peek(&mut byte).unwrap();
                    let _ = client.write_all(request(second).as_bytes());
                }
                let text = read_all(&client);
                assert!(!text.contains(second.0), "{answer:?}: {text:?}");
                assert!(text.matches(first.0).count() <= 1, "{answer:?}: {text:?}");
                let finals = text.matches("HTTP/1.1 ").count() - text.matches("HTTP/1.1 100 ").count();
                assert_eq!(
                    (finals, text.matches("Connection: close").count()),
                    (1, 1),
                    "{answer:?}: {text:?}"
                );
            }
        }
        for (name, heads) in seen.lock().unwrap().iter() {
            assert!(heads.iter().all(|head| head.contains(&format!("Cookie: of={name}\r\n"))), "{heads:?}");
            assert_eq!(heads.len(), 2, "{answer:?}");
        }
    }
}

#[test]
fn a_client_that_ends_its_data_after_its_request_receives_the_answer() {
    let to = server(|mut connection| {
        if head(&mut connection).is_some() {
            thread::sleep(Duration::from_millis(200));
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    });
    let proxy = started(options());
    for host in [to.to_string(), format!("localhost:{}", to.port())] {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        write!(client, "GET http://{host}/ HTTP/1.1\r\n\r\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(read_all(&client).ends_with("\r\n\r\nok"), "{host}");
        // The same through a tunnel.
        let mut client = TcpStream::connect(proxy.address).unwrap();
        write!(client, "CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(read_all(&client).ends_with("\r\n\r\nok"), "{host}");
    }
}

#[test]
fn websocket_continues_after_its_answer() {
    let to = server(|mut connection| {
        let head = head(&mut connection).unwrap();
        assert!(head.contains("Upgrade: websocket\r\nConnection: Upgrade\r\n"));
        connection
            .write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello",
            )
            .unwrap();
        let mut frame = [0; 5];
        connection.read_exact(&mut frame).unwrap();
        connection.write_all(&frame).unwrap();
    });
    let proxy = started(options());
    let mut client = TcpStream::connect(proxy.address).unwrap();
    write!(client, "GET http://{to}/ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .unwrap();
    let answer = head(&mut client).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    client.write_all(b"frame").unwrap();
    assert_eq!(read_all(&client), "helloframe");
}

#[test]
fn an_upload_reaches_its_server_and_a_refused_one_its_answer() {
    let to = server(|mut connection| {
        let head = head(&mut connection).unwrap();
        let mut body = vec![0; if head.contains("chunked") { 3_000_000 + 14 } else { 3_000_000 }];
        connection.read_exact(&mut body).unwrap();
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    });
    let proxy = started(options());
    for (framing, before, after) in [
        ("Content-Length: 3000000", "", ""),
        // 3,000,000 bytes in one chunk: 2dc6c0.
        ("Transfer-Encoding: chunked", "2dc6c0;x\r\n", "\r\n0\r\nTrailer: x\r\n\r\n"),
    ] {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        write!(client, "POST http://{to}/ HTTP/1.1\r\n{framing}\r\n\r\n{before}").unwrap();
        client.write_all(&vec![b'x'; 3_000_000]).unwrap();
        client.write_all(after.as_bytes()).unwrap();
        assert!(read_all(&client).ends_with("\r\n\r\nok"), "{framing}");
    }
    // The client still sends while the proxy has refused: an early close would be a reset, and could destroy the answer.
    let mut client = TcpStream::connect(proxy.address).unwrap();
    let mut writer = client.try_clone().unwrap();
    write!(client, "POST http://nosuch.invalid/ HTTP/1.1\r\nContent-Length: 300000\r\n\r\n").unwrap();
    let sends = thread::spawn(move || {
        for _ in 0..30 {
            if writer.write_all(&[b'x'; 10_000]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = writer.shutdown(Shutdown::Write);
    });
    assert!(read_all(&client).starts_with("HTTP/1.1 502 "));
    sends.join().unwrap();
}

#[test]
fn a_server_without_a_readable_answer_is_reported() {
    let proxy = started(options());
    let ask = |to: SocketAddr| {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        write!(client, "GET http://{to}/ HTTP/1.1\r\n\r\n").unwrap();
        read_all(&client)
    };
    let silent = server(|mut connection| drop(head(&mut connection)));
    assert!(ask(silent).contains("closed the connection without an answer"));
    let other = server(|mut connection| {
        let _ = connection.write_all(b"220 mail.example ESMTP\r\n");
        let _ = connection.read(&mut [0; 1000]);
        thread::sleep(Duration::from_secs(60));
    });
    assert!(ask(other).starts_with("HTTP/1.1 502 "));
}

#[test]
fn clients_of_other_protocols_are_answered_at_once() {
    let proxy = started(options());
    for text in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..],
        b"SSH-2.0-x\r\n",
        b"GET http://a/ HTTP/1.0\n\n",
        b"\x80",
    ] {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        client.write_all(text).unwrap();
        assert!(read_all(&client).starts_with("HTTP/1.1 400 "), "{text:?}");
    }
}
