//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far nothing: every ACK passes as it comes.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Time};
use ackclock_link::LinkView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Output, Regulator, RegulatorConfig};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {}

impl ackclock_core::Config for Config {}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(STRUCT { held: VecDeque::new() }))
    }
}

/// What is kept for one flow.
struct STRUCT {
    /// ACKs on their way to the sender.
    held: VecDeque<Segment>,
}

impl Regulator for STRUCT {
    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        self.held.push_back(ack);
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.held.pop_front().map(Output::ToSender)
    }

    fn held(&self, _: FlowId) -> usize {
        self.held.len()
    }
}
