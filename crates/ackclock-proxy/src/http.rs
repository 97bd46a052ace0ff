//! HTTP/1 between a client and the server that its request names (RFC 9110, RFC 9112).
//!
//! The proxy reads each message strictly ([`head`], [`body`]) and writes it again, so that client, proxy and server read
//! the same message. A client's connection serves one request ([`exchange`]): a second request on it could be for another
//! server, and the first server would receive and answer it.

pub mod body;
pub mod exchange;
pub mod head;
pub mod refusal;
pub mod request;
