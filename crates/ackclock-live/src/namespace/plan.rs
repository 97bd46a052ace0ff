//! The task of a link's processes: the command to run, what lies beyond the link, and how they report failure.

use std::ffi::OsString;

use nix::unistd::{Gid, Uid};

use super::channel::SetupSocket;
use super::forward::Forward;
use super::users::Rights;

/// The command to run, and the far end of the link.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command with its arguments.
    pub command: Vec<OsString>,
    /// Environment variables in addition to those of this process.
    pub environment: Vec<(String, OsString)>,
    /// Network beyond the link.
    pub outside: Outside,
    /// Ports of the inside that lead to servers on the machine.
    pub forwards: Vec<Forward>,
}

/// Network beyond the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The machine's network, as far as the user's rights allow.
    Machine,
    /// Only the base address.
    Nothing,
    /// A host with this server (a shell command line).
    Server(OsString),
}

/// Parameters of the keeper.
pub(crate) struct Setting<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) channel: &'a SetupSocket,
    pub(crate) rights: Rights,
    /// User and group before a user namespace was created.
    pub(crate) user: Uid,
    pub(crate) group: Gid,
    /// Whether pasta is installed.
    pub(crate) pasta: bool,
}

/// Exit status for own failures, as in `env` and `timeout`.
pub(crate) const FAILED: u8 = 125;
