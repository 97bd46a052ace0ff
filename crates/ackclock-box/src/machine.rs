//! Checks that this machine and an interface can run a box: link header, kernel hook, and other programs on the
//! interface.

use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use aya::programs::{SchedClassifier, TcAttachType};
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::Serialize;

use crate::clip::Clip;

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
/// Fails with a sentence that says why the interface cannot be used.
pub fn interface(name: &str) -> Result<Interface, String> {
    let all = || getifaddrs().map_err(|error| format!("the interfaces cannot be listed: {error}"));
    let Some(kind) = kind(name) else {
        let mut names: Vec<_> = all()?.map(|one| one.interface_name).collect();
        names.sort();
        names.dedup();
        return Err(format!("there is no interface `{name}`; there are {}", names.join(", ")));
    };
    let Some((_, header)) = HEADERS.into_iter().find(|(known, _)| *known == kind) else {
        return Err(format!("`{name}` is a device of type {kind}, whose header has an unknown length"));
    };
    let address = |one: nix::ifaddrs::InterfaceAddress| Some(one.address?.as_sockaddr_in()?.ip());
    let addresses = all()?.filter(|one| one.interface_name == name).filter_map(address).collect();
    Ok(Interface { name: name.to_owned(), header, addresses })
}

/// Type (ARPHRD) of the device with this name in this network namespace. A file of sysfs may describe another namespace,
/// and a list of addresses lacks devices without a link address, such as TUN.
#[allow(unsafe_code, reason = "a request to the kernel that no safe wrapper offers")]
fn kind(name: &str) -> Option<u16> {
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).ok()?;
    // SAFETY: an interface request is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the socket is open and the request outlives the call, which writes only into it.
    let done = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) };
    // SAFETY: the kernel has written the address, and the initial zeros are a valid address as well.
    (done == 0).then(|| unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// Returns the kernel's index of an interface, or `None` if the interface does not exist.
pub fn index(name: &str) -> Option<u32> {
    if_nametoindex(name).ok()
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
    let folder = nix::sys::statfs::statfs("/sys/fs/bpf").ok();
    let mounted = folder.is_some_and(|found| found.filesystem_type() == nix::sys::statfs::BPF_FS_MAGIC);
    let mounted =
        if mounted { Ok("mounted".to_owned()) } else { Err("mount -t bpf bpf /sys/fs/bpf".to_owned()) };
    let loads = Clip::load().map(|_| "loads and passes the verifier".to_owned());
    let loads =
        loads.map_err(|error| format!("{error}; root, or the capabilities BPF and NET_ADMIN, may load it"));
    let beside = |side| SchedClassifier::query_tcx(name, side).map(|(_, programs)| programs.len());
    let hook = match (beside(TcAttachType::Ingress), beside(TcAttachType::Egress)) {
        (Ok(0), Ok(0)) => Ok("free".to_owned()),
        (Ok(down), Ok(up)) => Ok(format!("{down} programs before ours on data, {up} on ACKs")),
        (Err(error), _) | (_, Err(error)) => Err(format!("no tcx, which Linux has from 6.6 on: {error}")),
    };
    vec![
        need("interface", device),
        need("BPF file system", mounted),
        need("program", loads),
        need("hook of the interface", hook),
    ]
}
