//! HTTP control of a running link, for test code in any language.
//!
//! | request | effect |
//! | --- | --- |
//! | `GET /link` | answers the link's conditions, the keys of `[edge]` |
//! | `PATCH /link` with `{"down": {"rate": "1mbit"}}` | changes conditions, and answers those in force |
//! | `POST /outage` with `{"for": "3s", "direction": "down", "drop": true}` | interrupts the link |
//! | `POST /faults` with `{"fault": "reset=64kB", "only": ["tcp:5432"], "for": "9s"}` | adds a fault of single connections |
//! | `GET /faults` | answers the faults in force |
//! | `DELETE /faults` | ends all faults |
//! | `GET /results` | answers the results so far |
//!
//! Requests that change something answer as `GET` of the same path does afterwards.
//!
//! Web pages of other origins and programs of other users must not control the link. The server listens at a loopback
//! address, and a request needs a `Host` that is a loopback address, the link's token (`Authorization: Bearer TOKEN`), and
//! `Content-Type: application/json` with a body.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsFd;

use serde_json::{Value, json};

use crate::clients::{self, Protocol};
use crate::control::{LinkRequest, Outage};
use crate::faults::Fault;

/// Creates the token of a link: 128 random bits in hexadecimal.
///
/// # Errors
/// Fails if the kernel provides no random bits.
pub fn token() -> io::Result<String> {
    let mut bits = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Answers requests with this token until the process ends.
///
/// # Errors
/// Fails if the kernel does not report new clients.
pub fn serve(
    listener: &TcpListener,
    token: &str,
    answer: impl Fn(&LinkRequest) -> Result<String, String>,
) -> io::Result<()> {
    let protocol = Http { authorization: format!("Bearer {token}"), answer };
    clients::serve(listener.as_fd(), || Ok(listener.accept()?.0.into()), &protocol)
}

struct Http<F> {
    /// Value of the header `Authorization` of a permitted request.
    authorization: String,
    answer: F,
}

impl<F: Fn(&LinkRequest) -> Result<String, String>> Protocol for Http<F> {
    const LONGEST: usize = 64 << 10;

    fn is_whole(bytes: &[u8]) -> bool {
        Request::read(bytes).is_some_and(|request| {
            let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            request.body.len() >= length
        })
    }

    fn refusal(&self, _: &File) -> Option<Vec<u8>> {
        None
    }

    fn answer(&self, bytes: &[u8]) -> Vec<u8> {
        let refused = || Err(("400 Bad Request", "this is no HTTP request".to_owned()));
        let answered = Request::read(bytes).map_or_else(refused, |request| self.respond(&request));
        let (status, body) = match answered {
            Ok(body) if body.is_empty() => ("200 OK", "{}".to_owned()),
            Ok(body) => ("200 OK", body),
            Err((status, why)) => (status, json!({ "error": why }).to_string()),
        };
        let length = body.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}\n"
        )
        .into_bytes()
    }
}

