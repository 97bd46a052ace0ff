//! Registry of air interfaces.

use super::air::AirConfig;
use super::dedicated::DedicatedConfig;
use crate::CellConfig;

ackclock_core::registry! {
    /// Registry of the air interfaces of the bearer `radio-access`, by their name in scenario files.
    pub static AIRS: dyn AirConfig = "air" {
        "dedicated" => DedicatedConfig,
        "shared" => CellConfig,
    }
}
