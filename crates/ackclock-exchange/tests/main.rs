//! Tests of exchanges, in one binary.

mod carried;
mod hostile;
mod judged;
mod refused;
