//! How scenario files name and build bearers.

use std::fmt;
use std::sync::Arc;

use ackclock_core::{ConfigError, Streams};

use super::{AnyBearer, Direction};
use crate::{BufferMeaning, Files, LinkConfig, LinkContext, Nominal, QueuePlan, Side};

/// The tables of the links that an edge names, which a bearer may be made of.
#[derive(Debug)]
pub struct BearerLinks {
    /// The link towards the mobiles, which knows its users where it is a cell.
    pub down: Arc<dyn LinkConfig>,
    /// The link from the mobiles.
    pub up: Arc<dyn LinkConfig>,
}

/// What a bearer is built from, beside its own table.
#[derive(Clone, Copy)]
pub struct BearerContext<'a> {
    /// The queue of the direction towards the mobiles, which draws from `down/queue`.
    pub down: &'a QueuePlan,
    /// The queue of the direction from the mobiles, which draws from `up/queue`.
    pub up: &'a QueuePlan,
    /// Which packets count against the capacity of the queue towards the mobiles.
    pub meaning: BufferMeaning,
    /// Random streams of the run. A bearer draws from those called `down/...` and `up/...`.
    pub streams: &'a Streams,
    /// Files that its table names.
    pub files: &'a dyn Files,
}

impl<'a> BearerContext<'a> {
    /// What a link of the bearer is built from, where its streams are called `name`.
    pub(super) const fn link(
        &self,
        name: &'a str,
        queue: QueuePlan,
        meaning: BufferMeaning,
    ) -> LinkContext<'a> {
        LinkContext { queue, meaning, streams: self.streams, name, files: self.files }
    }
}

/// The table of a bearer in a scenario file.
pub trait BearerConfig: fmt::Debug + Send + Sync {
    /// Whether it is made of the links that an edge names: `down`, `up`, and what belongs to them. Of any other bearer these
    /// keys are refused, and so are steps of `[[edge.at]]`, which change links.
    fn uses_links(&self) -> bool;

    /// Where it stands, if it is a box that only observes a queue of others. Of such a box the buffer is a number of packets or
    /// bytes, and the queue discipline is nobody's to choose.
    fn observes(&self) -> Option<Side> {
        None
    }

    /// Whether it regulates what passes by itself, so that no regulator stands beside it.
    fn regulates(&self) -> bool {
        false
    }

    /// What the channel is like in the mean: the rate of a direction, and the delay of both together.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn nominal(
        &self,
        direction: Direction,
        links: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError>;

    /// Names of what its link layer shows of its state, with units; the same in both directions.
    fn gauges(&self) -> &'static [&'static str];

    /// Builds the bearer.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn build(&self, links: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError>;
}
