//! How scenario files name and build links: the registry and what a builder is given.

use std::fmt;
use std::sync::Arc;

use ackclock_core::{ConfigError, FlowId, Rate, Span, Streams};

use crate::queue::{AnyQueue, QueueConfig, QueueContext};
use crate::{AnyLink, AnyMedium, BufferMeaning, Capacity, CellUser, SerialLink};

/// Reads the files that a scenario names. Links themselves open nothing.
pub trait Files {
    /// The contents of the file at `path`, as the scenario writes it.
    ///
    /// # Errors
    /// Says which file could not be read and why.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String>;
}

impl<F: Files + ?Sized> Files for &F {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        (**self).read(path)
    }
}

/// Reads nothing: for what names no files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        Err(format!("{path}: no files are read here"))
    }
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
    /// The queue in front of it, or those of its flows.
    pub queue: QueuePlan,
    /// Which packets count against the queue's capacity.
    pub meaning: BufferMeaning,
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// What its streams are called, as `down`: the link draws from `down/rate` and so on.
    pub name: &'a str,
    /// Files that its table names.
    pub files: &'a dyn Files,
}

impl<'a> LinkContext<'a> {
    /// What its medium is built from.
    pub const fn for_medium(&self) -> MediumContext<'a> {
        MediumContext { streams: self.streams, name: self.name, files: self.files }
    }

    /// The link with its queue in front of this medium.
    pub fn link(self, medium: AnyMedium) -> AnyLink {
        SerialLink::new(medium, self.queue.build(), self.meaning).into()
    }
}

/// What a medium is built from, beside the table of its link.
#[derive(Clone, Copy)]
pub struct MediumContext<'a> {
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// What its streams are called, as `down`: the medium draws from `down/rate` and so on.
    pub name: &'a str,
    /// Files that the table names.
    pub files: &'a dyn Files,
}

/// A queue that is yet to be built, as often as a link needs one.
#[derive(Clone, Debug)]
pub struct QueuePlan {
    config: Arc<dyn QueueConfig>,
    capacity: Capacity,
    streams: Streams,
    name: String,
}

impl QueuePlan {
    /// Queues of this table that hold `capacity` and draw from streams under `name`, as `down/queue`.
    pub fn new(
        config: Arc<dyn QueueConfig>,
        capacity: Capacity,
        streams: &Streams,
        name: impl Into<String>,
    ) -> Self {
        Self { config, capacity, streams: streams.clone(), name: name.into() }
    }

    /// Such queues that draw from streams under another name.
    pub fn named(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// How much a queue holds.
    pub const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The only queue of a link.
    pub fn build(&self) -> AnyQueue {
        self.config.build(&QueueContext { capacity: self.capacity, streams: &self.streams, name: &self.name })
    }

    /// The queue of a flow, which draws from streams of its own.
    pub fn build_for(&self, capacity: Capacity, flow: FlowId) -> AnyQueue {
        let name = format!("{}/{}", self.name, flow.0);
        self.config.build(&QueueContext { capacity, streams: &self.streams, name: &name })
    }
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

    /// The medium of a link that is a queue in front of one; `None` for every other link.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn medium(&self, _context: MediumContext<'_>) -> Result<Option<AnyMedium>, ConfigError> {
        Ok(None)
    }

    /// Whether the link is a queue in front of a medium: its medium can take the place of that of another link that runs, and
    /// another's can take the place of its own. Of any other link a step of `[[edge.at]]` is refused when it is read.
    fn has_medium(&self) -> bool;

    /// Whether anything of it is drawn from the seed, so that runs differ. What a recording itself says of losses does not count.
    fn draws(&self) -> bool {
        true
    }

    /// A cell with these users; `None` for every other link.
    ///
    /// # Errors
    /// Where they are wrong.
    fn serving(&self, _users: &[CellUser]) -> Result<Option<Arc<dyn LinkConfig>>, ConfigError> {
        Ok(None)
    }

    /// The users of a cell; `None` for every other link.
    fn users(&self) -> Option<&[CellUser]> {
        None
    }
}
