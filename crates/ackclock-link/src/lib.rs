//! # ackclock-link
//!
//! What a segment meets between two boxes: links (one direction), bearers (both directions of a radio channel) and the
//! queue disciplines in front of them. One file a model; the registries [`LINKS`] and [`queue::QUEUES`] name them.

mod bearer;
mod config;
mod constant;
mod link;
pub mod path;
pub mod queue;
mod serial;

pub use bearer::{Bearer, Departures, Direction, PlainBearer};
pub use config::{Files, LinkConfig, LinkContext, Nominal};
pub use constant::Constant;
pub use link::{Capacity, Cause, Link, LinkEvent, LinkView, Load, Refused};
pub use path::Path;
pub use serial::{BufferMeaning, Fate, Medium, SerialLink, Transmission};
