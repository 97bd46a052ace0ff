//! Registry of schedulers.

use super::{MaxRateConfig, PfConfig, PfRpConfig, PfSpConfig, RoundRobinConfig, SchedulerConfig};

ackclock_core::registry! {
    /// Registry of all schedulers, by their name in scenario files.
    pub static SCHEDULERS: dyn SchedulerConfig = "scheduler" {
        "round-robin" => RoundRobinConfig,
        "max-rate" => MaxRateConfig,
        "pf" => PfConfig,
        "pf-sp" => PfSpConfig,
        "pf-rp" => PfRpConfig,
    }
}
