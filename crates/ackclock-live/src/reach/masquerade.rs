//! Address translation (masquerading) in separate firewall tables with `flags owner`: the kernel removes an owned table
//! with the socket that created it.
//!
//! The tables in the notation of `nft`, for IPv4; the table `ip6` has other addresses and is otherwise equal:
//! ```text
//! table ip ackclock0 { flags owner
//!   chain out  { type nat hook postrouting priority srcnat; ip saddr INSIDE oif != LINK masquerade }
//!   chain back { type filter hook prerouting priority dstnat + 10
//!                iif != LINK ip daddr INSIDE ct direction reply dup to INSIDE device LINK drop }
//!   chain base { type nat hook prerouting priority dstnat
//!                ip daddr BASE meta l4proto != icmp iif LINK dnat to MACHINE }
//!   chain strays { type filter hook prerouting priority dstnat + 10; ct state invalid drop }
//! }
//! ```
//! LINK is the interface towards the inside: our end of a veth pair, or the TUN itself with pasta. The chain `back`
//! exists only if the machine does not forward packets from its other interfaces. A machine without this forwarding
//! would drop a reply whose address was translated back, so `back` sends replies to the link without changing settings
//! of other interfaces. The chains `base` and `strays` exist if the machine does not have the base address. `base`
//! makes a server on the machine reachable at the base address. `strays` drops pasta's packets without ACK flag, whose
//! addresses are not translated back, so that this host does not answer them with a RST.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use nix::libc;

use super::nftables::{
    AFTER_DSTNAT, ELEMENT, META_IIF, REGISTER, Table, address_is, compare, drop_it, expression, interface,
    number_compares, set,
};
use crate::namespace::interface::octets;
use crate::namespace::{Pair, v6};
use ackclock_netlink::{Message, Netlink};

/// Functions that the firewall table adds because the kernel lacks them in the table's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// The table adds no function: the kernel forwards packets from every interface.
    None,
    /// The table must send replies to the link.
    Replies,
    /// The base address stands for the machine, which has the given address.
    Base(Ipv4Addr),
}

impl Help {
    /// Whether some interface of this machine receives IPv4 packets that it does not forward.
    pub(crate) fn of_this_machine() -> Self {
        let interfaces = fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
        let silent = interfaces
            .filter(|entry| !["all", "default", "lo"].iter().any(|name| entry.file_name() == *name))
            .any(|entry| {
                fs::read_to_string(entry.path().join("forwarding")).is_ok_and(|text| text.trim() == "0")
            });
        if silent { Self::Replies } else { Self::None }
    }
}

/// Installs the IPv4 table in this process's network namespace; the table exists as long as the returned socket. `link`
/// is the index of the interface towards the inside.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
pub(crate) fn install(link: u32, pair: Pair, help: Help) -> io::Result<Netlink> {
    let table = Table { name: name(link), link, inside: pair.inside.into() };
    let mut messages = table.out();
    match help {
        Help::None => {}
        Help::Replies => messages.extend(table.back()),
        Help::Base(machine) => {
            messages.extend(table.base(pair.base, machine).into_iter().chain(table.strays()))
        }
    }
    table.commit(messages)
}

/// Installs the IPv6 table in addition to the IPv4 table.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
pub(crate) fn install_v6(link: u32, pair: Pair, help: Help) -> io::Result<Netlink> {
    let table = Table { name: name(link), link, inside: v6(pair.inside).into() };
    let mut messages = table.out();
    if help == Help::Replies {
        messages.extend(table.back());
    }
    table.commit(messages)
}

/// Name of the firewall tables of a link.
pub(super) fn name(link: u32) -> String {
    format!("ackclock{link}")
}

/// Name of the chain that packets from inside traverse, unless another rule drops them.
pub(super) const OUT: &str = "out";

impl Table {
    fn out(&self) -> Vec<Message> {
        let rule = self.rule(OUT, |list| {
            let list = address_is(list, self.source(), self.inside);
            interface(list, META_OIF, libc::NFT_CMP_NEQ, self.link)
                .nested(ELEMENT, |it| expression(it, "masq", |data| data))
        });
        vec![self.chain(OUT, "nat", (libc::NF_INET_POST_ROUTING, SRCNAT)), rule]
    }

    fn back(&self) -> [Message; 2] {
        let rule = self.rule("back", |list| {
            let list = interface(list, META_IIF, libc::NFT_CMP_NEQ, self.link);
            let list = address_is(list, self.destination(), self.inside);
            let list = number_compares(list, ("ct", libc::NFT_CT_DIRECTION), libc::NFT_CMP_EQ, REPLY);
            send_on(list, self.link, self.inside)
        });
        [self.chain("back", "filter", (libc::NF_INET_PRE_ROUTING, AFTER_DSTNAT)), rule]
    }

    fn base(&self, base: Ipv4Addr, machine: Ipv4Addr) -> [Message; 2] {
        let rule = self.rule("base", |list| {
            let list = interface(list, META_IIF, libc::NFT_CMP_EQ, self.link);
            let list = address_is(list, self.destination(), base.into());
            let list = number_compares(list, ("meta", libc::NFT_META_L4PROTO), libc::NFT_CMP_NEQ, ICMP);
            set(list, REGISTER, &machine.octets()).nested(ELEMENT, |it| {
                expression(it, "nat", |data| {
                    data.number(1, NAT_DESTINATION).number(2, libc::NFPROTO_IPV4 as u32).number(3, REGISTER)
                })
            })
        });
        [self.chain("base", "nat", (libc::NF_INET_PRE_ROUTING, DSTNAT)), rule]
    }

    fn strays(&self) -> [Message; 2] {
        let rule = self.rule("strays", |list| {
            let load = |data: Message| data.number(1, REGISTER).number(2, libc::NFT_CT_STATE as u32);
            drop_it(compare(list, ("ct", load), libc::NFT_CMP_EQ, &CT_INVALID.to_ne_bytes()))
        });
        [self.chain("strays", "filter", (libc::NF_INET_PRE_ROUTING, AFTER_DSTNAT)), rule]
    }
}

/// Sends a copy of the packet to the link and drops the original.
fn send_on(list: Message, link: u32, to: IpAddr) -> Message {
    let list = set(list, REGISTER, &octets(to));
    let list = set(list, SECOND_REGISTER, &link.to_ne_bytes());
    drop_it(list.nested(ELEMENT, |it| {
        expression(it, "dup", |data| data.number(1, REGISTER).number(2, SECOND_REGISTER))
    }))
}

/// Conntrack direction of packets that answer the first packets of a connection.
const REPLY: u8 = 1;
/// Conntrack state of packets that belong to no connection.
const CT_INVALID: u32 = 1;
const ICMP: u8 = libc::IPPROTO_ICMP as u8;
pub(super) const NAT_DESTINATION: u32 = 1;
/// Hook priority at which source addresses are translated.
pub(super) const SRCNAT: i32 = 100;
/// Hook priority at which destination addresses are translated, and translated back in replies.
pub(super) const DSTNAT: i32 = -100;
const SECOND_REGISTER: u32 = libc::NFT_REG_2 as u32;
pub(super) const META_OIF: i32 = libc::NFT_META_OIF;
