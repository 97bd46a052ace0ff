//! # ackclock-c
//!
//! C interface of the regulators, declared in `include/ackclock.h`. It is for hosts that own the queue of a radio, such
//! as RLC and PDCP code. The host parses packets into fields, queues the packets, and executes the regulators' output.
//! The library never reads or writes packet bytes.

pub mod abi;
mod exports;
mod flows;

pub use exports::*;
