//! Regulators written in Python: a class registered by name is built for each flow, user or queue of a simulated edge.
//!
//! An exception ends the run. The right edge of a window never moves left, and every held ACK is released when its flow
//! ends, whatever the class does.

mod adapter;
mod failure;
mod objects;
mod table;

pub(crate) use failure::guarded;
pub(crate) use objects::{Packet, PythonRegulator, Queue};
pub(crate) use table::{add_regulator, uses_python};
