//! One test binary for all link tests, since each would link everything.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod allocation;
mod bearers;
mod cell;
mod classes;
mod common;
mod errors;
mod handover;
mod impair;
mod laws;
mod power_controlled;
mod radio_access;
mod radio_counts;
mod reports;
mod synthetic;
mod theory;
mod trace;
