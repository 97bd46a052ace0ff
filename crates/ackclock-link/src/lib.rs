//! # ackclock-link
//!
//! One-way links, and what all channels share: the traits [`Link`], [`Medium`] and [`Bearer`], queue disciplines, error
//! processes, and impairments. Each model is in a separate file.

pub mod bearer;
mod carried;
mod config;
mod constant;
pub mod delay;
pub mod errors;
pub mod fading;
mod files;
mod framing;
pub mod impair;
pub mod in_order;
mod link;
pub mod loss;
pub mod lossy;
pub mod medium;
pub mod outage;
pub mod outcomes;
pub mod path;
mod per_user;
pub mod pieces;
pub mod queue;
pub mod reassembly;
pub mod redraw;
pub mod report_wire;
pub mod serial;
pub mod short_flows;
mod silence;
pub mod text_file;
mod variable;

pub use bearer::{
    AnyBearer, Base, Bearer, BearerConfig, BearerContext, BearerLinks, BearerListener, CellChange, CellUser,
    Change, ChangeContext, ClassConfig, DedicatedChange, Direction, FadingKind, Handover, HandoverTo, Left,
    LinksConfig, Observation, Observing, OutageKind, PlainBearer, Side,
};
pub use config::{LinkConfig, LinkContext, Nominal, QueuePlan};
pub use constant::{Constant, ConstantConfig};
pub use errors::Errors;
pub use files::{Files, NoFiles};
pub use framing::Framing;
pub use impair::{Impairments, Reorder};
pub use link::{
    AnyLink, BufferMeaning, Capacity, Cause, Departures, Impairment, Link, LinkEvent, LinkView, Load,
    Repetitions,
};
pub use loss::Loss;
pub use lossy::Lossy;
pub use medium::{AnyMedium, Fate, Found, Medium, MediumContext, Transmission};
pub use outage::Outage;
pub use path::Path;
pub use per_user::PerUser;
pub use reassembly::DeliveryOrder;
pub use redraw::Redraw;
pub use report_wire::ReportWire;
pub use serial::SerialLink;
pub use silence::{Faded, Silence};
pub use variable::VariableConfig;
