//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far a fixed rate and a fixed delay.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use ackclock_core::{ConfigError, Rate, Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::errors::Errors;
use crate::lossy::with_errors;
use crate::medium::{Fate, Found, Medium, Transmission};
use crate::pieces::work_at;
use crate::{AnyLink, AnyMedium, Files, LinkConfig, LinkContext, MediumContext, Nominal};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Rate of the transmitter.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Span,
    /// Packets that the medium loses: a share, each by itself, or an error process.
    pub loss: Errors,
}

impl Default for Config {
    fn default() -> Self {
        Self { rate: Rate::from_bps(1_000_000), delay: Span::from_millis(10), loss: Errors::NONE }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        if self.rate == Rate::ZERO {
            return Err(ConfigError::new("rate", format!("{} is not above 0", self.rate)));
        }
        self.loss.check().map_err(|error| error.under("loss"))
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let loss = self.loss.complete().map_err(|error| error.under("loss"))?;
        Ok(Self { loss, ..self })
    }
}

impl Config {
    /// The medium, which may lose what it carries.
    fn transmitter(&self, context: MediumContext<'_>) -> Result<AnyMedium, ConfigError> {
        with_errors(STRUCT { rate: self.rate, delay: self.delay }, &self.loss, context)
    }
}

impl LinkConfig for Config {
    fn nominal(&self, _: &dyn Files) -> Result<Nominal, ConfigError> {
        Ok(Nominal { rate: self.rate, delay: self.delay })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        let medium = self.transmitter(context.for_medium())?;
        Ok(context.link(medium))
    }

    fn medium(&self, context: MediumContext<'_>) -> Result<Option<AnyMedium>, ConfigError> {
        self.transmitter(context).map(Some)
    }

    fn has_medium(&self) -> bool {
        true
    }
}

/// What differs from other links: how long a transmission takes, and how long the packet then travels.
struct STRUCT {
    rate: Rate,
    delay: Span,
}

impl Medium for STRUCT {
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        let departs = start + self.rate.time_for(segment.wire_bytes().into());
        Transmission { departs, delay: self.delay, fate: Fate::Arrives }
    }

    fn rate(&self, _: Time) -> Rate {
        self.rate
    }

    fn varies(&self) -> bool {
        false
    }

    fn least_delay(&self) -> Span {
        self.delay
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

    fn foreseeable(&self) -> bool {
        false
    }
}
