//! Registries of air interfaces and flow controls.

use super::air::AirConfig;
use super::dedicated::DedicatedConfig;
use super::flow_control::{CreditConfig, FlowControlConfig, OnOffConfig, UncontrolledConfig};
use crate::CellConfig;

ackclock_core::registry! {
    /// Registry of the air interfaces of the bearer `radio-access`, by their name in scenario files.
    pub static AIRS: dyn AirConfig = "air" {
        "dedicated" => DedicatedConfig,
        "shared" => CellConfig,
    }
}

ackclock_core::registry! {
    /// Registry of the flow controls between base station and controller, by their name in scenario files.
    pub static FLOW_CONTROLS: dyn FlowControlConfig = "flow control" {
        "credit" => CreditConfig,
        "on-off" => OnOffConfig,
        "none" => UncontrolledConfig,
    }
}
