//! Configuration of links: how scenario files name links and how links are built.

use std::fmt;
use std::sync::Arc;

use ackclock_core::{ConfigError, FlowId, Rate, Span, Streams, Unused};

use crate::queue::{AckFilter, AgeLimited, AnyQueue, Filtered, Queue, QueueConfig, QueueContext};
use crate::{
    AnyLink, AnyMedium, BufferMeaning, Capacity, CellChange, CellUser, ChangeContext, Files, Impairments,
    MediumContext, SerialLink,
};

/// Mean rate and delay of a link, which determine the size of a buffer given in milliseconds or BDPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nominal {
    /// Mean rate of the link over a long time while it always has data.
    pub rate: Rate,
    /// Mean one-way delay of a packet after its transmission.
    pub delay: Span,
}

/// Inputs from which a link is built, in addition to its table.
pub struct LinkContext<'a> {
    /// Plan of the link's queue, or of the queue of each flow.
    pub queue: QueuePlan,
    /// Packets that count against the queue's capacity.
    pub meaning: BufferMeaning,
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// Prefix of the names of the link's random streams: with `down` the link draws from `down/rate` and so on.
    pub name: &'a str,
    /// Reads the files that the table names.
    pub files: &'a dyn Files,
}

impl<'a> LinkContext<'a> {
    /// Returns the context for building the link's medium.
    pub const fn for_medium(&self) -> MediumContext<'a> {
        MediumContext { streams: self.streams, name: self.name, files: self.files }
    }

    /// Builds a link from its queue, followed by `medium`.
    pub fn link(self, medium: AnyMedium) -> AnyLink {
        SerialLink::new(medium, self.queue.build(), self.meaning).into()
    }

    /// Builds a link from its queue, followed by `medium` with impairments.
    pub fn impaired_link(self, medium: AnyMedium, impairments: &Impairments) -> AnyLink {
        let (streams, name) = (self.streams, self.name);
        impairments.around(self.link(medium), streams, name)
    }
}

/// A plan from which a link builds one queue or several.
#[derive(Clone, Debug)]
pub struct QueuePlan {
    config: Arc<dyn QueueConfig>,
    capacity: Capacity,
    age_limit: Option<Span>,
    ack_filter: Option<AckFilter>,
    streams: Streams,
    name: String,
}

impl QueuePlan {
    /// Creates a plan for queues with this table and `capacity`; the queues draw from random streams under `name`, such
    /// as `down/queue`.
    pub fn new(
        config: Arc<dyn QueueConfig>,
        capacity: Capacity,
        streams: &Streams,
        name: impl Into<String>,
    ) -> Self {
        Self {
            config,
            capacity,
            age_limit: None,
            ack_filter: None,
            streams: streams.clone(),
            name: name.into(),
        }
    }

    /// Returns the plan for queues that packets leave after `age_limit`; `None` for no limit.
    #[must_use]
    pub fn limiting_age(self, age_limit: Option<Span>) -> Self {
        Self { age_limit, ..self }
    }

    /// Returns the plan for queues that drop redundant ACKs; `None` for no filter.
    #[must_use]
    pub fn filtering_acks(self, ack_filter: Option<AckFilter>) -> Self {
        Self { ack_filter, ..self }
    }

    /// Returns a copy of the plan that uses random streams under the given name.
    pub fn named(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Returns a copy of the plan with queues of the given capacity.
    pub(crate) fn holding(&self, capacity: Capacity) -> Self {
        Self { capacity, ..self.clone() }
    }

    /// Capacity of each queue of the plan.
    pub const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Time after which packets leave each queue of the plan without being sent; `None` for no limit.
    pub const fn age_limit(&self) -> Option<Span> {
        self.age_limit
    }

    /// Builds the only queue of a link.
    pub fn build(&self) -> AnyQueue {
        self.build_named(self.capacity, &self.name)
    }

    /// Builds the queue of one flow, with separate random streams.
    pub fn build_for(&self, capacity: Capacity, flow: FlowId) -> AnyQueue {
        let name = format!("{}/{}", self.name, flow.0);
        self.build_named(capacity, &name)
    }

    fn build_named(&self, capacity: Capacity, name: &str) -> AnyQueue {
        let queue = self.config.build(&QueueContext { capacity, streams: &self.streams, name });
        let queue = match self.ack_filter {
            Some(filter) => Filtered::new(queue, filter).any(),
            None => queue,
        };
        match self.age_limit {
            Some(limit) => AgeLimited::new(queue, limit).any(),
            None => queue,
        }
    }
}

/// Configuration of a link: its table in a scenario file.
pub trait LinkConfig: fmt::Debug + Send + Sync {
    /// Mean rate and delay of the link.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError>;

    /// Builds the link from its table.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError>;

    /// Builds the medium of a link that consists of a queue and a medium; returns `None` for other links.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn medium(&self, _context: MediumContext<'_>) -> Result<Option<AnyMedium>, ConfigError> {
        Ok(None)
    }

    /// Whether the link consists of a queue and a medium. Only a link with a medium can change while it runs, because
    /// its medium can be replaced. For any other link, steps of `[[edge.at]]` are refused when the scenario is loaded.
    fn has_medium(&self) -> bool;

    /// Whether the link keeps sent packets until the receiver has acknowledged them, as a link with ARQ does
    /// ([`unacknowledged`](crate::LinkView::unacknowledged)).
    fn keeps_sent(&self) -> bool {
        false
    }

    /// Checks that a key of a cell, or `user.N.key` of its users, may change while the cell runs.
    ///
    /// # Errors
    /// Returns an error that names the key, and the keys that may change.
    fn may_change(&self, key: &str) -> Result<(), ConfigError> {
        Err(ConfigError::new(key, "a link of this kind cannot change in place while it runs"))
    }

    /// Returns the change by which a running cell gets the value that `key` has here.
    ///
    /// # Errors
    /// Returns an error if the key may not change, or if a file that the table names is unreadable or malformed.
    fn change(&self, key: &str, _context: ChangeContext<'_>) -> Result<CellChange, ConfigError> {
        Err(ConfigError::new(key, "a link of this kind cannot change in place while it runs"))
    }

    /// Impairments of the link's packets. A step of the scenario cannot change the impairments while the link runs.
    fn impairments(&self) -> Impairments {
        Impairments::default()
    }

    /// A remark on a setting whose effect is larger than it looks, beginning with its key.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Keys of the link's table that are not at their default and have no effect, because of other keys of the table.
    /// Paths are relative to the table.
    fn unused(&self) -> Vec<Unused> {
        Vec::new()
    }

    /// Whether runs with different seeds differ, because the link uses random numbers. Losses that a recording contains
    /// are not random.
    fn draws(&self) -> bool {
        true
    }

    /// Returns a copy of the link with the given users if the link is a cell.
    ///
    /// # Errors
    /// Returns an error if the users are invalid.
    fn serving(&self, _users: &[CellUser]) -> Result<Option<Arc<dyn LinkConfig>>, ConfigError> {
        Ok(None)
    }

    /// Users of a cell; `None` for other links.
    fn users(&self) -> Option<&[CellUser]> {
        None
    }
}
