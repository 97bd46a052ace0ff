//! Registry of error processes.

use super::{
    ErrorConfig, GilbertElliottConfig, IndependentConfig, PowerControlConfig, RayleighConfig, RecordingConfig,
};

ackclock_core::registry! {
    /// Registry of all error processes, by their name in scenario files.
    pub static ERRORS: dyn ErrorConfig = "error process" {
        "independent" => IndependentConfig,
        "rayleigh" => RayleighConfig,
        "gilbert-elliott" => GilbertElliottConfig,
        "recording" => RecordingConfig,
        "power-control" => PowerControlConfig,
    }
}
