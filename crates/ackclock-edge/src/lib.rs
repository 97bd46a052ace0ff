//! # ackclock-edge
//!
//! The edge between the wired network and a radio channel: a bearer, and regulators that delay or rewrite ACKs. A
//! regulator serves one flow, one user or one queue. The same [`Edge`] runs in simulation, in emulated links and in a
//! gateway. Each regulator is implemented in one file; [`REGULATORS`] lists all regulators.

mod ack_filter;
mod ack_rate_control;
mod ack_regulator;
mod age_limit;
mod allowances;
mod at;
mod chance;
mod changed;
mod config;
mod copies;
mod coupled_marks;
mod edge;
mod flow_table;
mod handover;
mod none;
mod observed;
mod registry;
mod regulator;
mod regulators;
mod report;
mod rnf;
mod scheduled;
mod snoop;
mod statistics;
mod steering;
mod step;
mod unused;
mod wait_marker;
mod window_regulator;
mod zhuge;

pub use ack_regulator::AckRegulator;
pub use ackclock_link::queue::Place;
pub use age_limit::AgeLimit;
pub use allowances::Allowances;
pub use at::{AtHandover, HandoverTable, Outage, Step};
pub use changed::Changed;
pub use config::{ChannelSharing, EdgeConfig, Surroundings};
pub use edge::{Edge, RADIO, REPORTS, WIRED};
pub use registry::{BEARERS, LINKS, QUEUES, REGULATORS, STEERINGS};
pub use regulator::{Allowance, FlowContext, Output, Properties, Regulator, RegulatorConfig, Scope, Verdict};
pub use report::ReportTable;
pub use statistics::{EdgeStatistics, FlowStatistics};
pub use window_regulator::clip::Clip;
pub use window_regulator::{AckKind, WindowLaw};
