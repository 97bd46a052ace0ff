//! One request and its answer on the connection of a client.
//!
//! Neither side can send more than this one message: bytes of the client after its request never reach the server, and
//! bytes of the server after its answer never reach the client. The answer says `Connection: close`.

use httparse::{EMPTY_HEADER, ParserConfig, Response, Status};

use super::body::Body;
use super::head::{Fields, LONGEST_ANSWER_HEAD, MOST_FIELDS};
use super::refusal::{bad, refusal};

/// State of a request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    request: Body,
    answer: Answer,
    /// Whether the answer has no body (RFC 9110 section 9.3.2).
    is_head: bool,
    /// Whether the client wants to continue with WebSocket.
    is_upgrade: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// Part of the head that has arrived.
    Head(Vec<u8>),
    Body(Body),
    /// The server continues with WebSocket.
    Upgraded,
}

/// Answer of the proxy in place of a message that could be read in two ways. `None` if the client has received a part of
/// the server's answer.
pub type Refused = Option<Vec<u8>>;

impl Exchange {
    /// Begins an exchange after the head of the request.
    pub fn new(method: &str, body: Option<Body>, is_upgrade: bool) -> Self {
        let (request, answer) = (body.unwrap_or(Body::Length(0)), Answer::Head(Vec::new()));
        Self { request, answer, is_head: method == "HEAD", is_upgrade }
    }

    /// Whether the request is complete, so that nothing more is read from the client.
    pub const fn has_request(&self) -> bool {
        self.request.is_over()
    }

    /// Whether the answer is complete, so that nothing more is read from the server.
    pub const fn has_answer(&self) -> bool {
        matches!(&self.answer, Answer::Body(body) if body.is_over())
    }

    /// Whether the connection continues as WebSocket, without messages of HTTP.
    pub const fn is_upgraded(&self) -> bool {
        matches!(self.answer, Answer::Upgraded)
    }

