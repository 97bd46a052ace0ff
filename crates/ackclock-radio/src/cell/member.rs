//! A user of a cell: its channel, its random streams, and the packet of which a part was sent.

use ackclock_core::results::BlockUse;
use ackclock_core::{ConfigError, Segment, Time};
use ackclock_link::CellUser;
use ackclock_link::delay::Delays;
use ackclock_link::errors::{AnyErrorProcess, ErrorContext};
use ackclock_link::{LinkContext, OutageKind};

use super::channel::Channel;
use super::config::CellConfig;
use super::harq::Harq;
use super::interruption::{Interruption, InterruptionKind};
use super::slots::Slots;

/// State of one user of a cell.
pub(super) struct Member {
    pub(super) channel: Channel,
    pub(super) delays: Delays,
    pub(super) errors: AnyErrorProcess,
    pub(super) harq: Option<Box<Harq>>,
    /// Packet of which a part was sent, if any.
    pub(super) begun: Option<Fragment>,
    pub(super) last_arrival: Time,
    /// Mean rate of the channel, bit/s.
    pub(super) mean_bps: f64,
    /// Last slot for which the scheduler decided, and the state of the channel in that slot.
    pub(super) state: (u64, usize),
    /// Latest outage or hand-over of the user.
    pub(super) interruption: Option<Interruption>,
    /// Use of the user's blocks, in the unit of `Grant`.
    pub(super) used: BlockUse,
}

impl Member {
    /// Creates the user with the number `number`.
    ///
    /// # Errors
    /// Returns an error if a file that the error processes name is unreadable or malformed.
    pub(super) fn new(
        config: &CellConfig,
        number: u32,
        user: &CellUser,
        context: &LinkContext<'_>,
    ) -> Result<Self, ConfigError> {
        let &LinkContext { streams, name, files, .. } = context;
        let stream = |what: &str| streams.stream(&format!("{name}/{what}/{number}"));
        let block = Slots::new(config.slots).length();
        let names =
            ["loss", "harq", "harq/again", "harq/feedback"].map(|what| format!("{name}/{what}/{number}"));
        let [loss, first, again, feedback] =
            names.each_ref().map(|name| ErrorContext { streams, name, files, block });
        let errors = config.loss.build(loss);
        let harq = config.harq.as_ref().map(|harq| Harq::new(harq, [first, again, feedback])).transpose();
        Ok(Self {
            channel: Channel::new(user, &config.rates, config.slots.into(), stream("fading")),
            delays: Delays::new(config.delay.clone(), stream("delay")),
            errors: errors.map_err(|error| error.under("loss"))?,
            harq: harq.map_err(|error| error.under("harq"))?.map(Box::new),
            begun: None,
            last_arrival: Time::ZERO,
            mean_bps: config.mean_rate(user),
            state: (u64::MAX, 0),
            interruption: None,
            used: BlockUse::default(),
        })
    }

    /// Whether the channel is in an outage of this kind at `now`.
    pub(super) fn is_interrupted(&self, kind: OutageKind, now: Time) -> bool {
        self.interruption.is_some_and(|one| one.is(InterruptionKind::Outage(kind), now))
    }

    /// End of the hand-over that lasts at `now`, if any.
    pub(super) fn away_until(&self, now: Time) -> Option<Time> {
        self.interruption.filter(|one| one.is(InterruptionKind::Handover, now)).map(|one| one.until)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Fragment {
    pub(super) segment: Segment,
    /// Unsent bits of the packet, multiplied by the number of slots per second, so that rates need no division.
    pub(super) left: u64,
}
