//! All scenario tests in one binary, to link the dependencies only once.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod ack_rate_control;
mod ack_regulator;
mod age_limit;
mod bearers;
mod build_script;
mod capture;
mod cell;
mod classes;
mod contract;
mod ecn;
mod forecast;
mod fuzz_targets;
mod handover;
mod headers;
mod idle;
mod impairments;
mod islands;
mod l4s;
mod laws;
mod line;
mod link_share;
mod links;
mod linux;
mod nr;
mod observed;
mod overrides;
mod probe;
mod progress;
mod provenance;
mod radio_access;
mod random;
mod random_radio_access;
mod relay;
mod replication;
mod rnf;
mod shipped;
mod snoop;
mod theory;
mod totals;
mod transfers;
mod up_regulator;
mod uploads;
mod windows;
mod wrong_input;
