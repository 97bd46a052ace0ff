//! How far the inside of a link reaches.

mod masquerade;
mod nftables;
pub mod pasta;
mod probe;
mod routing;
mod trace;

use std::fs;
use std::io;

use serde_json::{Value, json};

use self::masquerade::Help;
use crate::namespace::interface::Interface;
use crate::namespace::netlink::Netlink;
use crate::namespace::router;
use crate::namespace::tun::Tun;
use crate::namespace::{Candidate, Obstacle, Pair, Trying, v6};

/// How far the inside of a link reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// As far as the machine, whose address its packets bear.
    Machine,
    /// As far as the user, by sockets that pasta opens for it.
    Pasta,
    /// To the base address and no further, for this reason.
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

/// How far a link reaches, and what must be kept for that.
pub(crate) struct Way {
    pub(crate) reach: Reach,
    /// How far IPv6 leads.
    pub(crate) v6: V6,
    /// What keeps packets from going that far, a line each.
    pub(crate) remarks: Vec<String>,
    /// The firewall tables go with these sockets.
    _tables: Vec<Netlink>,
}

/// How far IPv6 leads. Where it leads nowhere the inside has no route for it, so that programs take IPv4 at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum V6 {
    /// As far as IPv4.
    Beyond,
    /// To the other end of the link.
    OtherEnd,
}

/// Through the network of the machine: its kernel forwards what comes from our veth pair, under the machine's address. Gives
/// the addresses and the end of the link too, which lies in a router before the pair.
///
/// # Errors
/// What this machine does not allow. Nothing stands then, and the process may be in a namespace that leads nowhere.
pub(crate) fn through_machine(free: impl Iterator<Item = Candidate>) -> Result<(Pair, Tun, Way), Obstacle> {
    let (pair, tun, veth) = router::stand(free)?;
    // Our own interface alone; the setting goes with it.
    let forwarding = format!("/proc/sys/net/ipv4/conf/{}/forwarding", veth.name);
    fs::write(&forwarding, "1").trying(&format!("writing {forwarding}"))?;
    let table = masquerade::install(veth.index, pair, Help::of_this_machine()).map_err(|error| {
        Obstacle::new("masquerading by nftables", error)
            .remedy("a kernel from 5.12 on with nf_tables, nft_masq and nft_dup is needed")
    })?;
    let six = through_machine_v6(&veth, pair).ok();
    let leads = if six.is_some() { V6::Beyond } else { V6::OtherEnd };
    let tables = std::iter::once(table).chain(six).collect();
    let way = |inside, base| probe::Way { tun: &tun, link: &veth, inside, base };
    let mut ways = vec![way(pair.inside.into(), pair.base.into())];
    if leads == V6::Beyond {
        ways.push(way(v6(pair.inside).into(), v6(pair.base).into()));
    }
    let remarks = probe::remarks(&ways);
    Ok((pair, tun, Way { reach: Reach::Machine, v6: leads, remarks, _tables: tables }))
}

/// The same for IPv6. There a machine forwards from every interface or from none, and one that does no longer listens to
/// routers: that is not ours to switch on. Linux 6.17 and later can be told to forward from our interface all the same.
fn through_machine_v6(veth: &Interface, pair: Pair) -> io::Result<Netlink> {
    let all = fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding")?;
    let help = if all.trim() == "0" { Help::Replies } else { Help::None };
    if help == Help::Replies {
        fs::write(format!("/proc/sys/net/ipv6/conf/{}/force_forwarding", veth.name), "1")?;
    }
    masquerade::install_v6(veth.index, pair, help)
}

/// Through a namespace of our own, to which pasta is attached later.
pub(crate) fn through_pasta(tun: &Tun, pair: Pair, installed: bool) -> Way {
    if !installed {
        return closed("without root `pasta` is needed: sudo apt install passt".to_owned());
    }
    if !forward_all() {
        return closed(
            "forwarding cannot be switched on in the namespace: /proc/sys is read-only".to_owned(),
        );
    }
    // An address of our own there; without it names are not relayed.
    let _ = tun.interface.add_address(pasta::RESOLVER);
    match masquerade::install(tun.interface.index, pair, Help::Base(pasta::MACHINE)) {
        Ok(table) => Way { reach: Reach::Pasta, v6: V6::OtherEnd, remarks: Vec::new(), _tables: vec![table] },
        Err(error) => closed(Obstacle::new("masquerading by nftables", error).to_string()),
    }
}

/// Nowhere, in a namespace of our own.
pub(crate) fn closed(why: String) -> Way {
    // Where nothing lies beyond, the kernel then answers at once that there is no route, instead of keeping programs waiting.
    forward_all();
    Way { reach: Reach::Closed(why), v6: V6::OtherEnd, remarks: Vec::new(), _tables: Vec::new() }
}

/// Switches forwarding on in the namespace of this process, which is our own.
fn forward_all() -> bool {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").is_ok()
}
