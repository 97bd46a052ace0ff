//! Redirects the inside's connections to forwarded ports of 127.0.0.1 across the link.
//!
//! The firewall table in the notation of `nft`, in the inside's network namespace; ROUTER is the address at which
//! forwarded ports are accepted:
//! ```text
//! table ip ackclock-forward { flags owner
//!   chain redirect { type nat hook output priority dstnat
//!                    ip daddr 127.0.0.0/8 meta l4proto tcp th dport PORT dnat to ROUTER    (and udp; for each port) }
//!   chain source   { type nat hook postrouting priority srcnat; ip saddr 127.0.0.0/8 oif LINK masquerade }
//!   chain clamp    { type filter hook output priority 0
//!                    ip daddr ROUTER tcp flags & syn != 0 tcp option maxseg size set 1460 }
//! }
//! ```
//! For published ports, another table redirects packets that arrive over the link for INSIDE:PORT to the relay's port:
//! ```text
//! table ip ackclock-publish { flags owner
//!   chain redirect { type nat hook prerouting priority dstnat
//!                    iif LINK ip daddr INSIDE meta l4proto tcp th dport PORT dnat to INSIDE:RELAY      (and udp) }
//! }
//! ```
//! The chain `clamp` lowers the MSS: a connection to 127.0.0.1 advertises the MSS of the loopback interface, 65495
//! bytes.

use std::fs;
use std::net::Ipv4Addr;

use nix::libc;

use super::masquerade::{DSTNAT, META_OIF, NAT_DESTINATION, SRCNAT};
use super::nftables::{
    ELEMENT, META_IIF, REGISTER, Table, address_is, compare, expression, interface, number_compares, payload,
    set,
};
use crate::namespace::forward::Forward;
use crate::namespace::interface::Interface;
use crate::namespace::{Obstacle, Pair, Trying};
use ackclock_netlink::{Message, Netlink};

/// Redirects forwarded ports in the network namespace of this process; the interface `link` leads across the link. The
/// redirection exists as long as the returned socket.
///
/// # Errors
/// Returns the operation that this machine does not allow.
pub(crate) fn install(link: &Interface, pair: Pair, forwards: &[Forward]) -> Result<Netlink, Obstacle> {
    // Answers for a loopback address arrive over the link; without the setting `route_localnet` the kernel drops them.
    let setting = format!("/proc/sys/net/ipv4/conf/{}/route_localnet", link.name);
    fs::write(&setting, "1").trying(&format!("writing {setting}"))?;
    let table = Table { name: "ackclock-forward".to_owned(), link: link.index, inside: pair.inside.into() };
    let mut messages = vec![table.chain(REDIRECT, "nat", (libc::NF_INET_LOCAL_OUT, DSTNAT))];
    for forward in forwards {
        let protocols = [libc::IPPROTO_TCP, libc::IPPROTO_UDP];
        messages.extend(protocols.map(|protocol| table.redirect(protocol, forward.inside, pair.router())));
    }
    messages.extend(table.loopback_source());
    messages.extend(table.clamp(pair.router()));
    table.commit(messages).map_err(|error| {
        Obstacle::new("forwarding ports by nftables", error)
            .remedy("a kernel from 5.12 on with nf_tables, nft_nat and nft_masq is needed")
    })
}

/// Redirects ports of the inside address to other ports of it, for connections that arrive over the link. Each pair is a
/// port and the port to which it is redirected. The redirection exists as long as the returned socket.
///
/// # Errors
/// Returns the operation that this machine does not allow.
pub(crate) fn install_published(
    link: &Interface,
    pair: Pair,
    ports: &[(u16, u16)],
) -> Result<Netlink, Obstacle> {
    let table = Table { name: "ackclock-publish".to_owned(), link: link.index, inside: pair.inside.into() };
    let mut messages = vec![table.chain(REDIRECT, "nat", (libc::NF_INET_PRE_ROUTING, DSTNAT))];
    for &(port, to) in ports {
        let protocols = [libc::IPPROTO_TCP, libc::IPPROTO_UDP];
        messages.extend(protocols.map(|protocol| table.redirect_arriving(protocol, port, (pair.inside, to))));
    }
    table.commit(messages).map_err(|error| {
        Obstacle::new("publishing ports by nftables", error)
            .remedy("a kernel from 5.12 on with nf_tables and nft_nat is needed")
    })
}

const REDIRECT: &str = "redirect";
/// First byte of 127.0.0.0/8.
const LOOPBACK: u8 = 127;
/// MSS over a link's devices, whose MTU is 1500 bytes.
const MSS: u16 = 1460;
/// Offset of the destination port in a TCP or UDP header; the next constant is the offset of the TCP flags.
const PORT: u32 = 2;
const FLAGS: u32 = 13;
const SYN: u8 = 2;

