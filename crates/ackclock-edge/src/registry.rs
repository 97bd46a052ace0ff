//! Registries of the kinds of component that make up an edge, by their names in scenario files. A new component is one
//! file and one line here.

use ackclock_core::SteeringConfig;
use ackclock_import::TraceConfig;
use ackclock_link::queue::{
    AbcConfig, CakeConfig, CodelConfig, DropHeadConfig, DropTailConfig, DualPi2Config, FqCodelConfig,
    PieConfig, QueueConfig, RedConfig, ShortFirstConfig,
};
use ackclock_link::{BearerConfig, ConstantConfig, LinkConfig, LinksConfig, VariableConfig};
use ackclock_observe::{AutorateConfig, ObservedConfig};
use ackclock_radio::{
    ArtificialDelayConfig, CellConfig, PowerControlledConfig, RadioAccessConfig, UmtsRlcConfig,
};

use crate::regulator::RegulatorConfig;
use crate::window_regulator::{forecast, wrb, wrd, wrs};
use crate::{ack_filter, ack_rate_control, ack_regulator, none, rnf, snoop, steering, wait_marker, zhuge};

ackclock_core::registry! {
    /// Registry of all links.
    pub static LINKS: dyn LinkConfig = "link" {
        "constant" => ConstantConfig,
        "variable" => VariableConfig,
        "trace" => TraceConfig,
        "cell" => CellConfig,
        "umts-rlc" => UmtsRlcConfig,
        "power-controlled" => PowerControlledConfig,
    } around {
        "artificial-delay" => ArtificialDelayConfig,
    }
}

ackclock_core::registry! {
    /// Registry of all bearers.
    pub static BEARERS: dyn BearerConfig = "bearer" {
        "links" => LinksConfig,
        "radio-access" => RadioAccessConfig,
        "observed" => ObservedConfig,
        "autorate" => AutorateConfig,
    }
}

ackclock_core::registry! {
    /// Registry of all queue disciplines.
    pub static QUEUES: dyn QueueConfig = "queue" {
        "drop-tail" => DropTailConfig,
        "drop-head" => DropHeadConfig,
        "codel" => CodelConfig,
        "pie" => PieConfig,
        "red" => RedConfig,
        "fq-codel" => FqCodelConfig,
        "cake" => CakeConfig,
        "dualpi2" => DualPi2Config,
        "short-first" => ShortFirstConfig,
        "abc-router" => AbcConfig,
    }
}

ackclock_core::registry! {
    /// Registry of all regulators.
    pub static REGULATORS: dyn RegulatorConfig = "regulator" {
        "none" => none::None,
        "ack-regulator" => ack_regulator::Config,
        "ack-rate-control" => ack_rate_control::Config,
        "ack-filter" => ack_filter::Config,
        "snoop" => snoop::Config,
        "wrs" => wrs::Config,
        "wrd" => wrd::Config,
        "wrb" => wrb::Config,
        "forecast" => forecast::Config,
        "wait-marker" => wait_marker::Config,
        "zhuge" => zhuge::Config,
    }
}

ackclock_core::registry! {
    /// Registry of all steerings for the connections of a relay.
    pub static STEERINGS: dyn SteeringConfig = "steering" {
        "none" => steering::Unsteered,
        "rnf" => rnf::Config,
    }
}
