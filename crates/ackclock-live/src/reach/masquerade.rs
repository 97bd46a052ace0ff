//! Masquerading in tables of our own, `flags owner`: the kernel removes them with the socket that made them.
//!
//! In the notation of `nft`, for IPv4; the table `ip6` is the same with the addresses of IPv6:
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
//! LINK is the interface that leads to the inside: our end of a veth pair, or the TUN itself where pasta serves.
//! `back` stands only where the machine does not forward what its other interfaces receive. A reply, once its address has
//! been changed back, would then be dropped; so it is sent on from here, and no setting of an interface that is not ours
//! need be touched. `base` and `strays` stand where the base address is not the machine's: a server on the machine is found there all
//! the same, and what pasta sends without an ACK flag, which no address is changed back in, is not taken for this host's and
//! answered by a reset.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use nix::libc;

use crate::namespace::interface::octets;
use crate::namespace::netlink::{Message, Netlink};
use crate::namespace::{Pair, v6};

/// What the kernel does not do by itself in the namespace of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// It forwards what comes in at every interface.
    None,
    /// Replies are sent on to the link.
    Replies,
    /// The base address stands for the machine, which is found at this address.
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

/// Installs the table for IPv4 in the network namespace of this process; it lives as long as the socket. `link` is the number
/// of the interface that leads to the inside.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn install(link: u32, pair: Pair, help: Help) -> io::Result<Netlink> {
    let table = Table::new(link, pair.inside.into());
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

/// Installs the table for IPv6 beside it.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn install_v6(link: u32, pair: Pair, help: Help) -> io::Result<Netlink> {
    let table = Table::new(link, v6(pair.inside).into());
    let mut messages = table.out();
    if help == Help::Replies {
        messages.extend(table.back());
    }
    table.commit(messages)
}

/// A table of one version of IP, for the inside of one link.
struct Table {
    name: String,
    link: u32,
    inside: IpAddr,
}

impl Table {
    fn new(link: u32, inside: IpAddr) -> Self {
        Self { name: format!("ackclock{link}"), link, inside }
    }

    fn commit(&self, messages: Vec<Message>) -> io::Result<Netlink> {
        let create = self.request(libc::NFT_MSG_NEWTABLE, CREATE).text(1, &self.name).number(2, FLAG_OWNER);
        let batch = [vec![bracket(BATCH_BEGIN), create], messages, vec![bracket(BATCH_END)]].concat();
        let mut socket = Netlink::netfilter()?;
        socket.request(&batch)?;
        Ok(socket)
    }

