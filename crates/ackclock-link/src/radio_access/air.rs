//! Kinds of air interface for one direction. Each is one file; the registry [`AIRS`] lists them.

use std::fmt;

use super::dedicated::DedicatedConfig;
use crate::CellConfig;

ackclock_core::registry! {
    /// All airs of the bearer `radio-access`, by their name in scenario files.
    pub static AIRS: dyn AirConfig = "air" {
        "dedicated" => DedicatedConfig,
        "shared" => CellConfig,
    }
}

/// Configuration of a direction's air: its table in a scenario file.
pub trait AirConfig: fmt::Debug + Send + Sync {
    /// Kind of this air.
    fn kind(&self) -> AirKind<'_>;
}

/// Kind of a direction's air.
#[derive(Clone, Copy, Debug)]
pub enum AirKind<'a> {
    /// A separate channel for each user.
    Dedicated(&'a DedicatedConfig),
    /// A cell that serves all users.
    Cell(&'a CellConfig),
}

impl AirConfig for CellConfig {
    fn kind(&self) -> AirKind<'_> {
        AirKind::Cell(self)
    }
}
