//! The kinds of an air interface's direction. Each is one file; the registry [`AIRS`] lists them.

use std::fmt;

use super::dedicated::DedicatedConfig;

ackclock_core::registry! {
    /// All airs of the bearer `radio-access`, by their name in scenario files.
    pub static AIRS: dyn AirConfig = "air" {
        "dedicated" => DedicatedConfig,
    }
}

/// Configuration of a direction's air: its table in a scenario file.
pub trait AirConfig: fmt::Debug + Send + Sync {
    /// Which kind it is.
    fn kind(&self) -> AirKind<'_>;
}

/// The kind of a direction's air.
#[derive(Clone, Copy, Debug)]
pub enum AirKind<'a> {
    /// A channel of each user alone.
    Dedicated(&'a DedicatedConfig),
}
