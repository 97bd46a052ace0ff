//! Parser of client requests to the proxy: SOCKS5 (RFC 1928), or HTTP ([`request`]).
//!
//! The parser only converts bytes to bytes; this module reads and writes no sockets.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::http::head::LONGEST_HEAD;
use crate::http::request::{self, has_bare_line_end};
pub use crate::wish::{Asked, Speech, Trouble, Wish};
use crate::wish::{is_host, socks_reply};

/// Parses a client's request from the bytes received so far. `greeted` says whether a SOCKS client has already received
/// the first answer.
pub fn read(bytes: &[u8], greeted: bool) -> Asked {
    match bytes.first() {
        None => Asked::More,
        Some(5) if greeted => socks_request(bytes),
        Some(5) => socks_greeting(bytes),
        Some(4) => Asked::Refuse(vec![0, 0x5b, 0, 0, 0, 0, 0, 0]),
        Some(_) => request::read(bytes),
    }
}

/// Whether the last `new` of the bytes received so far can complete a request, its first line, or a malformed line. Only
/// these bytes are searched, so that a head which arrives byte by byte is not parsed again for each byte.
pub fn can_complete(bytes: &[u8], new: usize) -> bool {
    let old = bytes.len().saturating_sub(new);
    let is_socks = matches!(bytes.first(), Some(4 | 5));
    let tail = &bytes[old.saturating_sub(HEAD_END.len() - 1)..];
    is_socks
        || old == 0
        || bytes.len() > LONGEST_HEAD
        || has_bare_line_end(&bytes[old - 1..])
        || tail.windows(HEAD_END.len()).any(|end| end == HEAD_END)
        || bytes.iter().position(|&byte| byte == b'\n').is_some_and(|end| end >= old)
}

/// Empty line at the end of an HTTP head, with the end of the line before.
const HEAD_END: &[u8] = b"\r\n\r\n";

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
    Asked::Connect(Wish {
        host,
        port,
        used: 4 + length + 2,
        connected,
        forward,
        speech: Speech::Socks,
        exchange: None,
    })
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
        let first_line = text.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for length in 1..text.len() {
            assert_eq!(read(&text[..length], false), Asked::More, "{length}");
            assert_eq!(can_complete(&text[..length], 1), length == 1 || length == first_line, "{length}");
            assert!(can_complete(text, text.len() - length), "in two parts, the first of {length} bytes");
        }
        assert!(can_complete(&[b'a'; LONGEST_HEAD + 1], 1), "a head that is too long is refused");
        assert!(can_complete(&[5, 1], 1), "a client of SOCKS");
        assert_eq!(wish(text, false).used, text.len());
    }

    #[test]
    fn a_client_of_another_protocol_is_answered_at_once() {
        let (connect, tls) =
            ("CONNECT example.net:443 HTTP/1.1\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03");
        for text in [tls, "SSH-2.0-OpenSSH_9.2\r\n", "PRI * HTTP/2.0\r\n", "\n", "\u{ff}", "EHLO x\r\n", "\0"]
        {
            assert!(matches!(read(text.as_bytes(), false), Asked::Refuse(_)), "{text:?}");
        }
        for wrong in ["Host: a\n", "Host: a\rb", " x", "\0"] {
            let text = format!("{connect}{wrong}");
            let is_seen = can_complete(text.as_bytes(), 1) || wrong == " x" || wrong == "\0";
            assert!(is_seen && matches!(read(text.as_bytes(), false), Asked::Refuse(_)), "{text:?}");
        }
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
