//! # ackclock-live
//!
//! Real packets: the simulation's engine in real time between two TUN devices, and the namespaces that connect programs
//! to it. The only crate with I/O and unsafe code.
//!
//! The emulated link has a TUN device at each end. The *inside* one is the default route of the namespace in which the
//! user's command runs (the mobile, [`Side::Radio`]). The *outside* one is where the kernel routes packets on
//! ([`Side::Wired`]: a router in front of the machine, or a namespace with a server). The driver receives both as open
//! files: `IFF_TUN | IFF_NO_PI | IFF_VNET_HDR`, close-on-exec, MTU 1500; [`TunPort`] makes them non-blocking and sets
//! their offloads.
//!
//! From the file to the graph and back: [`TunPort`] reads packets into the [`Pool`] and splits super-packets.
//! [`parse`](parse::parse) makes a [`Segment`](ackclock_core::Segment) of each. [`Connections`] finds its flow.
//! [`Plane`] injects it into the unchanged engine, takes out departing segments, rewrites packets that a regulator has
//! changed ([`rewrite`](rewrite::rewrite)) and frees the buffers of lost ones. [`Driver`] does this in real time. With
//! a simulated [`Clock`] and simulated [`Port`]s it runs as fast as possible, which tests equality with the simulation.

mod account;
mod background;
pub mod capture;
mod clients;
mod clock;
pub mod control;
mod driver;
pub mod flow;
mod graph;
pub mod gso;
pub mod hostile;
pub mod log;
pub mod metrics;
pub mod namespace;
pub mod parse;
mod plane;
mod plane_config;
mod pool;
mod port;
pub mod reach;
pub mod rewrite;
pub mod runtime_dir;
pub mod standard_output;
mod stats;
mod tally;
mod template;
mod traffic;
mod users;
mod watch;

pub use account::{Account, Page, Rest, Snapshot, Summary, Totals};
pub use background::{Ending, Unwritten};
pub use clock::{Clock, Ready, RealClock, Waits};
pub use driver::{Call, Driver, Order, Orders, Remote};
pub use flow::Connections;
pub use plane::{Crowd, Departure, Plane};
pub use plane_config::PlaneConfig;
pub use pool::Pool;
pub use port::{Came, Port, Side, TunPort, Went};
pub use stats::{FlowReport, Punctuality, Way};
pub use traffic::{Lost, Traffic};
