//! Masquerading in a table of our own, `flags owner`: the kernel removes it with the socket that made it.
//!
//! In the notation of `nft`:
//! ```text
//! table ip ackclock0 { flags owner
//!   chain out  { type nat hook postrouting priority srcnat; ip saddr INSIDE oif != TUN masquerade }
//!   chain back { type filter hook prerouting priority dstnat + 10
//!                iif != TUN ip daddr INSIDE ct direction reply dup to INSIDE device TUN drop }
//!   chain base { type nat hook prerouting priority dstnat
//!                ip daddr BASE meta l4proto != icmp iif TUN dnat to MACHINE }
//!   chain strays { type filter hook prerouting priority dstnat + 10; ct state invalid drop }
//! }
//! ```
//! `back` stands only where the machine does not forward what its other interfaces receive. A reply, once its address has
//! been changed back, would then be dropped; so it is sent on from here, and no setting of an interface that is not ours
//! need be touched. `base` and `strays` stand where the base address is not the machine's: a server on the machine is found there all
//! the same, and what pasta sends without an ACK flag, which no address is changed back in, is not taken for this host's and
//! answered by a reset.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use nix::libc;

use crate::namespace::Pair;
use crate::namespace::netlink::{Message, Netlink};

/// What the kernel does not do by itself in the namespace of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// It forwards what comes in at every interface.
    None,
    /// Replies are sent on to the TUN.
    Replies,
    /// The base address stands for the machine, which is found at this address.
    Base(Ipv4Addr),
}

impl Help {
    /// Whether some interface of this machine receives what it does not forward.
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

/// Installs the table in the network namespace of this process; it lives as long as the socket.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn install(tun: u32, pair: Pair, help: Help) -> io::Result<Netlink> {
    let name = format!("ackclock{tun}");
    let mut messages = vec![bracket(BATCH_BEGIN), table(&name)];
    messages.push(chain(&name, "out", "nat", (libc::NF_INET_POST_ROUTING, SRCNAT)));
    messages.push(rule(&name, "out", |list| {
        let list = address_is(list, IP_SOURCE, pair.inside);
        interface(list, META_OIF, libc::NFT_CMP_NEQ, tun)
            .nested(ELEMENT, |it| expression(it, "masq", |data| data))
    }));
    match help {
        Help::None => {}
        Help::Replies => messages.extend(back(&name, tun, pair)),
        Help::Base(machine) => {
            messages.extend(base(&name, tun, pair, machine).into_iter().chain(strays(&name)))
        }
    }
    messages.push(bracket(BATCH_END));
    let mut socket = Netlink::netfilter()?;
    socket.request(&messages)?;
    Ok(socket)
}

fn back(name: &str, tun: u32, pair: Pair) -> [Message; 2] {
    let rule = rule(name, "back", |list| {
        let list = interface(list, META_IIF, libc::NFT_CMP_NEQ, tun);
        let list = address_is(list, IP_DESTINATION, pair.inside);
        send_on(number_compares(list, ("ct", libc::NFT_CT_DIRECTION), libc::NFT_CMP_EQ, REPLY), tun, pair)
    });
    [chain(name, "back", "filter", (libc::NF_INET_PRE_ROUTING, AFTER_DSTNAT)), rule]
}

fn base(name: &str, tun: u32, pair: Pair, machine: Ipv4Addr) -> [Message; 2] {
    let rule = rule(name, "base", |list| {
        let list = interface(list, META_IIF, libc::NFT_CMP_EQ, tun);
        let list = address_is(list, IP_DESTINATION, pair.base);
        let list = number_compares(list, ("meta", libc::NFT_META_L4PROTO), libc::NFT_CMP_NEQ, ICMP);
        set(list, REGISTER, &machine.octets()).nested(ELEMENT, |it| {
            expression(it, "nat", |data| {
                data.number(1, NAT_DESTINATION).number(2, libc::NFPROTO_IPV4 as u32).number(3, REGISTER)
            })
        })
    });
    [chain(name, "base", "nat", (libc::NF_INET_PRE_ROUTING, DSTNAT)), rule]
}

fn strays(name: &str) -> [Message; 2] {
    let rule = rule(name, "strays", |list| {
        let load = |data: Message| data.number(1, REGISTER).number(2, libc::NFT_CT_STATE as u32);
        drop_it(compare(list, ("ct", load), libc::NFT_CMP_EQ, &CT_INVALID.to_ne_bytes()))
    });
    [chain(name, "strays", "filter", (libc::NF_INET_PRE_ROUTING, AFTER_DSTNAT)), rule]
}

fn bracket(kind: u16) -> Message {
    let [high, low] = (libc::NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
    Message::bracket(kind, &[libc::AF_UNSPEC as u8, 0, high, low])
}

/// A request about tables of IPv4.
fn request(kind: i32, flags: u16) -> Message {
    let kind = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | kind as u16;
    Message::new(kind, flags, &[libc::NFPROTO_IPV4 as u8, 0, 0, 0])
}

fn table(name: &str) -> Message {
    request(libc::NFT_MSG_NEWTABLE, CREATE).text(1, name).number(2, FLAG_OWNER)
}

fn chain(table: &str, name: &str, kind: &str, (hook, priority): (i32, i32)) -> Message {
    request(libc::NFT_MSG_NEWCHAIN, CREATE)
        .text(1, table)
        .text(3, name)
        .nested(4, |at| at.number(1, hook as u32).number(2, priority as u32))
        .text(7, kind)
}

fn rule(table: &str, chain: &str, expressions: impl FnOnce(Message) -> Message) -> Message {
    request(libc::NFT_MSG_NEWRULE, CREATE | APPEND).text(1, table).text(2, chain).nested(4, expressions)
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

fn address_is(list: Message, offset: u32, address: Ipv4Addr) -> Message {
    let load = |data: Message| {
        data.number(1, REGISTER)
            .number(2, libc::NFT_PAYLOAD_NETWORK_HEADER as u32)
            .number(3, offset)
            .number(4, 4)
    };
    compare(list, ("payload", load), libc::NFT_CMP_EQ, &address.octets())
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

/// A copy to the TUN, and nothing of the original.
fn send_on(list: Message, tun: u32, pair: Pair) -> Message {
    let list = set(list, REGISTER, &pair.inside.octets());
    let list = set(list, SECOND_REGISTER, &tun.to_ne_bytes());
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
const IP_SOURCE: u32 = 12;
const IP_DESTINATION: u32 = 16;
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
