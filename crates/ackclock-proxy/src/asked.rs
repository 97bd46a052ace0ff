//! Parser of client requests to the proxy: SOCKS5 (RFC 1928), HTTP CONNECT or a plain HTTP request (RFC 9110, 9112).
//!
//! The parser only converts bytes to bytes; this module reads and writes no sockets.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Maximum length of a request head in bytes; longer heads are refused.
pub const LONGEST_HEAD: usize = 16 * 1024;

/// Result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The request is incomplete; more bytes are needed.
    More,
    /// Send this answer to the client, drop this many bytes of its request, and continue to read.
    Say(Vec<u8>, usize),
    /// Connect the client to a server.
    Connect(Wish),
    /// Send this answer to the client and close the connection.
    Refuse(Vec<u8>),
}

/// Connection to a server, as requested by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Host name or address of the server.
    pub host: String,
    /// Port number of the server.
    pub port: u16,
    /// Number of bytes from the client that belong to the request itself.
    pub used: usize,
    /// Answer to the client once the connection to the server is established.
    pub connected: Vec<u8>,
    /// First bytes to send to the server.
    pub forward: Vec<u8>,
    /// Protocol in which failures are reported to the client.
    pub speech: Speech,
}

impl Wish {
    /// Connection of a client that sent no request: the firewall diverted it on the way to its server.
    pub(crate) const fn diverted() -> Self {
        Self {
            host: String::new(),
            port: 0,
            used: 0,
            connected: Vec::new(),
            forward: Vec::new(),
            speech: Speech::Diverted,
        }
    }
}

/// Protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// The client uses SOCKS5.
    Socks,
    /// The client uses HTTP.
    Http,
    /// The client does not know the proxy: the firewall diverted its connection.
    Diverted,
}

/// Reason why a server cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server's name is unknown.
    Unknown,
    /// The server refuses the connection.
    Refused,
    /// The server does not answer, or no route leads to it.
    Unreachable,
    /// This proxy does not allow connections to the server's address.
    Forbidden,
}

impl Speech {
    /// Answer that reports a failure to the client; a diverted client understands only a reset, and the answer is empty.
    pub fn tells(self, trouble: Trouble) -> Vec<u8> {
        match self {
            Self::Socks => {
                let code = match trouble {
                    Trouble::Forbidden => 2,
                    Trouble::Unknown | Trouble::Unreachable => 4,
                    Trouble::Refused => 5,
                };
                socks_reply(code)
            }
            Self::Http => match trouble {
                Trouble::Unknown => refusal("502 Bad Gateway", "the name of the server is unknown"),
                Trouble::Refused => refusal("502 Bad Gateway", "the server refuses the connection"),
                Trouble::Unreachable => refusal("504 Gateway Timeout", "the server cannot be reached"),
                Trouble::Forbidden => refusal("403 Forbidden", "this proxy does not lead there"),
            },
            Self::Diverted => Vec::new(),
        }
    }
}

/// Parses a client's request from the bytes received so far. `greeted` says whether a SOCKS client has already received
/// the first answer.
pub fn read(bytes: &[u8], greeted: bool) -> Asked {
    match bytes.first() {
        None => Asked::More,
        Some(5) if greeted => socks_request(bytes),
        Some(5) => socks_greeting(bytes),
        Some(4) => Asked::Refuse(vec![0, 0x5b, 0, 0, 0, 0, 0, 0]),
        Some(_) => http(bytes),
    }
}

/// Whether the last `new` of the bytes received so far can complete a request that was incomplete without them. Only
/// these bytes are searched, so that a head which arrives byte by byte is not searched again for each byte.
pub fn can_complete(bytes: &[u8], new: usize) -> bool {
    let is_socks = matches!(bytes.first(), Some(4 | 5));
    let tail = &bytes[bytes.len().saturating_sub(new + HEAD_END.len() - 1)..];
    is_socks || bytes.len() > LONGEST_HEAD || end_of_head(tail).is_some()
}

/// Empty line at the end of an HTTP head, with the end of the line before.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Position of the end of an HTTP head.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(HEAD_END.len()).position(|end| end == HEAD_END)
}

fn socks_greeting(bytes: &[u8]) -> Asked {
    let Some((&count, methods)) = bytes.get(1..).and_then(<[u8]>::split_first) else { return Asked::More };
    let Some(methods) = methods.get(..usize::from(count)) else { return Asked::More };
    // Method 0 of SOCKS5 means that the proxy requires no authentication.
    if methods.contains(&0) {
        Asked::Say(vec![5, 0], 2 + methods.len())
    } else {
        Asked::Refuse(vec![5, 0xff])
    }
}

