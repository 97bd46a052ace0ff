//! # ackclock-live
//!
//! This crate emulates links for real packets. The crate runs the simulation's engine in real time between two TUN
//! devices, and creates the namespaces that connect programs to the devices. No other crate has unsafe code or network
//! I/O.
//!
//! The emulated link has a TUN device at each end. The *inside* device is the default route of the namespace in which
//! the user's command runs (the mobile, [`Side::Radio`]). The *outside* device connects to further routes of the kernel
//! ([`Side::Wired`]: a router in front of the machine, or a namespace with a server). The driver receives the two
//! devices as open files: `IFF_TUN | IFF_NO_PI | IFF_VNET_HDR`, close-on-exec, MTU 1500; [`TunPort`] makes them
//! non-blocking and sets their offloads.
//!
//! [`TunPort`] reads packets into the [`Pool`] and splits super-packets. [`parse`](parse::parse) converts each packet
//! to a [`Segment`](ackclock_core::Segment), and [`Connections`] finds its flow. [`Plane`] injects segments into the
//! unchanged engine, takes out departing segments, rewrites packets that a regulator has changed
//! ([`rewrite`](rewrite::rewrite)) and frees the buffers of lost packets. [`Driver`] runs parser, plane and ports in
//! real time. With a simulated [`Clock`] and simulated [`Port`]s the driver runs as fast as possible; tests compare
//! these simulated runs with the simulation.

mod account;
mod background;
pub mod capture;
mod clients;
mod clock;
pub mod control;
mod driver;
pub mod faults;
pub mod flow;
mod fragments;
pub mod gateway;
mod graph;
pub mod gso;
mod hop;
pub mod hostile;
pub mod log;
pub mod metrics;
pub mod namespace;
pub mod parse;
mod plane;
mod plane_config;
mod pool;
mod port;
mod quic;
pub mod reach;
pub mod rewrite;
pub mod runtime_dir;
pub mod selection;
pub mod standard_output;
mod stats;
mod tally;
mod template;
mod traffic;
mod users;
mod watch;
pub mod web_control;

pub use account::{Account, Page, Rest, Snapshot, Summary, Totals};
pub use background::{Ending, Unwritten};
pub use clock::{Clock, Ready, RealClock, Waits};
pub use driver::{Call, Driver, Order, Orders, Remote};
pub use flow::Connections;
pub use hop::{Hop, MOST_MESSAGES};
pub use parse::Datagram;
pub use plane::{Crowd, Departure, Plane};
pub use plane_config::PlaneConfig;
pub use pool::Pool;
pub use port::{Came, Port, Side, TunPort, Went};
pub use stats::{FlowReport, Punctuality, Way};
pub use traffic::{Lost, Traffic};
