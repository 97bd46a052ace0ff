//! How scenario files name links and how links are built.

use std::fmt;
use std::sync::Arc;

use ackclock_core::{ConfigError, FlowId, Rate, Span, Streams};

use crate::queue::{AnyQueue, QueueConfig, QueueContext};
use crate::{AnyLink, AnyMedium, BufferMeaning, Capacity, CellUser, SerialLink};

/// Reads the files that a scenario names; links do not open files themselves.
pub trait Files {
    /// Contents of the file at `path`, as written in the scenario.
    ///
    /// # Errors
    /// Names the file that could not be read, and the reason.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String>;
}

impl<F: Files + ?Sized> Files for &F {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        (**self).read(path)
    }
}

/// Refuses to read any file.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        Err(format!("{path}: files cannot be read here"))
    }
}

/// Mean rate and delay of a link; they size buffers given in milliseconds or BDPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nominal {
    /// Mean rate of the saturated link over a long time.
    pub rate: Rate,
    /// Mean one-way delay after transmission.
    pub delay: Span,
}

/// Context for building a link from its table.
pub struct LinkContext<'a> {
    /// The queue of the link, or of each of its flows.
    pub queue: QueuePlan,
    /// Which packets count against the queue's capacity.
    pub meaning: BufferMeaning,
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// Prefix of its streams' names: with `down` the link draws from `down/rate` and so on.
    pub name: &'a str,
    /// Reads files that the table names.
    pub files: &'a dyn Files,
}

impl<'a> LinkContext<'a> {
    /// The context for building the link's medium.
    pub const fn for_medium(&self) -> MediumContext<'a> {
        MediumContext { streams: self.streams, name: self.name, files: self.files }
    }

    /// Builds the link: its queue followed by this medium.
    pub fn link(self, medium: AnyMedium) -> AnyLink {
        SerialLink::new(medium, self.queue.build(), self.meaning).into()
    }
}

/// Context for building a medium from the table of its link.
#[derive(Clone, Copy)]
pub struct MediumContext<'a> {
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// Prefix of its streams' names: with `down` the medium draws from `down/rate` and so on.
    pub name: &'a str,
    /// Reads files that the table names.
    pub files: &'a dyn Files,
}

/// A plan from which a link builds one queue or several.
#[derive(Clone, Debug)]
pub struct QueuePlan {
    config: Arc<dyn QueueConfig>,
    capacity: Capacity,
    streams: Streams,
    name: String,
}

impl QueuePlan {
    /// A plan for queues with this table and `capacity` that draw from streams under `name`, such as `down/queue`.
    pub fn new(
        config: Arc<dyn QueueConfig>,
        capacity: Capacity,
        streams: &Streams,
        name: impl Into<String>,
    ) -> Self {
        Self { config, capacity, streams: streams.clone(), name: name.into() }
    }

    /// The same plan with streams under another name.
    pub fn named(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Capacity of a queue.
    pub const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Builds the only queue of a link.
    pub fn build(&self) -> AnyQueue {
        self.config.build(&QueueContext { capacity: self.capacity, streams: &self.streams, name: &self.name })
    }

    /// Builds the queue of one flow, with separate random streams.
    pub fn build_for(&self, capacity: Capacity, flow: FlowId) -> AnyQueue {
        let name = format!("{}/{}", self.name, flow.0);
        self.config.build(&QueueContext { capacity, streams: &self.streams, name: &name })
    }
}

/// Configuration of a link: its table in a scenario file.
pub trait LinkConfig: fmt::Debug + Send + Sync {
    /// Mean rate and delay of the link.
    ///
    /// # Errors
    /// A file that the table names is unreadable or malformed.
    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError>;

    /// Builds the link.
    ///
    /// # Errors
    /// A file that the table names is unreadable or malformed.
    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError>;

    /// Builds the medium of a link that is a queue followed by a medium; `None` for other links.
    ///
    /// # Errors
    /// A file that the table names is unreadable or malformed.
    fn medium(&self, _context: MediumContext<'_>) -> Result<Option<AnyMedium>, ConfigError> {
        Ok(None)
    }

    /// Whether the link is a queue followed by a medium. Only such a link can change while it runs: its medium is
    /// replaced. For other links, steps of `[[edge.at]]` are refused on load.
    fn has_medium(&self) -> bool;

    /// Whether runs differ because something is drawn from the seed. Losses that a recording itself contains do not
    /// count.
    fn draws(&self) -> bool {
        true
    }

    /// Gives a cell its users.
    ///
    /// # Errors
    /// Invalid users.
    fn serving(&self, _users: &[CellUser]) -> Result<Option<Arc<dyn LinkConfig>>, ConfigError> {
        Ok(None)
    }

    /// Users of a cell; `None` for other links.
    fn users(&self) -> Option<&[CellUser]> {
        None
    }
}
