//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far nothing: every connection rules itself.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use ackclock_core::{ConnectionEvent, FlowId, RadioReport, Setting, Span, Steering, SteeringConfig, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {}

impl ackclock_core::Config for Config {}

impl SteeringConfig for Config {
    fn build(&self) -> Option<Box<dyn Steering>> {
        Some(Box::new(STRUCT))
    }

    fn patience(&self) -> Option<Span> {
        Some(Span::from_secs(3))
    }
}

/// What is kept for one user.
struct STRUCT;

impl Steering for STRUCT {
    fn on_connection(&mut self, _: Time, _: FlowId, _: ConnectionEvent) {}

    fn on_report(&mut self, _: Time, _: &RadioReport) {}

    fn poll_setting(&mut self, _: Time) -> Option<(FlowId, Setting)> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn on_timeout(&mut self, _: Time) {}
}
