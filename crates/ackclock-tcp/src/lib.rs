//! # ackclock-tcp

pub mod cc;
pub mod delivery_rate;
mod reassembly;
pub mod receiver;
