//! A box beside a radio that is not ours: it lowers the windows of ACKs that pass, and does nothing else to a packet.
//!
//! The kernel clips each window to "base + allowance" ([`clip`]), by the law of [`law`]. User space observes what passes
//! ([`observers`]) and writes an allowance every few milliseconds ([`daemon`]). What is pinned goes on without it.

pub mod clip;
pub mod daemon;
pub mod law;
pub mod machine;
pub mod maps;
pub mod observers;
