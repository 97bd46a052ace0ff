//! # ackclock-radio
//!
//! Radio channels: cells with schedulers and HARQ, radio link control, radio access networks with classes and
//! hand-overs, power-controlled links, artificial delays, and synthetic recordings. Each model is in a separate file.

mod artificial_delay;
mod blocks;
pub mod cell;
mod power_controlled;
pub mod radio_access;
pub mod scheduler;
pub mod shadowing;
pub mod synthetic;
mod umts_rlc;
mod umts_rlc_am;

pub use artificial_delay::{ArtificialDelayConfig, HoldConfig, LearnTable};
pub use cell::{Cell, CellConfig};
pub use power_controlled::{Arq, PowerControlledConfig};
pub use radio_access::RadioAccessConfig;
pub use umts_rlc::UmtsRlcConfig;
pub use umts_rlc_am::{
    BufferCounts, MissingFormat, OnMaxDat, PollConfig, RlcConfig, RlcMode, StatusConfig, Tries, WindowChange,
    WindowPolls,
};
