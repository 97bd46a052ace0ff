//! Names and indices of network interfaces, and the network namespace that they are in.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use nix::net::if_::{if_indextoname, if_nametoindex};

/// Returns the kernel's index of an interface, or `None` if the interface does not exist.
pub fn index(name: &str) -> Option<u32> {
    if_nametoindex(name).ok()
}

/// Returns the name of the interface with this index, or `None` if the interface does not exist in this namespace.
pub fn name(index: u32) -> Option<String> {
    // nix 0.31 returns an empty name instead of an error.
    if_indextoname(index).ok()?.into_string().ok().filter(|name| !name.is_empty())
}

/// File that identifies the network namespace of this process.
pub(crate) const NAMESPACE: &str = "/proc/self/ns/net";

/// Returns the identifier of the network namespace of this process.
pub(crate) fn namespace() -> io::Result<u64> {
    Ok(fs::metadata(NAMESPACE)?.ino())
}
