//! Configuration of bearers: how scenario files name them and how they are built.

use std::fmt;
use std::sync::Arc;

use ackclock_core::{ConfigError, Span, Streams};

use super::{AnyBearer, Change, ChangeContext, Direction};
use crate::errors::ErrorContext;
use crate::{
    BufferMeaning, Capacity, CellUser, ClassConfig, Files, LinkConfig, LinkContext, Nominal, OutageKind,
    QueuePlan, Side,
};

/// Link tables of an edge, for bearers that consist of links.
#[derive(Debug)]
pub struct BearerLinks {
    /// Configuration of the downlink; the configuration of a cell includes the cell's users.
    pub down: Arc<dyn LinkConfig>,
    /// Configuration of the uplink.
    pub up: Arc<dyn LinkConfig>,
}

impl BearerLinks {
    /// Whether the link of each [`Direction`] impairs packets.
    pub fn impaired(&self) -> [bool; 2] {
        [&self.down, &self.up].map(|link| !link.impairments().is_none())
    }
}

/// Inputs from which a bearer is built, in addition to its table.
#[derive(Clone, Copy)]
pub struct BearerContext<'a> {
    /// Plan of the downlink queue, which draws from the random stream `down/queue`.
    pub down: &'a QueuePlan,
    /// Plan of the uplink queue, which draws from the random stream `up/queue`.
    pub up: &'a QueuePlan,
    /// Capacity of each user's downlink queue for each named class of service.
    pub classes: &'a [Capacity],
    /// Multiple of the bandwidth-delay product that the buffer is, for a bearer that measures the rate itself.
    pub follows: Option<f64>,
    /// Packets that count against the capacity of the downlink queue.
    pub meaning: BufferMeaning,
    /// Random streams of the run. A bearer draws from the streams named `down/...` and `up/...`.
    pub streams: &'a Streams,
    /// Reads the files that the table names.
    pub files: &'a dyn Files,
}

impl<'a> BearerContext<'a> {
    /// Plan of the downlink queue of the class with this number; the unnamed class is number 0.
    pub fn down_of(&self, class: usize) -> QueuePlan {
        let capacity = class.checked_sub(1).and_then(|named| self.classes.get(named));
        self.down.holding(capacity.copied().unwrap_or(self.down.capacity()))
    }

    /// Returns the context for building an error process with the random stream `name`; the caller sets its block.
    pub const fn errors(&self, name: &'a str) -> ErrorContext<'a> {
        ErrorContext { streams: self.streams, name, files: self.files, block: Span::ZERO }
    }

    /// Returns the context for building the link of this bearer whose random streams are named `name`.
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
    /// Whether the bearer consists of the edge's links `down` and `up`. Any other bearer refuses the keys `down` and
    /// `up`.
    fn uses_links(&self) -> bool;

    /// Whether a bearer without links keeps sent packets until they are acknowledged, like
    /// [`LinkConfig::keeps_sent`](crate::LinkConfig::keeps_sent).
    fn keeps_sent(&self) -> bool {
        false
    }

    /// Kind of outage if the configuration names no kind; `None` if the bearer cannot be interrupted.
    fn outage(&self) -> Option<OutageKind> {
        None
    }

    /// Checks that a key of the bearer's table may change while the bearer runs.
    ///
    /// # Errors
    /// Returns an error that names the key, and the keys that may change.
    fn may_change(&self, key: &str) -> Result<(), ConfigError> {
        Err(ConfigError::new(key, "a bearer of this kind cannot change while it runs"))
    }

    /// Returns the changes of a running bearer, with their directions, by which `key` gets the value of this table.
    ///
    /// # Errors
    /// Returns an error if the key may not change, or if a file that the table names is unreadable or malformed.
    fn changes(
        &self,
        key: &str,
        _context: ChangeContext<'_>,
    ) -> Result<Vec<(Direction, Change)>, ConfigError> {
        self.may_change(key).map(|()| Vec::new())
    }

    /// Whether users of the bearer can be handed over.
    fn hands_over(&self) -> bool {
        false
    }

    /// Side of the radio on which the bearer observes the queue; `None` for a bearer that does not only observe. The
    /// buffer of an observing box must be given in packets or bytes, and its queue discipline cannot be configured.
    fn observes(&self) -> Option<Side> {
        None
    }

    /// Whether the bearer regulates traffic itself, so that no regulator can be used with it.
    fn regulates(&self) -> bool {
        false
    }

    /// Returns a copy of the bearer with the users of `[[edge.user]]`, if this kind of bearer has users.
    ///
    /// # Errors
    /// Returns an error that names the invalid key of a user.
    fn serving(&self, _users: &[CellUser]) -> Result<Option<Arc<dyn BearerConfig>>, ConfigError> {
        Ok(None)
    }

    /// Returns a copy of the bearer with the classes of service of `[[edge.class]]`, if this kind of bearer has classes.
    ///
    /// # Errors
    /// Returns an error that names the invalid key of a class.
    fn with_classes(&self, _classes: &[ClassConfig]) -> Result<Option<Arc<dyn BearerConfig>>, ConfigError> {
        Ok(None)
    }

    /// Groups of users, if this kind of bearer has users.
    fn users(&self) -> Option<&[CellUser]> {
        None
    }

    /// Whether the capacity is known only at the end of a run, from samples spread over the run.
    fn samples_capacity(&self) -> bool {
        self.users().is_some()
    }

    /// Mean rate of one direction, and the delay of the two directions together.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn nominal(
        &self,
        direction: Direction,
        links: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError>;

    /// Remarks on settings of the bearer whose effect is larger than it looks, each beginning with its key.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names of the bearer's link-layer gauges, with units, for each direction.
    fn gauges(&self) -> Vec<&'static str>;

    /// Builds the bearer from its table.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn build(&self, links: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError>;
}
