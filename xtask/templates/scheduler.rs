//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far users who have something to send and a rate are served in turn.
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, Scheduler, SchedulerConfig, SchedulerContext, Service, Turn};

/// NAME: say in one sentence what it does; this line is its documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {}

impl ackclock_core::Config for Config {}

impl SchedulerConfig for Config {
    fn build(&self, _: SchedulerContext<'_>) -> Box<dyn Scheduler> {
        Box::new(STRUCT::default())
    }
}

/// What is kept from slot to slot.
#[derive(Debug, Default)]
struct STRUCT {
    turn: Turn,
}

impl Scheduler for STRUCT {
    fn choose(&mut self, _: u64, candidates: &[Candidate]) -> Option<usize> {
        let able = candidates.iter().enumerate().filter(|(_, candidate)| candidate.rate > 0.0);
        able.min_by_key(|(_, candidate)| self.turn.of(candidate.user)).map(|(index, _)| index)
    }

    fn served(&mut self, service: Service) {
        self.turn.served(service.user);
    }
}
