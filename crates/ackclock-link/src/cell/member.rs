//! A user of a cell: its channel, its luck, and the packet that is being sent to it.

use ackclock_core::{Segment, Stream, Streams, Time};

use super::channel::Channel;
use super::config::{CellConfig, CellUser};
use crate::delay::Delays;

/// One user.
pub(super) struct Member {
    pub(super) channel: Channel,
    pub(super) delays: Delays,
    pub(super) chance: Stream,
    /// The packet that has begun to be sent and has not ended.
    pub(super) begun: Option<Fragment>,
    pub(super) last_arrival: Time,
    /// State of the channel in the slot decided last, and that slot.
    pub(super) state: (u64, usize),
}

impl Member {
    pub(super) fn new(
        config: &CellConfig,
        number: u32,
        user: &CellUser,
        streams: &Streams,
        name: &str,
    ) -> Self {
        let stream = |what: &str| streams.stream(&format!("{name}/{what}/{number}"));
        Self {
            channel: Channel::new(user, &config.rates, config.slots.into(), stream("fading")),
            delays: Delays::new(config.delay.clone(), stream("delay")),
            chance: stream("loss"),
            begun: None,
            last_arrival: Time::ZERO,
            state: (u64::MAX, 0),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Fragment {
    pub(super) segment: Segment,
    /// Work that is left.
    pub(super) left: u64,
}
