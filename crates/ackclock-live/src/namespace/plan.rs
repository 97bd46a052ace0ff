//! Plan for a link's processes: the command to run, the network beyond the link, and how failures are reported.

use std::ffi::OsString;
use std::net::SocketAddr;

use nix::unistd::{Gid, Uid};

use super::channel::SetupSocket;
use super::forward::Forward;
use super::publish::Publish;
use super::users::Rights;

/// Command to run inside a link, and the network at its far end.
#[derive(Debug)]
pub struct Plan {
    /// Command to run, with its arguments.
    pub command: Vec<OsString>,
    /// Environment variables to set in addition to this process's variables.
    pub environment: Vec<(String, OsString)>,
    /// Network beyond the link.
    pub outside: Outside,
    /// Ports inside that are forwarded to servers on the machine.
    pub forwards: Vec<Forward>,
    /// Ports of the machine that lead to ports inside.
    pub publishes: Vec<Publish>,
    /// Loopback address inside at which the link is controlled by HTTP.
    pub web_control: Option<SocketAddr>,
    /// Whether the TCP connections of the command and of the server ask for ECN.
    pub ecn: bool,
}

/// Network beyond the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The machine's network, as far as the user's rights allow.
    Machine,
    /// Only the base address is reachable.
    Nothing,
    /// A host that runs the server with this shell command line.
    Server(OsString),
}

/// Parameters of the keeper.
pub(crate) struct Setting<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) channel: &'a SetupSocket,
    pub(crate) rights: Rights,
    /// User and group of the process before it created a user namespace.
    pub(crate) user: Uid,
    pub(crate) group: Gid,
    /// Whether the program pasta is installed.
    pub(crate) pasta: bool,
}