    /// Writes bytes of the client to `to`.
    ///
    /// # Errors
    /// Fails if the body could be read in two ways, or if the client continues with WebSocket before the answer.
    pub fn pass_request(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> Result<(), Refused> {
        if self.is_upgrade && !bytes.is_empty() {
            return Err(Some(bad("WebSocket begins after the answer")));
        }
        self.request.pass(bytes, to).map_err(|why| self.is_unanswered().then(|| bad(why)))
    }

    /// Writes bytes of the server to `to`.
    ///
    /// # Errors
    /// Fails if the answer could be read in two ways.
    pub fn pass_answer(&mut self, received: &[u8], to: &mut Vec<u8>) -> Result<(), Refused> {
        let mut bytes = received;
        let mut rest;
        while let Answer::Head(head) = &mut self.answer {
            let searched = head.len().saturating_sub(2);
            head.extend_from_slice(bytes);
            let Some(end) = end_of_head(head, searched) else {
                let is_http = head.iter().zip(b"HTTP/1.").all(|(ours, theirs)| ours == theirs);
                let is_bad = head.len() > LONGEST_ANSWER_HEAD || !is_http;
                return if is_bad { Err(Some(unreadable())) } else { Ok(()) };
            };
            rest = head.split_off(end);
            bytes = &rest;
            let head = std::mem::take(head);
            self.read_head(&head, to).map_err(|()| Some(unreadable()))?;
        }
        match &mut self.answer {
            Answer::Body(body) => body.pass(bytes, to).map_err(|_| None),
            _ => {
                to.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Answer of the proxy to a client whose server closed the connection without an answer.
    pub fn end_answer(&self) -> Result<(), Refused> {
        let why = "the server closed the connection without an answer";
        if self.is_unanswered() { Err(Some(refusal("502 Bad Gateway", why))) } else { Ok(()) }
    }

    const fn is_unanswered(&self) -> bool {
        matches!(self.answer, Answer::Head(_))
    }

    /// Writes the head of an answer again, with `Connection: close`.
    fn read_head(&mut self, head: &[u8], to: &mut Vec<u8>) -> Result<(), ()> {
        let mut slots = [EMPTY_HEADER; MOST_FIELDS];
        let mut response = Response::new(&mut slots);
        let mut parser = ParserConfig::default();
        // RFC 9112 sections 5.1 and 5.2 ask a proxy to repair both in answers.
        parser
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true);
        let Ok(Status::Complete(_)) = parser.parse_response(&mut response, head) else { return Err(()) };
        let (Some(minor), Some(code)) = (response.version, response.code) else { return Err(()) };
        let fields = Fields(response.headers);
        let words = fields.words("connection");
        to.extend_from_slice(
            format!("HTTP/1.{minor} {code} {}\r\n", response.reason.unwrap_or("")).as_bytes(),
        );
        fields.write(&words, to);
        let end = match code {
            101 if self.is_upgrade && fields.words("upgrade") == [b"websocket"] => {
                self.answer = Answer::Upgraded;
                "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
            }
            101 => return Err(()),
            100..200 => "\r\n",
            _ => {
                let body = framing(fields, minor)?;
                to.extend_from_slice(body.field().as_bytes());
                let is_bodyless = self.is_head || matches!(code, 204 | 304);
                self.answer = Answer::Body(if is_bodyless { Body::Length(0) } else { body });
                "Connection: close\r\n\r\n"
            }
        };
        to.extend_from_slice(end.as_bytes());
        Ok(())
    }
}

/// Framing of an answer's body. `Transfer-Encoding` overrides `Content-Length`, and equal lengths count once (RFC 9112
/// section 6.3).
fn framing(fields: Fields<'_>, minor: u8) -> Result<Body, ()> {
    let has_coding = fields.values("transfer-encoding").next().is_some();
    let first = fields.values("content-length").next();
    if fields.values("content-length").any(|length| Some(length) != first) {
        return Err(());
    }
    let mut is_repeated = false;
    let once = fields.0.iter().filter(|field| {
        let is_length = field.name.eq_ignore_ascii_case("content-length");
        !(is_length && (has_coding || std::mem::replace(&mut is_repeated, true)))
    });
    let body = Fields(&once.copied().collect::<Vec<_>>()).framing(minor).map_err(|_| ())?;
    Ok(body.unwrap_or(Body::UntilEnd))
}

fn unreadable() -> Vec<u8> {
    refusal("502 Bad Gateway", "the server's answer is not HTTP/1, or could be read in two ways")
}

/// Position after the empty line that ends a head; bytes before `searched` contain no such line.
fn end_of_head(head: &[u8], searched: usize) -> Option<usize> {
    let ends = (searched..head.len()).filter(|&at| head[at] == b'\n');
    let after = |at: usize| match &head[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    };
    ends.filter_map(after).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get() -> Exchange {
        Exchange::new("GET", None, false)
    }

    fn answered(exchange: &mut Exchange, text: &str) -> Result<String, Refused> {
        let mut to = Vec::new();
        exchange.pass_answer(text.as_bytes(), &mut to).map(|()| String::from_utf8(to).unwrap())
    }

    #[test]
    fn one_answer_passes_and_says_that_the_connection_closes() {
        let text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
                    Keep-Alive: timeout=5\r\nContent-Length: 4\r\nSet-Cookie: a=1\r\n\r\nbodyHTTP/1.1 200 OK\r\n\r\nother";
        let expected = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                        HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
        let mut exchange = get();
        assert_eq!(answered(&mut exchange, text), Ok(expected.to_owned()));
        assert!(exchange.has_answer() && exchange.has_request());
        // The parts in which an answer arrives make no difference.
        for length in 1..text.len() {
            let mut exchange = get();
            let (first, second) = text.split_at(length);
            let both = [first, second].map(|part| answered(&mut exchange, part).unwrap());
            assert_eq!(both.concat(), expected, "{length}");
        }
    }

    #[test]
    fn an_answer_ends_by_its_method_its_status_or_its_framing() {
        let ends = |method, text| {
            let mut exchange = Exchange::new(method, None, false);
            answered(&mut exchange, text).unwrap();
            exchange.has_answer()
        };
        assert!(ends("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
        assert!(ends("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"));
        assert!(ends("GET", "HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(!ends("GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end"));
        assert!(!ends("GET", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n12345678"));
        assert!(!ends("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"));
        assert!(ends("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
    }

    #[test]
    fn heads_that_a_proxy_must_repair_are_repaired() {
        let text = "HTTP/1.1 200 OK\nA : 1\nB: 2\r\n 3\nContent-Length: 1\nContent-Length: 1\n\nx";
        let expected =
            "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2   3\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";
        assert_eq!(answered(&mut get(), text), Ok(expected.to_owned()));
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let expected = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n";
        assert_eq!(answered(&mut get(), text), Ok(expected.to_owned()));
    }

    #[test]
    fn an_unreadable_answer_is_replaced() {
        for text in [
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA\0: 1\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        ] {
            let answer = answered(&mut get(), text).unwrap_err().unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 502 "), "{text:?}");
        }
        assert!(answered(&mut get(), &"HTTP/1.1 200 OK\r\nA: ".repeat(LONGEST_ANSWER_HEAD)).is_err());
        let begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx";
        assert_eq!(
            answered(&mut get(), &format!("{begun}\r\n")),
            Err(None),
            "too late for an answer of the proxy"
        );
    }

    #[test]
    fn websocket_begins_after_the_answer_that_was_requested() {
        let text =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\r\n\u{1}frame";
        let expected =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\u{1}frame";
        let mut exchange = Exchange::new("GET", None, true);
        assert_eq!(answered(&mut exchange, text), Ok(expected.to_owned()));
        assert!(exchange.is_upgraded() && !exchange.has_answer());
    }

    #[test]
    fn a_request_ends_by_its_framing_and_a_bad_chunk_is_answered() {
        let mut exchange = Exchange::new("POST", Some(Body::Length(3)), false);
        let mut to = Vec::new();
        exchange.pass_request(b"abcGET http://b/ HTTP/1.1\r\nCookie: of=b\r\n\r\n", &mut to).unwrap();
        assert!(exchange.has_request() && to == b"abc");
        let mut exchange = Exchange::new("POST", Some(Body::chunked()), false);
        let answer = exchange.pass_request(b"3 \r\nabc\r\n", &mut to).unwrap_err().unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 400 "));
    }

    proptest::proptest! {
        /// No server sends more than one final answer to a client, in whatever parts.
        #[test]
        fn no_server_answers_twice(
            text in "(HTTP/1\\.[01] (100|101|200|204)\r\n(Content-Length: [0-3]\r\n|Transfer-Encoding: chunked\r\n|Upgrade: websocket\r\n){0,2}\r\n|[ab1]{1,3}|0\r\n\r\n|\r\n){1,8}",
            length in 1..9_usize,
        ) {
            let (mut exchange, mut to, mut is_over) = (Exchange::new("GET", None, false), Vec::new(), false);
            for part in text.as_bytes().chunks(length) {
                let before = to.len();
                if exchange.pass_answer(part, &mut to).is_err() {
                    break;
                }
                proptest::prop_assert!(!is_over || to.len() == before, "bytes after the answer");
                is_over = exchange.has_answer();
            }
            let head = String::from_utf8(to).unwrap();
            proptest::prop_assert!(head.matches("Connection: close").count() <= 1);
        }
    }
}
