//! One test binary for all regulator tests, since each would link everything.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod allowances;
mod broken;
mod busy;
mod every_bearer;
mod every_regulator;
mod handover;
mod laws;
mod outputs;
mod regulated;
mod reports;
mod scope;
mod steerings;
mod uploads;
mod windows;
