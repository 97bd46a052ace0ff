//! Congestion control: limits the bytes in flight.
//!
//! [Recovery](crate::recovery) decides which segments are lost, and [undo](crate::undo) decides whether a loss was
//! real. A controller receives events and sets a window, without access to sequence numbers.

pub mod abc;
pub mod bbr;
pub mod bbr3;
mod bictcp;
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod held;
mod hystart;
mod hystart_classic;
mod marked_fraction;
pub mod prague;
pub mod reno;
mod steps;
pub mod westwood;
pub mod westwood_plus;

use ackclock_core::Ecn;

use crate::config::{Halves, SenderConfig};

pub use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Departure, Phase, RateSample,
};

/// Congestion control that can be built from a sender's options.
pub trait BuildControl: CongestionControl + Sized {
    /// Options of [`SenderConfig`] that this control reads, of those that not every control reads.
    const OPTIONS: &'static [&'static str] = crate::congestion_control::WINDOWED;
    /// Codepoint of new data, if the receiver counts all marks.
    const CODEPOINT: Ecn = Ecn::Ect0;

    /// Creates the controller of a new connection.
    fn build(config: &SenderConfig, context: &CcContext, halves: Halves) -> Self;
}

/// Congestion control that can restart if the peer's maximum segment size is smaller than assumed.
pub trait RenewControl: CongestionControl {
    /// Restarts the congestion control for the new segment size.
    fn renew(&mut self, config: &SenderConfig, context: &CcContext, halves: Halves);
}

impl<C: BuildControl> RenewControl for C {
    fn renew(&mut self, config: &SenderConfig, context: &CcContext, halves: Halves) {
        *self = Self::build(config, context, halves);
    }
}
