//! One binary for all tests of senders and receivers, to link their dependencies only once.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod any_path;
mod cc_laws;
mod cc_paths;
mod exchanges;
mod host;
mod hostile;
mod linux;
mod linux_handshake;
mod ncr;
mod relay;
mod script;
mod steered;
mod support;
mod table_one;
mod wrap;
