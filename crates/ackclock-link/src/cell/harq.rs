//! HARQ: what failed in a slot is sent again in another.
//!
//! A block is what one service carries to a user. Where it fails, the same block takes slots again, at least a delay after its
//! transmission began, before the user sends anything new; the receiver hands packets on in order. A packet is lost where a part of it was in
//! a block that failed more often than the limit allows.

use std::collections::VecDeque;

use ackclock_core::{ConfigError, Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::errors::{AnyErrorProcess, ErrorContext, ErrorProcess};
use crate::{Errors, Fate, Files};

/// How a cell sends again what failed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HarqConfig {
    /// Transmissions that fail: a share, each by itself, or an error process, which each user has of its own.
    pub error: Errors,
    /// Repetitions that fail, where they are received with the transmissions before them; where it is left out, they fail as
    /// first transmissions do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_error: Option<Errors>,
    /// Least time from the beginning of a transmission that fails to that of its repetition.
    pub delay: Span,
    /// Most repetitions of a block; one that fails then too is lost with its packets.
    pub limit: u32,
}

impl Default for HarqConfig {
    /// HSDPA as simulations take it: every tenth block fails, six slots of 2 ms pass, four transmissions at most.
    fn default() -> Self {
        Self {
            error: crate::Loss(0.1).into(),
            repetition_error: None,
            delay: Span::from_millis(12),
            limit: 3,
        }
    }
}

impl HarqConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.error.check().map_err(|error| error.under("error"))?;
        self.repetitions().check().map_err(|error| error.under("repetition_error"))
    }

    pub(super) fn complete(self) -> Result<Self, ConfigError> {
        let error = self.error.complete().map_err(|error| error.under("error"))?;
        let again = self.repetition_error.map(Errors::complete).transpose();
        Ok(Self { error, repetition_error: again.map_err(|error| error.under("repetition_error"))?, ..self })
    }

    /// Mean transmissions of a block whose transmissions fail each by itself.
    pub(super) fn transmissions(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        let first = self.error.share(files).map_err(|error| error.under("error"))?;
        let again = self.repetitions().share(files).map_err(|error| error.under("repetition_error"))?;
        // 1 + e (1 + r + ... + r^(limit - 1))
        let repetitions = if again < 1.0 {
            (1.0 - libm::pow(again, self.limit.into())) / (1.0 - again)
        } else {
            self.limit.into()
        };
        Ok(1.0 + first * repetitions)
    }

    const fn repetitions(&self) -> &Errors {
        match &self.repetition_error {
            Some(errors) => errors,
            None => &self.error,
        }
    }
}

/// The blocks of a user that were sent and of which somebody still waits for something.
pub(super) struct Harq {
    errors: AnyErrorProcess,
    /// Where repetitions fail otherwise.
    again: Option<AnyErrorProcess>,
    delay: Span,
    limit: u32,
    blocks: VecDeque<Block>,
    /// The packets that end in them.
    packets: VecDeque<Segment>,
    /// Place of the block that is being sent.
    air: usize,
    /// The packet that goes on from a block before has lost a part.
    broken: bool,
}

/// What one service carried.
struct Block {
    state: State,
    /// Slots that it takes.
    slots: u64,
    repetitions: u32,
    /// How many packets end in it and were not handed on.
    ends: u32,
    rest: Rest,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is being sent.
    Sent,
    /// It failed, and may be sent again from this instant on.
    Failed(Time),
    Received,
    Lost,
}

/// What follows the last packet that ends in a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The rest of the block is empty.
    Empty,
    /// The first part of a packet that goes on in the next block.
    Begun,
}

impl Harq {
    /// The HARQ of a user, with the contexts of the errors of first transmissions and of repetitions.
    pub(super) fn new(
        config: &HarqConfig,
        [first, again]: [ErrorContext<'_>; 2],
    ) -> Result<Self, ConfigError> {
        let errors = config.error.build(first);
        let again = config.repetition_error.as_ref().map(|errors| errors.build(again)).transpose();
        Ok(Self {
            errors: errors.map_err(|error| error.under("error"))?,
            again: again.map_err(|error| error.under("repetition_error"))?,
            delay: config.delay,
            limit: config.limit,
            blocks: VecDeque::new(),
            packets: VecDeque::new(),
            air: 0,
            broken: false,
        })
    }

    /// A new block was sent, in which these packets end.
    pub(super) fn sent(&mut self, packets: &[Segment], rest: Rest, slots: u64) {
        self.air = self.blocks.len();
        let ends = packets.len() as u32;
        self.blocks.push_back(Block { state: State::Sent, slots, repetitions: 0, ends, rest });
        self.packets.extend(packets);
    }

    /// Sends the first block again that waits for it at `now`, and gives the slots that it takes.
    pub(super) fn repeat(&mut self, now: Time) -> Option<u64> {
        self.air = self.blocks.iter().position(|block| block.waits(now))?;
        let block = &mut self.blocks[self.air];
        block.state = State::Sent;
        block.repetitions += 1;
        Some(block.slots)
    }

    /// Whether a block waits at `now` to be sent again.
    pub(super) fn waits(&self, now: Time) -> bool {
        self.blocks.iter().any(|block| block.waits(now))
    }

    /// The transmission from `began` to `now` is over. Where it failed, tells from when on it may be repeated.
    pub(super) fn land(&mut self, began: Time, now: Time) -> Option<Time> {
        let block = self.blocks.get_mut(self.air)?;
        let errors = match &mut self.again {
            Some(again) if block.repetitions > 0 => again,
            _ => &mut self.errors,
        };
        block.state = match errors.fate(now) {
            Fate::Arrives => State::Received,
            Fate::Lost if block.repetitions == self.limit => State::Lost,
            Fate::Lost => State::Failed(began + self.delay),
        };
        match block.state {
            State::Failed(due) => Some(due),
            _ => None,
        }
    }

    /// The next packet that is handed on or given up, in order.
    pub(super) fn release(&mut self) -> Option<(Segment, Fate)> {
        loop {
            let block = self.blocks.front_mut()?;
            let lost = match block.state {
                State::Received => false,
                State::Lost => true,
                State::Sent | State::Failed(_) => return None,
            };
            if block.ends > 0 {
                block.ends -= 1;
                let broken = std::mem::take(&mut self.broken);
                let fate = if lost || broken { Fate::Lost } else { Fate::Arrives };
                return Some((self.packets.pop_front()?, fate));
            }
            self.broken |= lost && block.rest == Rest::Begun;
            self.blocks.pop_front();
        }
    }

    /// The packets that were sent and neither handed on nor given up.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = &Segment> {
        self.packets.iter()
    }
}

impl Block {
    fn waits(&self, now: Time) -> bool {
        matches!(self.state, State::Failed(due) if due <= now)
    }
}
