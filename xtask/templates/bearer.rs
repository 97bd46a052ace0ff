//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far what two links do.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use std::borrow::Cow;

use ackclock_core::results::RadioCounts;
use ackclock_core::{Config as Checked, ConfigError, FlowId, Histogram, RadioReport, Segment, Time};
use delegate::delegate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyBearer, Bearer, BearerConfig, BearerContext, BearerLinks, Direction, LinksConfig, Observing};
use crate::{Cause, Change, Departures, Files, LinkEvent, LinkView, Load, Nominal};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {}

impl Checked for Config {}

impl BearerConfig for Config {
    // One that says everything in its own table says `false`: then keys of links are refused, and `links` mean nothing.
    fn uses_links(&self) -> bool {
        true
    }

    fn nominal(
        &self,
        direction: Direction,
        links: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        LinksConfig {}.nominal(direction, links, files)
    }

    fn gauges(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn build(&self, links: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let inner = LinksConfig {}.build(links, context)?;
        Ok(AnyBearer::Other(Box::new(STRUCT { inner })))
    }
}

/// Both directions.
struct STRUCT {
    inner: AnyBearer,
}

impl Bearer for STRUCT {
    delegate! {
        to self.inner {
            fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;
            fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause>;
            fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)>;
            fn take_segment(&mut self, direction: Direction) -> Segment;
            fn due(&self, direction: Direction) -> Time;
            fn want_departures(&mut self, direction: Direction, departures: Departures);
            fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView;
            fn waiting(&mut self, now: Time, direction: Direction) -> Load;
            fn waiting_of(&mut self, now: Time, user: u32) -> Load;
            fn waits(&self, direction: Direction) -> Cow<'_, Histogram>;
            fn gauges(&self, direction: Direction) -> Vec<f64>;
            fn radio(&self, direction: Direction, user: Option<u32>) -> Option<RadioCounts>;
            fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64>;
            fn start_capacity(&mut self, now: Time, direction: Direction);
            fn want_reports(&mut self);
            fn poll_report(&mut self, now: Time) -> Option<RadioReport>;
            fn change(&mut self, now: Time, direction: Direction, change: Change);
            fn assign(&mut self, flow: FlowId, user: u32);
            fn classify(&mut self, flow: FlowId, class: u8);
            fn forget(&mut self, flow: FlowId);
            fn let_go(&mut self);
            fn observing(&mut self) -> Option<&mut dyn Observing>;
        }
    }
}
