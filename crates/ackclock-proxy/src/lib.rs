//! Proxy between servers and a radio. The proxy splits each TCP connection into two connections, so that losses on the
//! radio are repaired over a short RTT.
//!
//! Clients send requests in SOCKS5, as HTTP CONNECT or as plain HTTP requests ([`asked`]), or the firewall diverts their
//! connections to the proxy ([`listeners`]). One thread relays the data
//! of all connections ([`server`]) from one leg to the other ([`pair`]); separate threads look up names ([`names`]).
//!
//! With signed reports of the radio ([`reports`]), the proxy limits the data in flight of each user ([`steer`]).

mod alive;
pub mod asked;
pub mod file;
pub mod http;
pub mod kernel;
pub mod listeners;
pub mod names;
pub mod pair;
pub mod pipe;
pub mod reports;
mod routes;
pub mod server;
pub mod steer;
pub mod wish;
