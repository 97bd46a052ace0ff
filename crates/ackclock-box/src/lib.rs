//! A box on the path before a radio link that we do not control. The box lowers the advertised windows of passing ACKs,
//! and changes nothing else in a packet.
//!
//! The kernel clips each window to "base + allowance" ([`clip`]), by the law of [`law`]. User space observes the
//! traffic ([`observers`]) and writes an allowance every few milliseconds ([`daemon`]). The pinned kernel program stays
//! attached when the user-space process exits.

pub mod clip;
mod clsact;
pub mod config;
pub mod daemon;
mod devices;
pub mod error;
pub mod files;
pub mod interface;
pub mod law;
pub mod machine;
pub mod maps;
mod names;
pub mod observers;
mod pins;
pub mod programs;
pub mod recent;
pub mod report;
pub mod shares;
pub mod subscribers;
pub mod summary;
pub mod watch;