/// Status line and reason of a refused request.
type Refused = (&'static str, String);

impl<F: Fn(&LinkRequest) -> Result<String, String>> Http<F> {
    fn respond(&self, request: &Request<'_>) -> Result<String, Refused> {
        if !request.header("host").is_some_and(is_loopback) {
            return Err(("403 Forbidden", "the Host must be a loopback address, like 127.0.0.1".to_owned()));
        }
        if !request.header("authorization").is_some_and(|text| is_equal(text, &self.authorization)) {
            let why = "the token is missing or wrong: Authorization: Bearer $ACKCLOCK_TOKEN";
            return Err(("401 Unauthorized", why.to_owned()));
        }
        let bad = |why| ("400 Bad Request", why);
        let asked = match (request.method, request.path) {
            ("GET", "/link") => LinkRequest::Conditions,
            ("GET", "/results") => LinkRequest::Show,
            ("PATCH", "/link") => LinkRequest::Set(changes(&request.json()?).map_err(bad)?),
            ("POST", "/outage") => LinkRequest::Outage(outage(&request.json()?).map_err(bad)?),
            ("GET", "/faults") => LinkRequest::Faults,
            ("POST", "/faults") => LinkRequest::Fault(fault(&request.json()?).map_err(bad)?),
            ("DELETE", "/faults") => LinkRequest::ClearFaults,
            (_, "/link" | "/results" | "/outage" | "/faults") => {
                let why =
                    "write GET or PATCH /link, POST /outage, GET, POST or DELETE /faults, or GET /results";
                return Err(("405 Method Not Allowed", why.to_owned()));
            }
            _ => return Err(("404 Not Found", "there are /link, /outage, /faults and /results".to_owned())),
        };
        let answer = (self.answer)(&asked).map_err(bad)?;
        let now = match asked {
            LinkRequest::Set(_) | LinkRequest::Outage(_) => LinkRequest::Conditions,
            LinkRequest::Fault(_) | LinkRequest::ClearFaults => LinkRequest::Faults,
            LinkRequest::Show | LinkRequest::Conditions | LinkRequest::Faults => return Ok(answer),
        };
        (self.answer)(&now).map_err(bad)
    }
}

/// An HTTP request, as far as it was received.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads a request; `None` before the end of its headers, or if its headers are not text.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        const END: &[u8] = b"\r\n\r\n";
        let end = bytes.windows(END.len()).position(|part| part == END)?;
        let mut lines = std::str::from_utf8(&bytes[..end]).ok()?.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, path) = (words.next()?, words.next().unwrap_or_default());
        let headers = lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim()));
        Some(Self { method, path, headers: headers.collect(), body: &bytes[end + END.len()..] })
    }

    /// Value of the only header with this name.
    fn header(&self, name: &str) -> Option<&'a str> {
        let mut values = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let value = values.next()?.1;
        values.next().is_none().then_some(value)
    }

    fn json(&self) -> Result<Value, Refused> {
        let kind = self.header("content-type").unwrap_or_default();
        if kind.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
            let why = "the body must be JSON: Content-Type: application/json";
            return Err(("415 Unsupported Media Type", why.to_owned()));
        }
        serde_json::from_slice(self.body).map_err(|error| ("400 Bad Request", format!("the body: {error}")))
    }
}

/// Whether a `Host` is a loopback address, with or without a port. The name of another host could belong to an attacker
/// who lets it resolve to a loopback address.
fn is_loopback(host: &str) -> bool {
    let address = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    address.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b));
    one.len() == other.len() && differences == 0
}

/// Changes of `{"down": {"rate": "1mbit"}}`: `down.rate` and its value.
fn changes(body: &Value) -> Result<Vec<(String, String)>, String> {
    const SHAPE: &str = r#"write {"down": {"rate": "1mbit"}}"#;
    let sides = body.as_object().filter(|sides| !sides.is_empty()).ok_or(SHAPE)?;
    let mut pairs = Vec::new();
    for (side, keys) in sides {
        for (key, value) in keys.as_object().ok_or_else(|| format!("{side}: {SHAPE}"))? {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            pairs.push((format!("{side}.{key}"), text));
        }
    }
    Ok(pairs)
}

/// The outage of `{"for": "3s", "direction": "down", "drop": true}`.
fn outage(body: &Value) -> Result<Outage, String> {
    const SHAPE: &str =
        r#"write {"for": "3s"}, and "direction": "up" or "down", and "drop": true, if wanted"#;
    let keys = body.as_object().ok_or(SHAPE)?;
    if let Some(other) = keys.keys().find(|key| !["for", "direction", "drop"].contains(&key.as_str())) {
        return Err(format!("`{other}` is not a key of an outage; {SHAPE}"));
    }
    let lasts = keys.get("for").and_then(Value::as_str).ok_or(SHAPE)?;
    let direction = keys.get("direction").map_or(Some("both"), Value::as_str).ok_or(SHAPE)?;
    let drop = keys.get("drop").map_or(Some(false), Value::as_bool).ok_or(SHAPE)?;
    Outage::parse(&format!("{lasts}\t{direction}\t{}", if drop { "drop" } else { "keep" }))
}

