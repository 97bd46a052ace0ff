//! One binary for all tests of the command, since each would be linked with everything.

mod command;
mod common;
mod link;
mod programs;
mod synth;
mod trouble;
