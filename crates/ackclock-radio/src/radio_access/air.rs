//! Kinds of air interface for one direction. Each kind is in a separate file.

use std::fmt;

use super::dedicated::DedicatedConfig;
use crate::CellConfig;

/// Configuration of the air interface of one direction: its table in a scenario file.
pub trait AirConfig: fmt::Debug + Send + Sync {
    /// Returns the kind of this air interface.
    fn kind(&self) -> AirKind<'_>;
}

/// Kind of the air interface of one direction.
#[derive(Clone, Copy, Debug)]
pub enum AirKind<'a> {
    /// A dedicated channel for each user.
    Dedicated(&'a DedicatedConfig),
    /// A cell that serves all users.
    Cell(&'a CellConfig),
}

impl AirConfig for CellConfig {
    fn kind(&self) -> AirKind<'_> {
        AirKind::Cell(self)
    }
}

impl AirConfig for DedicatedConfig {
    fn kind(&self) -> AirKind<'_> {
        AirKind::Dedicated(self)
    }
}
