//! Errors of a box.

use std::io;
use std::path::PathBuf;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::programs::links::LinkError;

use crate::names::{MOUNT, ROOT};

/// Error that prevents a box from running.
#[derive(Debug, thiserror::Error)]
pub enum BoxError {
    /// The kernel's BPF program failed.
    #[error(transparent)]
    Clip(#[from] ClipError),
    /// The network interface is missing or unsuitable.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel does not report changes of the network interfaces.
    #[error("interfaces cannot be watched: {0}")]
    Unwatched(io::Error),
    /// Another process already runs a box on this interface.
    #[error("process {0} is the box of `{1}` already; `ackclock box stop {1}` ends it")]
    Taken(i32, String),
    /// A file of the run-time folder could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// Reason why a box cannot use a network interface.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// The kernel does not list the interfaces.
    #[error("the interfaces cannot be listed: {0}")]
    Unlisted(io::Error),
    /// No interface has this name.
    #[error("there is no interface `{name}`; there are {}", names.join(", "))]
    Missing {
        /// Name that was asked for.
        name: String,
        /// Names of all interfaces, sorted.
        names: Vec<String>,
    },
    /// The kernel does not describe the interface of this name.
    #[error("`{0}`: {1}")]
    Unread(String, io::Error),
    /// The link header of the device has an unknown length.
    #[error("`{name}` is a device of type {kind}, whose header has an unknown length")]
    Header {
        /// Name of the interface.
        name: String,
        /// Type of the device (ARPHRD).
        kind: u16,
    },
}

/// Error while the BPF program is loaded, attached, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    /// The given name is not a valid name of a network interface.
    #[error("`{0}` is not the name of a network interface")]
    Name(String),
    /// `/sys/fs/bpf` is not a BPF file system.
    #[error("{ROOT} is no BPF file system: {MOUNT}")]
    NoFileSystem,
    /// Another user owns or can change a folder of pins.
    #[error("{0}: {1}")]
    Unsafe(PathBuf, String),
    /// The interface was removed, and another one got its name, while the BPF program was being attached.
    #[error("`{0}` was replaced while the program was being attached")]
    Replaced(String),
    /// No box is pinned for this interface.
    #[error("no box runs on `{0}`")]
    NotRunning(String),
    /// A pinned file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// The kernel refused to load the BPF program.
    #[error("the kernel does not load the program: {0}")]
    Load(#[from] EbpfError),
    /// The kernel refused to attach the BPF program.
    #[error("the kernel does not attach the program: {0}")]
    Attach(#[from] ProgramError),
    /// A pinned link could not be opened or used.
    #[error("a pinned link: {0}")]
    Link(#[from] LinkError),
    /// A BPF map could not be opened, read or written.
    #[error("a map of the program: {0}")]
    Map(#[from] MapError),
}
