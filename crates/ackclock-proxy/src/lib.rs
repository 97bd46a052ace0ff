//! A proxy between servers and a radio: each connection becomes two, so that losses and waits of the radio are repaired
//! from nearby.
//!
//! Clients ask by SOCKS5, by HTTP CONNECT or by a plain HTTP request ([`asked`]). One thread moves the data of all
//! connections ([`server`]) from one leg to the other ([`pair`]); names are looked up beside it ([`names`]).

pub mod asked;
pub mod names;
pub mod pair;
pub mod prefix;
pub mod server;
