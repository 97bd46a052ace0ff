//! # ackclock-core
//!
//! Types shared by all crates: time and units, segments and sequence numbers, random streams, nodes and their event
//! engine, histograms, results, and the registry of components.
//!
//! Only the `ackclock` command and the live driver read clocks, sleep, log or open files. In all other crates the
//! current time is an argument, `now`.

pub mod around;
mod component;
mod engine;
mod histogram;
mod law;
mod node;
pub mod prefetch;
mod prefix;
pub mod registry;
pub mod results;
mod ring;
mod round_trip;
mod rows;
mod segment;
mod seq;
mod steering;
mod streams;
pub mod text;
mod time;
mod tracer;
pub mod units;
mod unused;
mod wakes;

pub use component::Component;
pub use engine::{Egress, Engine, NodeId};
pub use histogram::Histogram;
pub use law::{Law, Quantity};
pub use node::{Copied, Holds, MAX_PORTS, Message, Node, Outbox, Port, RadioReport, ReportReason, Sink};
pub use prefix::Prefix;
pub use registry::{Config, ConfigError, Entry, Registry, name_of};
pub use ring::Ring;
pub use round_trip::RoundTrip;
pub use segment::{
    AccEcn, Ecn, EctField, Flags, FlowId, Head, LARGEST_WINDOW_SCALE, PROTECTING_OPTIONS, PacketId,
    ProtectingOption, ProtectionScope, Repair, Rest, SackBlock, Segment, SynOptions, TcpOptions, Timestamps,
    is_protected, is_protecting, scaled_window,
};
pub use seq::Seq;
pub use steering::{ConnectionEvent, ConnectionView, Setting, Steering, SteeringConfig, Timer};
pub use streams::{Indexed, Stream, Streams};
pub use time::{Span, Time};
pub use tracer::{CountingTracer, NullTracer, Tracer};
pub use units::{Pace, Rate, Size};
pub use unused::Unused;
pub use wakes::Wakes;
