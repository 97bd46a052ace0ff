//! One binary for all tests of the box. Those that need the kernel's permission say why where it is missing.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]
#![allow(clippy::print_stdout, reason = "a skipped test says why")]

mod config;
mod frames;
mod inside;
mod interface;
mod kernel_subscribers;
mod known_queue;
mod law;
mod loopback;
mod memory;
mod object;
mod observers;
mod pins;
mod subscribers;
mod untouched;
