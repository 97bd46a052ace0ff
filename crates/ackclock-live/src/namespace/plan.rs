//! The task of a link's processes: the command to run, what lies beyond the link, and how they report failure.

use std::ffi::OsString;

use nix::unistd::{Gid, Uid};

use super::channel::SetupSocket;
use super::users::Rights;

/// What is to run, and where the link ends.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command with its arguments.
    pub command: Vec<OsString>,
    /// Variables of its environment beside those of this process.
    pub environment: Vec<(String, OsString)>,
    /// What lies beyond the link.
    pub outside: Outside,
}

/// What lies beyond the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The network of the machine, as far as the user's rights go.
    Machine,
    /// Nothing but the base address.
    Nothing,
    /// A host with this server, a command line for the shell.
    Server(OsString),
}

/// What the keeper is given.
pub(crate) struct Setting<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) channel: &'a SetupSocket,
    pub(crate) rights: Rights,
    /// User and group before a user namespace was made.
    pub(crate) user: Uid,
    pub(crate) group: Gid,
    /// Whether pasta is installed.
    pub(crate) pasta: bool,
}

/// As `env` and `timeout` report that they failed themselves.
pub(crate) const FAILED: u8 = 125;
