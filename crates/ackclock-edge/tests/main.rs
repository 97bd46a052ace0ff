//! One binary for all tests of regulators, since each would be linked with everything.

mod laws;
mod reports;
mod windows;
