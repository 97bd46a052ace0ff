//! Interfaces of the namespace that the calling thread is in: up, addresses, routes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use nix::libc;

use super::addresses::{Prefix, v6};
use super::netlink::{CREATE, Message, Netlink, attributes};
use super::obstacle::{Obstacle, Trying};

/// An interface with nobody but one other end behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its number in its namespace.
    pub(crate) index: u32,
    /// Its name there.
    pub(crate) name: String,
}

impl Interface {
    /// Brings it up with its own address and a route to the other end's, for IPv4 and, where the kernel has it, for IPv6.
    ///
    /// # Errors
    /// The kernel's refusal, unless it is of IPv6.
    pub(crate) fn configure(&self, own: Ipv4Addr, peer: Ipv4Addr) -> Result<(), Obstacle> {
        // Otherwise the kernel greets a neighbourhood that is not there, and the link carries the greetings. A kernel without
        // IPv6 does not do it anyway.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{}/addr_gen_mode", self.name), "1");
        bring_up(self.index).trying(&format!("bringing {} up", self.name))?;
        add_address(self.index, own.into(), peer.into())
            .trying(&format!("giving {} its address", self.name))?;
        // A kernel without IPv6 is no obstacle.
        let _ = add_address(self.index, v6(own).into(), v6(peer).into());
        Ok(())
    }
}

impl Interface {
    /// Gives it one more address, with nobody behind it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn add_address(&self, own: Ipv4Addr) -> io::Result<()> {
        add_address(self.index, own.into(), own.into())
    }
}

fn bring_up(index: u32) -> io::Result<()> {
    let up = libc::IFF_UP as u32;
    Netlink::route()?.request(&[Message::new(libc::RTM_NEWLINK, 0, &link(index, up, up))])
}

/// The fixed part of a message about an interface: its number, its flags, and which of them change.
pub(crate) fn link(index: u32, flags: u32, changed: u32) -> [u8; LINK_BODY] {
    let mut body = [0; LINK_BODY];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&changed.to_ne_bytes());
    body
}

/// The length of the fixed part of a message about an interface.
const LINK_BODY: usize = 16;

/// One attribute of an interface in the namespace of the socket.
///
/// # Errors
/// The kernel's refusal; `ENODEV` where there is no such interface or attribute.
pub(crate) fn attribute_of(netlink: &mut Netlink, index: u32, wanted: u16) -> io::Result<Vec<u8>> {
    let mut found = None;
    netlink.list(Message::list(libc::RTM_GETLINK, &link(0, 0, 0)), |entry| {
        if entry.get(4..8) == Some(&index.to_ne_bytes()) {
            let mut all = attributes(entry.get(LINK_BODY..).unwrap_or_default());
            found = all.find(|(kind, _)| *kind == wanted).map(|(_, value)| value.to_vec());
        }
    })?;
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Brings loopback up; its number is 1 in every namespace.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    bring_up(1)
}

/// Gives an interface an address and tells it who is at the other end.
fn add_address(index: u32, own: IpAddr, peer: IpAddr) -> io::Result<()> {
    let (family, bits) = family(own);
    // There is no neighbour who could have the address already: it need not be sought before it is used.
    let mut body = vec![family, bits, libc::IFA_F_NODAD as u8, 0];
    body.extend(index.to_ne_bytes());
    let message = Message::new(libc::RTM_NEWADDR, CREATE, &body)
        .attribute(libc::IFA_LOCAL, &octets(own))
        .attribute(libc::IFA_ADDRESS, &octets(peer));
    Netlink::route()?.request(&[message])
}

/// Sends every IPv4 packet that has no better route to a gateway behind an interface.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn add_default_route(index: u32, gateway: Ipv4Addr) -> io::Result<()> {
    let message = route(libc::AF_INET, index, DEFAULT).attribute(libc::RTA_GATEWAY, &gateway.octets());
    Netlink::route()?.request(&[message])
}

/// Sends every IPv6 packet that has no better route out of an interface with nobody but the other end behind it. A gateway
/// would have to wait: the kernel routes to a peer only some time after it was given its address.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn add_default_route_v6(index: u32) -> io::Result<()> {
    Netlink::route()?.request(&[route(libc::AF_INET6, index, DEFAULT)])
}

/// Sends packets to these destinations out of an interface with nobody but the other end behind it.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn add_routes(index: u32, destinations: &BTreeSet<Prefix>) -> io::Result<()> {
    let routes = destinations.iter().map(|&(address, bits)| {
        route(libc::AF_INET, index, bits).attribute(libc::RTA_DST, &address.octets())
    });
    let routes: Vec<Message> = routes.collect();
    let mut netlink = Netlink::route()?;
    // No more at a time than sockets have room for.
    routes.chunks(256).try_for_each(|some| netlink.request(some))
}

fn route(family: libc::c_int, index: u32, bits: u8) -> Message {
    let (protocol, universe) = (libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE);
    let family = family as u8;
    let body = [family, bits, 0, 0, libc::RT_TABLE_MAIN, protocol, universe, libc::RTN_UNICAST, 0, 0, 0, 0];
    Message::new(libc::RTM_NEWROUTE, CREATE, &body).attribute(libc::RTA_OIF, &index.to_ne_bytes())
}

/// The length of a prefix that holds every address.
const DEFAULT: u8 = 0;

/// Every IPv4 destination that some table routes, the default route left out.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn routed() -> io::Result<Vec<Prefix>> {
    let mut prefixes = Vec::new();
    let mut body = [0; ROUTE_BODY];
    body[0] = libc::AF_INET as u8;
    Netlink::route()?.list(Message::list(libc::RTM_GETROUTE, &body), |route| {
        let length = route.get(1).copied().unwrap_or(0);
        let destination = attributes(route.get(ROUTE_BODY..).unwrap_or_default())
            .find(|(kind, _)| *kind == libc::RTA_DST)
            .and_then(|(_, value)| <[u8; 4]>::try_from(value).ok());
        prefixes.extend(destination.map(|octets| (Ipv4Addr::from(octets), length)));
    })?;
    Ok(prefixes)
}

const ROUTE_BODY: usize = 12;

fn family(address: IpAddr) -> (u8, u8) {
    match address {
        IpAddr::V4(_) => (libc::AF_INET as u8, 32),
        IpAddr::V6(_) => (libc::AF_INET6 as u8, 128),
    }
}

/// The bytes of an address as it stands in a header.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
