//! Configuration of the simple UMTS RLC link.

use ackclock_core::{Config, ConfigError, Rate, Span, Time};
use ackclock_link::errors::{ErrorContext, Errors};
use ackclock_link::outage::{Outage, Outages};
use ackclock_link::reassembly::DeliveryOrder;
use ackclock_link::reassembly::Reassembly;
use ackclock_link::{AnyLink, Files, LinkConfig, LinkContext, Nominal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UmtsRlc;
use crate::blocks::BlockLink;

/// A radio link that cuts packets into blocks and retransmits failed blocks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UmtsRlcConfig {
    /// Rate of the channel, including retransmissions.
    pub rate: Rate,
    /// Length of the transmission time interval (TTI).
    pub tti: Span,
    /// Number of blocks per TTI. Independent errors affect blocks separately; other error processes without `interval`
    /// affect an entire TTI.
    pub pdus: u32,
    /// Block errors: a probability, independent for each block, or an error process.
    pub bler: Errors,
    /// Delay from the end of a failed block until the block may be retransmitted.
    pub repetition_delay: Span,
    /// Maximum retransmissions of a block before its packets are lost; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Order in which packets are delivered.
    pub order: DeliveryOrder,
    /// Time at which the receiver has the data of a block: at the end of the block, or at the end of its TTI.
    pub delivery: Batch,
    /// Time at which a failed block is reported: at the end of the block, or at the end of its TTI in one status with
    /// all failures.
    pub status: Batch,
    /// Time at which a failed block is retransmitted: as soon as possible, or not before the next TTI starts.
    pub repetition: Batch,
    /// Propagation delay of a packet after reassembly.
    pub delay: Span,
    /// Times in which no block starts, for example during a handover: `{ at = "20s", for = "500ms", every = "60s" }`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
}

/// Whether an event occurs per block, or at the next TTI boundary. TTIs start at time zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Batch {
    /// Events occur block by block.
    #[default]
    ByBlock,
    /// Events occur at the next TTI boundary.
    ByTti,
}

impl Batch {
    /// Earliest time, from `at` on, at which an RLC event can occur: `at` itself, or the next TTI boundary.
    pub(super) fn from(self, at: Time, tti: Span) -> Time {
        match self {
            Self::ByBlock => at,
            Self::ByTti => Time::from_nanos(at.as_nanos().div_ceil(tti.as_nanos()) * tti.as_nanos()),
        }
    }
}

impl Default for UmtsRlcConfig {
    /// Channel of paper L02 at 384 kbit/s.
    fn default() -> Self {
        Self {
            rate: Rate::from_bps(384_000),
            tti: Span::from_millis(20),
            pdus: 1,
            bler: Errors::NONE,
            repetition_delay: Span::from_millis(60),
            limit: None,
            order: DeliveryOrder::InSequence,
            delivery: Batch::ByBlock,
            status: Batch::ByBlock,
            repetition: Batch::ByBlock,
            delay: Span::from_millis(60),
            outages: Vec::new(),
        }
    }
}

// A block takes at least half a microsecond, so at most two million blocks wait for retransmission.
const MOST_PDUS: u32 = 1000;
const LONGEST: Span = Span::from_secs(1);

impl Config for UmtsRlcConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.bler.check().map_err(|error| error.under("bler"))?;
        Outages::new(&self.outages)?;
        if !(Span::from_millis(1)..=LONGEST).contains(&self.tti) {
            return Err(ConfigError::new("tti", format!("{} is not 1ms to {LONGEST}", self.tti)));
        }
        if !(1..=MOST_PDUS).contains(&self.pdus) {
            return Err(ConfigError::new("pdus", format!("{} is not 1 to {MOST_PDUS}", self.pdus)));
        }
        if self.repetition_delay > LONGEST {
            let message = format!("{} is more than {LONGEST}", self.repetition_delay);
            return Err(ConfigError::new("repetition_delay", message));
        }
        if self.block_bytes() == 0 {
            let message = format!("{} is less than one byte per block", self.rate);
            return Err(ConfigError::new("rate", message));
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let bler = self.bler.complete().map_err(|error| error.under("bler"))?;
        Ok(Self { bler, ..self })
    }
}

impl UmtsRlcConfig {
    pub(super) fn block_bytes(&self) -> u32 {
        let bytes = self.rate.bytes_in(self.tti) / u64::from(self.pdus.max(1));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Transmission time of a block.
    pub(super) fn block_time(&self) -> Span {
        self.rate.time_for(self.block_bytes().into())
    }

    /// Expected share of blocks that arrive.
    fn good(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        let bad = self.bler.share(files).map_err(|error| error.under("bler"))?;
        if bad >= 1.0 {
            return Err(ConfigError::new("bler", "every block fails: nothing would ever be delivered"));
        }
        Ok(1.0 - bad)
    }
}

impl LinkConfig for UmtsRlcConfig {
    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError> {
        let share = self.good(files)? * Outages::new(&self.outages)?.share_on();
        let rate = Rate::from_bps_f64(self.rate.as_bps() as f64 * share);
        Ok(Nominal { rate, delay: self.delay })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        let good = self.good(context.files)?;
        let LinkContext { queue, meaning, streams, name, files } = context;
        let name = &format!("{name}/bler");
        let errors = self.bler.build(ErrorContext { streams, name, files, block: self.tti });
        let errors = errors.map_err(|error| error.under("bler"))?;
        let outages = Outages::new(&self.outages)?;
        let begun = Reassembly::new(self.order, self.block_time(), self.delay);
        let rlc = UmtsRlc::new(self.clone(), outages, good, errors);
        Ok(BlockLink::any(rlc, begun, queue.build(), meaning))
    }

    fn keeps_sent(&self) -> bool {
        true
    }

    fn has_medium(&self) -> bool {
        false
    }
}
