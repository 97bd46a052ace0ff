//! # ackclock-tcp
//!
//! Event-driven TCP senders and receivers, and the host that holds many of them.
//!
//! A sender combines three parts, `recovery x undo x congestion control`. [`recovery`] detects and retransmits losses,
//! [`undo`] reverts spurious reductions, and [`cc`] limits the bytes in flight. [`senders::SENDERS`] lists the
//! combinations.

pub mod cc;
mod choices;
pub mod config;
pub mod congestion_control;
pub mod delivery_rate;
pub mod dup_thresh;
pub mod ecn;
pub mod host;
pub mod info;
pub mod media;
#[cfg(test)]
mod overshoot;
pub mod prr;
mod reassembly;
pub mod receiver;
pub mod recovery;
pub mod relay;
pub mod rtt;
pub mod scoreboard;
pub mod sender;
pub mod senders;
pub mod sent;
pub mod stack;
pub mod stats;
pub mod undo;
#[cfg(test)]
mod work;
pub mod workload;

pub use config::{FlowParams, HeaderSize, SenderConfig};
pub use ecn::EcnMode;
pub use host::{EndpointEvent, Host};
pub use info::TcpInfo;
pub use media::{Media, MediaReceiver, MediaSender};
pub use receiver::{AckPolicy, Receiver, ReceiverConfig};
pub use relay::Relay;
pub use sender::Sender;
pub use senders::{SENDERS, SenderRow, why_idle};
pub use stack::Stack;
pub use stats::{LossCycles, SenderStats};
pub use workload::{Client, Course, Place, Request, Supply, Then, WORKLOADS, Workload};