fn socks_request(bytes: &[u8]) -> Asked {
    let [_, command, _, kind, rest @ ..] = bytes else { return Asked::More };
    let host = match kind {
        1 => rest.first_chunk::<4>().map(|octets| (Ipv4Addr::from(*octets).to_string(), 4)),
        4 => rest.first_chunk::<16>().map(|octets| (Ipv6Addr::from(*octets).to_string(), 16)),
        3 => rest.split_first().and_then(|(&length, rest)| {
            let name = rest.get(..usize::from(length))?;
            Some((String::from_utf8_lossy(name).into_owned(), 1 + name.len()))
        }),
        _ => return Asked::Refuse(socks_reply(8)),
    };
    let Some((host, length)) = host else { return Asked::More };
    let Some(port) = rest.get(length..).and_then(<[u8]>::first_chunk::<2>) else { return Asked::More };
    if *command != 1 {
        return Asked::Refuse(socks_reply(7));
    }
    let port = u16::from_be_bytes(*port);
    if !is_host(&host) || port == 0 {
        return Asked::Refuse(socks_reply(4));
    }
    let (connected, forward) = (socks_reply(0), Vec::new());
    Asked::Connect(Wish { host, port, used: 4 + length + 2, connected, forward, speech: Speech::Socks })
}

/// SOCKS5 reply with an address of zeros, which RFC 1928 allows.
fn socks_reply(code: u8) -> Vec<u8> {
    vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn refusal(status: &str, why: &str) -> Vec<u8> {
    let body = format!("ackclock proxy: {why}\n");
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn bad(why: &str) -> Asked {
    Asked::Refuse(refusal("400 Bad Request", why))
}

fn http(bytes: &[u8]) -> Asked {
    let head = end_of_head(bytes).map(|at| at + HEAD_END.len());
    let Some(length) = head.filter(|&length| length <= LONGEST_HEAD) else {
        let is_long = head.is_some() || bytes.len() > LONGEST_HEAD;
        return if is_long {
            Asked::Refuse(refusal(
                "431 Request Header Fields Too Large",
                "the head of the request is too long",
            ))
        } else {
            Asked::More
        };
    };
    let Ok(head) = std::str::from_utf8(&bytes[..length - 4]) else { return bad("the head is no text") };
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return bad("the first line is not a method, a target and a version");
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || head.contains('\0') {
        return bad("neither HTTP/1.1 nor HTTP/1.0");
    }
    if method == "CONNECT" { connect(target, length) } else { plain(method, target, fields, length) }
}

fn connect(target: &str, used: usize) -> Asked {
    let Some((host, port)) = host_and_port(target, None) else { return bad("CONNECT needs host:port") };
    let connected = b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec();
    Asked::Connect(Wish { host, port, used, connected, forward: Vec::new(), speech: Speech::Http })
}

/// Header fields that apply only to the connection with the proxy (RFC 9110 section 7.6.1).
const OF_THIS_HOP: [&str; 6] =
    ["connection", "proxy-connection", "keep-alive", "proxy-authorization", "te", "upgrade"];

/// Converts a request in absolute form to origin form. The proxy closes the connection after this request, because the
/// next request might be for another server.
fn plain(method: &str, target: &str, fields: &str, used: usize) -> Asked {
    let Some(rest) = target.strip_prefix("http://") else {
        return bad("a proxy needs an absolute target, http://host/path, or CONNECT");
    };
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let Some((host, port)) = host_and_port(authority, Some(80)) else { return bad("the target has no host") };
    let lines: Vec<_> = fields.split("\r\n").filter(|line| !line.is_empty()).collect();
    let Some(names) = lines.iter().map(|line| name_of(line)).collect::<Option<Vec<_>>>() else {
        return bad("a line of the head is no field");
    };
    let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
    let lengths = count("content-length");
    if lengths > 1 || lengths == 1 && count("transfer-encoding") > 0 {
        return bad("two lengths of the body contradict each other");
    }
    // Header fields named by `Connection` also apply only to the connection with the proxy.
    let named: BTreeSet<String> = lines
        .iter()
        .zip(&names)
        .filter(|(_, name)| *name == "connection")
        .flat_map(|(line, _)| {
            let (_, value) = line.split_once(':').unwrap_or_default();
            value.split(',').map(|word| word.trim().to_ascii_lowercase()).collect::<Vec<_>>()
        })
        .collect();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut forward = format!("{method} {slash}{path} HTTP/1.1\r\n");
    for (line, name) in lines.iter().zip(&names) {
        if !OF_THIS_HOP.contains(&name.as_str()) && (!named.contains(name) || name == "host") {
            forward.push_str(line);
            forward.push_str("\r\n");
        }
    }
    if count("host") == 0 {
        forward.push_str(&format!("Host: {authority}\r\n"));
    }
    forward.push_str("Connection: close\r\n\r\n");
    let (connected, forward) = (Vec::new(), forward.into_bytes());
    Asked::Connect(Wish { host, port, used, connected, forward, speech: Speech::Http })
}

/// Name of a header field in lower case; `None` if the line is no field, for example a continuation of the previous
/// line.
fn name_of(line: &str) -> Option<String> {
    let (name, _) = line.split_once(':')?;
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    (!name.is_empty() && name.chars().all(token)).then(|| name.to_ascii_lowercase())
}

fn host_and_port(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
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

/// Whether a text can be a host name or an address: it contains no characters that a resolver or a log would interpret.
fn is_host(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    !host.is_empty() && host.len() <= 253 && host.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(bytes: &[u8], greeted: bool) -> Wish {
        match read(bytes, greeted) {
            Asked::Connect(wish) => wish,
            other => panic!("{other:?}"),
        }
    }

    fn refused(text: &str) -> String {
        match read(text.as_bytes(), false) {
            Asked::Refuse(answer) => String::from_utf8(answer).unwrap(),
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_socks_client_is_greeted_and_asks() {
        assert_eq!(read(&[5, 2, 1, 0], false), Asked::Say(vec![5, 0], 4));
        assert_eq!(read(&[5, 1, 2], false), Asked::Refuse(vec![5, 0xff]), "only with a password");
        let by_name = wish(&[&[5, 1, 0, 3, 11][..], b"example.net", &[0, 80], b"rest"].concat(), true);
        assert_eq!((by_name.host.as_str(), by_name.port, by_name.used), ("example.net", 80, 18));
        let by_address = wish(&[5, 1, 0, 1, 192, 0, 2, 1, 1, 187], true);
        assert_eq!((by_address.host.as_str(), by_address.port), ("192.0.2.1", 443));
        let v6 = [&[5, 1, 0, 4][..], &[0x20, 1, 0xd, 0xb8], &[0; 11], &[1, 0, 80]].concat();
        assert_eq!(wish(&v6, true).host, "2001:db8::1");
        assert_eq!(read(&[5, 2, 0, 1, 192, 0, 2, 1, 1, 187], true), Asked::Refuse(socks_reply(7)), "BIND");
    }

    #[test]
    fn a_request_may_come_byte_by_byte() {
        let text = b"GET http://example.net/ HTTP/1.1\r\nHost: example.net\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(read(&text[..length], false), Asked::More, "{length}");
            assert!(!can_complete(&text[..length], 1), "{length}");
            assert!(can_complete(text, text.len() - length), "in two parts, the first of {length} bytes");
        }
        assert!(can_complete(&[b'a'; LONGEST_HEAD + 1], 1), "a head that is too long is refused");
        assert!(can_complete(&[5, 1], 1), "a client of SOCKS");
        assert_eq!(wish(text, false).used, text.len());
    }

    #[test]
    fn a_plain_request_goes_on_in_origin_form_without_fields_of_this_hop() {
        let text = "POST http://example.net:8080/a?b HTTP/1.1\r\nHost: example.net:8080\r\nConnection: close, X-Own\r\n\
                    X-Own: 1\r\nProxy-Connection: keep-alive\r\nContent-Length: 3\r\nAccept: */*\r\n\r\nabc";
        let wish = wish(text.as_bytes(), false);
        assert_eq!((wish.host.as_str(), wish.port, text.len() - wish.used), ("example.net", 8080, 3));
        let expected = "POST /a?b HTTP/1.1\r\nHost: example.net:8080\r\nContent-Length: 3\r\nAccept: */*\r\n\
                        Connection: close\r\n\r\n";
        assert_eq!(String::from_utf8(wish.forward).unwrap(), expected);
    }

    #[test]
    fn a_target_without_path_or_host_field_gets_them() {
        let wish = wish(b"GET http://[2001:db8::1]?q HTTP/1.0\r\n\r\n", false);
        assert_eq!((wish.host.as_str(), wish.port), ("2001:db8::1", 80));
        let expected = "GET /?q HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(wish.forward).unwrap(), expected);
    }

    #[test]
    fn connect_opens_a_tunnel() {
        let wish = wish(b"CONNECT example.net:443 HTTP/1.1\r\nHost: example.net:443\r\n\r\n\x16\x03", false);
        assert_eq!((wish.host.as_str(), wish.port, wish.forward), ("example.net", 443, vec![]));
        assert!(wish.connected.starts_with(b"HTTP/1.1 200 "));
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT example.net HTTP/1.1\r\n\r\n",
            "CONNECT example.net:0 HTTP/1.1\r\n\r\n",
            "CONNECT example.net:+80 HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://user@host/ HTTP/1.1\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nX : 1\r\n\r\n",
            "GET http://a/ HTTP/2\r\n\r\n",
            "GET  http://a/ HTTP/1.1\r\n\r\n",
        ] {
            assert!(refused(text).starts_with("HTTP/1.1 400 "), "{text:?}");
        }
        assert!(
            refused(&format!("GET http://a/{} HTTP/1.1\r\n\r\n", "x".repeat(LONGEST_HEAD)))
                .starts_with("HTTP/1.1 431")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_of_a_client_stop_it(bytes: Vec<u8>, greeted: bool) {
            if let Asked::Connect(wish) = read(&bytes, greeted) {
                assert!(wish.used <= bytes.len() && is_host(&wish.host) && wish.port > 0);
            }
        }
    }
}
