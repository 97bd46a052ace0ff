//! # ackclock-tcp

pub mod cc;
mod reassembly;
pub mod receiver;