    fn out(&self) -> Vec<Message> {
        let rule = self.rule("out", |list| {
            let list = address_is(list, self.source(), self.inside);
            interface(list, META_OIF, libc::NFT_CMP_NEQ, self.link)
                .nested(ELEMENT, |it| expression(it, "masq", |data| data))
        });
        vec![self.chain("out", "nat", (libc::NF_INET_POST_ROUTING, SRCNAT)), rule]
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

    fn chain(&self, name: &str, kind: &str, (hook, priority): (i32, i32)) -> Message {
        self.request(libc::NFT_MSG_NEWCHAIN, CREATE)
            .text(1, &self.name)
            .text(3, name)
            .nested(4, |at| at.number(1, hook as u32).number(2, priority as u32))
            .text(7, kind)
    }

    fn rule(&self, chain: &str, expressions: impl FnOnce(Message) -> Message) -> Message {
        self.request(libc::NFT_MSG_NEWRULE, CREATE | APPEND)
            .text(1, &self.name)
            .text(2, chain)
            .nested(4, expressions)
    }

    /// A request about tables of this version of IP.
    fn request(&self, kind: i32, flags: u16) -> Message {
        let kind = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | kind as u16;
        let family = if self.inside.is_ipv4() { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 };
        Message::new(kind, flags, &[family as u8, 0, 0, 0])
    }

    /// Where an IP header has the address of the sender.
    fn source(&self) -> u32 {
        if self.inside.is_ipv4() { 12 } else { 8 }
    }

    /// Where it has that of the receiver, which follows.
    fn destination(&self) -> u32 {
        if self.inside.is_ipv4() { 16 } else { 24 }
    }
}

fn bracket(kind: u16) -> Message {
    let [high, low] = (libc::NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
    Message::bracket(kind, &[libc::AF_UNSPEC as u8, 0, high, low])
}

fn expression(list: Message, name: &str, data: impl FnOnce(Message) -> Message) -> Message {
    list.text(1, name).nested(2, data)
}

/// Loads something into the first register and compares it.
fn compare(list: Message, load: (&str, impl FnOnce(Message) -> Message), how: i32, with: &[u8]) -> Message {
    list.nested(ELEMENT, |it| expression(it, load.0, load.1)).nested(ELEMENT, |it| {
        expression(it, "cmp", |data| {
            data.number(1, REGISTER).number(2, how as u32).nested(3, |value| value.attribute(1, with))
        })
    })
}

fn address_is(list: Message, offset: u32, address: IpAddr) -> Message {
    let address = octets(address);
    let load = |data: Message| {
        data.number(1, REGISTER)
            .number(2, libc::NFT_PAYLOAD_NETWORK_HEADER as u32)
            .number(3, offset)
            .number(4, address.len() as u32)
    };
    compare(list, ("payload", load), libc::NFT_CMP_EQ, &address)
}

fn interface(list: Message, which: i32, how: i32, index: u32) -> Message {
    let load = |data: Message| data.number(1, REGISTER).number(2, which as u32);
    compare(list, ("meta", load), how, &index.to_ne_bytes())
}

/// Compares a number of one byte that an expression gives under a key.
fn number_compares(list: Message, (name, key): (&str, i32), how: i32, with: u8) -> Message {
    let load = |data: Message| data.number(1, REGISTER).number(2, key as u32);
    compare(list, (name, load), how, &[with])
}

fn set(list: Message, register: u32, value: &[u8]) -> Message {
    list.nested(ELEMENT, |it| {
        expression(it, "immediate", |data| {
            data.number(1, register).nested(2, |holder| holder.attribute(1, value))
        })
    })
}

/// A copy to the link, and nothing of the original.
fn send_on(list: Message, link: u32, to: IpAddr) -> Message {
    let list = set(list, REGISTER, &octets(to));
    let list = set(list, SECOND_REGISTER, &link.to_ne_bytes());
    drop_it(list.nested(ELEMENT, |it| {
        expression(it, "dup", |data| data.number(1, REGISTER).number(2, SECOND_REGISTER))
    }))
}

fn drop_it(list: Message) -> Message {
    list.nested(ELEMENT, |it| {
        expression(it, "immediate", |data| {
            data.number(1, libc::NFT_REG_VERDICT as u32)
                .nested(2, |holder| holder.nested(2, |verdict| verdict.number(1, libc::NF_DROP as u32)))
        })
    })
}

const BATCH_BEGIN: u16 = libc::NFNL_MSG_BATCH_BEGIN as u16;
const BATCH_END: u16 = libc::NFNL_MSG_BATCH_END as u16;
const CREATE: u16 = libc::NLM_F_CREATE as u16;
const APPEND: u16 = libc::NLM_F_APPEND as u16;
const ELEMENT: u16 = 1;
const FLAG_OWNER: u32 = 2;
const REGISTER: u32 = libc::NFT_REG_1 as u32;
const SECOND_REGISTER: u32 = libc::NFT_REG_2 as u32;
const META_IIF: i32 = libc::NFT_META_IIF;
const META_OIF: i32 = libc::NFT_META_OIF;
/// The direction of packets that answer those by which a connection began.
const REPLY: u8 = 1;
/// The state of packets that belong to no connection.
const CT_INVALID: u32 = 1;
const ICMP: u8 = libc::IPPROTO_ICMP as u8;
const NAT_DESTINATION: u32 = 1;
/// Where addresses of senders are changed.
const SRCNAT: i32 = 100;
/// Where addresses of receivers are changed, also back.
const DSTNAT: i32 = -100;
/// Behind the place where addresses are changed back.
const AFTER_DSTNAT: i32 = -90;
