//! One binary for all tests of links, since each would be linked with everything.

mod allocation;
mod cell;
mod common;
mod laws;
mod theory;
mod trace;
