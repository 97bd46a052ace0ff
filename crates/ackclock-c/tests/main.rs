//! One test binary for all tests of the C interface.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

mod calls;
mod header;
mod host;
mod path;
mod witness;
