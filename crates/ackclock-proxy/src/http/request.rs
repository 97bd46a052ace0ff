//! Request of an HTTP/1 client to the proxy: CONNECT, or a request in absolute form that goes on in origin form.

use std::net::Ipv6Addr;

use httparse::{EMPTY_HEADER, Error, Request, Status};

use super::exchange::Exchange;
use super::head::{Fields, LONGEST_HEAD, MOST_FIELDS};
use super::refusal::{bad, refusal};
use crate::wish::{Asked, Speech, Wish, is_host};

fn too_long() -> Vec<u8> {
    refusal("431 Request Header Fields Too Large", "the head of the request is too long")
}

/// Parses a request from the bytes received so far. A malformed request is refused as soon as its first wrong line is
/// complete.
pub(crate) fn read(bytes: &[u8]) -> Asked {
    let mut slots = [EMPTY_HEADER; MOST_FIELDS];
    let mut request = Request::new(&mut slots);
    let parsed = request.parse(bytes);
    let length = match parsed {
        Ok(Status::Complete(length)) => length,
        _ => bytes.len(),
    };
    // The parser also accepts lines that end with LF alone.
    if bytes.starts_with(b"\n") || has_bare_line_end(&bytes[..length]) {
        return Asked::Refuse(bad("a line does not end with CR LF"));
    }
    match parsed {
        Ok(_) if length > LONGEST_HEAD => Asked::Refuse(too_long()),
        Err(Error::TooManyHeaders) => Asked::Refuse(too_long()),
        Ok(Status::Partial) => Asked::More,
        Ok(Status::Complete(_)) => match wish(&request, length) {
            Ok(wish) => Asked::Connect(wish),
            Err(why) => Asked::Refuse(bad(why)),
        },
        Err(error) => Asked::Refuse(bad(reason(bytes, error))),
    }
}

/// Whether bytes after the first one contain CR or LF that is not part of CR LF. The last byte may be a CR.
pub(crate) fn has_bare_line_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| (pair[0] == b'\r') != (pair[1] == b'\n'))
}

fn reason(bytes: &[u8], error: Error) -> &'static str {
    match error {
        // The first byte of a TLS record with a ClientHello.
        _ if bytes.first() == Some(&0x16) => {
            "this is TLS; the proxy answers SOCKS5, CONNECT and http:// requests"
        }
        Error::Version => "neither HTTP/1.1 nor HTTP/1.0",
        Error::HeaderName | Error::HeaderValue | Error::NewLine => "a line of the head is no field",
        _ => "the first line is not a method, a target and a version",
    }
}

fn wish(request: &Request<'_, '_>, length: usize) -> Result<Wish, &'static str> {
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err("the first line is not a method, a target and a version");
    };
    let fields = Fields(request.headers);
    let hosts: Vec<_> = fields.values("host").collect();
    if hosts.len() > 1 || hosts.iter().any(|host| !is_authority(host)) {
        return Err("Host is not one host");
    }
    let words = fields.words("connection");
    if words
        .iter()
        .any(|word| ["host", "content-length", "transfer-encoding"].map(str::as_bytes).contains(&&word[..]))
    {
        return Err("Connection names a field that belongs to the message");
    }
    if method == "CONNECT" {
        connect(target, fields, minor, length)
    } else {
        plain(method, target, fields, minor, length)
    }
}

fn connect(target: &str, fields: Fields<'_>, minor: u8, used: usize) -> Result<Wish, &'static str> {
    let (host, port) = host_and_port(target, None).ok_or("CONNECT needs host:port")?;
    // RFC 9110 section 9.3.6: a CONNECT request has no content.
    if fields.framing(minor)?.is_some_and(|body| !body.is_over()) {
        return Err("CONNECT has no body");
    }
    let connected = b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec();
    Ok(Wish { host, port, used, connected, forward: Vec::new(), speech: Speech::Http, exchange: None })
}

/// Converts a request in absolute form to origin form. `Host` comes from the target (RFC 9112 section 3.2.2).
fn plain(
    method: &str,
    target: &str,
    fields: Fields<'_>,
    minor: u8,
    used: usize,
) -> Result<Wish, &'static str> {
    let (scheme, rest) = target.split_at_checked("http://".len()).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("http://") || rest.contains('#') {
        return Err("a proxy needs an absolute target, http://host/path, or CONNECT");
    }
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let (host, port) = host_and_port(authority, Some(80)).ok_or("the target has no host")?;
    let body = fields.framing(minor)?;
    let words = fields.words("connection");
    let is_upgrade = method == "GET"
        && minor == 1
        && body.is_none()
        && words.iter().any(|word| word == b"upgrade")
        && fields.words("upgrade").iter().any(|word| word == b"websocket");
    let path = match path {
        // RFC 9112 section 3.2.4.
        "" if method == "OPTIONS" => "*".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{path}"),
    };
    let mut forward = format!("{method} {path} HTTP/1.{minor}\r\nHost: {authority}\r\n").into_bytes();
    fields.write(&[words, vec![b"host".to_vec()]].concat(), &mut forward);
    forward.extend(body.iter().flat_map(|body| body.field().into_bytes()));
    let end = if is_upgrade {
        "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    } else {
        "Connection: close\r\n\r\n"
    };
    forward.extend_from_slice(end.as_bytes());
    let exchange = Some(Exchange::new(method, body, is_upgrade));
    Ok(Wish { host, port, used, connected: Vec::new(), forward, speech: Speech::Http, exchange })
}

