//! Regulators and congestion controls written in Python, for simulations: classes that scenarios use by name.
//!
//! An exception ends the run. The laws of both hold whatever a class does: the right edge of a window never moves left,
//! every held ACK is released when its flow ends, and a congestion window is at least one segment.

mod class;
mod control;
mod control_row;
mod failure;
mod objects;
mod regulator;
mod regulator_row;

pub(crate) use control::{AckInfo, CongestionInfo, PythonControl};
pub(crate) use control_row::add_congestion_control;
pub(crate) use failure::guarded;
pub(crate) use objects::{Packet, PythonRegulator, Queue};
pub(crate) use regulator_row::{add_regulator, uses_python};
