//! One binary for all tests of the proxy. Everything stays on the loopback interface.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]
#![allow(clippy::disallowed_methods, reason = "the kernel is waited for here; no model sleeps")]

mod exchanged;
mod relayed;
mod steered;
