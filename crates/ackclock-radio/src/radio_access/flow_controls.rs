//! Registry of flow controls.

use super::flow_control::{CreditConfig, FlowControlConfig, OnOffConfig, UncontrolledConfig};

ackclock_core::registry! {
    /// Registry of the flow controls between base station and controller, by their name in scenario files.
    pub static FLOW_CONTROLS: dyn FlowControlConfig = "flow control" {
        "credit" => CreditConfig,
        "on-off" => OnOffConfig,
        "none" => UncontrolledConfig,
    }
}