/// The fault of `{"fault": "reset=64kB", "only": ["tcp:5432"], "for": "9s"}`.
fn fault(body: &Value) -> Result<Fault, String> {
    const SHAPE: &str = r#"write {"fault": "reset"}, and "only": ["tcp:5432"], and "for": "9s", if wanted"#;
    let keys = body.as_object().ok_or(SHAPE)?;
    if let Some(other) = keys.keys().find(|key| !["fault", "only", "for"].contains(&key.as_str())) {
        return Err(format!("`{other}` is not a key of a fault; {SHAPE}"));
    }
    let kind = keys.get("fault").and_then(Value::as_str).ok_or(SHAPE)?;
    let lasts = keys.get("for").map(|lasts| lasts.as_str().ok_or(SHAPE)).transpose()?;
    let only = match keys.get("only") {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one.as_str()],
        Some(list) => {
            let list = list.as_array().ok_or(SHAPE)?;
            list.iter().map(|one| one.as_str().ok_or(SHAPE)).collect::<Result<_, _>>()?
        }
    };
    Fault::parse(kind, lasts, only.into_iter())
}

#[cfg(test)]
mod tests {
    use ackclock_link::Direction;

    use super::*;

    /// The status and body with which a link answers; the link repeats the request.
    fn answered(request: &str) -> (u16, Value) {
        let asked = std::cell::RefCell::new(String::new());
        let protocol = Http {
            authorization: "Bearer secret".to_owned(),
            answer: |request: &LinkRequest| match request {
                LinkRequest::Set(pairs) if pairs[0].0 == "down.colour" => Err("no such key".to_owned()),
                request => {
                    let mut asked = asked.borrow_mut();
                    *asked = format!("{asked}{request:?} ");
                    Ok(json!({ "asked": asked.trim_end() }).to_string())
                }
            },
        };
        assert!(
            Http::<fn(&LinkRequest) -> Result<String, String>>::is_whole(request.as_bytes()),
            "{request}"
        );
        let text = String::from_utf8(protocol.answer(request.as_bytes())).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let length = head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap();
        assert_eq!(length.parse::<usize>().unwrap(), body.len());
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    fn request(line: &str, headers: &str, body: &str) -> String {
        let headers = headers.replace(';', "\r\n");
        format!("{line} HTTP/1.1\r\n{headers}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    const GOOD: &str = "Host: 127.0.0.1:8474;authorization: Bearer secret;Content-Type: application/json";

    #[test]
    fn requests_are_those_of_the_control_socket() {
        let outage = |direction, drop| {
            LinkRequest::Outage(Outage { lasts: ackclock_core::Span::from_secs(3), direction, drop })
        };
        let set = |pairs: &[(&str, &str)]| {
            LinkRequest::Set(pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect())
        };
        let reset = LinkRequest::Fault(Fault {
            kind: crate::faults::FaultKind::Reset(64_000),
            only: vec!["tcp:5432".to_owned()],
            lasts: Some(ackclock_core::Span::from_secs(9)),
        });
        for (line, body, expected) in [
            ("GET /link", "", LinkRequest::Conditions),
            ("GET /results", "", LinkRequest::Show),
            ("PATCH /link", r#"{"down":{"rate":"1mbit"}}"#, set(&[("down.rate", "1mbit")])),
            (
                "PATCH /link",
                r#"{"down":{"loss":0.01},"up":{"delay":"u(9ms, 1ms)","reorder":{"share":0.1}}}"#,
                set(&[
                    ("down.loss", "0.01"),
                    ("up.delay", "u(9ms, 1ms)"),
                    ("up.reorder", r#"{"share":0.1}"#),
                ]),
            ),
            ("POST /outage", r#"{"for":"3s"}"#, outage(None, false)),
            (
                "POST /outage",
                r#"{"for":"3s","direction":"down","drop":true}"#,
                outage(Some(Direction::Down), true),
            ),
            ("GET /faults", "", LinkRequest::Faults),
            ("DELETE /faults", "", LinkRequest::ClearFaults),
            ("POST /faults", r#"{"fault":"reset=64kB","only":["tcp:5432"],"for":"9s"}"#, reset),
        ] {
            let (status, answer) = answered(&request(line, GOOD, body));
            // What changes something is followed by the question for the new state.
            let then = match expected {
                LinkRequest::Set(_) | LinkRequest::Outage(_) => " Conditions",
                LinkRequest::Fault(_) | LinkRequest::ClearFaults => " Faults",
                _ => "",
            };
            let expected = format!("{expected:?}{then}");
            assert_eq!((status, answer["asked"].as_str().unwrap()), (200, expected.as_str()));
        }
    }

    #[test]
    fn what_is_not_permitted_or_understood_is_refused_with_the_reason() {
        let rate = r#"{"down":{"rate":"1mbit"}}"#;
        let with = |from: &str, to: &str| GOOD.replace(from, to);
        for (line, headers, body, status) in [
            ("GET /link", with("127.0.0.1:8474", "example.org"), "", 403),
            ("GET /link", with("127.0.0.1:8474", "127.0.0.1.example.org"), "", 403),
            ("GET /link", with("Host: 127.0.0.1:8474", "X: y"), "", 403),
            ("GET /link", with("Host:", "Host: ::1;Host:"), "", 403),
            ("GET /link", with("Bearer secret", "Bearer Secret"), "", 401),
            ("GET /link", with("Bearer secret", "secret"), "", 401),
            ("GET /link", with("authorization", "x"), "", 401),
            ("PATCH /link", with("application/json", "text/plain"), rate, 415),
            ("POST /outage", with("Content-Type", "x"), r#"{"for":"3s"}"#, 415),
            ("DELETE /link", GOOD.to_owned(), "", 405),
            ("GET /outage", GOOD.to_owned(), "", 405),
            ("GET /", GOOD.to_owned(), "", 404),
            ("PATCH /link", GOOD.to_owned(), "{", 400),
            ("PATCH /link", GOOD.to_owned(), "{}", 400),
            ("PATCH /link", GOOD.to_owned(), r#"{"down":"1mbit"}"#, 400),
            ("PATCH /link", GOOD.to_owned(), r#"{"down":{"colour":"red"}}"#, 400),
            ("POST /outage", GOOD.to_owned(), r#"{"for":"0s"}"#, 400),
            ("POST /outage", GOOD.to_owned(), r#"{"for":"3s","way":"up"}"#, 400),
            ("POST /outage", GOOD.to_owned(), r#"{"for":"3s\tup\tdrop"}"#, 400),
            ("POST /outage", GOOD.to_owned(), r#"["3s"]"#, 400),
            ("POST /faults", GOOD.to_owned(), r#"{"fault":"explode"}"#, 400),
            ("POST /faults", GOOD.to_owned(), r#"{"fault":"cut","only":["http"]}"#, 400),
            ("POST /faults", GOOD.to_owned(), r#"{"fault":"cut","for":"0s"}"#, 400),
            ("POST /faults", GOOD.to_owned(), r#"{"fault":"cut","way":"up"}"#, 400),
            ("POST /faults", GOOD.to_owned(), r#"{"only":["tcp:80"]}"#, 400),
            ("PATCH /faults", GOOD.to_owned(), "", 405),
        ] {
            let (found, answer) = answered(&request(line, &headers, body));
            assert_eq!(found, status, "{line} {headers} {body}: {answer}");
            assert!(answer["error"].as_str().is_some_and(|why| !why.is_empty()), "{answer}");
        }
        for host in ["localhost", "LOCALHOST:80", "[::1]:80", "127.0.0.2"] {
            assert_eq!(answered(&request("GET /link", &with("127.0.0.1:8474", host), "")).0, 200, "{host}");
        }
    }

    #[test]
    fn a_request_is_whole_with_its_last_byte_and_each_token_differs() {
        type Any = Http<fn(&LinkRequest) -> Result<String, String>>;
        let whole = request("PATCH /link", GOOD, "{}");
        let bytes = whole.as_bytes();
        assert!((0..bytes.len()).all(|length| !Any::is_whole(&bytes[..length])) && Any::is_whole(bytes));
        assert!(token().is_ok_and(|one| one.len() == 32 && token().is_ok_and(|other| one != other)));
    }
}
