//! Authenticated reports of a radio's rate and queue: format of a report ([`wire`]), keys of the radios ([`keys`]), and
//! rules by which the proxy accepts a report ([`gate`]). A sender of reports can measure the rate of an interface by the
//! counters of its queue ([`qdisc`], [`busy`]).

pub mod busy;
pub mod gate;
pub mod keys;
pub mod qdisc;
pub mod wire;
