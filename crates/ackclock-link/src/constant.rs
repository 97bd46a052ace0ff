//! # Constant link
//!
//! ## Source
//! Source: the wired links of every paper, and CR02 Table 1 item 1.
//!
//! ## What it does
//! The link has a fixed rate and a fixed propagation delay.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! A unit test checks that a saturated link achieves exactly its rate. CR02 Table 1 item 1 is reproduced with this
//! link.

use ackclock_core::{Config, ConfigError, Pace, Rate, Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::errors::Errors;
use crate::lossy::with_errors;
use crate::medium::{AnyMedium, Fate, Found, Medium, Transmission};
use crate::pieces::work_at;
use crate::{
    AnyLink, Files, Framing, Impairments, LinkConfig, LinkContext, Loss, MediumContext, Nominal, Reorder,
};

/// A link of fixed rate and fixed delay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConstantConfig {
    /// Rate of the link.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Span,
    /// Packet loss: a probability, independent for each packet, or an error process.
    pub loss: Errors,
    /// Packets that leave `extra` later, so that later packets pass them: `{ share = "1%", extra = "20ms" }`. No other
    /// key lets packets overtake.
    #[serde(skip_serializing_if = "Reorder::is_none")]
    pub reorder: Reorder,
    /// Share of packets followed by a copy.
    #[serde(skip_serializing_if = "Loss::is_none")]
    pub duplicate: Loss,
    /// Share of packets whose payload gets a wrong bit, so that the receiver drops them.
    #[serde(skip_serializing_if = "Loss::is_none")]
    pub corrupt: Loss,
    /// Bytes that frames of the link add to each packet: 44, "44,atm", "30,ptm", "18,least=64", or a keyword of
    /// `tc-cake(8)` such as "docsis" or "ethernet". The rate counts them, goodput and utilisation do not.
    #[serde(skip_serializing_if = "Framing::is_none")]
    pub overhead: Framing,
}

impl Default for ConstantConfig {
    fn default() -> Self {
        Self {
            rate: Rate::from_bps(10_000_000),
            delay: Span::from_millis(20),
            loss: Errors::NONE,
            reorder: Reorder::default(),
            duplicate: Loss::NONE,
            corrupt: Loss::NONE,
            overhead: Framing::NONE,
        }
    }
}

impl Config for ConstantConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.loss.check().map_err(|error| error.under("loss"))?;
        self.impairments().check()?;
        if self.rate == Rate::ZERO {
            return Err(ConfigError::new(
                "rate",
                "must be above 0; for an outage use a step, [[edge.at]] with set = { down.rate = \"0bit/s\" }, \
                 or `outages` of kind = \"variable\"",
            ));
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let loss = self.loss.complete().map_err(|error| error.under("loss"))?;
        Ok(Self { loss, ..self })
    }
}

impl ConstantConfig {
    /// Builds the medium, including its losses.
    fn transmitter(&self, context: MediumContext<'_>) -> Result<AnyMedium, ConfigError> {
        with_errors(Constant::new(self.rate, self.delay), &self.loss, context)
    }
}

impl LinkConfig for ConstantConfig {
    fn nominal(&self, _: &dyn Files) -> Result<Nominal, ConfigError> {
        Ok(Nominal { rate: self.rate, delay: self.delay })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        let medium = self.overhead.around(self.transmitter(context.for_medium())?);
        Ok(context.impaired_link(medium, &self.impairments()))
    }

    fn medium(&self, context: MediumContext<'_>) -> Result<Option<AnyMedium>, ConfigError> {
        self.transmitter(context).map(|medium| Some(self.overhead.around(medium)))
    }

    fn has_medium(&self) -> bool {
        true
    }

    fn draws(&self) -> bool {
        !self.loss.is_none() || !self.impairments().is_none()
    }

    fn impairments(&self) -> Impairments {
        Impairments { reorder: self.reorder, duplicate: self.duplicate, corrupt: self.corrupt }
    }
}

/// A medium of fixed rate and fixed delay.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    pace: Pace,
    delay: Span,
}

impl Constant {
    /// Creates a medium with this rate and one-way propagation delay.
    pub const fn new(rate: Rate, delay: Span) -> Self {
        Self { pace: Pace::new(rate), delay }
    }
}

impl Medium for Constant {
    #[inline]
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        let departs = start + self.pace.time_for(segment.wire_bytes());
        Transmission { departs, delay: self.delay, fate: Fate::Arrives }
    }

    fn rate(&self, _: Time) -> Rate {
        self.pace.rate()
    }

    fn varies(&self) -> bool {
        false
    }

    fn least_delay(&self) -> Span {
        self.delay
    }

    fn foreseeable(&self) -> bool {
        self.pace.rate() > Rate::ZERO
    }

    fn any(self) -> AnyMedium {
        AnyMedium::Constant(self)
    }

    fn ready(&mut self, now: Time, _: Found) -> Time {
        now
    }

    fn rate_until(&self, _: Time) -> Time {
        Time::NEVER
    }

    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        Some(work_at(self.rate(from), until.since(from)))
    }

    fn restart_work(&mut self, _: Time) {}
}
