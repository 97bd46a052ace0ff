//! How scenario files name and build bearers.

use std::fmt;
use std::sync::Arc;

use ackclock_core::{ConfigError, Streams};

use super::{AnyBearer, Direction};
use crate::{BufferMeaning, CellUser, Files, LinkConfig, LinkContext, Nominal, OutageKind, QueuePlan, Side};

/// The link tables of an edge, for bearers made of links.
#[derive(Debug)]
pub struct BearerLinks {
    /// The downlink; a cell has its users.
    pub down: Arc<dyn LinkConfig>,
    /// The uplink.
    pub up: Arc<dyn LinkConfig>,
}

/// Context for building a bearer from its table.
#[derive(Clone, Copy)]
pub struct BearerContext<'a> {
    /// Queue of the downlink, which draws from `down/queue`.
    pub down: &'a QueuePlan,
    /// Queue of the uplink, which draws from `up/queue`.
    pub up: &'a QueuePlan,
    /// Which packets count against the capacity of the downlink queue.
    pub meaning: BufferMeaning,
    /// Random streams of the run. A bearer draws from streams named `down/...` and `up/...`.
    pub streams: &'a Streams,
    /// Reads files that the table names.
    pub files: &'a dyn Files,
}

impl<'a> BearerContext<'a> {
    /// Context for building a link of the bearer whose streams are named `name`.
    pub(super) const fn link(
        &self,
        name: &'a str,
        queue: QueuePlan,
        meaning: BufferMeaning,
    ) -> LinkContext<'a> {
        LinkContext { queue, meaning, streams: self.streams, name, files: self.files }
    }
}

/// Configuration of a bearer: its table in a scenario file.
pub trait BearerConfig: fmt::Debug + Send + Sync {
    /// Whether the bearer is made of the edge's links `down` and `up`. For other bearers these keys are refused, and
    /// so are keys of `set` in `[[edge.at]]`.
    fn uses_links(&self) -> bool;

    /// What an outage is where nothing says it; `None` if the bearer cannot be interrupted.
    fn outage(&self) -> Option<OutageKind> {
        None
    }

    /// Side of the radio, for a box that only observes its queue. The buffer of such a box must be given in packets or
    /// bytes, and it has no configurable queue discipline.
    fn observes(&self) -> Option<Side> {
        None
    }

    /// Whether the bearer regulates traffic itself, so that no regulator can be used with it.
    fn regulates(&self) -> bool {
        false
    }

    /// The same bearer with the users of `[[edge.user]]`, if it has users of its own.
    ///
    /// # Errors
    /// Names the key of the user that is invalid.
    fn serving(&self, _users: &[CellUser]) -> Result<Option<Arc<dyn BearerConfig>>, ConfigError> {
        Ok(None)
    }

    /// Its users in groups, if it has users of its own.
    fn users(&self) -> Option<&[CellUser]> {
        None
    }

    /// Mean rate of a direction, and the delay of both together.
    ///
    /// # Errors
    /// A file that the table names is unreadable or malformed.
    fn nominal(
        &self,
        direction: Direction,
        links: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError>;

    /// Names of its link-layer gauges, with units; the same in both directions.
    fn gauges(&self) -> &'static [&'static str];

    /// Builds the bearer.
    ///
    /// # Errors
    /// A file that the table names is unreadable or malformed.
    fn build(&self, links: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError>;
}