fn host_and_port(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|&port| port > 0)?
        }
        Some(_) => return None,
        None => usual?,
    };
    is_host(host).then(|| (host.to_owned(), port))
}

/// Whether the value of a `Host` field is empty, or a host with or without a port.
fn is_authority(value: &[u8]) -> bool {
    value.is_empty() || std::str::from_utf8(value).is_ok_and(|value| host_and_port(value, Some(80)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(text: &str) -> Wish {
        match read(text.as_bytes()) {
            Asked::Connect(wish) => wish,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    fn forwarded(text: &str) -> String {
        String::from_utf8(wish(text).forward).unwrap()
    }

    fn refused(text: &[u8]) -> String {
        match read(text) {
            Asked::Refuse(answer) => String::from_utf8(answer).unwrap(),
            other => panic!("{:?}: {other:?}", String::from_utf8_lossy(text)),
        }
    }

    #[test]
    fn a_plain_request_goes_on_in_origin_form_without_fields_of_this_hop() {
        let text = "POST http://example.net:8080/a?b HTTP/1.1\r\nHost: example.net:8080\r\nConnection: close, X-Own\r\n\
                    X-Own: 1\r\nProxy-Connection: keep-alive\r\nContent-Length: 3\r\nAccept: */*\r\n\r\nabc";
        let wish = wish(text);
        assert_eq!((wish.host.as_str(), wish.port, text.len() - wish.used), ("example.net", 8080, 3));
        let expected = "POST /a?b HTTP/1.1\r\nHost: example.net:8080\r\nAccept: */*\r\nContent-Length: 3\r\n\
                        Connection: close\r\n\r\n";
        assert_eq!(String::from_utf8(wish.forward).unwrap(), expected);
    }

    #[test]
    fn host_and_path_come_from_the_target() {
        for (line, head) in [
            ("GET http://[2001:db8::1]?q HTTP/1.0", "GET /?q HTTP/1.0\r\nHost: [2001:db8::1]"),
            ("GET HTTP://a:81/x HTTP/1.1", "GET /x HTTP/1.1\r\nHost: a:81"),
            ("OPTIONS http://a HTTP/1.1", "OPTIONS * HTTP/1.1\r\nHost: a"),
            ("OPTIONS http://a/ HTTP/1.1", "OPTIONS / HTTP/1.1\r\nHost: a"),
        ] {
            let text = forwarded(&format!("{line}\r\nHost: b.example\r\nCookie: of=b\r\n\r\n"));
            assert_eq!(text, format!("{head}\r\nCookie: of=b\r\nConnection: close\r\n\r\n"));
        }
        assert_eq!(
            forwarded("\r\nGET http://a/ HTTP/1.1\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn an_upgrade_to_websocket_passes_and_any_other_is_a_plain_request() {
        let upgrade = |method: &str, to: &str| {
            let fields = format!("Connection: Upgrade\r\nUpgrade: {to}\r\nSec-WebSocket-Version: 13");
            forwarded(&format!("{method} http://a/ws HTTP/1.1\r\n{fields}\r\n\r\n"))
        };
        let head = "GET /ws HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Version: 13";
        let expected = format!("{head}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
        assert_eq!(upgrade("GET", "WebSocket"), expected);
        for (method, to) in [("GET", "h2c"), ("POST", "websocket")] {
            assert!(upgrade(method, to).ends_with("13\r\nConnection: close\r\n\r\n"));
        }
    }

    #[test]
    fn connect_opens_a_tunnel() {
        let wish = wish("CONNECT example.net:443 HTTP/1.1\r\nHost: example.net:443\r\n\r\n\x16\x03");
        assert_eq!(
            (wish.host.as_str(), wish.port, wish.forward, wish.exchange),
            ("example.net", 443, vec![], None)
        );
        assert!(wish.connected.starts_with(b"HTTP/1.1 200 "));
    }

    #[test]
    fn a_head_that_could_be_read_in_two_ways_is_refused() {
        for line in [
            "GET / HTTP/1.1",
            "GET example.net HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET http://user@host/ HTTP/1.1",
            "GET http://a/#f HTTP/1.1",
            "GET http://[127.0.0.1]/ HTTP/1.1",
            "GET http://a:/ HTTP/1.1",
            "GET http://a:80:80/ HTTP/1.1",
            "GET http://a\\@b/ HTTP/1.1",
            "GET http://a,b/ HTTP/1.1",
            "GET https://a/ HTTP/1.1",
            "GET ws://a/ HTTP/1.1",
            "GET http://a/ HTTP/2",
            "GET http://a/ HTTP/1.2",
            "GET http://a/ http/1.1",
            "GET http://a/",
            "GET  http://a/ HTTP/1.1",
            "GET\thttp://a/ HTTP/1.1",
            "GET http://a/ HTTP/1.1 ",
            "GET http://a/ x HTTP/1.1",
            "G\u{e9}T http://a/ HTTP/1.1",
            "CONNECT example.net HTTP/1.1",
            "CONNECT example.net:0 HTTP/1.1",
            "CONNECT example.net:+80 HTTP/1.1",
            "CONNECT example.net:65536 HTTP/1.1",
            "CONNECT ::1:80 HTTP/1.1",
            "connect example.net:80 HTTP/1.1",
        ] {
            assert!(refused(format!("{line}\r\n\r\n").as_bytes()).starts_with("HTTP/1.1 400 "), "{line:?}");
        }
        for fields in [
            "Host: a\r\nHost: b",
            "Host: a\r\nhost: a",
            "Host: a, b",
            "Host: a b",
            "Host: a/b",
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: 3, 30",
            "Content-Length: 3,3",
            "Content-Length: +3",
            "Content-Length: -3",
            "Content-Length: 0x3",
            "Content-Length: 3 0",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: \u{b}chunked",
            "Transfer-Encoding:",
            "Connection: content-length\r\nContent-Length: 3",
            "Connection: close, Transfer-Encoding\r\nTransfer-Encoding: chunked",
            "Connection: HOST",
            "X: 1\r\n folded",
            "X: 1\r\n\tfolded",
            " X: 1",
            "X : 1",
            "X",
            ": 1",
            "X\0: 1",
            "X: \0",
            "X: a\rb",
            "X: a\nb: c",
            "X: a\r\r",
            "X\u{e9}: 1",
        ] {
            for line in ["POST http://a/ HTTP/1.1", "CONNECT a:80 HTTP/1.1"] {
                let answer = refused(format!("{line}\r\n{fields}\r\n\r\n").as_bytes());
                assert!(answer.starts_with("HTTP/1.1 400 "), "{fields:?}: {answer}");
            }
        }
        let old = "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(refused(old.as_bytes()).starts_with("HTTP/1.1 400 "));
        for lines in [
            "GET http://a/ HTTP/1.1\n\n",
            "GET http://a/ HTTP/1.1\r\nX: 1\n\r\n",
            "\nGET http://a/ HTTP/1.1\r\n\r\n",
        ] {
            assert!(refused(lines.as_bytes()).contains("CR LF"), "{lines:?}");
        }
        for long in [format!("X: {}", "x".repeat(LONGEST_HEAD)), "X: 1\r\n".repeat(MOST_FIELDS + 1)] {
            let answer = refused(format!("GET http://a/ HTTP/1.1\r\n{long}\r\n\r\n").as_bytes());
            assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        }
    }

    proptest::proptest! {
        /// What the proxy forwards has one head, one host, one length and the client's own fields.
        #[test]
        fn a_forwarded_head_has_one_reading(
            line in "(GET|POST|HEAD|CONNECT) (http://)?[ab]{1,2}(:80)?(/x)?(\\?y)?[ #@]? HTTP/1\\.[01]",
            fields in proptest::collection::vec(
                "(Host|Content-Length|Transfer-Encoding|Connection|Upgrade|X)[ ]?: ?(a|b:80|3|03|3,3|chunked|close|host|upgrade|websocket|x)(\r\n|\r\n|\r\n|\n|\r| )",
                0..5,
            ),
        ) {
            let text = format!("{line}\r\n{}\r\n", fields.concat());
            if let Asked::Connect(wish) = read(text.as_bytes())
                && wish.exchange.is_some()
            {
                let forward = String::from_utf8(wish.forward).unwrap();
                let count = |name: &str| forward.matches(&format!("\r\n{name}: ")).count();
                assert_eq!((forward.matches("\r\n\r\n").count(), count("Host"), count("Connection")), (1, 1, 1));
                assert!(count("Content-Length") + count("Transfer-Encoding") <= 1, "{forward}");
                assert!(!has_bare_line_end(forward.as_bytes()) && !line.starts_with("CONNECT"));
                let authority = line.split('/').nth(2).unwrap().split(['?', ' ']).next().unwrap();
                let is_own = forward.contains(&format!("\r\nHost: {authority}\r\n"));
                assert!(is_own && wish.used == text.len(), "{text:?} -> {forward:?}");
            }
        }
    }
}
