//! nftables tables that the kernel removes with the socket that created them (`flags owner`): chains, rules and
//! expressions as netlink messages.

use std::io;
use std::net::IpAddr;

use nix::libc;

use crate::namespace::interface::octets;
use ackclock_netlink::{Message, Netlink};

/// Firewall table of one IP version, for the inside of one link.
pub(super) struct Table {
    pub(super) name: String,
    /// Index of the network interface towards the inside.
    pub(super) link: u32,
    pub(super) inside: IpAddr,
}

impl Table {
    /// Creates the firewall table; the table exists as long as the socket.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub(super) fn commit(&self, messages: Vec<Message>) -> io::Result<Netlink> {
        let create = self.request(libc::NFT_MSG_NEWTABLE, CREATE).text(1, &self.name).number(2, FLAG_OWNER);
        let batch = [vec![bracket(BATCH_BEGIN), create], messages, vec![bracket(BATCH_END)]].concat();
        let mut socket = Netlink::netfilter()?;
        socket.request(&batch)?;
        Ok(socket)
    }

    pub(super) fn chain(&self, name: &str, kind: &str, (hook, priority): (i32, i32)) -> Message {
        self.request(libc::NFT_MSG_NEWCHAIN, CREATE)
            .text(1, &self.name)
            .text(3, name)
            .nested(4, |at| at.number(1, hook as u32).number(2, priority as u32))
            .text(7, kind)
    }

    pub(super) fn rule(&self, chain: &str, expressions: impl FnOnce(Message) -> Message) -> Message {
        self.request(libc::NFT_MSG_NEWRULE, CREATE | APPEND)
            .text(1, &self.name)
            .text(2, chain)
            .nested(4, expressions)
    }

    /// Creates a request about tables of this IP version.
    pub(super) fn request(&self, kind: i32, flags: u16) -> Message {
        let kind = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | kind as u16;
        let family = if self.inside.is_ipv4() { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 };
        Message::new(kind, flags, &[family as u8, 0, 0, 0])
    }

    /// Offset of the source address in an IP header, bytes.
    pub(super) fn source(&self) -> u32 {
        if self.inside.is_ipv4() { 12 } else { 8 }
    }

    /// Offset of the destination address in an IP header, which follows the source address.
    pub(super) fn destination(&self) -> u32 {
        if self.inside.is_ipv4() { 16 } else { 24 }
    }
}

fn bracket(kind: u16) -> Message {
    let [high, low] = (libc::NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
    Message::bracket(kind, &[libc::AF_UNSPEC as u8, 0, high, low])
}

pub(super) fn expression(list: Message, name: &str, data: impl FnOnce(Message) -> Message) -> Message {
    list.text(1, name).nested(2, data)
}

/// Loads a value into the first register and compares it.
pub(super) fn compare(
    list: Message,
    load: (&str, impl FnOnce(Message) -> Message),
    how: i32,
    with: &[u8],
) -> Message {
    list.nested(ELEMENT, |it| expression(it, load.0, load.1)).nested(ELEMENT, |it| {
        expression(it, "cmp", |data| {
            data.number(1, REGISTER).number(2, how as u32).nested(3, |value| value.attribute(1, with))
        })
    })
}

pub(super) fn address_is(list: Message, offset: u32, address: IpAddr) -> Message {
    let address = octets(address);
    let load = payload(libc::NFT_PAYLOAD_NETWORK_HEADER, offset, address.len() as u32);
    compare(list, ("payload", load), libc::NFT_CMP_EQ, &address)
}

/// Loads bytes of a header into the first register.
pub(super) fn payload(header: i32, offset: u32, length: u32) -> impl FnOnce(Message) -> Message {
    move |data| data.number(1, REGISTER).number(2, header as u32).number(3, offset).number(4, length)
}

pub(super) fn interface(list: Message, which: i32, how: i32, index: u32) -> Message {
    let load = |data: Message| data.number(1, REGISTER).number(2, which as u32);
    compare(list, ("meta", load), how, &index.to_ne_bytes())
}

/// Adds an expression that loads the one-byte value of a key, and a comparison of that value.
pub(super) fn number_compares(list: Message, (name, key): (&str, i32), how: i32, with: u8) -> Message {
    let load = |data: Message| data.number(1, REGISTER).number(2, key as u32);
    compare(list, (name, load), how, &[with])
}

pub(super) fn set(list: Message, register: u32, value: &[u8]) -> Message {
    list.nested(ELEMENT, |it| {
        expression(it, "immediate", |data| {
            data.number(1, register).nested(2, |holder| holder.attribute(1, value))
        })
    })
}

pub(super) fn drop_it(list: Message) -> Message {
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
pub(super) const ELEMENT: u16 = 1;
const FLAG_OWNER: u32 = 2;
pub(super) const REGISTER: u32 = libc::NFT_REG_1 as u32;
pub(super) const META_IIF: i32 = libc::NFT_META_IIF;
/// Hook priority after destination addresses are translated back.
pub(super) const AFTER_DSTNAT: i32 = -90;
