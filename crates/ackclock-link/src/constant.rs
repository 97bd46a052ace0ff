//! # Constant link
//!
//! ## Source
//! The wired links of every source document, and CR02 Table 1 item 1.
//!
//! ## What it does
//! A fixed rate and a fixed propagation delay.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! A saturated link carries exactly its rate (unit test); CR02 Table 1 item 1.

use ackclock_core::{Rate, Segment, Span, Time};

use crate::serial::{Fate, Medium, Transmission};

/// A fixed rate and a fixed delay.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Rate of the transmitter.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Span,
}

impl Medium for Constant {
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        let departs = start + self.rate.time_for(segment.wire_bytes().into());
        Transmission { departs, delay: self.delay, fate: Fate::Arrives }
    }

    fn rate(&self, _: Time) -> Rate {
        self.rate
    }

    fn mean_rate(&self) -> Rate {
        self.rate
    }

    fn varies(&self) -> bool {
        false
    }
}
