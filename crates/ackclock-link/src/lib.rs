//! # ackclock-link
//!
//! Models of a channel: links (one direction), bearers (both directions of a radio channel), queue disciplines, cell
//! schedulers and error processes. Each model is in a separate file. The registries [`LINKS`], [`BEARERS`],
//! [`queue::QUEUES`], [`scheduler::SCHEDULERS`] and [`errors::ERRORS`] list all models.

mod artificial_delay;
mod autorate;
mod bearer;
mod blocks;
mod carried;
pub mod cell;
mod config;
mod constant;
mod delay;
pub mod errors;
pub mod estimate;
pub mod fading;
mod impair;
mod in_order;
mod link;
mod loss;
mod medium;
mod observed;
mod outage;
mod outcomes;
pub mod path;
mod per_user;
mod pieces;
mod power_controlled;
pub mod queue;
pub mod radio_access;
mod reassembly;
mod redraw;
pub mod report_wire;
pub mod scheduler;
mod serial;
pub mod shadowing;
mod short_flows;
mod silence;
pub mod synthetic;
pub mod trace;
mod umts_rlc;
mod umts_rlc_am;
mod variable;

pub use artificial_delay::{ArtificialDelayConfig, HoldConfig, LearnTable};
pub use autorate::{Autorate, AutorateConfig};
pub use bearer::{
    AnyBearer, BEARERS, Bearer, BearerConfig, BearerContext, BearerLinks, BearerListener, Change,
    ChangeContext, DedicatedChange, Direction, Handover, HandoverTo, LinksConfig, OutageKind, PlainBearer,
};
pub use cell::{Cell, CellChange, CellConfig, CellUser};
pub use config::{Files, LinkConfig, LinkContext, MediumContext, NoFiles, Nominal, QueuePlan};
pub use constant::{Constant, ConstantConfig};
pub use errors::Errors;
pub use impair::{Impairments, Reorder};
pub use link::{
    AnyLink, BufferMeaning, Capacity, Cause, Departures, Impairment, Link, LinkEvent, LinkView, Load,
    Repetitions,
};
pub use loss::{Loss, Lossy};
pub use medium::{AnyMedium, Fate, Found, Medium, Transmission};
pub use observed::{
    Acked, Advertised, Base, Left, Numbers, Observation, Observed, ObservedConfig, Observer, Passed, Record,
    Side,
};
pub use outage::Outage;
pub use path::Path;
pub use per_user::PerUser;
pub use power_controlled::{Arq, PowerControlledConfig};
pub use radio_access::ClassConfig;
pub use reassembly::DeliveryOrder;
pub use redraw::Redraw;
pub use report_wire::ReportWire;
pub use serial::SerialLink;
pub use silence::{Faded, Severed, Silence};
pub use umts_rlc::UmtsRlcConfig;
pub use umts_rlc_am::{
    MissingFormat, OnMaxDat, PollConfig, RlcConfig, RlcMode, StatusConfig, Tries, UmtsRlcAmConfig,
    WindowChange, WindowPolls,
};
pub use variable::VariableConfig;

ackclock_core::registry! {
    /// Registry of all links, by their name in scenario files.
    pub static LINKS: dyn LinkConfig = "link" {
        "constant" => ConstantConfig,
        "variable" => VariableConfig,
        "trace" => trace::TraceConfig,
        "cell" => cell::CellConfig,
        "umts-rlc" => umts_rlc::UmtsRlcConfig,
        "power-controlled" => power_controlled::PowerControlledConfig,
        "artificial-delay" => artificial_delay::ArtificialDelayConfig,
    }
}
