//! # ackclock-live
//!
//! Real packets: the engine of the simulation in real time between two TUN devices, and the namespaces in which programs
//! meet it. The only crate with I/O and unsafe code.
//!
//! Two TUN devices stand at the two ends of the emulated link. The one *inside* is the default route of the namespace in
//! which the user's command runs (the mobile, [`Side::Radio`]); the one *outside* lies where the kernel routes packets on
//! ([`Side::Wired`]: a router in front of the machine, or a namespace with a server). Both are handed to the driver as open files: `IFF_TUN |
//! IFF_NO_PI | IFF_VNET_HDR`, close-on-exec, MTU 1500; [`TunPort`] makes them non-blocking and sets their offloads.
//!
//! From the file to the graph and back:
//! [`TunPort`] reads packets into the [`Pool`] and splits super-packets; [`parse`](parse::parse) makes a
//! [`Segment`](ackclock_core::Segment) of each; [`Connections`] names its flow; [`Plane`] injects it into the unchanged
//! engine, takes out what departs, rewrites in place what a regulator has changed ([`rewrite`](rewrite::rewrite)) and gives
//! back the buffers of what was lost. [`Driver`] does that in real time; with a [`Clock`] and [`Port`]s that are made up it
//! does the same in no time at all, which is how equality with the simulation is tested.

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
