//! Networks that the inside of a link can reach.

mod masquerade;
mod nftables;
pub mod pasta;
mod probe;
pub(crate) mod redirect;
mod routing;
mod trace;

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use self::masquerade::Help;
use crate::namespace::forward::Forward;
use crate::namespace::interface::Interface;
use crate::namespace::relay::Entrance;
use crate::namespace::router;
use crate::namespace::tun::Tun;
use crate::namespace::{Candidate, Obstacle, Pair, Trying, v6};
use ackclock_netlink::Netlink;

/// Networks that the inside of a link can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The inside reaches all networks of the machine, with the machine's address.
    Machine,
    /// The command behind the link reaches all networks that the user can reach, through sockets opened by pasta.
    Pasta,
    /// The inside reaches only the base address, for the given reason.
    Closed(String),
}

impl Reach {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Machine => json!("machine"),
            Self::Pasta => json!("pasta"),
            Self::Closed(why) => json!({ "closed": why }),
        }
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        match value.as_str() {
            Some("machine") => Self::Machine,
            Some("pasta") => Self::Pasta,
            _ => Self::Closed(value["closed"].as_str().unwrap_or_default().to_owned()),
        }
    }
}

/// Route out of a link, with the resources that keep it open.
pub(crate) struct Way {
    pub(crate) reach: Reach,
    /// Networks that the inside reaches over IPv6.
    pub(crate) v6: V6,
    /// Obstacles to packets on the route, one per line.
    pub(crate) remarks: Vec<String>,
    /// Sockets that keep the firewall tables alive.
    _tables: Vec<Netlink>,
}

/// Networks that the inside reaches over IPv6. Without IPv6 access, the inside has no IPv6 route, so that programs use
/// IPv4 at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum V6 {
    /// IPv6 reaches the same networks as IPv4.
    Beyond,
    /// IPv6 reaches only the far end of the link.
    OtherEnd,
}

/// Connects the link to the machine's network. The machine's kernel forwards packets of our veth pair under the
/// machine's address. Returns the way out, the address pair, the link's end (in a router in front of the veth pair),
/// and the sockets of forwarded ports in the router.
///
/// # Errors
/// Returns the operation that this machine does not allow. All resources are then released, and the process may be in a
/// namespace without a route out.
pub(crate) fn through_machine(
    free: impl Iterator<Item = Candidate>,
    forwards: &[Forward],
) -> Result<(Pair, Tun, Way, Vec<Entrance>), Obstacle> {
    let (pair, tun, veth, entrances) = router::stand(free, forwards)?;
    // Forwarding is enabled only on our own interface; the setting disappears with the interface.
    let forwarding = format!("/proc/sys/net/ipv4/conf/{}/forwarding", veth.name);
    fs::write(&forwarding, "1").trying(&format!("writing {forwarding}"))?;
    let table = masquerade::install(veth.index, pair, Help::of_this_machine())
        .map_err(|error| Obstacle::new("masquerading by nftables", error).remedy(NFTABLES))?;
    let six = through_machine_v6(&veth, pair).ok();
    let leads = if six.is_some() { V6::Beyond } else { V6::OtherEnd };
    let tables = std::iter::once(table).chain(six).collect();
    let way = |inside, base| probe::Way { tun: &tun, link: &veth, inside, base };
    let mut ways = vec![way(pair.inside.into(), pair.base.into())];
    if leads == V6::Beyond {
        ways.push(way(v6(pair.inside).into(), v6(pair.base).into()));
    }
    let remarks = probe::remarks(&ways);
    Ok((pair, tun, Way { reach: Reach::Machine, v6: leads, remarks, _tables: tables }, entrances))
}

/// Remedy where the firewall table of a link cannot be created.
pub(crate) const NFTABLES: &str = "a kernel from 5.12 on with nf_tables, nft_masq and nft_dup is needed";

/// Creates and removes the firewall table of a link in the calling thread's network namespace.
///
/// # Errors
/// Returns the kernel's error.
pub(crate) fn try_translation() -> io::Result<()> {
    const LOOPBACK: u32 = 1;
    let pair = Pair { base: Ipv4Addr::new(100, 64, 0, 1), inside: Ipv4Addr::new(100, 64, 0, 2) };
    masquerade::install(LOOPBACK, pair, Help::Replies).map(drop)
}

/// Connects the link to the machine's IPv6 network. Linux forwards IPv6 from all interfaces or none, and a forwarding
/// machine ignores router advertisements, so ackclock does not enable forwarding. Linux 6.17 and later can forward from
/// our interface alone.
fn through_machine_v6(veth: &Interface, pair: Pair) -> io::Result<Netlink> {
    let all = fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding")?;
    let help = if all.trim() == "0" { Help::Replies } else { Help::None };
    if help == Help::Replies {
        fs::write(format!("/proc/sys/net/ipv6/conf/{}/force_forwarding", veth.name), "1")?;
    }
    masquerade::install_v6(veth.index, pair, help)
}

/// Connects the link through a separate namespace, to which pasta is attached later.
pub(crate) fn through_pasta(tun: &Tun, pair: Pair, installed: bool) -> Way {
    if !installed {
        return closed("without root `pasta` is needed: sudo apt install passt".to_owned());
    }
    if !forward_all() {
        return closed(
            "forwarding cannot be switched on in the namespace: /proc/sys is read-only".to_owned(),
        );
    }
    // The name server relay uses a separate address; without that address, names are not relayed.
    let _ = tun.interface.add_address(pasta::RESOLVER);
    match masquerade::install(tun.interface.index, pair, Help::Base(pasta::MACHINE)) {
        Ok(table) => Way { reach: Reach::Pasta, v6: V6::OtherEnd, remarks: Vec::new(), _tables: vec![table] },
        Err(error) => closed(Obstacle::new("masquerading by nftables", error).to_string()),
    }
}

/// Creates a separate namespace without a route out.
pub(crate) fn closed(why: String) -> Way {
    // With forwarding enabled, the kernel reports at once that no route exists, so that programs do not wait.
    forward_all();
    Way { reach: Reach::Closed(why), v6: V6::OtherEnd, remarks: Vec::new(), _tables: Vec::new() }
}

/// Enables forwarding in this process's own namespace.
fn forward_all() -> bool {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").is_ok()
}
