//! Configuration of the power-controlled link.

use ackclock_core::{Config, ConfigError, Rate, Span};
use ackclock_link::errors::{ErrorContext, Errors};
use ackclock_link::reassembly::DeliveryOrder;
use ackclock_link::reassembly::Reassembly;
use ackclock_link::{AnyLink, Files, LinkConfig, LinkContext, Nominal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::PowerControlled;
use crate::blocks::BlockLink;

/// A radio link with power-controlled slots: each packet is sent in separate frames, one frame per slot. A damaged
/// frame is retransmitted a fixed number of slots later, before new frames.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PowerControlledConfig {
    /// Rate of the channel, including retransmissions.
    pub rate: Rate,
    /// Transmission time interval: duration of a slot, in which one frame is sent.
    pub tti: Span,
    /// Error process that damages frames: `power-control` or another process, or a probability, independent for each
    /// frame.
    pub errors: Errors,
    /// Treatment of damaged frames.
    pub arq: Arq,
    /// A frame damaged in slot t is retransmitted in slot t + guard.
    pub guard: u32,
    /// Number of copies of a frame in each retransmission round, sent in consecutive slots. A round starts if no copy
    /// of the previous round arrived. The scheme (1, 1, 1, 1, 1) has five rounds of one copy. After the last round the
    /// packet is lost.
    pub rounds: Vec<u32>,
    /// Order in which packets are delivered.
    pub order: DeliveryOrder,
    /// Propagation delay of a packet after reassembly.
    pub delay: Span,
}

/// Treatment of damaged frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arq {
    /// The receiver requests damaged frames by a negative acknowledgement, and they are retransmitted.
    #[default]
    Nak,
    /// Damaged frames are not retransmitted, and their packets are lost.
    None,
}

impl Default for PowerControlledConfig {
    /// Returns the channel of M05 at 384 kbit/s, without further delay.
    fn default() -> Self {
        Self {
            rate: Rate::from_bps(384_000),
            tti: Span::from_millis(20),
            errors: Errors::Process(json!({ "kind": "power-control" }).into()),
            arq: Arq::Nak,
            guard: 3,
            rounds: vec![1; 5],
            order: DeliveryOrder::OutOfSequence,
            delay: Span::ZERO,
        }
    }
}

const LONGEST: Span = Span::from_secs(1);
/// Maximum number of slots until a retransmission, and maximum number of copies of a frame: together they bound the
/// memory.
const MOST_SLOTS: u32 = 1000;

impl Config for PowerControlledConfig {
    /// Completes a table with options of the power control: the table need not name the error process.
    fn chosen_defaults(table: &Value) -> Option<Value> {
        table.get("errors")?.is_object().then(|| json!({ "errors": { "kind": "power-control" } }))
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.errors.check().map_err(|error| error.under("errors"))?;
        if !(Span::from_millis(1)..=LONGEST).contains(&self.tti) {
            return Err(ConfigError::new("tti", format!("{} is not 1ms to {LONGEST}", self.tti)));
        }
        if self.frame_bytes() == 0 {
            return Err(ConfigError::new("rate", format!("{} is less than one byte per slot", self.rate)));
        }
        self.check_rounds()
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let errors = self.errors.complete().map_err(|error| error.under("errors"))?;
        Ok(Self { errors, ..self })
    }
}

impl PowerControlledConfig {
    fn check_rounds(&self) -> Result<(), ConfigError> {
        let usual = Self::default();
        if self.arq == Arq::None && (self.guard, &self.rounds) != (usual.guard, &usual.rounds) {
            let key = if self.guard == usual.guard { "rounds" } else { "guard" };
            return Err(ConfigError::new(key, "nothing is retransmitted with arq = \"none\""));
        }
        if !(1..=MOST_SLOTS).contains(&self.guard) {
            return Err(ConfigError::new("guard", format!("{} is not 1 to {MOST_SLOTS}", self.guard)));
        }
        let copies: u64 = self.rounds.iter().map(|&copies| u64::from(copies)).sum();
        if self.rounds.is_empty() || self.rounds.contains(&0) || copies > MOST_SLOTS.into() {
            let message = format!(
                "{:?} must be a list of numbers above 0 with a sum of at most {MOST_SLOTS}",
                self.rounds
            );
            return Err(ConfigError::new("rounds", message));
        }
        Ok(())
    }

    /// Number of copies of a damaged frame in its next round; `None` after the last round.
    pub(super) fn copies(&self, rounds_before: usize) -> Option<u32> {
        match self.arq {
            Arq::Nak => self.rounds.get(rounds_before).copied(),
            Arq::None => None,
        }
    }

    pub(super) fn frame_bytes(&self) -> u32 {
        u32::try_from(self.rate.bytes_in(self.tti)).unwrap_or(u32::MAX)
    }

    /// Share of the frames that arrive undamaged.
    fn good(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        let bad = self.errors.share(files).map_err(|error| error.under("errors"))?;
        if bad >= 1.0 {
            return Err(ConfigError::new(
                "errors",
                "every frame is damaged: nothing would ever be delivered",
            ));
        }
        Ok(1.0 - bad)
    }
}

impl LinkConfig for PowerControlledConfig {
    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError> {
        let rate = Rate::from_bps_f64(self.rate.as_bps() as f64 * self.good(files)?);
        Ok(Nominal { rate, delay: self.delay })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        let good = self.good(context.files)?;
        let LinkContext { queue, meaning, streams, name, files } = context;
        let name = &format!("{name}/errors");
        let errors = self.errors.build(ErrorContext { streams, name, files, block: self.tti });
        let errors = errors.map_err(|error| error.under("errors"))?;
        let begun = Reassembly::new(self.order, self.tti, self.delay);
        Ok(BlockLink::any(PowerControlled::new(self.clone(), good, errors), begun, queue.build(), meaning))
    }

    fn keeps_sent(&self) -> bool {
        true
    }

    fn has_medium(&self) -> bool {
        false
    }
}
