//! One binary for all tests of real packets, since each would be linked with everything.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod allocation;
mod answers;
#[path = "../../ackclock-edge/tests/busy.rs"]
mod busy;
mod crowd;
mod kernel;
mod logs;
mod object;
mod quic;
mod rows;
mod support;
mod users;
mod windows;
mod worlds;
