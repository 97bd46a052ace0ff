//! One binary for all tests of the command, since each would be linked with everything.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod advise;
mod capture;
mod certainty;
mod command;
mod common;
mod completions;
mod exchange;
mod faults;
mod forward;
mod gateway;
mod impair;
mod import;
mod link;
mod measured_reports;
mod mistakes;
mod mtu;
mod needs;
mod only;
mod overrides;
mod programs;
mod proxy;
mod publish;
mod radio_feedback;
mod reach;
mod resume;
mod strangers;
mod synth;
mod transparent;
mod trouble;
mod wayout;
mod web_control;
mod week;