impl Table {
    fn redirect(&self, protocol: libc::c_int, port: u16, to: Ipv4Addr) -> Message {
        self.rule(REDIRECT, |list| {
            let list = network_byte_is_loopback(list, self.destination());
            let list = port_is(list, protocol, port);
            set(list, REGISTER, &to.octets()).nested(ELEMENT, |it| {
                expression(it, "nat", |data| {
                    data.number(1, NAT_DESTINATION).number(2, libc::NFPROTO_IPV4 as u32).number(3, REGISTER)
                })
            })
        })
    }

    /// Redirects packets that arrive over the link for a port of the inside address.
    fn redirect_arriving(&self, protocol: libc::c_int, port: u16, (address, to): (Ipv4Addr, u16)) -> Message {
        self.rule(REDIRECT, |list| {
            let list = interface(list, META_IIF, libc::NFT_CMP_EQ, self.link);
            let list = address_is(list, self.destination(), self.inside);
            let list = port_is(list, protocol, port);
            let list = set(list, REGISTER, &address.octets());
            set(list, PORT_REGISTER, &to.to_be_bytes()).nested(ELEMENT, |it| {
                expression(it, "nat", |data| {
                    data.number(1, NAT_DESTINATION)
                        .number(2, libc::NFPROTO_IPV4 as u32)
                        .number(3, REGISTER)
                        .number(NAT_PORT, PORT_REGISTER)
                })
            })
        })
    }

    fn loopback_source(&self) -> [Message; 2] {
        let rule = self.rule("source", |list| {
            let list = network_byte_is_loopback(list, self.source());
            interface(list, META_OIF, libc::NFT_CMP_EQ, self.link)
                .nested(ELEMENT, |it| expression(it, "masq", |data| data))
        });
        [self.chain("source", "nat", (libc::NF_INET_POST_ROUTING, SRCNAT)), rule]
    }

    fn clamp(&self, router: Ipv4Addr) -> [Message; 2] {
        let rule = self.rule("clamp", |list| {
            let list = address_is(list, self.destination(), router.into());
            let tcp = libc::IPPROTO_TCP as u8;
            let list = number_compares(list, ("meta", libc::NFT_META_L4PROTO), libc::NFT_CMP_EQ, tcp);
            set_mss(has_flag(list, SYN))
        });
        [self.chain("clamp", "filter", (libc::NF_INET_LOCAL_OUT, 0)), rule]
    }
}

/// Adds an expression that matches packets of a protocol for a port.
fn port_is(list: Message, protocol: libc::c_int, port: u16) -> Message {
    let list = number_compares(list, ("meta", libc::NFT_META_L4PROTO), libc::NFT_CMP_EQ, protocol as u8);
    let load = payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, PORT, 2);
    compare(list, ("payload", load), libc::NFT_CMP_EQ, &port.to_be_bytes())
}

/// Register for a port, and the attribute `NFTA_NAT_REG_PROTO_MIN` that names it.
const PORT_REGISTER: u32 = libc::NFT_REG_2 as u32;
const NAT_PORT: u16 = 5;

/// Adds an expression that matches loopback addresses by the first byte of an address in the IP header.
fn network_byte_is_loopback(list: Message, offset: u32) -> Message {
    let load = payload(libc::NFT_PAYLOAD_NETWORK_HEADER, offset, 1);
    compare(list, ("payload", load), libc::NFT_CMP_EQ, &[LOOPBACK])
}

/// Adds an expression that matches TCP headers with this flag.
fn has_flag(list: Message, flag: u8) -> Message {
    let bytes = |value: u8| move |holder: Message| holder.attribute(1, &[value]);
    let load = payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, FLAGS, 1);
    let list = list.nested(ELEMENT, |it| expression(it, "payload", load)).nested(ELEMENT, |it| {
        expression(it, "bitwise", |data| {
            let data = data.number(1, REGISTER).number(2, REGISTER).number(3, 1);
            data.nested(4, bytes(flag)).nested(5, bytes(0))
        })
    });
    list.nested(ELEMENT, |it| {
        expression(it, "cmp", |data| {
            data.number(1, REGISTER).number(2, libc::NFT_CMP_NEQ as u32).nested(3, bytes(0))
        })
    })
}

/// Adds an expression that lowers the TCP option MSS, whose value starts two bytes after the option's kind. The kernel
/// never raises the MSS.
fn set_mss(list: Message) -> Message {
    const MAXSEG: u8 = 2;
    const TCP_OPTION: u32 = 1;
    set(list, REGISTER, &MSS.to_be_bytes()).nested(ELEMENT, |it| {
        expression(it, "exthdr", |data| {
            data.attribute(2, &[MAXSEG]).number(3, 2).number(4, 2).number(6, TCP_OPTION).number(7, REGISTER)
        })
    })
}
