//! Network interfaces of the calling thread's namespace: activation, addresses, routes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use nix::libc;

use super::addresses::{Prefix, v6};
use super::obstacle::{Obstacle, Trying};
use ackclock_netlink::{CREATE, Message, Netlink, attributes};

/// Point-to-point interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Index of the interface in its namespace.
    pub(crate) index: u32,
    /// Name of the interface in its namespace.
    pub(crate) name: String,
}

impl Interface {
    /// Brings the interface up with its own address and a route to the peer, for IPv4 and, if the kernel supports it,
    /// IPv6.
    ///
    /// # Errors
    /// Returns the kernel's error; errors for IPv6 are ignored.
    pub(crate) fn configure(&self, own: Ipv4Addr, peer: Ipv4Addr) -> Result<(), Obstacle> {
        self.bring_up()?;
        add_address(self.index, own.into(), peer.into())
            .trying(&format!("giving {} its address", self.name))?;
        // A kernel without IPv6 returns an error, which is ignored.
        let _ = add_address(self.index, v6(own).into(), v6(peer).into());
        Ok(())
    }
}

impl Interface {
    /// Brings the interface up without an address, so that the kernel itself sends nothing there.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub(crate) fn bring_up(&self) -> Result<(), Obstacle> {
        // By default the kernel sends neighbour discovery packets over the link. A kernel without IPv6 lacks the
        // setting `addr_gen_mode` and sends no neighbour discovery packets.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{}/addr_gen_mode", self.name), "1");
        bring_up(self.index).trying(&format!("bringing {} up", self.name))
    }

    /// Adds an address without a peer address to the interface.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub(crate) fn add_address(&self, own: Ipv4Addr) -> io::Result<()> {
        add_address(self.index, own.into(), own.into())
    }
}

fn bring_up(index: u32) -> io::Result<()> {
    let up = libc::IFF_UP as u32;
    Netlink::route()?.request(&[Message::new(libc::RTM_NEWLINK, 0, &link(index, up, up))])
}

/// Fixed part of a message about an interface: its index, its flags, and a mask of the flags to change.
pub(crate) fn link(index: u32, flags: u32, changed: u32) -> [u8; LINK_BODY] {
    let mut body = [0; LINK_BODY];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&changed.to_ne_bytes());
    body
}

/// Length in bytes of the fixed part of a message about an interface.
const LINK_BODY: usize = 16;

/// Value of an attribute of the interface with this index in the socket's namespace.
///
/// # Errors
/// Returns the kernel's error; `ENODEV` if the interface or attribute does not exist.
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

/// Brings the loopback interface up; its index is 1 in every namespace.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    bring_up(1)
}

/// Lets the TCP connections of this namespace ask for ECN.
///
/// # Errors
/// Returns an error if the kernel refuses the setting.
pub(crate) fn ask_for_ecn() -> Result<(), Obstacle> {
    let setting = "/proc/sys/net/ipv4/tcp_ecn";
    fs::write(setting, "1").trying(&format!("writing {setting}"))
}

/// Gives an interface its own address and its peer's address.
fn add_address(index: u32, own: IpAddr, peer: IpAddr) -> io::Result<()> {
    let (family, bits) = family(own);
    // A point-to-point link has no neighbours, so duplicate address detection is unnecessary.
    let mut body = vec![family, bits, libc::IFA_F_NODAD as u8, 0];
    body.extend(index.to_ne_bytes());
    let message = Message::new(libc::RTM_NEWADDR, CREATE, &body)
        .attribute(libc::IFA_LOCAL, &octets(own))
        .attribute(libc::IFA_ADDRESS, &octets(peer));
    Netlink::route()?.request(&[message])
}

/// Adds an IPv4 default route through a gateway behind an interface.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
pub(crate) fn add_default_route(index: u32, gateway: Ipv4Addr) -> io::Result<()> {
    let message = route(libc::AF_INET, index, DEFAULT).attribute(libc::RTA_GATEWAY, &gateway.octets());
    Netlink::route()?.request(&[message])
}

/// Adds an IPv6 default route through a point-to-point interface. The route names no gateway, because the kernel can
/// route to a peer only some time after assigning the address.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
pub(crate) fn add_default_route_v6(index: u32) -> io::Result<()> {
    Netlink::route()?.request(&[route(libc::AF_INET6, index, DEFAULT)])
}

/// Routes the given destinations through a point-to-point interface.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
pub(crate) fn add_routes(index: u32, destinations: &BTreeSet<Prefix>) -> io::Result<()> {
    let routes = destinations.iter().map(|&(address, bits)| {
        route(libc::AF_INET, index, bits).attribute(libc::RTA_DST, &address.octets())
    });
    let routes: Vec<Message> = routes.collect();
    let mut netlink = Netlink::route()?;
    // The size of the socket buffer limits the number of routes per request.
    routes.chunks(256).try_for_each(|some| netlink.request(some))
}

fn route(family: libc::c_int, index: u32, bits: u8) -> Message {
    let (protocol, universe) = (libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE);
    let family = family as u8;
    let body = [family, bits, 0, 0, libc::RT_TABLE_MAIN, protocol, universe, libc::RTN_UNICAST, 0, 0, 0, 0];
    Message::new(libc::RTM_NEWROUTE, CREATE, &body).attribute(libc::RTA_OIF, &index.to_ne_bytes())
}

/// Prefix length of a default route.
const DEFAULT: u8 = 0;

/// All IPv4 destinations in any routing table, without default routes.
///
/// # Errors
/// Returns the kernel's error if the kernel refuses the request.
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

/// Bytes of an IP address as in a packet header.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
