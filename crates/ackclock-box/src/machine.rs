//! Checks that this machine and an interface can run a box: link header, kernel hook, and other programs on the
//! interface.

use std::io;
use std::net::Ipv4Addr;

use aya::programs::ProgramError;
use nix::ifaddrs::getifaddrs;
use nix::unistd::{AccessFlags, access};
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities as capabilities_of};
use serde::Serialize;

use crate::clip::Clip;
use crate::devices;
use crate::error::{ClipError, InterfaceError};
use crate::interface::index;
use crate::names::{MOUNT, PINS, ROOT};
use crate::pins::Folder;
use crate::programs::Hooks;

/// Length of the link header before the IP header, bytes, by device type (ARPHRD).
const HEADERS: [(u16, u32); 5] = [(1, 14), (772, 14), (65534, 0), (519, 0), (778, 0)];

/// Properties of a network interface that a box uses.
#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    /// Name of the network interface.
    pub name: String,
    /// Length of the link header before the IP header, bytes.
    pub header: u32,
    /// IPv4 addresses of the interface.
    pub addresses: Vec<Ipv4Addr>,
}

/// Reads the properties of an interface in this network namespace.
///
/// # Errors
/// Fails if a box cannot use the interface.
pub fn interface(name: &str) -> Result<Interface, InterfaceError> {
    let all = || getifaddrs().map_err(|error| InterfaceError::Unlisted(error.into()));
    let Some(index) = index(name) else {
        let mut names: Vec<_> = all()?.map(|one| one.interface_name).collect();
        names.sort();
        names.dedup();
        return Err(InterfaceError::Missing { name: name.to_owned(), names });
    };
    // A file of sysfs may describe another namespace.
    let device = devices::device(index).map_err(|error| InterfaceError::Unread(name.to_owned(), error));
    let kind = device?.kind;
    let Some((_, header)) = HEADERS.into_iter().find(|(known, _)| *known == kind) else {
        return Err(InterfaceError::Header { name: name.to_owned(), kind });
    };
    let address = |one: nix::ifaddrs::InterfaceAddress| Some(one.address?.as_sockaddr_in()?.ip());
    let addresses = all()?.filter(|one| one.interface_name == name).filter_map(address).collect();
    Ok(Interface { name: name.to_owned(), header, addresses })
}

/// Requirement for running a box, and whether this machine meets the requirement.
#[derive(Clone, Debug, Serialize)]
pub struct Need {
    /// Name of a box's requirement.
    pub what: &'static str,
    /// Whether the requirement is met.
    pub met: bool,
    /// Result of checking the requirement, or the action that meets the requirement.
    pub found: String,
}

/// Checks every requirement of a box on an interface. The check attaches no BPF program and writes nothing.
pub fn needs(name: &str) -> Vec<Need> {
    let need = |what, found: Result<String, String>| Need {
        what,
        met: found.is_ok(),
        found: found.unwrap_or_else(|why| why),
    };
    let device = interface(name).map(|found| format!("{} bytes of link header", found.header));
    let device = device.map_err(|error| error.to_string());
    let loads = Clip::load().map(|_| "loads and passes the verifier".to_owned());
    let loads = loads.map_err(|error| error.to_string());
    vec![
        need("interface", device),
        need("capabilities", capabilities()),
        need("BPF file system", file_system()),
        need("program", loads),
        need("hook of the interface", hook(name)),
    ]
}

/// Checks the capabilities of this process.
fn capabilities() -> Result<String, String> {
    let own = capabilities_of(None).map_err(|error| error.to_string())?.effective;
    let is_missing = |needed: &&(&str, CapabilitySet)| !own.intersects(needed.1);
    let missing: Vec<_> = CAPABILITIES.iter().filter(is_missing).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(CAPABILITIES.map(|(name, _)| name).join(", "));
    }
    Err(format!("this process lacks {}", missing.join(" and ")))
}

/// Capabilities of a box. The verifier allows some pointer arithmetic of the program only with CAP_PERFMON. CAP_SYS_ADMIN
/// includes CAP_BPF and CAP_PERFMON.
const CAPABILITIES: [(&str, CapabilitySet); 3] = [
    ("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN),
    ("CAP_BPF", CapabilitySet::BPF.union(CapabilitySet::SYS_ADMIN)),
    ("CAP_PERFMON", CapabilitySet::PERFMON.union(CapabilitySet::SYS_ADMIN)),
];

/// Checks the file system of the pins, and the folder of the pins in it.
fn file_system() -> Result<String, String> {
    let folder = match Folder::pins() {
        Ok(found) => found.map_or(ROOT, |_| PINS),
        Err(ClipError::NoFileSystem) => return Err(MOUNT.to_owned()),
        Err(ClipError::File(_, error)) if error.kind() == io::ErrorKind::PermissionDenied => PINS,
        Err(error) => return Err(error.to_string()),
    };
    let user = geteuid().as_raw();
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|_| {
        format!(
            "user {user} cannot write in it; as root: chmod a+x {ROOT}; mkdir -p {PINS}; chown {user} {PINS}"
        )
    })?;
    Ok(format!("mounted, pins in {PINS}"))
}

/// Way to attach the programs of a box to an interface, and the other programs there.
fn hook(name: &str) -> Result<String, String> {
    match Hooks::of(name) {
        Ok(hooks) => {
            let others: Vec<_> = hooks.others().map(ToString::to_string).collect();
            let others = if others.is_empty() { "free".to_owned() } else { others.join(", ") };
            Ok(format!("{}, {others}", hooks.way))
        }
        Err(ProgramError::SyscallError(error)) if error.call == "bpf_prog_get_fd_by_id" => {
            Ok("tcx, other programs, which only root may list".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
