//! How far the inside of a link reaches.

mod masquerade;
pub mod pasta;

use std::fs;

use serde_json::{Value, json};

use self::masquerade::Help;
use crate::namespace::netlink::Netlink;
use crate::namespace::tun::Tun;
use crate::namespace::{Obstacle, Pair};

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
    /// The firewall table goes with this socket.
    _table: Option<Netlink>,
}

/// Through the network of the machine: its kernel forwards what comes from the TUN, under the machine's address.
pub(crate) fn through_machine(tun: &Tun, pair: Pair) -> Way {
    // Our own interface alone; the setting goes with it.
    let forwarding = format!("/proc/sys/net/ipv4/conf/{}/forwarding", tun.name);
    if let Err(error) = fs::write(&forwarding, "1") {
        return closed(Obstacle::new(format!("writing {forwarding}"), error).to_string());
    }
    match masquerade::install(tun.index, pair, Help::of_this_machine()) {
        Ok(table) => Way { reach: Reach::Machine, _table: Some(table) },
        Err(error) => closed(
            Obstacle::new("masquerading by nftables", error)
                .remedy("a kernel from 5.12 on with nf_tables, nft_masq and nft_dup is needed")
                .to_string(),
        ),
    }
}

/// Through a namespace of our own, to which pasta is attached later.
pub(crate) fn through_pasta(tun: &Tun, pair: Pair, installed: bool) -> Way {
    if !installed {
        forward_all();
        return closed("without root `pasta` is needed: sudo apt install passt".to_owned());
    }
    if !forward_all() {
        return closed(
            "forwarding cannot be switched on in the namespace: /proc/sys is read-only".to_owned(),
        );
    }
    match masquerade::install(tun.index, pair, Help::Base(pasta::MACHINE)) {
        Ok(table) => Way { reach: Reach::Pasta, _table: Some(table) },
        Err(error) => closed(Obstacle::new("masquerading by nftables", error).to_string()),
    }
}

/// Nowhere, as asked.
pub(crate) fn nowhere() -> Way {
    forward_all();
    closed("as asked".to_owned())
}

/// Switches forwarding on in the namespace of this process, which is our own. Where nothing lies beyond, the kernel then
/// answers at once that there is no route, instead of keeping programs waiting.
fn forward_all() -> bool {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").is_ok()
}

fn closed(why: String) -> Way {
    Way { reach: Reach::Closed(why), _table: None }
}
