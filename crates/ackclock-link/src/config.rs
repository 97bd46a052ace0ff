//! How scenario files name and build links: the registry and what a builder is given.

use std::fmt;

use ackclock_core::{ConfigError, Rate, Span, Streams};

use crate::queue::AnyQueue;
use crate::{AnyLink, BufferMeaning};

/// Reads the files that a scenario names. Links themselves open nothing.
pub trait Files {
    /// The contents of the file at `path`, as the scenario writes it.
    ///
    /// # Errors
    /// Says which file could not be read and why.
    fn read(&self, path: &str) -> Result<std::sync::Arc<[u8]>, String>;
}

/// What a link is like in the mean; buffers in milliseconds or BDPs are sized by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nominal {
    /// Long-run mean rate of a saturated link.
    pub rate: Rate,
    /// Mean one-way delay behind the transmitter.
    pub delay: Span,
}

/// What a link is built from, beside its own table.
pub struct LinkContext<'a> {
    /// The queue in front of it.
    pub queue: AnyQueue,
    /// Which packets count against the queue's capacity.
    pub meaning: BufferMeaning,
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// What its streams are called, as `down`: the link draws from `down/rate` and so on.
    pub name: &'a str,
    /// Files that its table names.
    pub files: &'a dyn Files,
}

/// The table of a link in a scenario file.
pub trait LinkConfig: fmt::Debug + Send + Sync {
    /// What the link is like in the mean.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError>;

    /// Builds the link.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError>;
}
