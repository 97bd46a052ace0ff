//! Results of parsing a client's request, and answers to the client.

use crate::http::exchange::Exchange;
use crate::http::refusal::refusal;

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
    /// Request of HTTP that is the only one of the connection; `None` for a tunnel.
    pub exchange: Option<Exchange>,
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
            exchange: None,
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

/// SOCKS5 reply with an address of zeros, which RFC 1928 allows.
pub(crate) fn socks_reply(code: u8) -> Vec<u8> {
    vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// Whether a text can be a host name or an address: it contains no characters that a resolver or a log would interpret.
pub(crate) fn is_host(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    !host.is_empty() && host.len() <= 253 && host.chars().all(plain)
}
