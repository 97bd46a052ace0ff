//! Authenticated reports of a radio's rate and queue: format of a report ([`wire`]), keys of the radios ([`keys`]), and
//! rules by which the proxy accepts a report ([`gate`]).

pub mod gate;
pub mod keys;
pub mod wire;
