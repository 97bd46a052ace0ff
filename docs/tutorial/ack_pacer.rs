//! # Ack pacer
//!
//! ## Source
//! The tutorial of this project; not a published mechanism.
//!
//! ## What it does
//! At most one ACK passes per `interval`; ACKs in between are delayed.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! Two ACKs of one instant leave one interval apart (test below); the laws of every regulator.

use std::collections::VecDeque;

use ackclock_core::{ConfigError, FlowId, Segment, Span, Time};
use ackclock_link::LinkView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Output, Regulator, RegulatorConfig};

/// At most one ACK passes per interval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Minimum time between two ACKs.
    pub(crate) interval: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self { interval: Span::from_millis(10) }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        if self.interval > Span::from_secs(1) {
            return Err(ConfigError::new("interval", format!("{} is more than 1s", self.interval)));
        }
        Ok(())
    }
}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(AckPacer::new(self.interval)))
    }
}

/// The pacer of one flow.
struct AckPacer {
    interval: Span,
    /// Delayed ACKs, oldest first.
    held: VecDeque<Segment>,
    /// Time at which the next ACK may pass.
    next: Time,
}

impl AckPacer {
    fn new(interval: Span) -> Self {
        Self { interval, held: VecDeque::new(), next: Time::ZERO }
    }
}

impl Regulator for AckPacer {
    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        self.held.push_back(ack);
    }

    fn poll_output(&mut self, now: Time) -> Option<Output> {
        if now < self.next {
            return None;
        }
        let ack = self.held.pop_front()?;
        self.next = now + self.interval;
        Some(Output::ToSender(ack))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.held.front().map(|_| self.next)
    }

    fn close(&mut self, _: Time, _: FlowId) {
        self.interval = Span::ZERO;
        self.next = Time::ZERO;
    }

    fn held(&self, _: FlowId) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Seq;

    use super::*;

    #[test]
    fn two_acks_at_one_instant_leave_an_interval_apart() {
        let interval = Span::from_millis(10);
        let noon = Time::ZERO + Span::from_secs(1);
        let mut pacer = AckPacer::new(interval);
        pacer.held.extend([Segment::pure_ack(FlowId(0), Seq(1000), 40); 2]);
        assert!(pacer.poll_output(noon).is_some());
        assert!(pacer.poll_output(noon).is_none());
        assert_eq!(pacer.poll_timeout(), Some(noon + interval));
        assert!(pacer.poll_output(noon + interval).is_some());
    }
}
