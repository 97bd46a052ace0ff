//! One binary for all tests of scenarios, since each would be linked with everything.

mod capture;
mod cell;
mod contract;
mod fuzz_targets;
mod laws;
mod line;
mod shipped;
mod theory;
mod transfers;
mod windows;
mod wrong_input;
